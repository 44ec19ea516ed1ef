"""How a discovery shows itself in a notebook: the gist, who has what, and the kernels."""

from __future__ import annotations

from ..discovery.result import Discovery
from ..explain.describe import describe
from ..explain.stories import gist, stories
from ..explain.wording import Timeline
from ..plotting import component_colour
from .page import render

MOST_SERIES = 40  # of more series the first are shown


def card(found: Discovery, headline: str) -> str:
    """Return the card of a discovery, in HTML; the headline is its first line."""
    timeline, told = Timeline.of(found.table), stories(found)
    components = [
        {
            "number": k,
            "words": describe(kernel, timeline).short,
            "kernel": f"{kernel:.3g}",
            "colour": component_colour(k - 1),
        }
        for k, kernel in enumerate(found.kernels, start=1)
    ]
    rows = [
        (name, [(each.of(name).probability, each.verdicts[name] == "has") for each in told])
        for name in found.table.names[:MOST_SERIES]
    ]
    return render(
        "card.html",
        headline=headline,
        statements=gist(told),
        columns=[(each.title, component_colour(each.number - 1)) for each in told],
        components=components,
        rows=rows,
        left_out=max(0, len(found.table.names) - MOST_SERIES),
        stopped=found.stopped,
    )

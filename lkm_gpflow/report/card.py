"""How a discovery shows itself in a notebook: headline, who has what, components in words."""

from __future__ import annotations

from ..discovery.result import Discovery
from ..explain.describe import describe
from ..explain.wording import Timeline
from ..plotting import component_colour
from .page import render

MOST_SERIES = 40  # of more series the first are shown


def card(found: Discovery, headline: str) -> str:
    """Return the card of a discovery, in HTML; the headline is its first line."""
    timeline = Timeline.of(found.table)
    components = [
        {
            "number": k,
            "name": name,
            "words": describe(kernel, timeline).short,
            "kernel": f"{kernel:.3g}",
            "colour": component_colour(k - 1),
        }
        for k, (name, kernel) in enumerate(zip(found.names, found.kernels, strict=True), start=1)
    ]
    columns = [(f"{each['number']}. {each['name']}", each["colour"]) for each in components]
    probabilities, has = found.probabilities.to_numpy(), found.structure.to_numpy()
    rows = [
        (name, list(zip(ps, zs, strict=True)))
        for name, ps, zs in zip(found.table.names, probabilities, has, strict=True)
    ]
    return render(
        "card.html",
        headline=headline,
        columns=columns,
        components=components,
        rows=rows[:MOST_SERIES],
        left_out=max(0, len(rows) - MOST_SERIES),
        stopped=found.stopped,
    )

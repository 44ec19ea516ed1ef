"""How a discovery shows itself in a notebook: the gist, who has what, and the kernels."""

from __future__ import annotations

from ..discovery.result import Discovery
from ..explain.stories import gist, stories
from .components import ComponentReport
from .page import render

MOST_SERIES = 40  # of more series the first are shown


def card(found: Discovery, headline: str) -> str:
    """Return the card of a discovery, in HTML; the headline is its first line."""
    told, names = stories(found), found.table.names
    return render(
        "card.html",
        headline=headline,
        statements=gist(told),
        patterns=told,
        components=[ComponentReport(found, k + 1) for k in range(len(found.names))],
        names=names[:MOST_SERIES],
        left_out=max(0, len(names) - MOST_SERIES),
        stopped=found.stopped,
    )

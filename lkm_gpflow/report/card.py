"""How a discovery shows itself in a notebook: headline, who has what, components in words."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..discovery.result import Discovery
from ..explain.describe import describe
from ..explain.wording import Timeline
from ..plotting import component_colour
from .family import family_columns
from .page import render

MOST_SERIES = 40
"""Of more series the first are shown."""


_FAMILY = "#777777"
"""Colour of families, which have parts of several components."""


@dataclass(frozen=True)
class Cell:
    """Whether a series has a component."""

    probability: float  # P(z_nk = 1)
    has: bool  # whether that is likely (`Consensus.Z`)

    @property
    def opacity(self) -> str:
        """Of the component's colour."""
        return f"{self.probability:.2f}"


@dataclass(frozen=True)
class Column:
    """A component or a family at the head of the table."""

    # What it is called, and its colour.
    title: str
    colour: str


@dataclass(frozen=True)
class ComponentEntry:
    """A component: what it is called and looks like, in words and as a kernel."""

    number: int  # from 1
    # Its structure, a few words, and its structure with numbers.
    name: str
    words: str
    kernel: str

    @property
    def colour(self) -> str:
        """Its colour in all pictures."""
        return component_colour(self.number - 1)


def card(found: Discovery, headline: str) -> str:
    """Return the card of a discovery, in HTML; the headline is its first line."""
    timeline = Timeline.of(found.table)
    components = [
        ComponentEntry(k, name, describe(kernel, timeline).short, f"{kernel:.3g}")
        for k, (name, kernel) in enumerate(zip(found.names, found.kernels, strict=True), start=1)
    ]
    families = family_columns(found)
    columns = [Column(f"{each.number}. {each.name}", each.colour) for each in components]
    columns += [Column(each.title, _FAMILY) for each in families]
    probabilities = [found.probabilities.to_numpy(), *(f.probabilities[:, None] for f in families)]
    has = [found.structure.to_numpy(), *(f.likely[:, None] for f in families)]
    rows = [
        (name, [Cell(float(p), bool(z)) for p, z in zip(ps, zs, strict=True)])
        for name, ps, zs in zip(
            found.table.names, np.hstack(probabilities), np.hstack(has), strict=True
        )
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

"""How a discovery shows itself in a notebook: headline, who has what, components in words."""

from __future__ import annotations

from dataclasses import dataclass

from ..discovery.result import Discovery
from ..explain.describe import describe
from ..explain.wording import Timeline
from ..plotting import component_colour
from .page import render

MOST_SERIES = 40
"""Of more series the first are shown."""


@dataclass(frozen=True)
class Cell:
    """Whether a series has a component.

    Parameters
    ----------
    probability
        That the series has it, see `Discovery.probabilities`.
    has
        Whether that is likely (`Consensus.Z`).
    """

    probability: float
    has: bool

    @property
    def opacity(self) -> str:
        """Of the component's colour."""
        return f"{self.probability:.2f}"


@dataclass(frozen=True)
class Column:
    """A component at the head of the table.

    Parameters
    ----------
    title, colour
        What it is called, and its colour.
    """

    title: str
    colour: str


@dataclass(frozen=True)
class ComponentEntry:
    """A component: what it is called and looks like, in words and as a kernel.

    Parameters
    ----------
    number
        From 1.
    name, words, kernel
        Its structure, a few words, and its structure with numbers.
    """

    number: int
    name: str
    words: str
    kernel: str

    @property
    def colour(self) -> str:
        """Its colour in all pictures."""
        return component_colour(self.number - 1)


def card(found: Discovery, headline: str) -> str:
    """Return the card of a discovery, in HTML.

    Parameters
    ----------
    found
        The discovery.
    headline
        Its first line.
    """
    timeline = Timeline.of(found.table)
    components = [
        ComponentEntry(k, name, describe(kernel, timeline).short, f"{kernel:.3g}")
        for k, (name, kernel) in enumerate(zip(found.names, found.kernels, strict=True), start=1)
    ]
    columns = [Column(f"{each.number}. {each.name}", each.colour) for each in components]
    probabilities, has = found.probabilities.to_numpy(), found.structure.to_numpy()
    rows = [
        (name, [Cell(float(p), bool(z)) for p, z in zip(ps, zs, strict=True)])
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

"""Components of a report: the kernels by which the best fit expresses patterns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..discovery.result import Discovery
from ..explain.describe import Description, describe
from ..explain.wording import Timeline
from ..kernels.grammar import Kind
from ..plotting import component_colour

_MEASURED = (Kind.DURATION, Kind.PERIOD, Kind.MEMORY)
"""Hyperparameters that are spoken of: lengths of time."""


@dataclass(frozen=True)
class ComponentReport:
    """A component of the best fit: its kernel, in words and numbers."""

    number: int  # from 1
    # Its structure, and its structure with numbers.
    name: str
    kernel: str
    description: Description
    intervals: str  # between which lengths of time it lies by the draws; empty if it has none

    @property
    def colour(self) -> str:
        """Its colour in all pictures."""
        return component_colour(self.number - 1)

    @property
    def heading(self) -> str:
        """Its number and title: "2. Slow drift over 8 months"."""
        title = self.description.title
        return f"{self.number}. {title[:1].upper()}{title[1:]}"

    def to_dict(self) -> dict[str, Any]:
        """Return everything in JSON's types."""
        return {
            "number": self.number,
            "name": self.name,
            "title": self.description.title,
            "kernel": self.kernel,
            "description": self.description.text,
            "intervals": self.intervals,
        }


def component_report(found: Discovery, k: int) -> ComponentReport:
    """Put together what there is to say about component k."""
    timeline, kernel, span = Timeline.of(found.table), found.kernels[k], found.table.span
    measured = [] if found.says_by_fits else [m for m in found.marginals[k] if len(m.values)]
    said = [
        f"{one.name.split(' ', 1)[1]} "
        f"{timeline.interval(one.quantile(0.05) * span, one.quantile(0.95) * span)}"
        for one in measured
        if one.kind in _MEASURED
    ]
    intervals = f"With 90% probability: {', '.join(said)}." if said else ""
    words = describe(kernel, timeline)
    return ComponentReport(k + 1, found.names[k], f"{kernel:.3g}", words, intervals)

"""Components of a report: the kernels by which the best fit expresses patterns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..discovery.result import Discovery
from ..explain.describe import Description, describe
from ..explain.wording import Timeline
from ..kernels.grammar import Kind

_MEASURED = (Kind.DURATION, Kind.PERIOD, Kind.MEMORY)
"""Hyperparameters that are spoken of: lengths of time."""


@dataclass(frozen=True)
class ComponentReport:
    """A component of the best fit: its kernel, in words and numbers."""

    found: Discovery
    number: int  # from 1

    @property
    def name(self) -> str:
        """Its structure."""
        return self.found.names[self.number - 1]

    @property
    def kernel(self) -> str:
        """Its structure with numbers."""
        return f"{self.found.kernels[self.number - 1]:.3g}"

    @property
    def description(self) -> Description:
        """Its kernel in words."""
        return describe(self.found.kernels[self.number - 1], Timeline.of(self.found.table))

    @property
    def intervals(self) -> str:
        """Between which lengths of time it lies by the draws; empty if it has none."""
        if self.found.says_by_fits:
            return ""
        timeline, span = Timeline.of(self.found.table), self.found.table.span
        said = [
            f"{one.name.split(' ', 1)[1]} "
            f"{timeline.interval(one.quantile(0.05) * span, one.quantile(0.95) * span)}"
            for one in self.found.marginals[self.number - 1]
            if one.kind in _MEASURED and len(one.values)
        ]
        return f"With 90% probability: {', '.join(said)}." if said else ""

    @property
    def heading(self) -> str:
        """Its number and title: "2. Slow drift over 8 months"."""
        title = self.description.title
        return f"{self.number}. {title[:1].upper()}{title[1:]}"

    def to_dict(self) -> dict[str, Any]:
        """Return everything in JSON's types."""
        told = {name: getattr(self, name) for name in ("number", "name", "kernel", "intervals")}
        return told | {"title": self.description.title, "description": self.description.text}

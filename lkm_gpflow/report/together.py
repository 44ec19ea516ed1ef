"""What goes together: the section of a group report that a coupling adds."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from .. import plotting
from ..coupling.learn_coupling import STRONG
from ..explain.ties import Ties, Together
from ..runtime.text import listed
from .component_report import MOST_NAMES, ComponentReport
from .page import Picture, markdown


@dataclass(frozen=True)
class TogetherReport:
    """Components that go together in different series, by strong evidence."""

    ties: Ties
    components: tuple[ComponentReport, ...]

    @cached_property
    def pairs(self) -> list[tuple[ComponentReport, list[tuple[str, str, Together]]]]:
        """Components that go together in some series, and in which, the most evident first."""
        told = ((each, list(self.ties.strong(each.number - 1))) for each in self.components)
        return [(each, pairs) for each, pairs in told if pairs]

    @property
    def nothing(self) -> str:
        """Say if no component goes together, and what the coupled fits lack."""
        shared = [each for each in self.components if len(each.owners) > 1]
        unasked = [each.heading for each in shared if not self.ties.is_asked(each.number - 1)]
        said = []
        if not self.pairs:
            said.append("There is no strong evidence that any component goes together.")
            pairs = self.ties.coupled.pairs
            others = [f"{a} and {b}" for a, b, _, e in pairs.to_numpy() if e >= STRONG]
            if others:
                said.append(
                    "In other patterns of the coupled fits there is, for "
                    f"{listed(others, MOST_NAMES)}."
                )
        if unasked:
            said.append(
                f"No coupled fit has a pattern like {listed(unasked)}: nothing is known about that."
            )
        return " ".join(said)

    @property
    def lines(self) -> list[str]:
        """The section in Markdown."""
        lines = ["## What goes together", ""]
        for each, pairs in self.pairs:
            lines += [f"**{markdown(each.heading)}.**", ""]
            lines += [f"- {markdown(f'{a} and {b}: {tie.text}')}" for a, b, tie in pairs]
            lines.append("")
        return [*lines, self.nothing, ""] if self.nothing else lines

    @property
    def records(self) -> list[dict[str, Any]]:
        """Everything in JSON's types, a record for each component and pair."""
        return [
            {"component": each.number, "series": [a, b], **tie.to_dict()}
            for each, pairs in self.pairs
            for a, b, tie in pairs
        ]

    def picture(self) -> Picture:
        """How far series go together from one time to the next."""
        caption = "All patterns and noise; pairs without strong evidence are blank."
        ax = plotting.plot_pairs(self.ties.coupled)
        return Picture.of("Which series go together", caption, ax)

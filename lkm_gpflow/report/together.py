"""What knowing one series is worth for the forecast of another: a section that a coupling adds."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

from .. import plotting
from ..coupling.coupled_discovery import NOTHING, CoupledDiscovery, told_pairs
from ..discovery.result import Discovery
from .page import Picture, markdown


@dataclass(frozen=True)
class TogetherReport:
    """Series that narrow each other's forecasts."""

    coupled: CoupledDiscovery

    @classmethod
    def of(cls, found: Discovery, coupled: CoupledDiscovery | None) -> TogetherReport | None:
        """Return the section, if there is a coupling; it must be that of the discovery."""
        if coupled is None:
            return None
        if not found.table.frame.equals(coupled.table.frame):
            raise ValueError(
                "expected the coupling of this discovery, got one of another table: give "
                "coupled=found.couple()"
            )
        return cls(coupled)

    @cached_property
    def said(self) -> list[str]:
        """A sentence for each two series that go together, or one if none do."""
        return told_pairs(self.coupled.pairs) or [NOTHING]

    @property
    def lines(self) -> list[str]:
        """The section in Markdown."""
        said = [f"- {markdown(each)}" for each in self.said]
        return ["## What knowing one series is worth for another", "", *said, ""]

    @property
    def records(self) -> list[dict[str, Any]]:
        """Everything in JSON's types, a record for each series and what is given."""
        told = self.coupled.narrowing().rename(index=str).reset_index().astype(object)
        return cast("list[dict[str, Any]]", told.where(told.notna(), None).to_dict("records"))

    def picture(self) -> Picture:
        """By how much each series narrows the forecast of each."""
        caption = "One step ahead; pairs without strong evidence are blank."
        return Picture.of(
            "What knowing one series is worth for another",
            caption,
            plotting.plot_narrowing(self.coupled),
        )

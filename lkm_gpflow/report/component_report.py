"""One component of a group report: who has it, what it is, how sure that is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from ..discovery.result import Discovery
from ..explain.decomposition import Decomposition
from ..explain.describe import Description, describe
from ..explain.verdicts import ORDER, STRONG, SURE, WEIGHTY, Verdict
from ..explain.wording import Timeline, few_digits, sentence
from ..kernels.grammar import Kind
from ..plotting import component_colour
from ..plotting.style import unit_of
from ..runtime.text import listed, percent

MOST_NAMES = 8  # of series in a sentence

_NOTHING = 1e-12
"""A smaller share is that of a constant, whose height over time is a rounding error."""

_MEASURED = (Kind.DURATION, Kind.PERIOD, Kind.MEMORY)
"""Hyperparameters that are spoken of: lengths of time."""

_MOST_EVIDENCE = 20.0  # log Bayes factors above are all alike to a reader


@dataclass(frozen=True)
class Claim:
    """What is known of one series and one component."""

    # "has", "perhaps", "cannot be told" or "has not"; see `lkm_gpflow.explain.verdicts`.
    verdict: Verdict
    probability: float  # P(z_nk = 1)
    evidence: float  # log Bayes factor of this series: with the component, and without it
    share: float  # in the variation of the series, between 0 and 1
    # Standard deviation over time of what it adds to the series, in the unit of the series; of a
    # series that is modelled by its logarithm, by how many percent it raises or lowers it.
    height: float
    unit: str  # of the height: "%", or that of the series; empty if unknown

    @property
    def is_only_small(self) -> bool:
        """Whether nothing but its small share keeps a component from being certain."""
        is_sure = self.probability >= SURE and self.evidence >= STRONG
        return self.verdict == "perhaps" and is_sure and self.share < WEIGHTY

    @property
    def cells(self) -> tuple[str, str, str, str, str]:
        """All of it as it stands in a table: verdict, probability, evidence, share, height."""
        evidence = f"{round(self.evidence, 1) + 0.0:.1f}"  # no minus before a zero
        if abs(self.evidence) > _MOST_EVIDENCE:
            evidence = ("over " if self.evidence > 0.0 else "below -") + f"{_MOST_EVIDENCE:.0f}"
        height = "0" if self.share < _NOTHING else few_digits(self.height)
        return (
            self.verdict,
            f"{self.probability:.2f}",
            evidence,
            percent(self.share),
            f"{height}%" if self.unit == "%" else " ".join(filter(None, (height, self.unit))),
        )


CELLS = ("verdict", "P", "evidence", "share", "height")  # heads of `Claim.cells`
_MOST_ROWS = 12  # series that a table has


class Numbered:
    """What has a number and a title in all reports and pictures."""

    number: int
    description: Description

    @property
    def colour(self) -> str:
        """Its colour in all pictures."""
        return component_colour(self.number - 1)

    @property
    def title(self) -> str:
        """Its name for a reader: "4.7-month cycle"."""
        return self.description.title

    @property
    def heading(self) -> str:
        """Its number and title: "2. Slow drift over 8 months"."""
        return f"{self.number}. {self.title[:1].upper()}{self.title[1:]}"


@dataclass(frozen=True)
class ComponentReport(Numbered):
    """What there is to say about a component."""

    number: int  # from 1
    # Its structure, and its structure with numbers.
    name: str
    kernel: str
    description: Description
    claims: Mapping[str, Claim]  # what is known of each series, by name
    # Owners in which it rises or falls throughout.
    rising: tuple[str, ...]
    falling: tuple[str, ...]
    share: float  # its share in the variation of all series, each counting alike
    # 90% intervals of what it measures in time, see `Discovery.hyperparameters`: name, lower,
    # upper.
    ranges: tuple[tuple[str, float, float], ...]
    timeline: Timeline

    @property
    def probabilities(self) -> dict[str, float]:
        """P(z_nk = 1) of every series, by name."""
        return {name: claim.probability for name, claim in self.claims.items()}

    @property
    def owners(self) -> tuple[str, ...]:
        """Series that have it."""
        return self.those("has")

    @property
    def shares(self) -> dict[str, float]:
        """Its share in the variation of each owner."""
        return {name: self.claims[name].share for name in self.owners}

    def those(self, verdict: Verdict) -> tuple[str, ...]:
        """Series with this verdict."""
        return tuple(name for name, claim in self.claims.items() if claim.verdict == verdict)

    @property
    def who(self) -> str:
        """The heading, no more certain than the verdicts below it.

        Where some series have it, the paper's wording: "[Gold, Oil] share the following property".
        """
        if self.owners:
            verb = "share" if len(self.owners) > 1 else "has"
            return f"{self.named(self.owners)} {verb} the following property"
        if maybe := self.those("perhaps"):
            verb = "share" if len(maybe) > 1 else "has"
            return f"Perhaps {self.named(maybe, first=False)} {verb} the following property"
        if self.those("cannot be told"):
            return "It cannot be told whether any series has the following property"
        return "No series has the following property"

    def named(self, names: tuple[str, ...], first: bool = True) -> str:
        """Return names as they stand in a sentence, at its beginning or not."""
        if MOST_NAMES < len(names) == len(self.claims):
            return f"{'All' if first else 'all'} {len(names)} series"
        return listed(names, MOST_NAMES)

    @property
    def membership(self) -> str:
        """Who has it, who perhaps has it, and for whom it cannot be told."""
        said = []
        if self.owners:
            verb = "share" if len(self.owners) > 1 else "has"
            said.append(f"{self.named(self.owners)} {verb} it{self._range(self.owners)}.")
        little = tuple(name for name in self.those("perhaps") if self.claims[name].is_only_small)
        maybe = tuple(name for name in self.those("perhaps") if name not in little)
        for names, small in ((maybe, ""), (little, ", though only as a small part")):
            if names:
                verb = "have" if len(names) > 1 else "has"
                who = self.named(names, first=False)
                said.append(f"Perhaps {who} {verb} it{small}{self._range(names)}.")
        if untold := self.those("cannot be told"):
            if len(untold) == 1:
                said.append(f"It cannot be told whether {untold[0]} has it.")
            else:
                who = self.named(untold, first=False)
                said.append(f"It cannot be told which of {who} have it, if any.")
        return " ".join(said) or f"No series has {self.description.short}."

    def _range(self, names: tuple[str, ...]) -> str:
        """Return the range of the probabilities of some series."""
        chances = [f"{self.claims[name].probability:.2f}" for name in names]
        low, high = min(chances), max(chances)
        return f" (P {low})" if low == high else f" (P {low} to {high})"

    @property
    def table(self) -> list[list[str]]:
        """A head, and rows of what is known of each series that may have it, the surest first.

        Nothing if no series has it, nor perhaps has it, or if there are too many.
        """
        told = [(name, claim) for name, claim in self.claims.items() if claim.verdict != "has not"]
        if self.is_doubtful or len(told) > _MOST_ROWS:
            return []
        told.sort(key=lambda item: (ORDER[item[1].verdict], -item[1].share))
        return [["series", *CELLS], *([name, *claim.cells] for name, claim in told)]

    @property
    def is_doubtful(self) -> bool:
        """Whether no series has it, nor perhaps has it: it is then not worth many words."""
        return not self.owners and not self.those("perhaps")

    @property
    def directions(self) -> str:
        """In which series it rises and in which it falls; empty if the description says it."""
        if not (self.rising or self.falling) or "creasing" in self.description.sentences[0]:
            return ""
        said = []
        if self.rising:
            said.append(f"increases in {listed(self.rising, MOST_NAMES)}")
        if self.falling:
            said.append(f"decreases in {listed(self.falling, MOST_NAMES)}")
        return sentence(f"It {' and '.join(said)}")

    @property
    def explained(self) -> str:
        """How much of the variation it explains."""
        return f"It makes up {percent(self.share)} of all variation."

    @property
    def intervals(self) -> str:
        """Between which lengths of time it lies; empty if it has none."""
        said = [
            f"{name.split(' ', 1)[1]} {self.timeline.interval(lower, upper)}"
            for name, lower, upper in self.ranges
        ]
        return f"With 90% probability: {', '.join(said)}." if said else ""

    def to_dict(self) -> dict[str, Any]:
        """Return everything in JSON's types."""
        return {
            "number": self.number,
            "name": self.name,
            "title": self.title,
            "kernel": self.kernel,
            "short": self.description.short,
            "description": self.description.text,
            "owners": list(self.owners),
            "claims": {name: vars(claim) for name, claim in self.claims.items()},
            "share": self.share,
            "rising": list(self.rising),
            "falling": list(self.falling),
            "ranges": [list(each) for each in self.ranges],
        }


def component_report(
    found: Discovery,
    parts: Decomposition,
    verdicts: pd.DataFrame,
    units: Mapping[str, str],
    k: int,
) -> ComponentReport:
    """Put together what there is to say about component k."""
    names, consensus, judged = found.table.names, found.consensus, verdicts.to_numpy()
    timeline = Timeline.of(found.table)
    is_log = found.table.transforms.multiplies
    heights = parts.mean[k].std(axis=0) * found.table.scale
    heights = np.where(is_log, 100.0 * np.expm1(np.where(is_log, heights, 0.0)), heights)
    claims = {
        name: Claim(
            verdict=judged[n, k],
            probability=float(consensus.probabilities[n, k]),
            evidence=float(consensus.evidence[n, k]),
            share=float(parts.share[n, k]),
            height=float(heights[n]),
            unit="%" if is_log[n] else unit_of(units, name),
        )
        for n, name in enumerate(names)
    }
    has = [n for n, name in enumerate(names) if claims[name].verdict == "has"]
    rising, falling = (
        tuple(names[n] for n in has if parts.trend[n, k] == sign) for sign in (1.0, -1.0)
    )
    everywhere = int(len(rising) == len(has) > 0) - int(len(falling) == len(has) > 0)
    kernel = found.kernels[k]
    return ComponentReport(
        number=k + 1,
        name=found.names[k],
        kernel=f"{kernel:.3g}",
        description=describe(kernel, timeline, everywhere),
        claims=claims,
        rising=rising,
        falling=falling,
        share=float(np.mean(parts.share[:, k])),
        ranges=_ranges(found, k),
        timeline=timeline,
    )


def _ranges(found: Discovery, k: int) -> tuple[tuple[str, float, float], ...]:
    """Return 90% intervals of what a component measures in time."""
    span = found.table.span
    return tuple(
        (one.name, one.quantile(0.05) * span, one.quantile(0.95) * span)
        for one in found.marginals[k]
        if one.kind in _MEASURED and len(one.values)
    )

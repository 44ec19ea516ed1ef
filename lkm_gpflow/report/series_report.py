"""One series of a group report: what it consists of, and how far its forecast can be trusted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import binom

from ..discovery.result import Discovery
from ..explain.attribution import NOISE, folded, movement
from ..explain.attribution import shares as attribution_shares
from ..explain.decomposition import Decomposition
from ..explain.holdout import HoldOut
from ..explain.residuals import residual_tests
from ..explain.verdicts import Verdict
from ..runtime.text import level_in_percent, listed, percent
from ..sharing.consensus import OTHERS

CONSPICUOUS = 0.01  # A p-value below this is said to be too small for chance
_LITTLE = 0.005  # smaller shares are not named

_STILL = 0.2
"""Sds of a forecast: what moves it by less is not named.  Beside a strong cycle forecasts of white
noise moved by 0.001 to 0.15 (16 series of 60 or 120 rows); those of noise with a cycle half as high
as its sd by 0.23 to 0.43 where the cycle was found (7 of 8)."""

_SELDOM = 0.05  # intervals are too narrow if right ones would hold so few observations this seldom

_DOUBTS: Mapping[Verdict, str] = {
    "has": "",
    "perhaps": ", perhaps",
    "cannot be told": ", in doubt",
    "has not": ", unlikely",
}
"""What stands beside a share, by verdict."""


@dataclass(frozen=True)
class SeriesReport:
    """What there is to say about a series."""

    name: str
    shares: dict[str, float]  # share of each of its components, and of the noise, in its variation
    verdicts: dict[str, Verdict]  # on each component; see `lkm_gpflow.explain.verdicts`
    # Share of each part in its forecast; see `lkm_gpflow.explain.attribution.shares`.
    mean_shares: dict[str, float]
    variance_shares: dict[str, float]
    # How far the parts move its forecast, in sds; see `lkm_gpflow.explain.attribution.movement`.
    movement: float
    # Observations of the tail that was held out, and how many fell into the interval.
    held_out: int
    inside: int
    level: float  # of the interval held out
    # p-values; NaN where observations are too few.
    autocorrelation: float
    normality: float

    def account(self, phrases: Mapping[str, str]) -> str:
        """Say what it consists of and what moves its forecast; parts by the report's `phrases`."""
        return f"{self.consists_of(phrases)} {self.comes_from(phrases)}"

    def consists_of(self, phrases: Mapping[str, str]) -> str:
        """Say what it consists of, and what of it is in doubt."""
        told = [
            f"{phrases[part]} ({percent(share)}{_DOUBTS[self.verdicts.get(part, 'has')]})"
            for part, share in sorted(self.shares.items(), key=lambda item: -item[1])
            if share >= _LITTLE
        ]
        return f"The variation of {self.name} consists of {listed(told)}."

    def comes_from(self, phrases: Mapping[str, str]) -> str:
        """Say what moves its forecast and makes it uncertain."""
        if not self.mean_shares:
            return "Its forecast stays at its level."
        (mover, moved), (source, spread) = (
            max(parts.items(), key=lambda item: item[1])
            for parts in (self.mean_shares, self.variance_shares)
        )
        uncertain = f"comes from {phrases[source]}."
        if self.movement < _STILL:
            return (
                "Compared with its uncertainty, hardly anything moves its forecast away from the "
                f"average; {percent(spread)} of that uncertainty {uncertain}"
            )
        share = percent(moved)
        moves = f"{share[0].upper()}{share[1:]} of what moves its forecast away from the average"
        if mover == source:
            return f"{moves} and {percent(spread)} of its uncertainty come from {phrases[source]}."
        return (
            f"{moves} comes from {phrases[mover]}; {percent(spread)} of its uncertainty {uncertain}"
        )

    @property
    def is_covered(self) -> bool:
        """Whether the interval held about as much of the tail as it should."""
        return bool(binom.cdf(self.inside, self.held_out, self.level) >= _SELDOM)

    @property
    def is_checked(self) -> bool:
        """Whether so many observations were held out that right intervals seldom miss them all."""
        return bool(binom.cdf(0, self.held_out, self.level) < _SELDOM)

    @property
    def findings(self) -> tuple[str, ...]:
        """What was tested, in sentences."""
        said = []
        if self.held_out:
            said.append(self._coverage)
        if np.isfinite(self.autocorrelation):
            if self.autocorrelation < CONSPICUOUS:
                said.append(
                    f"One-step errors are correlated (p {_p(self.autocorrelation)}): "
                    "they hold a pattern that no component explains."
                )
            else:
                said.append(f"No pattern was found in its errors (p {_p(self.autocorrelation)}).")
        if np.isfinite(self.normality):
            if self.normality < CONSPICUOUS:
                said.append(
                    f"Errors are not Gaussian (p {_p(self.normality)}): intervals may hold more "
                    "or fewer observations than they say."
                )
            else:
                said.append(f"Errors look Gaussian (p {_p(self.normality)}).")
        return tuple(said)

    @property
    def _coverage(self) -> str:
        """How many of the held-out observations the interval held, and what that means."""
        meaning = ": too few to tell whether it is too narrow"
        if self.is_checked:
            meaning = "" if self.is_covered else ": the intervals are too narrow"
        interval = f"the {level_in_percent(self.level)} interval{meaning}."
        if self.held_out == 1:
            inside = "fell into" if self.inside else "missed"
            return f"Its last observation, forecast from what came before, {inside} {interval}"
        return (
            f"Of its last {self.held_out} observations, forecast from what came before, "
            f"{self.inside} fell into {interval}"
        )

    @property
    def verdict(self) -> str:
        """How far its forecast can be trusted."""
        tests = (self.autocorrelation, self.normality)
        complaints = sum(p < CONSPICUOUS for p in tests) + (0 if self.is_covered else 2)
        is_untold = not self.is_checked if self.held_out else not any(np.isfinite(tests))
        if is_untold and not complaints:
            return "too few observations to tell"
        return ("good", "with some care", "with care")[complaints] if complaints < 3 else "doubtful"

    def to_dict(self) -> dict[str, Any]:
        """Return everything in JSON's types."""
        p_values = {
            key: float(p) if np.isfinite(p) else None
            for key, p in (("autocorrelation", self.autocorrelation), ("normality", self.normality))
        }
        return {
            "name": self.name,
            "shares": self.shares,
            "verdicts": self.verdicts,
            "forecast_mean_shares": self.mean_shares,
            "forecast_variance_shares": self.variance_shares,
            "forecast_movement": self.movement,
            "held_out": self.held_out,
            "inside": self.inside,
            "level": self.level,
            "p_values": p_values,
            "findings": list(self.findings),
            "verdict": self.verdict,
        }


def _p(value: float) -> str:
    return "below 0.001" if value < 0.001 else f"= {value:.2g}"


def series_reports(
    found: Discovery,
    parts: Decomposition,
    judged: pd.DataFrame,
    attribution: pd.DataFrame,
    hold_out: HoldOut,
    level: float,
) -> tuple[SeriesReport, ...]:
    """Return what is said of each series, in the order of the table."""
    little = folded(attribution)
    mean, variance = (attribution_shares(little, m).T.to_dict() for m in ("mean", "variance"))
    moved = movement(attribution)
    held_out = hold_out.probabilities.notna().sum(axis=1)
    inside = (hold_out.inside(level) * held_out).fillna(0.0).round()
    tests = residual_tests(found)
    reports = []
    for n, (series, name) in enumerate(
        zip(found.table.frame.columns, found.table.names, strict=True)
    ):
        own = [*parts.share[n, :-1], parts.share_of_others[n], parts.share[n, -1]]
        named = zip([*found.names, OTHERS, NOISE], own, strict=True)
        reports.append(
            SeriesReport(
                name=name,
                verdicts=dict(zip(found.names, judged.iloc[n], strict=True)),
                shares={part: float(share) for part, share in named if share > 0.0},
                mean_shares=mean[series],
                variance_shares=variance[series],
                movement=float(moved[series]),
                held_out=int(held_out.iloc[n]),
                inside=int(inside.iloc[n]),
                level=level,
                autocorrelation=tests[n].autocorrelation,
                normality=tests[n].normality,
            )
        )
    return tuple(reports)

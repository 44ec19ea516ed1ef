"""One series of a group report: what it consists of, and how far its forecast can be trusted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, get_args

import numpy as np
import pandas as pd
from scipy.stats import binom

from ..discovery.result import Discovery
from ..explain.holdout import HoldOut
from ..explain.residuals import residual_tests
from ..explain.stories import Story, Verdict
from ..runtime.text import level_in_percent, listed

CONSPICUOUS = 0.01  # A p-value below this is said to be too small for chance
_SELDOM = 0.05  # intervals are too narrow if right ones would hold so few observations this seldom


@dataclass(frozen=True)
class SeriesReport:
    """What there is to say about a series."""

    name: str
    account: str  # what it does
    # Observations of the tail that was held out, and how many fell into the interval.
    held_out: int
    inside: int
    level: float  # of the interval held out
    # p-values; NaN where observations are too few.
    autocorrelation: float
    normality: float
    # One-step forecast errors in their own standard deviations.
    residuals: pd.Series = field(repr=False)

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
        for p, bad, complaint, good in (
            (self.autocorrelation, "One-step errors are correlated",
             "they hold a pattern that no component explains",
             "No pattern was found in its errors"),
            (self.normality, "Errors are not Gaussian",
             "intervals may hold more or fewer observations than they say", "Errors look Gaussian"),
        ):  # fmt: skip
            if p < CONSPICUOUS:
                said.append(f"{bad} (p {_p(p)}): {complaint}.")
            elif np.isfinite(p):
                said.append(f"{good} (p {_p(p)}).")
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
            "account": self.account,
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
    found: Discovery, told: Sequence[Story], hold_out: HoldOut, level: float
) -> tuple[SeriesReport, ...]:
    """Return what is said of each series, in the order of the table."""
    held_out = hold_out.probabilities.notna().sum(axis=1)
    inside = hold_out.inside(level)
    tests = residual_tests(found)
    return tuple(
        SeriesReport(
            name=name,
            account=_account(name, told),
            held_out=int(held_out.iloc[n]),
            inside=int(inside.iloc[n]),
            level=level,
            **vars(tests[n]),
        )
        for n, name in enumerate(found.table.names)
    )


def _account(name: str, told: Sequence[Story]) -> str:
    """Say what a series does: what it has, what it perhaps has, and what cannot be told."""
    by_verdict = {
        verdict: sorted(
            (each for each in told if each.verdicts[name] == verdict),
            key=lambda each: -each.of(name).share.median,
        )
        for verdict in get_args(Verdict)
    }
    sure = [each.account(name) for each in by_verdict["has"]]
    said = f"{name} has {'; '.join(sure)}." if sure else f"No pattern is certain in {name}."
    if maybe := by_verdict["perhaps"]:
        words = [f"{each.account(name)}, P {each.of(name).probability:.2f}" for each in maybe]
        said += f" Perhaps it has {'; '.join(words)}."
    if untold := by_verdict["cannot be told"]:
        said += f" It cannot be told whether it has {listed([e.named for e in untold], last='or')}."
    return said

"""Forecasts without learning: the last value, its drift, the last season.

The naive methods of Hyndman and Athanasopoulos, *Forecasting: Principles and Practice*, section
5.2 (their forecast variances: section 5.5).  A step is a row of the table, whatever time it takes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from ..data.tables import Table
from ..numerics.types import Floats
from .protocol import forecast_frame, register

_SEASONS = {
    **dict.fromkeys(("M", "ME", "MS", "BM", "BME", "BMS"), 12),
    **dict.fromkeys(("Q", "QE", "QS", "BQ", "BQE", "BQS"), 4),
    **{"W": 52, "B": 5, "D": 7, "h": 24, "H": 24},
}
"""Steps in a season, by pandas' name of the frequency."""


def season_length(table: Table) -> int:
    """Return the steps in a season by the frequency of the index, one where it has none."""
    name, _, _ = (table.axis.frequency or "").partition("-")
    return _SEASONS.get(name, 1)


@dataclass(frozen=True)
class Walk:
    """A fitted naive method: every series continues from `last`, by steps of mean `slope`.

    Parameters
    ----------
    series
        Names of the series.
    last
        The season that is repeated (one row for a season of one step), [m, N].
    slope
        Mean change of a season, [N].
    variance
        Variance of the change of a season, [N].
    slope_variance
        Variance of the estimated slope, [N].
    """

    series: pd.Index
    last: Floats
    slope: Floats
    variance: Floats
    slope_variance: Floats

    def forecast(self, times: pd.Index) -> pd.DataFrame:
        """See `Fitted.forecast`."""
        steps = np.arange(len(times))
        season = len(self.last)
        seasons_ahead = (steps // season + 1.0)[:, None]
        mean = self.last[steps % season] + seasons_ahead * self.slope
        variance = seasons_ahead * self.variance + seasons_ahead**2 * self.slope_variance
        return forecast_frame(self.series, times, mean, np.sqrt(variance))


@register("last-value")
@dataclass(frozen=True)
class LastValue:
    """A random walk without drift: mean y_T, variance h s^2 with s^2 the mean squared step."""

    def fit(self, train: pd.DataFrame, *, seed: int) -> Walk:
        """Take the last value and the steps; nothing is random."""
        return _walk(Table.of(train).frame, season=1, drift=False)


@register("drift")
@dataclass(frozen=True)
class Drift:
    """A random walk with drift d = (y_T - y_1) / (T - 1).

    Mean y_T + h d, variance h s^2 (1 + h / (T - 1)): the drift is an estimate too.
    """

    def fit(self, train: pd.DataFrame, *, seed: int) -> Walk:
        """Take the last value and the steps; nothing is random."""
        return _walk(Table.of(train).frame, season=1, drift=True)


@register("seasonal-naive")
@dataclass(frozen=True)
class SeasonalNaive:
    """The value one season ago, with the mean squared change of a season for each that passes.

    Parameters
    ----------
    season
        Steps in a season; None: by the frequency of the index (12 for months, 52 for weeks, 5 for
        working days, 7 for days), and one step where it has none or two seasons were not seen.
    """

    season: int | None = None

    def fit(self, train: pd.DataFrame, *, seed: int) -> Walk:
        """Take the last season and its changes; nothing is random."""
        table = Table.of(train)
        season = self.season
        if season is None:
            season = season_length(table)
            season = season if 2 * season <= len(table.frame) else 1
        if not 1 <= season < len(table.frame):
            raise ValueError(
                f"expected a season of 1 to {len(table.frame) - 1} steps, got {season}"
            )
        return _walk(table.frame, season, drift=False)


def _walk(frame: pd.DataFrame, season: int, drift: bool) -> Walk:
    # A missing value is carried forward from its season before, and back where there is none.
    filled = frame.copy()
    for phase in range(season):
        rows = filled.index[phase::season]
        filled.loc[rows] = filled.loc[rows].ffill().bfill()
    y = filled.ffill().bfill().to_numpy()
    changes = y[season:] - y[:-season]
    slope = changes.mean(axis=0) if drift else np.zeros(y.shape[1])
    variance = np.square(changes - slope).sum(axis=0) / max(len(changes) - drift, 1)
    slope_variance = variance / len(changes) if drift else np.zeros(y.shape[1])
    return Walk(frame.columns, y[-season:], slope, variance, slope_variance)

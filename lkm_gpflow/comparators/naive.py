"""Forecasts without learning: the last value, its drift, the last season.

The naive methods of Hyndman and Athanasopoulos, *Forecasting: Principles and Practice*, section
5.2 (their forecast variances: section 5.5).  A step is a row of the table, whatever time it takes.

Nothing is filled in.  A series is a walk that was seen at some rows: a change over k steps has the
variance k s^2, so s^2 is the mean of (change)^2 / k over neighbouring observations (for complete
series the mean squared step), and a series that ended g rows before the table is forecast g steps
further.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from ..data.seasons import checked_season, season_length
from ..data.tables import Table
from ..gp.types import Floats, Integers
from .protocol import MIN_SD, forecast_frame


@dataclass(frozen=True)
class Walk:
    """One series, continued from its last season by steps of mean `slope`."""

    last: Floats  # the season that is repeated (one value for a season of one step), [m]
    # Seasons that have passed since each of these values until the last row of the table, [m].
    age: Integers
    slope: float  # mean change of a season
    variance: float  # variance of the change of a season
    slope_variance: float  # variance of the estimated slope

    def ahead(self, count: int) -> tuple[Floats, Floats]:
        """Means and sds of the next `count` values, [count] each."""
        steps = np.arange(count)
        place = steps % len(self.last)
        seasons = self.age[place] + steps // len(self.last) + 1.0
        variance = seasons * self.variance + seasons**2 * self.slope_variance
        return self.last[place] + seasons * self.slope, np.sqrt(variance)


@dataclass(frozen=True)
class Walks:
    """A walk for every series."""

    series: pd.Index
    walks: tuple[Walk, ...]  # in the same order
    # Of their forecasts, `MIN_SD` in units of the series: a line has no steps but its drift.
    least_sd: Floats

    @classmethod
    def of(cls, table: Table, learn: Callable[[pd.Series], Walk]) -> Walks:
        """Fit every series alone."""
        walks = tuple(learn(y) for _, y in table.frame.items())
        return cls(table.frame.columns, walks, MIN_SD * table.scale)

    def forecast(self, times: pd.Index) -> pd.DataFrame:
        """See `Fitted.forecast`."""
        moments = [walk.ahead(len(times)) for walk in self.walks]
        mean, sd = (np.column_stack(each) for each in zip(*moments, strict=True))
        return forecast_frame(self.series, times, mean, np.maximum(sd, self.least_sd))


@dataclass(frozen=True)
class LastValue:
    """A random walk without drift: mean y_T, variance h s^2 with s^2 the mean squared step."""

    def fit(self, train: pd.DataFrame, *, seed: int) -> Walks:
        """Take the last value and the steps; nothing is random."""
        return Walks.of(Table.of(train), lambda y: _walk(y, season=1, drift=False))


@dataclass(frozen=True)
class Drift:
    """A random walk with drift d = (y_T - y_1) / (T - 1).

    Mean y_T + h d, variance h s^2 (1 + h / (T - 1)): the drift is an estimate too.
    """

    def fit(self, train: pd.DataFrame, *, seed: int) -> Walks:
        """Take the last value and the steps; nothing is random."""
        return Walks.of(Table.of(train), lambda y: _walk(y, season=1, drift=True))


@dataclass(frozen=True)
class SeasonalNaive:
    """The value one season ago, with the mean squared change of a season for each that passes.

    Every step of the season (all Januaries) is a walk of its own, all with one variance.  One that
    was never seen begins on the line between its neighbours.
    """

    #: Steps in a season; where None, by the frequency of the index (12 for months, 52 for weeks,
    #: 5 for working days, 7 for days; see `season_length`), and one step for series where it has
    #: none or where fewer changes were seen than there are steps in a season (without gaps: less
    #: than two seasons).
    season: int | None = None

    def fit(self, train: pd.DataFrame, *, seed: int) -> Walks:
        """Take the last season and its changes; nothing is random."""
        table = Table.of(train)
        if self.season is not None:
            asked = checked_season(table, self.season)
            return Walks.of(table, lambda y: _walk(y, asked, drift=False))
        found = season_length(table)

        def learn(y: pd.Series) -> Walk:
            enough = len(_changes(y.to_numpy(), found)[0]) >= found
            return _walk(y, found if enough else 1, drift=False)

        return Walks.of(table, learn)


def _changes(y: Floats, season: int) -> tuple[Floats, Integers]:
    """Changes between neighbouring observations at one step of the season, and their seasons."""
    seen = np.flatnonzero(np.isfinite(y))
    seen = seen[np.argsort(seen % season, kind="stable")]
    same = np.diff(seen % season) == 0
    return np.diff(y[seen])[same], np.diff(seen)[same] // season


def _walk(series: pd.Series, season: int, drift: bool) -> Walk:
    y = series.to_numpy()
    changes, seasons = _changes(y, season)
    if len(changes) == 0:
        raise ValueError(
            f"series {series.name!r}: expected two observations a season of {season} steps apart "
            "(or several seasons), got none"
        )
    slope = changes.sum() / seasons.sum() if drift else 0.0
    squares = np.square(changes - seasons * slope) / seasons
    variance = squares.sum() / max(len(changes) - drift, 1)
    slope_variance = variance / seasons.sum() if drift else 0.0
    final = np.arange(len(y) - season, len(y))
    seen = np.flatnonzero(np.isfinite(y))
    rows = np.array([max(seen[seen % season == row % season], default=row) for row in final])
    last = np.interp(rows, seen, y[seen])
    return Walk(last, (final - rows) // season, slope, variance, slope_variance)

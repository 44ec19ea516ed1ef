"""What fits of a search forecast: their weighted average, in the units of the series."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import numpy as np
import pandas as pd

from ..coupling.coupled_discovery import CoupledDiscovery, couple
from ..data.tables import Table
from ..fit.fits import Fit
from ..forecast.averaging import average
from ..forecast.columns import quantile_column
from ..forecast.forecasters import BaseForecaster, Ensemble, Member, counting, warn_of_late_series
from ..forecast.predictors import Predictors
from ..gp.types import Floats
from ..runtime.arguments import check_level as check_level
from ..runtime.arguments import check_series
from ..search.ledger import Entry
from ..search.settings import SearchSettings

if TYPE_CHECKING:
    from ..model.lkm import LKM

_MOST_TOLD = 8
"""Predictions that are kept, for pictures that ask for them again."""

Averaging = Literal["stacked", "tempered", "none"]


@dataclass(frozen=True, eq=False)
class Forecaster:
    """Fits of a search, and what they forecast together.

    Parameters
    ----------
    table
        The training data and its scaling.
    settings
        Of the search.
    averaging
        "stacked", "tempered" or "none".
    entries
        Every fit of the search; with a subset the fits that were learnt on all series.
    stacked
        The forecasters of the average if `averaging` is "stacked"; none: as if "tempered".
    stopped
        Which budget ended what, in a sentence; empty if nothing was stopped.
    """

    table: Table
    settings: SearchSettings
    averaging: Averaging
    entries: tuple[Entry, ...]
    stacked: tuple[BaseForecaster, ...] = ()
    stopped: str = ""

    @cached_property
    def fit(self) -> Fit:
        """The best fit, in scaled units; components that explain more come first."""
        entries = self.entries
        if self.settings.fit.learner == "relaxed":
            # Of the starts of a structure the bound has chosen one.
            entries = tuple(e for e in entries if e.decision == "accepted") or entries
        best = min((entry.fit for entry in entries), key=lambda fit: fit.criterion)
        return self.predictors.best_first(best)

    @cached_property
    def model(self) -> LKM:
        """The fitted model, on scaled data: times span one, series have unit variance."""
        from ..forecast.by_model import to_model  # with TensorFlow, which takes seconds to load

        return to_model(self.fit, self.table.observations, self.settings.fit)

    # --- forecasts ---

    @cached_property
    def predictors(self) -> Predictors:
        """What each fit says of any times; forecasts, reports and pictures ask again and again."""
        return Predictors(self.table.observations, self.settings.fit)

    @cached_property
    def members(self) -> list[BaseForecaster]:
        """The forecasters of the average; their weights add up to one."""
        if self.averaging == "none":
            return [Member(self.fit, 1.0)]
        if self.averaging == "stacked" and self.stacked:
            return list(self.stacked)
        return list(average([entry.fit for entry in self.entries]))

    @cached_property
    def ensemble(self) -> Ensemble:
        """The forecasters that weigh something, and what they forecast together."""
        averages = self.averaging != "none"
        return Ensemble(self.table, tuple(counting(self.members)), self.predictors, averages)

    @cached_property
    def searched(self) -> list[Member]:
        """The fits that the search found, without the walks; their weights add up to one."""
        found = [m for m in self.members if isinstance(m, Member) and not m.is_walk]
        total = sum(member.weight for member in found)
        return counting([replace(member, weight=member.weight / total) for member in found])

    def forecast(
        self,
        horizon: int | pd.Index,
        level: float | Sequence[float] = 0.9,
        quantiles: Sequence[float] = (),
    ) -> pd.DataFrame:
        """Forecast new observations.

        Parameters
        ----------
        horizon
            How many steps after the last row, or the times themselves.
        level
            Probability of the interval from `lower` to `upper`; of several, the columns are
            called lower50, upper50, lower90 and so on.
        quantiles
            Such as 0.05, for columns called q0.05.

        Returns
        -------
        DataFrame with index (series, time) and columns mean, sd, lower, upper, in the units of
        the series; sd is that of a new observation, with its noise.  An average over fits is a
        Student-t of six degrees of freedom (see `tails`).  If a series is modelled by its
        logarithm, mean and sd are those of a mixture of lognormals, and the median (the quantile
        0.5) lies below the mean.

        Raises
        ------
        ValueError
            If the horizon is below one or goes beyond what dates can tell, times are not of the
            table's kind, or a level or quantile is not between zero and one.
        """
        return self.ensemble.at(self.times(horizon)).frame(level, quantiles)

    def samples(self, horizon: int | pd.Index, count: int = 100, *, seed: int = 0) -> pd.DataFrame:
        """Draw paths of new observations, which hold together over time.

        Returns
        -------
        DataFrame with index (series, time) and a column for each path, in the units of the series.
        """
        return self.ensemble.at(self.times(horizon)).samples(count, seed)

    def sample(self, horizon: int | pd.Index, count: int = 100, *, seed: int = 0) -> pd.DataFrame:
        """Draw paths: the older name of `samples`."""
        return self.samples(horizon, count, seed=seed)

    def quantiles(
        self, horizon: int | pd.Index, levels: Sequence[float] = (0.05, 0.5, 0.95)
    ) -> pd.DataFrame:
        """Quantiles of new observations: index (series, time), columns levels; see `forecast`."""
        told = self.forecast(horizon, quantiles=levels)
        return told[[quantile_column(q) for q in levels]].set_axis(list(levels), axis=1)

    def fill(self, level: float = 0.9) -> pd.DataFrame:
        """What missing observations may have been, each from its own series.

        Other series tell more if they go together: see `couple`.  Random walks (RW, IOU) begin not
        long before the table's first time: of a series that begins later, intervals before its
        first observation are too narrow unless every fit has a level (C), and a UserWarning says
        so.

        Returns
        -------
        DataFrame of the gaps, index (series, time), with columns mean, sd, lower, upper.

        Raises
        ------
        ValueError
            If the level is not between zero and one.
        """
        gaps = self.table.gaps
        warn_of_late_series(self.table.frame, [member.fit for member in self.ensemble.fits])
        told = self.predict(gaps.get_level_values(1).unique().sort_values(), level)
        return told.loc[gaps]

    def aggregate(
        self, horizon: int | pd.Index, weights: Mapping[object, float], level: float = 0.9
    ) -> pd.DataFrame:
        """Weighted sums of the series.

        Given a fit series are independent, see `couple`; for the vector autoregression they are
        not.

        The interval of a single series is that of its forecast, scaled; of a sum it is normal.
        Where logarithms are summed the interval is that of draws; mean and sd are exact.

        Parameters
        ----------
        horizon
            Steps after the last row, or the times themselves.
        weights
            By series; of a spread one is negative.
        level
            Of the interval.

        Returns
        -------
        DataFrame by time with columns mean, sd, lower, upper.

        Raises
        ------
        ValueError
            As `forecast`; or if there are no weights, one is not finite, or names no series.
        """
        return self.ensemble.at(self.times(horizon)).aggregate(weights, level)

    def couple(self, most: int = 4) -> CoupledDiscovery:
        """Learn which components of different series go together; errors: see `coupled.couple`.

        It is a step of its own because not every table gains: gaps and missing ends do, and sums
        and what-if need it.  Forecasts of complete tables may gain or lose: over three origins in
        the training parts their CRPS was 1.01 (GONU), 0.91 (houses), 0.98 (stocks) and 1.04
        (currencies) of that without it.  They are normal, with the variances that the fits say;
        the vector autoregression has no part in them.

        Parameters
        ----------
        most
            So many fits of the highest weight are coupled, and count from there on.
        """
        return couple(self.table, self.ensemble.fits, most)

    def predict(self, times: pd.Index, level: float = 0.9) -> pd.DataFrame:
        """As `forecast`, at any times, also within the history.

        Random walks (RW, IOU) begin not long before the table's first time.  Before it their
        uncertainty does not grow, so the intervals there are too narrow; a UserWarning says so.

        Raises
        ------
        ValueError
            If the times are not of the table's kind, or the level is not between zero and one.
        """
        return self.ensemble.at(times).frame(level)

    def predict_modelled(self, times: pd.Index) -> pd.DataFrame:
        """Moments on the scale on which each series is modelled (see `data.transforms`).

        Quantiles of new observations are those of a Student-t of this mean and sd, exponentiated
        where logarithms are modelled.  Index (series, time), columns mean, sd and degrees (of
        freedom; infinite: normal).
        """
        told = self.ensemble.at(times)
        mean, variance = told.modelled
        columns = {"mean": mean, "sd": np.sqrt(variance), "degrees": told.degrees}
        return pd.DataFrame(columns, told.cells)

    def median(self, times: pd.Index) -> pd.Series:
        """Medians of new observations at any times, index (series, time); raises as `predict`."""
        told = self.ensemble.at(times)
        return pd.Series(told.quantile(0.5), told.cells, name="median")

    def _tell(self, key: tuple[object, ...], moments: tuple[Floats, ...]) -> None:
        if len(self._told) >= _MOST_TOLD:
            self._told.clear()
        self._told[key] = moments

    @cached_property
    def _told(self) -> dict[tuple[object, ...], tuple[Floats, ...]]:
        return {}

    def places(self, *series: object) -> tuple[int, ...]:
        """Return the numbers of different series; a ValueError says which are known."""
        columns: list[object] = list(self.table.frame.columns)
        for name in series:
            check_series(name, columns)
            if series.count(name) > 1:
                raise ValueError(f"expected different series, got {name!r} twice")
        return tuple(columns.index(name) for name in series)

    def times(self, horizon: int | pd.Index) -> pd.Index:
        """Return the times of a forecast: so many steps after the last row, or those given."""
        return self.table.after(horizon)

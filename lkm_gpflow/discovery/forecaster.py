"""What fits of a search forecast: their weighted average, in the units of the series."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Literal, cast

import numpy as np
import pandas as pd

from ..coupling.coupled_discovery import CoupledDiscovery, couple
from ..data.tables import Table
from ..fit.fits import Fit
from ..forecast.autoregression import Autoregression
from ..forecast.averaging import Member, average, counting, mixture_moments
from ..forecast.beginnings import warn_of_late_series, warn_of_times_before
from ..forecast.columns import quantile_column
from ..forecast.joint import intervals
from ..forecast.prediction import Moments, Prediction
from ..forecast.predictors import Predictors
from ..forecast.tails import FORECAST_VARIANCE, degrees_of_freedom
from ..forecast.weighted_series import sum_moments, sum_quantiles
from ..gp.student import unit_quantile
from ..gp.types import Floats
from ..runtime.arguments import check_level as check_level
from ..runtime.arguments import check_quantiles, check_series, check_weights
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
        The fits that forecasts average over if `averaging` is "stacked"; none: as if "tempered".
    stopped
        Which budget ended what, in a sentence; empty if nothing was stopped.
    autoregression
        The vector autoregression that forecasts average over, too, if `averaging` is "stacked".
    """

    table: Table
    settings: SearchSettings
    averaging: Averaging
    entries: tuple[Entry, ...]
    stacked: tuple[Member, ...] = ()
    stopped: str = ""
    autoregression: Autoregression | None = None

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
    def members(self) -> list[Member]:
        """The fits that forecasts average over, and their weights."""
        if self.averaging == "none":
            return [Member(self.fit, 1.0)]
        if self.averaging == "stacked" and self.stacked:
            return list(self.stacked)
        return average([entry.fit for entry in self.entries])

    @cached_property
    def searched(self) -> list[Member]:
        """The members that the search found, without the walks; their weights add up to one."""
        found = [member for member in self.members if not member.is_walk]
        total = sum(member.weight for member in found)
        return counting([replace(member, weight=member.weight / total) for member in found])

    @property
    def counting_members(self) -> list[Member]:
        """The members without those of next to no weight."""
        return counting(self.members)

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
        check_quantiles(quantiles)
        times = self.times(horizon)
        if np.ndim(level) == 0 and not len(quantiles):
            return self.predict(times, cast(float, level))
        from .export import several_intervals

        levels = cast(Sequence[float], [level] if np.ndim(level) == 0 else level)
        return several_intervals(self, times, levels, quantiles)

    def samples(self, horizon: int | pd.Index, count: int = 100, *, seed: int = 0) -> pd.DataFrame:
        """Draw paths of new observations; see `export.sample_paths`, also for what it raises."""
        from .export import sample_paths

        return sample_paths(self, self.times(horizon), count, seed)

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
        warn_of_late_series(self.table.frame, [member.fit for member in self.counting_members])
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
        check_weights(weights)
        times, own = self.times(horizon), np.zeros(len(self.table.scale))
        own[list(self.places(*weights))] = list(weights.values())
        if np.count_nonzero(own) == 1:
            return self._multiple(times, int(np.argmax(own != 0.0)), own.sum(), level)
        x = self.table.scaled_times(times)
        members = self._by_member(x)
        correlations: list[Floats | None] = [None] * len(members)
        if self.autoregression is not None and np.any(self.shares_of_fits(x) < 1.0):
            correlations[-1] = self.autoregression.correlations(x)
        sums = sum_moments([self._in_units(member) for member in members], correlations, own)
        mean, variance = mixture_moments(sums)
        told = intervals(times, mean, np.sqrt(variance), level, ())
        if self.table.transforms.any:
            modelled = [self._modelled(member) for member in members]
            tail = 0.5 - 0.5 * level
            told["lower"], told["upper"] = sum_quantiles(
                modelled, correlations, self.table.transforms, own, [tail, 1.0 - tail]
            )
        return told

    def _multiple(self, times: pd.Index, n: int, weight: float, level: float) -> pd.DataFrame:
        """Return the forecast of a series times a weight."""
        told = self.predict(times, level).iloc[n * len(times) : (n + 1) * len(times)]
        told = weight * told.set_axis(times)
        if weight < 0.0:
            told = told.rename(columns={"lower": "upper", "upper": "lower"})
        return told.assign(sd=told["sd"].abs())[["mean", "sd", "lower", "upper"]]

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
        return couple(self.table, self.counting_members, most)

    def predict(self, times: pd.Index, level: float = 0.9) -> pd.DataFrame:
        """As `forecast`, at any times, also within the history.

        Random walks (RW, IOU) begin not long before the table's first time.  Before it their
        uncertainty does not grow, so the intervals there are too narrow; a UserWarning says so.

        Raises
        ------
        ValueError
            If the times are not of the table's kind, or the level is not between zero and one.
        """
        check_level(level)
        told, transforms = self._moments(times), self.table.transforms
        half = unit_quantile(0.5 + 0.5 * level, told.degrees) * told.spread
        columns = {
            "mean": told.mean,
            "sd": told.sd,
            "lower": transforms.back(told.centre - half),
            "upper": transforms.back(told.centre + half),
        }
        return self._by_cell(times, columns)

    def predict_modelled(self, times: pd.Index) -> pd.DataFrame:
        """Moments on the scale on which each series is modelled (see `data.transforms`).

        Quantiles of new observations are those of a Student-t of this mean and sd, exponentiated
        where logarithms are modelled.  Index (series, time), columns mean, sd and degrees (of
        freedom; infinite: normal).
        """
        told = self._moments(times)
        moments = {"mean": told.centre, "sd": told.spread, "degrees": told.degrees}
        return self._by_cell(times, moments)

    def median(self, times: pd.Index) -> pd.Series:
        """Medians of new observations at any times, index (series, time); raises as `predict`."""
        told = self.table.transforms.back(self._moments(times).centre)
        return self._by_cell(times, {"median": told})["median"]

    def _by_cell(self, times: pd.Index, columns: Mapping[str, Floats]) -> pd.DataFrame:
        """Arrange arrays [M, N] by series and time."""
        product = [self.table.frame.columns, times]
        index = pd.MultiIndex.from_product(product, names=["series", "time"])
        return pd.DataFrame({name: v.T.ravel() for name, v in columns.items()}, index=index)

    def _moments(self, times: pd.Index) -> Moments:
        """Return the moments of new observations; pictures ask again."""
        x = self.table.scaled_times(times)
        key = tuple(x)
        if key not in self._told:
            if np.any(x < 0.0):
                fits = [member.fit for member in self.counting_members]
                warn_of_times_before(self.table.frame, fits)
            members, table = self._by_member(x), self.table
            centre, variance = mixture_moments(members)
            centre, spread = centre * table.scale + table.location, np.sqrt(variance) * table.scale
            mean, sd = centre, spread
            if table.transforms.any:
                mean, variance = mixture_moments([self._in_units(member) for member in members])
                sd = np.sqrt(variance)
            self._tell(key, Moments(centre, spread, mean, sd, self.degrees_of_freedom(x)))
        return Moments(*self._told[key])

    def _by_member(self, x: Floats) -> list[Prediction]:
        """Return what every fit and the autoregression say, in scaled times and units."""
        predictions, share = [], self.shares_of_fits(x)
        for member in self.counting_members:
            mean, variance = self.predictors.of(member.fit).observed(x)
            variance = variance * self.variance_factors(x, member.spread)
            predictions.append((member.weight * share, mean, variance))
        if self.autoregression is not None and np.any(share < 1.0):
            mean, variance = self.autoregression.observed(x)
            predictions.append((1.0 - share, mean, variance * self.variance_factors(x)))
        return predictions

    @property
    def share_of_fits(self) -> float:
        """Weight of all fits together in forecasts; the autoregression has the rest."""
        if self.autoregression is None or self.averaging != "stacked":
            return 1.0
        return 1.0 - self.autoregression.weight

    def shares_of_fits(self, x: Floats) -> Floats:
        """The same at any scaled times, [M, 1]: within the data the fits have all."""
        return np.where(x > self.table.observations.x[-1], self.share_of_fits, 1.0)[:, None]

    def _modelled(self, prediction: Prediction) -> Prediction:
        """Return a prediction on the modelled scale, not divided by the scale of the series."""
        (weight, mean, variance), table = prediction, self.table
        return weight, mean * table.scale + table.location, variance * np.square(table.scale)

    def _in_units(self, prediction: Prediction) -> Prediction:
        """Return a prediction in the units of the series."""
        weight, mean, variance = self._modelled(prediction)
        return weight, *self.table.transforms.moments(mean, variance)

    def _tell(self, key: tuple[object, ...], moments: tuple[Floats, ...]) -> None:
        if len(self._told) >= _MOST_TOLD:
            self._told.clear()
        self._told[key] = moments

    def variance_factors(self, x: Floats, spread: float = 1.0) -> Floats:
        """Factors of variances at scaled times, [M, N], with a `Member`'s spread; see `tails`."""
        is_as_told = self.table.transforms.is_log | (self.averaging == "none")
        factors = spread * np.where(is_as_told, 1.0, FORECAST_VARIANCE)
        return np.where(x[:, None] > self.table.observations.x[-1], factors, 1.0)

    def degrees_of_freedom(self, x: Floats) -> Floats:
        """Degrees of freedom of new observations at scaled times, [M, N]; see `tails`."""
        return degrees_of_freedom(
            self.table, x, self.settings.fit.likelihood, averages=self.averaging != "none"
        )  # fmt: skip

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

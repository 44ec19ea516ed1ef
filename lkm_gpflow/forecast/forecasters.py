"""The forecasters that count, in one list, and the mixture of what they say.

A forecaster is a fit of the search or a draw of the posterior in its place, or a walk learnt beside
the search.  Each has a weight (`stacking.weigh`), says the moments of new observations at any times
and draws paths; and each can forecast a window of the past again without having seen it, but a
draw, whose hyperparameters have seen it.  `Ensemble.at` makes the forecast.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, TypeAlias

import numpy as np
import pandas as pd

from ..data.observations import Observations
from ..data.tables import Table
from ..fit.fits import Fit, FitSettings
from ..fit.training import most_times
from ..gp.types import Floats
from ..runtime.text import quoted
from ..runtime.threads import single_threaded
from ..runtime.warn import warn
from ..search.ledger import fit_from_json, fit_key, fit_to_json
from .held_out import (
    HeldOut,
    Window,
    held_out_forecast,
    held_out_score,
    nothing_told,
    windows,
)
from .mixture import MixtureForecast, Part
from .predictors import Predictors

Kind: TypeAlias = Literal["found", "walk", "seasonal walk"]

LITTLE_WEIGHT = 1e-3
"""Forecasters of a smaller weight are not asked."""

FORECAST_DEGREES = 6.0
"""Degrees of freedom of forecasts that average over several forecasters.

With these degrees and `FORECAST_VARIANCE` 90% intervals are as wide as those of a normal without
the factor, 50% intervals narrower and 99% intervals wider (`paper_experiments/benchmark.ipynb`).
Logarithms stay normal: the exponential of a Student-t has no mean.
"""

FORECAST_VARIANCE = 1.075
"""Factor of the variance of such forecasts; logarithms have none."""

_JITTER = 1e-10
"""Added to variances of scaled series, for covariances of neighbouring times."""

_MOST_KEPT = 8
"""Forecasts that an ensemble keeps, for pictures that ask for them again."""


@dataclass(frozen=True)
class Member:
    """A fit as a forecaster; times x [M] are scaled, and so are values.

    Parameters
    ----------
    fit
        The fit.
    weight
        Its weight; those of all forecasters of an ensemble add up to one.
    kind
        "found" by the search, or a "walk" or "seasonal walk" that was learnt beside it.
    exact
        Whether it was learnt with almost no noise (`FitSettings.exact`).
    """

    fit: Fit
    weight: float
    kind: Kind = "found"
    exact: bool = False

    @property
    def is_walk(self) -> bool:
        """Whether the search did not find it."""
        return self.kind != "found"

    @property
    def note(self) -> str:
        """Key of a ledger's note on windows: another search may have as many fits."""
        return f"weighed {fit_key(self.fit)}"

    def held_out_scores(self, observations: Observations, settings: FitSettings) -> list[float]:
        """Score the windows of the past, learning again before each; see `score_of_window`."""
        settings = replace(settings, exact=self.exact)
        with single_threaded():
            return [
                held_out_score(self.fit, observations, window, settings)
                for window in windows(len(observations.x))
            ]

    def held_out(
        self, observations: Observations, window: Window, settings: FitSettings
    ) -> HeldOut:
        """Forecast a window of the past: a fit is learnt again from what came before it.

        Raises
        ------
        ValueError
            If it cannot be learnt from that.
        """
        if self.fit.is_drawn:
            told = nothing_told(observations, window)
            before = observations.at_times(np.arange(window.begin, dtype=np.int32))
            known = np.flatnonzero(before.mask.any(axis=1))
            asked = Predictors(before.of_series(known), settings).of(self.fit.of_series(known))
            mean, variance = asked.observed(observations.x[window.begin : window.end])
            told.mean[known], told.variance[known] = mean.T, variance.T
            return told
        settings = replace(settings, exact=self.exact)
        return held_out_forecast(self.fit, observations, window, settings, rounds=1)

    def moments(self, x: Floats, asked: Predictors) -> tuple[Floats, Floats]:
        """Mean and variance of new observations, [M, N] each."""
        return asked.of(self.fit).observed(x)

    def samples(
        self, count: int, x: Floats, degrees: Floats, asked: Predictors, rng: np.random.Generator
    ) -> Floats:
        r"""Draw paths of a Student-t process that hold together over time, [count, N, M].

        .. math:: m + \sqrt{(v - 2) / \chi^2_v}\; e, \qquad e \sim N(0,\; S + E[s] \sigma^2 I)

        with mean and covariance of the fit at all times at once, E[s] the mean of the series' scale
        (one if it has none), and v the degrees of freedom [M, N]; series are independent.
        """
        predictor, whole = asked.of(self.fit), np.ones((1, len(self.fit.kernels)))
        mean, covariance = (moment[:, 0] for moment in predictor.sums(x, whole, full_cov=True))
        noise = predictor.noise() + _JITTER
        factors = np.linalg.cholesky(covariance + noise[:, None, None] * np.eye(len(x)))
        errors = factors @ rng.standard_normal((count, *mean.shape, 1))  # [count, N, M, 1]
        return np.asarray(mean + _tails(degrees, count, rng) * errors[..., 0])

    def to_json(self) -> dict[str, Any]:
        """Return what a file keeps of it."""
        return {**vars(self), "fit": fit_to_json(self.fit)}

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> Member:
        """Read what `to_json` wrote."""
        return cls(**{**record, "fit": fit_from_json(record["fit"])})


def _tails(degrees: Floats, count: int, rng: np.random.Generator) -> Floats:
    """Draw what makes normals Student-t of degrees [M, N] and the same variance, [count, N, M].

    Times of the same degrees share it: within the data, and after them.
    """
    factors = np.empty((count, *degrees.T.shape))
    for own in np.unique(degrees, axis=0):
        finite = np.where(np.isinf(own), 3.0, own)
        drawn = np.sqrt((finite - 2.0) / rng.chisquare(finite, (count, len(own))))
        drawn = np.where(np.isinf(own), 1.0, drawn)
        factors[:, :, (degrees == own).all(axis=1)] = drawn[:, :, None]
    return factors


def counting(members: Sequence[Member]) -> list[Member]:
    """Return the forecasters without those of almost no weight, which goes to the others."""
    least = LITTLE_WEIGHT * sum(member.weight for member in members)
    return weighted([member for member in members if member.weight > least])


def weighted(members: Sequence[Member], share: float = 1.0) -> list[Member]:
    """Return forecasters in the same proportions whose weights add up to a share."""
    total = sum(member.weight for member in members)
    return [replace(member, weight=share * (member.weight / total)) for member in members]


@dataclass(frozen=True, eq=False)
class Ensemble:
    """The forecasters of a table, and the mixture of what they forecast.

    Parameters
    ----------
    table
        The data and their scaling.
    members
        Forecasters; their weights add up to one.
    predictors
        Predicts by the fits among them.
    averages
        Whether forecasts are those of an average, with its tails; else of the best fit alone.
    """

    table: Table
    members: tuple[Member, ...]
    predictors: Predictors
    averages: bool = True

    def at(self, times: pd.Index) -> MixtureForecast:
        """Return the forecast of all series at these times, which may lie within the data.

        Random walks begin not long before the table's first time.  Before it their uncertainty does
        not grow, so intervals there are too narrow; a UserWarning says so.

        Raises
        ------
        ValueError
            If the times are not of the table's kind.
        """
        x = self.table.scaled_times(times)
        if tuple(times) not in self._kept:
            if np.any(x < 0.0) and any(_has_walk(member.fit) for member in self.members):
                warn(
                    f"intervals before the table's first time, {self.table.frame.index[0]}, are "
                    "too narrow: random walks begin not long before it",
                )
            with single_threaded():
                parts = [self._part(member, x) for member in self.members]
            if len(self._kept) >= _MOST_KEPT:
                self._kept.clear()
            self._kept[tuple(times)] = self._mixture(times, parts, self.degrees_of_freedom(x))
        return self._kept[tuple(times)]

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what is kept: it holds functions, which no process can send to another."""
        return {key: value for key, value in vars(self).items() if key != "_kept"}

    @cached_property
    def _kept(self) -> dict[tuple[object, ...], MixtureForecast]:
        return {}

    def variance_factors(self, x: Floats) -> Floats:
        """Factors of the variance of forecasts at scaled times, [M, N]."""
        is_wider = (x > self.table.observations.x[-1])[:, None] & ~self.table.transforms.is_curved
        return np.where(is_wider & self.averages, FORECAST_VARIANCE, 1.0)

    def degrees_of_freedom(self, x: Floats) -> Floats:
        """Degrees of freedom of new observations at scaled times, [M, N]; infinite: normal.

        Within the data, and of the best fit alone, they are those of the model's likelihood.
        """
        observations = self.table.observations
        likelihood = self.predictors.settings.likelihood
        of_model = likelihood.predictive_degrees(observations.mask.sum(axis=1))
        of_forecast = np.where(self.table.transforms.is_curved, np.inf, FORECAST_DEGREES)
        is_forecast = (x > observations.x[-1]) & self.averages
        return np.where(is_forecast[:, None], of_forecast, of_model)

    def held_out(self, window: Window) -> MixtureForecast | None:
        """Return what the ensemble would have said of a window of the past.

        Fits are learnt again from what came before the window, draws are not.  Those that can be
        have the weight of all, in proportion to their own.

        Returns
        -------
        The forecast of all series at the times of the window, as if it came after the data; None if
        no fit can be learnt again.
        """
        observations, settings = self.table.observations, self.predictors.settings
        is_short = len(observations.x) <= most_times(observations, settings)
        told = []
        for member in self.members if is_short else ():
            with suppress(ValueError):  # not positive definite, or of a subclass of LKM
                told.append((member.weight, member.held_out(observations, window, settings)))
        if not told:
            return None
        total = sum(weight for weight, _ in told)
        times = self.table.frame.index[window.begin : window.end]
        after = np.full(len(times), observations.x[-1] + 1.0)
        wide = self.variance_factors(after)
        parts = [
            Part.independent(w / total, *self._cells(each.mean.T, each.variance.T * wide))
            for w, each in told
        ]
        return self._mixture(times, parts, self.degrees_of_freedom(after))

    def _part(self, member: Member, x: Floats) -> Part:
        """Return what a forecaster says at scaled times."""
        mean, own = member.moments(x, self.predictors)  # [M, N]
        wide = self.variance_factors(x)
        centre, variance = self._cells(mean, own * wide)
        factors, scale = np.sqrt(wide).T.ravel(), np.repeat(self.table.scale, len(x))

        def draw(count: int, rng: np.random.Generator) -> Floats:
            degrees = self.degrees_of_freedom(x)
            paths = member.samples(count, x, degrees, self.predictors, rng).reshape(count, -1)
            return np.asarray(centre + scale * factors * (paths - mean.T.ravel()))

        return Part(member.weight, centre, variance, draw)

    def _cells(self, mean: Floats, variance: Floats) -> tuple[Floats, Floats]:
        """Return scaled moments [M, N] on the modelled scale, series after series, [N M] each."""
        location, scale = self.table.location, self.table.scale
        return (mean * scale + location).T.ravel(), (variance * np.square(scale)).T.ravel()

    def _mixture(self, times: pd.Index, parts: Sequence[Part], degrees: Floats) -> MixtureForecast:
        """Arrange the forecast of all series at some times, with degrees of freedom [M, N]."""
        cells = pd.MultiIndex.from_product(
            [self.table.frame.columns, times], names=["series", "time"]
        )
        places = np.repeat(np.arange(len(self.table.scale), dtype=np.int32), len(times))
        transforms = self.table.transforms.of_series(places)
        return MixtureForecast(cells, tuple(parts), transforms, degrees.T.ravel())


def warn_of_late_series(frame: pd.DataFrame, fits: Sequence[Fit]) -> None:
    """Warn whoever fills gaps that begin with the table, if some fit has a walk but no level.

    Walks begin at zero, a third of the table's span before its first time.  From there to the first
    observed value their uncertainty is that of a bridge: it shrinks where it should grow.
    """
    late = frame.columns[frame.iloc[0].isna()]
    if len(late) and any(_has_walk(fit) and not _has_level(fit) for fit in fits):
        warn(
            f"intervals of {quoted(late)} before their "
            "first observations are too narrow: random walks begin not long before the table",
        )


def _has_walk(fit: Fit) -> bool:
    return any(factor.base.is_walk for kernel in fit.kernels for factor in kernel.factors)


def _has_level(fit: Fit) -> bool:
    """Whether a constant leaves open where a walk begins."""
    return any(str(kernel.structure) == "C" for kernel in fit.kernels)

"""State space models by statsmodels; the Kalman filter passes over missing observations.

The library comes with the extra ``comparators``.  A step is a row of the table.
Series are z-scored.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd

from ..data.seasons import MOST_WAVES, Waves, seasons_of
from ..data.tables import Table
from ..gp.types import Floats
from .libraries import library
from .registry import register
from .scaled import MIN_SD, ScaledForecast

TRENDS: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {
        "local level": {"level": "local level"},
        "local level and AR(1)": {"level": "local level", "autoregressive": 1},
        "local linear trend": {"level": "local linear trend"},
    }
)
"""Among these the unobserved components of a series are chosen."""


@register("arima-110")
@dataclass(frozen=True)
class ARIMA110:
    """ARIMA(1, 1, 0) without a constant: changes that partly go on, every series alone.

    A season is taken off as `Waves`.

    Parameters
    ----------
    season
        Steps in a season, see `seasons_of`.
    """

    season: int | None = None

    def fit(self, train: pd.DataFrame, *, seed: int) -> ScaledForecast:
        """Fit by maximum likelihood; nothing is random."""
        return _each(train, self.season, True, lambda y, m: _arima(y))


@register("unobserved-components")
@dataclass(frozen=True)
class UnobservedComponents:
    """Structural time series (Harvey 1989), every series alone: trend, season and irregular.

    The trend is chosen among `TRENDS` by AIC; the season is a sum of up to six waves whose
    amplitudes wander.

    Parameters
    ----------
    season
        Steps in a season, see `seasons_of`.
    """

    season: int | None = None

    def fit(self, train: pd.DataFrame, *, seed: int) -> ScaledForecast:
        """Fit by maximum likelihood; nothing is random."""
        return _each(train, self.season, False, _structural)


@register("dynamic-factor")
@dataclass(frozen=True)
class DynamicFactor:
    """A dynamic factor model (Bańbura and Modugno 2014) by expectation maximisation.

    Factors follow a vector autoregression of order one, what they leave of each series an
    autoregression of its own.  A season is taken off as `Waves`.

    Parameters
    ----------
    factors
        At most half as many as there are series, and fewer where the estimates diverge.
    season
        Steps in a season, see `seasons_of`.
    """

    factors: int = 2
    season: int | None = None

    def fit(self, train: pd.DataFrame, *, seed: int) -> ScaledForecast:
        """Fit; nothing is random.

        Raises
        ------
        RuntimeError
            If the estimates diverge even with one factor.
        """
        table = Table.of(train)
        _, Y = table.observations.table
        waves = Waves.of(Y, seasons_of(table, self.season))
        endog = pd.DataFrame(Y - waves.at(np.arange(len(Y)))).add_prefix("y")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # EM that has not converged, an index without dates
            fitted = _factors(endog, max(1, min(self.factors, Y.shape[1] // 2)))

        def predict(times: Floats) -> tuple[Floats, Floats]:
            mean, variance = _moments(fitted.get_forecast(len(times)))
            return mean + waves.at(len(Y) + np.arange(len(times))), variance

        return ScaledForecast(table, predict)


def _each(
    train: pd.DataFrame, season: int | None, remove: bool, learn: Callable[[Floats, int], Any]
) -> ScaledForecast:
    """Fit every series alone; `remove` its season before, or leave it to the model."""
    table = Table.of(train)
    _, Y = table.observations.table
    seasons = seasons_of(table, season)
    waves = Waves.of(Y, seasons if remove else [1] * len(seasons))
    rest = Y - waves.at(np.arange(len(Y)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # optimisers that gave up a little early
        fitted = [learn(y, m) for y, m in zip(rest.T, seasons, strict=True)]

    def predict(times: Floats) -> tuple[Floats, Floats]:
        moments = [_moments(each.get_forecast(len(times))) for each in fitted]
        mean, variance = (np.hstack(each) for each in zip(*moments, strict=True))
        return mean + waves.at(len(Y) + np.arange(len(times))), variance

    return ScaledForecast(table, predict)


def _factors(endog: pd.DataFrame, most: int) -> Any:
    """Fit with as many factors as do not diverge, at most `most`."""
    model = library("statsmodels.tsa.statespace.dynamic_factor_mq").DynamicFactorMQ
    for count in range(most, 0, -1):
        fitted = model(endog, factors=count, standardize=False).fit(disp=False, maxiter=200)
        if all(np.isfinite(each).all() for each in _moments(fitted.get_forecast(1))):
            return fitted
    raise RuntimeError(
        f"expected finite forecasts of {endog.shape[1]} series by one factor, got NaN: "
        "expectation maximisation has diverged"
    )


def _arima(y: Floats) -> Any:
    model = library("statsmodels.tsa.api").SARIMAX(y, order=(1, 1, 0))
    start = model.start_params
    if not np.isfinite(start).all():
        # Of quarters in a table of months no two neighbours are seen: it starts from a walk.
        seen = np.flatnonzero(np.isfinite(y))
        start = np.array([0.0, np.mean(np.square(np.diff(y[seen])) / np.diff(seen))])
    return model.fit(start_params=start, disp=False)


def _structural(y: Floats, season: int) -> Any:
    model = library("statsmodels.tsa.api").UnobservedComponents
    waves = {"period": season, "harmonics": min(MOST_WAVES, season // 2)}
    seasonal = {"freq_seasonal": [waves]} if season > 1 else {}
    fitted = [model(y, **trend, **seasonal).fit(disp=False) for trend in TRENDS.values()]
    return min(fitted, key=lambda each: each.aic if np.isfinite(each.aic) else np.inf)


def _moments(forecast: Any) -> tuple[Floats, Floats]:
    """Means and variances, [M, N] each."""
    mean = np.asarray(forecast.predicted_mean, np.float64)
    sd = np.asarray(forecast.se_mean, np.float64)
    shape = (len(mean), -1)
    return mean.reshape(shape), np.square(np.maximum(sd.reshape(shape), MIN_SD))

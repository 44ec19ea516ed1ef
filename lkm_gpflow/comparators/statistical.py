"""Automatic ARIMA, exponential smoothing and Theta: every series alone, by statsforecast.

The library statsforecast is an optional extra, ``pip install '.[comparators]'`` in a clone; it is
imported when a series is fitted.  A step is a row of the table, whatever time it takes.

- **Gaps.**  The library has no missing observations (ETS and Theta refuse them, ARIMA silently
  drops every model with a mean or a drift), so gaps are filled by linear interpolation in time.
  Nothing is filled in before the first or after the last observation, see `gaps.fit_alone`.
- **Units.**  The series are z-scored, as by `Table`.  They are then never all positive, which
  leaves the models with additive errors and seasons.  The search for ARIMA orders is not
  continuous: a last bit in the data can change the orders and with them the whole forecast.  So
  z-scores are rounded to `DECIMALS`, and the same data in other units have the same forecast.
- **Standard deviations.**  ARIMA and additive ETS return normal intervals, symmetric about the
  mean: the sd is half a central interval over its quantile.  Theta returns quantiles of 200
  simulated paths instead, see `AutoTheta`.  No sd is smaller than `scaled.MIN_SD` of its series'
  own.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import norm

from ..data.seasons import seasons_of
from ..data.tables import Table
from ..gp.types import Floats
from .gaps import Ahead, fit_alone
from .libraries import library
from .registry import register
from .scaled import ScaledForecast

MIN_ROWS = 7
"""The library takes no shorter series for ETS."""

DECIMALS = 6
"""Decimals of the z-scores that the models see, so that rounding errors do not choose the model."""

LEVEL = 90
"""Percent in the intervals that libraries are asked for."""

Learn = Callable[[ModuleType, Floats, int], Ahead]
"""From statsforecast's models, a series and its season to its forecasts."""


@register("auto-arima")
@dataclass(frozen=True)
class AutoARIMA:
    """ARIMA with orders by the stepwise search of Hyndman and Khandakar (2008), AICc.

    phi(B) Phi(B^m) (1 - B)^d (1 - B^m)^D y_t = c + theta(B) Theta(B^m) e_t with e_t normal, d by
    KPSS tests and D by the strength of the season; maximum likelihood.  On z-scores c = 0 stands
    for the mean of the series, so AICc often counts one parameter less than it would in own units.

    Parameters
    ----------
    season
        Steps in a season, m, one for none; None: see `seasons.seasons_of`.  Weeks (52) in three
        years of data have no season then: two cycles do not identify one.  With it, on rolling
        origins inside the training part of GONU, the CRPS of ARIMA rose from 0.43 to 0.47 and
        that of the other two stayed.  Seasons of 5 and 12 made no consistent difference.
    """

    season: int | None = None

    def fit(self, train: pd.DataFrame, *, seed: int) -> ScaledForecast:
        """Choose and fit a model for every series; nothing is random."""
        return fit_each(train, self.season, _arima)


@register("auto-ets")
@dataclass(frozen=True)
class AutoETS:
    """Exponential smoothing in state space form (Hyndman et al. 2008), chosen by AICc.

    y_t = l_{t-1} + phi b_{t-1} + s_{t-m} + e_t, with every combination of a trend (damped or not)
    and a season.  The errors are additive: z-scores are not positive.

    Parameters
    ----------
    season
        Steps in a season, m; see `AutoARIMA`.
    """

    season: int | None = None

    def fit(self, train: pd.DataFrame, *, seed: int) -> ScaledForecast:
        """Choose and fit a model for every series; nothing is random."""
        return fit_each(train, self.season, _ets)


@register("auto-theta")
@dataclass(frozen=True)
class AutoTheta:
    """The best of four Theta models (Fiorucci et al. 2016) by mean squared error.

    Simple exponential smoothing with a drift that is a share 1 - 1/theta of the linear trend,
    standard or optimised, its trend fixed or updated with the data.  A season that passes the
    autocorrelation test is taken off first (classical decomposition, additive).

    The variance h steps ahead is sigma^2 (1 + (h - 1) alpha^2), that of exponential smoothing
    beside a fixed trend, with sigma^2 that of the residuals without their season.  (The library's
    paths also update the trend: 1% wider at 100 rows, about 10% after a dozen steps at 30.)  Its
    own intervals are not used: they are quantiles of 200 paths, neither normal nor symmetric, and
    with an additive season they count the season as noise.

    Parameters
    ----------
    season
        Steps in a season; see `AutoARIMA`.
    """

    season: int | None = None

    def fit(self, train: pd.DataFrame, *, seed: int) -> ScaledForecast:
        """Choose and fit a model for every series; nothing is random."""
        return fit_each(train, self.season, _theta)


def fit_each(
    train: pd.DataFrame, season: int | None, learn: Learn, *, own_units: bool = False
) -> ScaledForecast:
    """Fit every series alone, as the module's docstring has it.

    Parameters
    ----------
    train
        The table.
    season
        Steps in a season, or None; see `AutoARIMA`.
    learn
        Fits one series.
    own_units
        Whether it is given the series in its own units instead of z-scores.
    """
    table = Table.of(train)
    seasons = seasons_of(table, season)
    models = library("statsforecast.models")

    def learn_one(n: int, z: Floats) -> Ahead:
        if len(z) < MIN_ROWS:
            raise ValueError(
                f"series {table.names[n]!r}: expected at least {MIN_ROWS} rows from its first to "
                f"its last observation, got {len(z)}"
            )
        location, scale = (table.location[n], table.scale[n]) if own_units else (0.0, 1.0)
        with warnings.catch_warnings():
            # Models that the search tries and drops: divisions by zero, optimisers that gave up.
            warnings.filterwarnings("ignore", module=r"statsforecast\.")
            ahead = learn(models, location + scale * z.round(DECIMALS), seasons[n])
        return _standardised(ahead, location, scale)

    return fit_alone(table, learn_one)


def _standardised(ahead: Ahead, location: float, scale: float) -> Ahead:
    def scaled(h: int) -> tuple[Floats, Floats]:
        mean, sd = ahead(h)
        return (mean - location) / scale, sd / scale

    return scaled


def _arima(models: ModuleType, y: Floats, season: int) -> Ahead:
    model = models.AutoARIMA(season_length=season).fit(y)
    return lambda h: normal_moments(model.predict(h, level=[LEVEL]))


def _ets(models: ModuleType, y: Floats, season: int) -> Ahead:
    model = models.AutoETS(season_length=season).fit(y)

    def ahead(h: int) -> tuple[Floats, Floats]:
        # The library takes the number of seasons that have passed at the last step for all steps,
        # so every step is asked for as a last one.
        steps = [normal_moments(model.predict(step, level=[LEVEL])) for step in range(1, h + 1)]
        return steps[-1][0], np.array([sd[-1] for _, sd in steps])

    return ahead


def _theta(models: ModuleType, y: Floats, season: int) -> Ahead:
    seasonal = models.AutoTheta(season_length=season, decomposition_type="additive").fit(y).model_
    pattern = seasonal["seas_forecast"]["mean"] if seasonal.get("decompose") else np.zeros(1)
    # The pattern is that of the steps after the last one.
    back = pattern[np.arange(-len(y), 0) % len(pattern)]
    # Its parameters are those of the first fit; its residuals are free of the season.
    model = models.AutoTheta().fit(y - back)
    sigma = np.std(model.model_["residuals"][3:], ddof=1)  # after three steps, as the library
    alpha = model.model_["par"]["alpha"]

    def ahead(h: int) -> tuple[Floats, Floats]:
        steps = np.arange(h)
        mean = model.predict(h)["mean"] + pattern[steps % len(pattern)]
        return mean, sigma * np.sqrt(1.0 + steps * alpha**2)

    return ahead


def normal_moments(forecast: Mapping[str, Any]) -> tuple[Floats, Floats]:
    """Mean and sd from a forecast of the library with central normal intervals of `LEVEL`."""
    lower, upper = (np.asarray(forecast[f"{side}-{LEVEL}"]) for side in ("lo", "hi"))
    return np.asarray(forecast["mean"]), sd_of_interval(lower, upper)


def sd_of_interval(lower: Floats, upper: Floats) -> Floats:
    """Return the sd of a normal with this central interval of `LEVEL`."""
    return (upper - lower) / (2.0 * norm.ppf(0.5 + LEVEL / 200))

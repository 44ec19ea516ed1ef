"""Methods of other libraries: statsforecast's automatic ones, and any of statsforecast or sktime.

The libraries are optional extras (``pip install '.[comparators]'``, ``'.[sktime]'`` in a clone) and
are imported when a method of theirs is made or fitted.  A step is a row of the table, whatever time
it takes.

- **Gaps.**  statsforecast has no missing observations (ETS and Theta refuse them, ARIMA silently
  drops every model with a mean or a drift), so straight lines in time fill the gaps, and nothing is
  invented at the ends, see `protocol.fit_alone`.  A method of sktime for several series that has
  none either (such as VECM) needs all rows: the first and last value of a series stand before and
  after it, and sds are too small for series that begin late or end early.
- **Units.**  Series are z-scored, as by `Table`.  They are then never all positive, which leaves
  models with additive errors and seasons.  The search for ARIMA orders is not continuous: a last
  bit in the data can change the orders and with them the whole forecast.  So `AutoARIMA`,
  `AutoETS` and `AutoTheta` round z-scores to `DECIMALS`, and the same data in other units have the
  same forecast.
- **Standard deviations.**  ARIMA and additive ETS return normal intervals, symmetric about the
  mean: the sd is half a central interval over its quantile.  Theta returns quantiles of 200
  simulated paths instead, see `AutoTheta`.  No sd is smaller than `protocol.MIN_SD`.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import norm

from ..data.seasons import seasons_of
from ..data.tables import Table
from ..gp.types import Floats
from ..runtime.text import did_you_mean
from .protocol import MIN_SD, Ahead, ScaledForecast, fit_alone, library

MIN_ROWS = 7  # the library takes no shorter series for ETS

DECIMALS = 6
"""Decimals of the z-scores that the models see, so that rounding errors do not choose the model."""

LEVEL = 90  # percent in the intervals that libraries are asked for

Learn = Callable[[ModuleType, Floats, int], Ahead]
"""From statsforecast's models, a series and its season to its forecasts."""


@dataclass(frozen=True)
class AutomaticMethod(ABC):
    """A method of statsforecast that chooses its own orders, for every series alone."""

    #: Steps in a season, m, one for none; None: see `seasons.seasons_of`.  Weeks (52) in three
    #: years of data have no season then: two cycles do not identify one.
    season: int | None = None

    @staticmethod
    @abstractmethod
    def learn(models: ModuleType, y: Floats, season: int) -> Ahead:
        """Fit rounded z-scores, [D], by one of statsforecast's models."""

    def fit(self, train: pd.DataFrame, *, seed: int) -> ScaledForecast:
        """Choose and fit a model for every series; nothing is random."""
        return fit_each(train, self.season, self.learn)


@dataclass(frozen=True)
class AutoARIMA(AutomaticMethod):
    """ARIMA with orders by the stepwise search of Hyndman and Khandakar (2008), AICc.

    phi(B) Phi(B^m) (1 - B)^d (1 - B^m)^D y_t = c + theta(B) Theta(B^m) e_t with e_t normal, d by
    KPSS tests and D by the strength of the season; maximum likelihood.  On z-scores c = 0 stands
    for the mean of the series, so AICc often counts one parameter less than it would in own units.
    """

    @staticmethod
    def learn(models: ModuleType, y: Floats, season: int) -> Ahead:
        """See `AutomaticMethod.learn`."""
        model = models.AutoARIMA(season_length=season).fit(y)
        return lambda h: normal_moments(model.predict(h, level=[LEVEL]))


@dataclass(frozen=True)
class AutoETS(AutomaticMethod):
    """Exponential smoothing in state space form (Hyndman et al. 2008), chosen by AICc.

    y_t = l_{t-1} + phi b_{t-1} + s_{t-m} + e_t, with every combination of a trend (damped or not)
    and a season.  The errors are additive: z-scores are not positive.
    """

    @staticmethod
    def learn(models: ModuleType, y: Floats, season: int) -> Ahead:
        """See `AutomaticMethod.learn`."""
        model = models.AutoETS(season_length=season).fit(y)

        def ahead(h: int) -> tuple[Floats, Floats]:
            # The library counts the seasons that have passed at the last step for all steps, so
            # every step is asked for as a last one.
            steps = [normal_moments(model.predict(step, level=[LEVEL])) for step in range(1, h + 1)]
            return steps[-1][0], np.array([sd[-1] for _, sd in steps])

        return ahead


@dataclass(frozen=True)
class AutoTheta(AutomaticMethod):
    """The best of four Theta models (Fiorucci et al. 2016) by mean squared error.

    Simple exponential smoothing with a drift that is a share 1 - 1/theta of the linear trend,
    standard or optimised, its trend fixed or updated with the data.  A season that passes the
    autocorrelation test is taken off first (classical decomposition, additive).

    The variance h steps ahead is sigma^2 (1 + (h - 1) alpha^2), that of exponential smoothing
    beside a fixed trend, with sigma^2 that of the residuals without their season.  (The library's
    paths also update the trend: 1% wider at 100 rows, about 10% after a dozen steps at 30.)  Its
    own intervals are not used: they are quantiles of 200 paths, neither normal nor symmetric, and
    with an additive season they count the season as noise.
    """

    @staticmethod
    def learn(models: ModuleType, y: Floats, season: int) -> Ahead:
        """See `AutomaticMethod.learn`."""
        whole = models.AutoTheta(season_length=season, decomposition_type="additive").fit(y)
        seasonal = whole.model_
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


def fit_each(train: pd.DataFrame, season: int | None, learn: Learn) -> ScaledForecast:
    """Fit the rounded z-scores of every series alone by a model of statsforecast.

    A ValueError says if a series has too few rows for the library.
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
        with warnings.catch_warnings():
            # Models that the search tries and drops: divisions by zero, optimisers that gave up.
            warnings.filterwarnings("ignore", module=r"statsforecast\.")
            return learn(models, z.round(DECIMALS), seasons[n])

    return fit_alone(table, learn_one)


def normal_moments(forecast: Mapping[str, Any]) -> tuple[Floats, Floats]:
    """Mean and sd from a forecast of statsforecast with central normal intervals of `LEVEL`."""
    lower, upper = (np.asarray(forecast[f"{side}-{LEVEL}"]) for side in ("lo", "hi"))
    return np.asarray(forecast["mean"]), (upper - lower) / (2.0 * norm.ppf(0.5 + LEVEL / 200))


# --- any method of two libraries ------------------------------------------------------------------


@contextmanager
def _quiet() -> Iterator[None]:
    """Without what every forecaster of sktime 1.2 announces about its next version."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        yield


@dataclass(frozen=True)
class SktimeForecaster:
    """A forecaster of sktime that has forecast variances.

    Multivariate ones see all series, others each series alone.  A ValueError is raised if sktime
    has no such forecaster, or one without variances.
    """

    name: str  #: Of its class, such as "VAR"
    settings: Mapping[str, Any] = field(default_factory=dict)  #: Arguments of its constructor

    def __post_init__(self) -> None:
        forecaster = self._make()
        if not forecaster.get_tag("capability:pred_int"):
            raise ValueError(
                f"expected a forecaster with variances, sktime's {self.name} gives means alone: "
                "'sktime:AutoETS' and 'sktime:VAR' give both"
            )

    @_quiet()
    def _make(self) -> Any:
        lookup = library("sktime.registry").all_estimators
        known = dict(lookup("forecaster", return_names=True, as_dataframe=False))
        if self.name not in known:
            raise ValueError(
                f"expected a forecaster of sktime (sktime.registry.all_estimators('forecaster') "
                f"lists them), got {self.name!r}{did_you_mean(self.name, known)}"
            )
        return known[self.name](**self.settings)

    def fit(self, train: pd.DataFrame, *, seed: int) -> ScaledForecast:
        """Fit it to the rows as steps 0, 1, ...; `seed` is its ``random_state``, if it has one."""
        table = Table.of(train)
        tags = self._make()
        passes_over_gaps = tags.get_tag("capability:missing_values")
        if not (passes_over_gaps or tags.get_tag("capability:multivariate")):
            return fit_alone(table, lambda n, z: self._learn(z[:, None], seed))
        ahead = self._learn(
            table.observations.table[1] if passes_over_gaps else table.observations.filled, seed
        )

        def predict(x: Floats) -> tuple[Floats, Floats]:
            mean, sd = ahead(len(x))
            return mean, np.square(np.maximum(sd, MIN_SD))

        return ScaledForecast(table, predict)

    @_quiet()
    def _learn(self, values: Floats, seed: int) -> Ahead:
        """Fit it to series, [D, N]."""
        forecaster = self._make()
        if "random_state" in forecaster.get_params():
            forecaster.set_params(random_state=seed)
        # sktime's VAR finds its columns by parts of their names, so that none may hold another.
        names = [f"series_{n:06d}" for n in range(values.shape[1])]
        y = pd.DataFrame(values, columns=names)
        in_fit = forecaster.get_tag("requires-fh-in-fit")
        forecaster.fit(y, fh=[1] if in_fit else None)

        @_quiet()
        def ahead(h: int) -> tuple[Floats, Floats]:
            steps = list(range(1, h + 1))
            if in_fit:
                forecaster.fit(y, fh=steps)
            mean = forecaster.predict(fh=steps).to_numpy()
            return mean, np.sqrt(forecaster.predict_var(fh=steps).to_numpy())

        return ahead


@dataclass(frozen=True)
class StatsforecastModel:
    """A model of statsforecast that has forecast intervals, each series alone.

    Its sd is half of a central 90% interval over its normal quantile.  A ValueError is raised if
    statsforecast has no such model.
    """

    name: str  #: Of its class, such as "AutoCES"
    settings: Mapping[str, Any] = field(default_factory=dict)  #: Arguments of its constructor

    def __post_init__(self) -> None:
        self._make()

    def _make(self) -> Any:
        models = library("statsforecast.models")
        known = [name for name in getattr(models, "__all__", dir(models)) if name[:1].isupper()]
        if self.name not in known:
            raise ValueError(
                f"expected a model of statsforecast among {', '.join(known)}, "
                f"got {self.name!r}{did_you_mean(self.name, known)}"
            )
        return getattr(models, self.name)(**self.settings)

    def fit(self, train: pd.DataFrame, *, seed: int) -> ScaledForecast:
        """Fit it to every series."""
        return fit_alone(Table.of(train), lambda n, z: self._learn(z))

    def _learn(self, z: Floats) -> Ahead:
        fitted = self._make().fit(z)

        def ahead(h: int) -> tuple[Floats, Floats]:
            told = fitted.predict(h, level=[LEVEL])
            if f"lo-{LEVEL}" not in told:
                raise ValueError(
                    f"expected a model with intervals, statsforecast's {self.name} has none"
                )
            return normal_moments(told)

        return ahead

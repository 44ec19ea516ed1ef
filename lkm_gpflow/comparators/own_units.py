"""The automatic methods of statsforecast as people call them: each series in its own units.

`statistical` gives the library z-scores, whose forecasts do not depend on units.  That costs: on
z-scores there are no multiplicative errors and seasons, and the search for ARIMA orders ends
elsewhere (retail turnover of New South Wales: CRPS 0.45 on z-scores, 0.34 in own units).  So the
benchmark compares with these.  Means and sds are the library's own, the sd being half a 90%
interval over its quantile.  Series far from zero are fitted from their first value on, which is put
back.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from types import ModuleType
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from ..gp.types import Floats
from .gaps import Ahead
from .registry import register
from .scaled import ScaledForecast
from .statistical import LEVEL, fit_each, normal_moments

_TOO_WIDE = 10.0
"""Sds of the series: where a multiplicative ETS says more, an additive one is taken."""

_FAR = 1e4
"""Sds of the series: where its mean is further from zero, the library loses digits of sds.  ETS
with multiplicative errors subtracts squares of means, Theta rounds its paths to single precision:
sds of walks were up to a third off at 1e6 (Theta), and zero at 1e8."""


@dataclass(frozen=True)
class OwnUnits(ABC):
    """A method of the library, each series alone.

    Parameters
    ----------
    season
        Steps in a season, see `AutoARIMA`.
    """

    season: int | None = None

    far: ClassVar[float] = np.inf
    """Sds of the series from zero to its mean, from which on it is fitted from its first value on.
    """

    def fit(self, train: pd.DataFrame, *, seed: int) -> ScaledForecast:
        """Choose and fit a model for every series; nothing is random."""
        return fit_each(train, self.season, self._learn_near_zero, own_units=True)

    def _learn_near_zero(self, models: ModuleType, y: Floats, season: int) -> Ahead:
        origin = y[0] if np.abs(np.mean(y)) > self.far * np.std(y) else 0.0
        near = self._learn(models, y - origin, season)

        def ahead(h: int) -> tuple[Floats, Floats]:
            mean, sd = near(h)
            return origin + mean, sd

        return ahead

    @abstractmethod
    def _learn(self, models: ModuleType, y: Floats, season: int) -> Ahead:
        """Fit one series with a model of statsforecast's `models`."""


def _of(model: Any, y: Floats) -> Ahead:
    fitted = model.fit(y)
    return lambda h: normal_moments(fitted.predict(h, level=[LEVEL]))


@register("auto-arima-own-units")
class OwnUnitsARIMA(OwnUnits):
    """ARIMA with orders by stepwise search, AICc (Hyndman and Khandakar 2008)."""

    # The library's wide prior of the first state is not wide far from zero.  Sds one step ahead of
    # walks over what they should be: 1.00 at 1e2, up to 1.2 at 1e3, 3.2 at 1e4, 30 at 1e5.
    far = 100.0

    def _learn(self, models: ModuleType, y: Floats, season: int) -> Ahead:
        return _of(models.AutoARIMA(season_length=season), y)


@register("auto-ets-own-units")
class OwnUnitsETS(OwnUnits):
    """Exponential smoothing, additive or multiplicative, by AICc (Hyndman et al. 2008)."""

    far = _FAR

    def _learn(self, models: ModuleType, y: Floats, season: int) -> Ahead:
        free = _of(models.AutoETS(season_length=season), y)
        additive: list[Ahead] = []

        def ahead(h: int) -> tuple[Floats, Floats]:
            mean, sd = free(h)
            if np.all(np.isfinite(mean)) and np.max(sd) <= _TOO_WIDE * np.std(y):
                return mean, sd
            if not additive:
                # Z-scores are not positive, which leaves additive models.
                z = (y - y.mean()) / y.std()
                additive.append(_of(models.AutoETS(season_length=season), z))
            mean, sd = additive[0](h)
            return y.mean() + y.std() * mean, y.std() * sd

        return ahead


@register("auto-theta-own-units")
class OwnUnitsTheta(OwnUnits):
    """The best of four Theta models (Fiorucci et al. 2016), its season as the library has it."""

    far = _FAR

    def _learn(self, models: ModuleType, y: Floats, season: int) -> Ahead:
        return _of(models.AutoTheta(season_length=season), y)


@register("auto-ces-own-units")
class OwnUnitsCES(OwnUnits):
    """Complex exponential smoothing (Svetunkov et al. 2022); its intervals do not widen."""

    def _learn(self, models: ModuleType, y: Floats, season: int) -> Ahead:
        return _of(models.AutoCES(season_length=season), y)

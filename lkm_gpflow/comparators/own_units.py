"""The automatic methods of statsforecast as people call them: each series in its own units.

`statistical` gives the library z-scores, whose forecasts do not depend on units.  That costs: on
z-scores there are no multiplicative errors and seasons, and the search for ARIMA orders ends
elsewhere (retail turnover of New South Wales: CRPS 0.45 on z-scores, 0.34 in own units).  So the
benchmark compares with these.  Means and sds are the library's own, the sd being half a 90%
interval over its quantile.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import ClassVar

import numpy as np
import pandas as pd

from ..numerics.types import Floats
from .protocol import register
from .scaled import ScaledForecast
from .statistical import LEVEL, Ahead, fit_each, normal_moments

_TOO_WIDE = 10.0
"""Sds of the series: where a multiplicative ETS says more, an additive one is taken."""


@dataclass(frozen=True)
class OwnUnits:
    """A method of the library, each series alone.

    Parameters
    ----------
    season
        Steps in a season, see `AutoARIMA`.
    """

    season: int | None = None
    learn: ClassVar[Callable[[ModuleType, Floats, int], Ahead]]

    def fit(self, train: pd.DataFrame, *, seed: int) -> ScaledForecast:
        """Choose and fit a model for every series; nothing is random."""
        return fit_each(train, self.season, type(self).learn, own_units=True)


def _arima(models: ModuleType, y: Floats, season: int) -> Ahead:
    return _of(models.AutoARIMA(season_length=season), y)


def _ets(models: ModuleType, y: Floats, season: int) -> Ahead:
    free = _of(models.AutoETS(season_length=season), y)
    additive: list[Ahead] = []

    def ahead(h: int) -> tuple[Floats, Floats]:
        mean, sd = free(h)
        if np.max(sd) <= _TOO_WIDE * np.std(y) and np.all(np.isfinite(mean)):
            return mean, sd
        if not additive:
            # Z-scores are not positive, which leaves additive models.
            additive.append(_of(models.AutoETS(season_length=season), (y - y.mean()) / y.std()))
        mean, sd = additive[0](h)
        return y.mean() + y.std() * mean, y.std() * sd

    return ahead


def _theta(models: ModuleType, y: Floats, season: int) -> Ahead:
    return _of(models.AutoTheta(season_length=season), y)


def _ces(models: ModuleType, y: Floats, season: int) -> Ahead:
    return _of(models.AutoCES(season_length=season), y)


def _of(model: object, y: Floats) -> Ahead:
    fitted = model.fit(y)  # type: ignore[attr-defined]
    return lambda h: normal_moments(fitted.predict(h, level=[LEVEL]))


@register("auto-arima-own-units")
class OwnUnitsARIMA(OwnUnits):
    """ARIMA with orders by stepwise search, AICc (Hyndman and Khandakar 2008)."""

    learn = staticmethod(_arima)


@register("auto-ets-own-units")
class OwnUnitsETS(OwnUnits):
    """Exponential smoothing, additive or multiplicative, by AICc (Hyndman et al. 2008)."""

    learn = staticmethod(_ets)


@register("auto-theta-own-units")
class OwnUnitsTheta(OwnUnits):
    """The best of four Theta models (Fiorucci et al. 2016), its season as the library has it."""

    learn = staticmethod(_theta)


@register("auto-ces-own-units")
class OwnUnitsCES(OwnUnits):
    """Complex exponential smoothing (Svetunkov et al. 2022); its intervals do not widen."""

    learn = staticmethod(_ces)

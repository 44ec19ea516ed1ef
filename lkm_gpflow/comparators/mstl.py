"""A season by loess, and exponential smoothing: every series alone, by statsforecast.

Gaps, units and standard deviations are as in `statistical`.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType

import pandas as pd

from ..gp.types import Floats
from .gaps import Ahead
from .registry import register
from .scaled import ScaledForecast
from .statistical import LEVEL, fit_each, normal_moments


@register("mstl")
@dataclass(frozen=True)
class MSTL:
    """Season and trend by loess (Bandara et al. 2021), and exponential smoothing of the trend.

    The last season is repeated; intervals are those of the trend.  Without a season, or
    where it was not seen twice, this is exponential smoothing without one.

    Parameters
    ----------
    season
        Steps in a season, see `AutoARIMA`.
    """

    season: int | None = None

    def fit(self, train: pd.DataFrame, *, seed: int) -> ScaledForecast:
        """Decompose and fit every series; nothing is random."""
        return fit_each(train, self.season, _mstl)


def _mstl(models: ModuleType, y: Floats, season: int) -> Ahead:
    trend = models.AutoETS(model="ZZN")
    seen = season > 1 and 2 * season <= len(y)
    model = models.MSTL(season_length=season, trend_forecaster=trend).fit(y) if seen else None
    fitted = model or trend.fit(y)
    return lambda h: normal_moments(fitted.predict(h, level=[LEVEL]))

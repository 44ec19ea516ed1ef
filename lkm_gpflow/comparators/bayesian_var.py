"""A Bayesian vector autoregression of levels as a method of its own."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from ..data.seasons import seasons_of
from ..data.tables import Table
from ..forecast.seasonal_autoregression import SeasonalAutoregression
from ..forecast.vector_autoregression import LAGS
from ..gp.types import Floats
from .registry import register
from .scaled import MIN_SD, ScaledForecast


@register("bayesian-var")
@dataclass(frozen=True)
class BayesianVAR:
    """A vector autoregression of levels with a Minnesota prior.

    The model, its prior and its sources are those of `learning.vector_autoregression`; a season is
    taken off as `Waves`.  The default's forecasts average over it, too (`search.autoregression`),
    there with longer seasons, and with logarithms where the default takes them.

    Parameters
    ----------
    lags
        p; of fewer than eight rows for each lag it is smaller.
    season
        Steps in a season, see `seasons_of`.
    """

    lags: int = LAGS
    season: int | None = None

    def fit(self, train: pd.DataFrame, *, seed: int) -> ScaledForecast:
        """Choose the prior's width; the paths follow from the seed."""
        table = Table.of(train)
        seasons = seasons_of(table, self.season)
        learnt = SeasonalAutoregression.of(table.observations, seasons, seed, lags=self.lags)

        def predict(times: Floats) -> tuple[Floats, Floats]:
            mean, variance = learnt.moments(np.arange(1.0, len(times) + 1.0))
            return mean, np.maximum(variance, MIN_SD**2)

        return ScaledForecast(table, predict)

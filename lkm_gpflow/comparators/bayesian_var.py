"""A Bayesian vector autoregression of levels as a method of its own."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from ..learning.vector_autoregression import LAGS, VectorAutoregression
from ..numerics.types import Floats
from .gaps import Ahead
from .registry import register
from .scaled import ScaledForecast
from .vector import fit_vector


@register("bayesian-var")
@dataclass(frozen=True)
class BayesianVAR:
    """A vector autoregression of levels with a Minnesota prior.

    The model, its prior and its sources are those of `learning.vector_autoregression`.  The
    default's forecasts average over it, too (see `search.autoregression`).

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

        def learn(Y: Floats) -> Ahead:
            learnt = VectorAutoregression.of(Y, self.lags)
            return lambda h: learnt.ahead(h, seed)

        return fit_vector(train, self.season, learn)

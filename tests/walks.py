"""Tables of independent random walks, forecasts of arrays, and how good forecasts are."""

from __future__ import annotations

import numpy as np
import pandas as pd

from lkm_gpflow.comparators import Comparator, Fitted
from lkm_gpflow.data.tables import Table
from lkm_gpflow.evaluation import metrics
from lkm_gpflow.forecast.seasonal_autoregression import SeasonalAutoregression
from lkm_gpflow.forecast.vector_autoregression import LAGS


def forecast(
    method: Comparator, values: np.ndarray, steps: int, seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Means and sds, [M, N] each."""
    times = pd.Index(np.arange(len(values), len(values) + steps, dtype=float))
    frame = pd.DataFrame(values, index=np.arange(len(values), dtype=float))
    found = method.fit(frame, seed=seed).forecast(times)
    mean, sd = (found[c].to_numpy().reshape(values.shape[1], steps).T for c in ("mean", "sd"))
    return mean, sd


def accuracy(fitted: Fitted, test: pd.DataFrame) -> tuple[float, float]:
    """RMSE and MNLP of a forecast of the rows of `test`."""
    forecast = fitted.forecast(test.index)
    mean, sd = (forecast[c].unstack("series")[test.columns] for c in ("mean", "sd"))
    told = metrics.score(test, mean, sd)
    return told.rmse, told.mnlp


def walks(num_times: int, num_series: int, seed: int = 0) -> np.ndarray:
    return np.cumsum(np.random.default_rng(seed).normal(size=(num_times, num_series)), axis=0)


def autoregression_forecast(
    values: np.ndarray, steps: int, lags: int = LAGS, seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Means and sds, [M, N] each, by the Bayesian vector autoregression without a season."""
    table = Table.of(pd.DataFrame(values, index=np.arange(len(values), dtype=float)))
    seasons = [1] * values.shape[1]
    learnt = SeasonalAutoregression.of(table.observations, seasons, seed, lags=lags)
    mean, variance = learnt.moments(np.arange(1.0, steps + 1.0))
    return table.location + table.scale * mean, table.scale * np.sqrt(variance)

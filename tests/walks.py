"""Tables of independent random walks, forecasts of arrays, and how good forecasts are."""

from __future__ import annotations

import numpy as np
import pandas as pd

from lkm_gpflow.comparators import Comparator, Fitted
from lkm_gpflow.evaluation import metrics


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

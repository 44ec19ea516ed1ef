"""Tables of independent random walks, and what a comparator forecasts of an array."""

from __future__ import annotations

import numpy as np
import pandas as pd

from lkm_gpflow.comparators import Comparator


def forecast(
    method: Comparator, values: np.ndarray, steps: int, seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Means and sds, [M, N] each."""
    times = pd.Index(np.arange(len(values), len(values) + steps, dtype=float))
    frame = pd.DataFrame(values, index=np.arange(len(values), dtype=float))
    found = method.fit(frame, seed=seed).forecast(times)
    mean, sd = (found[c].to_numpy().reshape(values.shape[1], steps).T for c in ("mean", "sd"))
    return mean, sd


def walks(num_times: int, num_series: int, seed: int = 0) -> np.ndarray:
    return np.cumsum(np.random.default_rng(seed).normal(size=(num_times, num_series)), axis=0)

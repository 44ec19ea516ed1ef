"""The paper's forecasting experiment: learn from the first 90% of a data set, forecast the rest."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
import pandas as pd

from .. import datasets
from ..comparators import Comparator, DiscoveryForecast, comparator
from ..discovery.result import Discovery
from ..evaluation.metrics import Scores, score
from ..evaluation.predictive import matrices


@dataclass(frozen=True)
class Extrapolation:
    """The forecast of the final window of one data set by one method.

    Parameters
    ----------
    dataset, seed
        What was forecast, and the method's seed.
    discovery
        What a latent kernel model found in the training part; None for other methods.
    forecast
        Index (series, time), columns mean and sd, in the units of the series.
    scores
        In the units in which the paper scores the data set.
    seconds, processor_seconds
        How long learning and forecasting took, and how much processor time of this process; the
        latter is the same whatever else the machine does.
    """

    dataset: str
    seed: int
    discovery: Discovery | None
    forecast: pd.DataFrame
    scores: Scores
    seconds: float
    processor_seconds: float


def extrapolate(dataset: str, method: str | Comparator, seed: int = 0) -> Extrapolation:
    """Forecast the last tenth of a data set from the rest (paper, section 6 and table 1).

    Parameters
    ----------
    dataset
        Its name; the paper's are stocks, houses, currencies and gonu.
    method
        A name among `lkm_gpflow.comparators.comparator_names()`, or a comparator.
    seed
        Everything random follows from it.

    Returns
    -------
    The forecast and its scores: in the units of the data, and in z-scores over the whole table for
    GONU, as the paper's authors have it.
    """
    data = datasets.load(dataset)
    train, test = data.split()
    chosen = comparator(method) if isinstance(method, str) else method
    began, processor_began = time.perf_counter(), time.process_time()
    fitted = chosen.fit(train, seed=seed)
    forecast = fitted.forecast(test.index)
    seconds = time.perf_counter() - began
    processor_seconds = time.process_time() - processor_began
    told = matrices(forecast, test.index, test.columns)
    mean, sd = (pd.DataFrame(told[name], test.index, test.columns) for name in ("mean", "sd"))
    location = np.zeros(test.shape[1])
    scale = np.ones(test.shape[1])
    if data.score_scale is not None:
        location, scale = (data.score_scale[c].to_numpy() for c in ("location", "scale"))
    scores = score((test - location) / scale, (mean - location) / scale, sd / scale)
    discovery = fitted.found if isinstance(fitted, DiscoveryForecast) else None
    return Extrapolation(dataset, seed, discovery, forecast, scores, seconds, processor_seconds)

"""Prophet (Taylor and Letham 2018): piecewise linear trends and waves, every series alone."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from ..data.seasons import MOST_WAVES, seasons_of
from ..data.tables import Table
from ..gp.types import Floats
from .libraries import library
from .registry import register
from .scaled import MIN_SD, ScaledForecast

_NUM_PATHS = 500
"""Simulated futures; their sd is within 5% of that of infinitely many."""


@register("prophet")
@dataclass(frozen=True)
class Prophet:
    """Prophet with its own settings, told the season; it passes over missing observations.

    It takes each row of the table for a day, so that all tables have one clock, and gets a season
    of as many days with up to six waves.  The sd is that of its simulated futures.

    Parameters
    ----------
    season
        Steps in a season, see `seasons_of`.
    """

    season: int | None = None

    def fit(self, train: pd.DataFrame, *, seed: int) -> ScaledForecast:
        """Fit every series; futures are drawn by the seed."""
        table = Table.of(train)
        seasons = seasons_of(table, self.season)
        own = table.observations
        dates = pd.date_range("2000-01-01", periods=len(table.frame))
        fitted = []
        with _quiet():
            module = library("prophet")
            for y, seen, season in zip(own.Y, own.mask > 0.0, seasons, strict=True):
                model = module.Prophet(
                    yearly_seasonality=False,
                    weekly_seasonality=False,
                    daily_seasonality=False,
                    uncertainty_samples=_NUM_PATHS,
                )
                if season > 1:
                    model.add_seasonality(
                        "season", period=season, fourier_order=max(1, min(MOST_WAVES, season // 2))
                    )
                fitted.append(model.fit(pd.DataFrame({"ds": dates[seen], "y": y[seen]}), seed=seed))

        def predict(times: Floats) -> tuple[Floats, Floats]:
            future = pd.DataFrame({"ds": pd.date_range(dates[-1], periods=len(times) + 1)[1:]})
            with _seeded(seed):
                moments = [_moments(model, future) for model in fitted]
            mean, sd = (np.column_stack(each) for each in zip(*moments, strict=True))
            return mean, np.square(np.maximum(sd, MIN_SD))

        return ScaledForecast(table, predict)


def _moments(model: Any, future: pd.DataFrame) -> tuple[Floats, Floats]:
    # Uncertain trends are not symmetric in the library's quantiles: mean and sd of its paths.
    paths = np.asarray(model.predictive_samples(future)["yhat"])
    mean = model.predict(future[["ds"]], vectorized=True)["yhat"].to_numpy()
    return mean, paths.std(axis=1)


@contextmanager
def _seeded(seed: int) -> Iterator[None]:
    """Let the library, which draws from NumPy's global state, draw by a seed."""
    state = np.random.get_state()  # noqa: NPY002
    np.random.seed(seed)  # noqa: NPY002
    try:
        yield
    finally:
        np.random.set_state(state)  # noqa: NPY002


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence the accounts of the library and of its compiler."""
    loggers = [logging.getLogger(name) for name in ("prophet", "prophet.plot", "cmdstanpy")]
    before = [logger.disabled for logger in loggers]
    for logger in loggers:
        logger.disabled = True
    try:
        yield
    finally:
        for logger, disabled in zip(loggers, before, strict=True):
            logger.disabled = disabled

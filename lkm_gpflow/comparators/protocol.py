"""What a comparator is, and what its implementations share: units, gaps, optional libraries."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from types import ModuleType
from typing import Protocol

import numpy as np
import pandas as pd

from ..data.tables import Table
from ..gp.types import Floats

MIN_SD = 10**-2.5
"""Smallest forecast sd of methods without a noise of their own, in sds of the series."""


PROBABILITIES = np.arange(1, 80) / 80
"""Of the quantiles in forecasts; among them are the ends of central intervals of 50% to 95%."""


class Fitted(Protocol):
    """A method that has seen its training data."""

    def forecast(self, times: pd.Index) -> pd.DataFrame:
        """Forecast new observations.

        Parameters
        ----------
        times
            Times after the training data, one step apart from it and from each other.

        Returns
        -------
        DataFrame with index (series, time) and columns mean and sd, in the units of the series.  A
        method that says that a series is lognormal adds columns log_mean and log_sd, the moments
        of its logarithm, NaN for other series; one that says that it is a Student-t of this
        mean and sd adds degrees, of freedom, NaN for other series; one that says something else,
        such as of counts, adds its quantiles of `PROBABILITIES`, q0.0125 to q0.9875.
        """


class Comparator(Protocol):
    """A method that forecasts tables of series; its settings are its constructor's arguments."""

    def fit(self, train: pd.DataFrame, *, seed: int) -> Fitted:
        """Learn from a table: rows are times, columns are series, NaN is missing."""


def forecast_frame(series: pd.Index, times: pd.Index, mean: Floats, sd: Floats) -> pd.DataFrame:
    """Arrange means and sds, [M, N] each, as `Fitted.forecast` returns them."""
    index = pd.MultiIndex.from_product([series, times], names=["series", "time"])
    return pd.DataFrame({"mean": mean.T.ravel(), "sd": sd.T.ravel()}, index=index)


@dataclass(frozen=True)
class ScaledForecast:
    """A fitted model of a table's `observations` (times to a span of one, series z-scored)."""

    table: Table
    # From scaled times, [M], to the means and variances (with noise) of new scaled observations,
    # [M, N] each.
    predict: Callable[[Floats], tuple[Floats, Floats]]

    def forecast(self, times: pd.Index) -> pd.DataFrame:
        """See `Fitted.forecast`.

        A RuntimeError is raised if a mean is not finite, or a variance not finite and positive:
        which series it is.
        """
        mean, variance = self.predict(self.table.scaled_times(times))  # [M, N] each
        sound = np.isfinite(mean) & np.isfinite(variance) & (variance > 0.0)
        if not sound.all():
            row, n = np.argwhere(~sound)[0]
            raise RuntimeError(
                f"series {self.table.names[n]!r}, {times[row]}: expected a finite mean and a "
                f"finite positive variance, got {mean[row, n]:.4g} and {variance[row, n]:.4g} "
                "(in sds of the series): the fit has diverged"
            )
        return forecast_frame(
            self.table.frame.columns,
            times,
            self.table.location + self.table.scale * mean,
            self.table.scale * np.sqrt(variance),
        )


Ahead = Callable[[int], tuple[Floats, Floats]]
"""From a number of steps h to the means and sds of the next h values: [h] each for one series,
[h, N] for several."""


def fit_alone(table: Table, learn: Callable[[int, Floats], Ahead]) -> ScaledForecast:
    """Fit every series alone, by a method that has no missing observations.

    `learn` gets the number of a series and its z-scores from the first to the last observation, so
    that nothing is invented at the ends; straight lines in time fill the gaps between.  A series
    that ended some rows before the table is forecast for as many steps more.  No sd is smaller than
    `MIN_SD`.
    """
    observations = table.observations
    filled, (begins, stops) = observations.filled, observations.ends
    fitted = [
        learn(n, filled[begin:stop, n])
        for n, (begin, stop) in enumerate(zip(begins, stops, strict=True))
    ]

    def predict(times: Floats) -> tuple[Floats, Floats]:
        moments = []
        for ahead, missing in zip(fitted, len(filled) - stops, strict=True):
            mean, sd = ahead(int(missing) + len(times))
            moments.append((mean[missing:], sd[missing:]))
        mean, sd = (np.column_stack(each) for each in zip(*moments, strict=True))
        return mean, np.square(np.maximum(sd, MIN_SD))

    return ScaledForecast(table, predict)


def library(module: str) -> ModuleType:
    """Import a module of an optional library; the error says how to install an absent one."""
    name = module.split(".")[0]
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        extra = "sktime" if name == "sktime" else "comparators"
        raise ModuleNotFoundError(
            f"expected the library {name} for this method: "
            f"pip install '.[{extra}]' in a clone of lkm_gpflow"
        ) from error

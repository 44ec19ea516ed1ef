"""What a comparator is."""

from __future__ import annotations

from typing import Protocol

import pandas as pd

from ..gp.types import Floats


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
        mean and sd adds degrees, of freedom, NaN for other series.
        """


class Comparator(Protocol):
    """A method that forecasts tables of series; its settings are its constructor's arguments."""

    def fit(self, train: pd.DataFrame, *, seed: int) -> Fitted:
        """Learn from a table: rows are times, columns are series, NaN is missing."""


def forecast_frame(series: pd.Index, times: pd.Index, mean: Floats, sd: Floats) -> pd.DataFrame:
    """Arrange means and sds, [M, N] each, as `Fitted.forecast` returns them."""
    index = pd.MultiIndex.from_product([series, times], names=["series", "time"])
    return pd.DataFrame({"mean": mean.T.ravel(), "sd": sd.T.ravel()}, index=index)

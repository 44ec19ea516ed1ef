"""Forecasts of models that learn from scaled data: back to the units of the series."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from ..data.tables import Table
from ..gp.types import Floats
from .protocol import forecast_frame

MIN_SD = 10**-2.5
"""Smallest forecast sd of methods without a noise of their own, in sds of the series."""


@dataclass(frozen=True)
class ScaledForecast:
    """A fitted model of a table's `observations` (times to a span of one, series z-scored).

    Parameters
    ----------
    table
        The training data with their scaling.
    predict
        From scaled times, [M], to the means and variances (with noise) of new scaled
        observations, [M, N] each.
    """

    table: Table
    predict: Callable[[Floats], tuple[Floats, Floats]]

    def forecast(self, times: pd.Index) -> pd.DataFrame:
        """See `Fitted.forecast`.

        Raises
        ------
        RuntimeError
            If a mean is not finite, or a variance not finite and positive: which series it is.
        """
        mean, variance = self.predict(self.table.scaled_times(times))
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

"""How far forecasts may be off: variances and tails of what comes after the data."""

from __future__ import annotations

import numpy as np

from ..data.tables import Table
from ..gp.likelihoods import SeriesLikelihood
from ..gp.types import Floats

FORECAST_DEGREES = 6.0
"""Degrees of freedom of forecasts that average over fits.

What comes next may vary more, or less, than what was seen.  With these degrees and
`FORECAST_VARIANCE`, 90% intervals are as wide as those of a normal without the factor, 50%
intervals narrower and 99% intervals wider, as outcomes want it
(`paper_experiments/benchmark.ipynb`).  Five to eight degrees are as good.  Logarithms stay normal:
the exponential of a Student-t has no mean.
"""

FORECAST_VARIANCE = 1.075
"""Factor of the variance of forecasts that average over fits; logarithms have none."""


def degrees_of_freedom(
    table: Table, x: Floats, likelihood: SeriesLikelihood, *, averages: bool
) -> Floats:
    """Degrees of freedom of new observations, [M, N]; infinite: normal.

    By the best fit alone, and within the data, they are those of the likelihood.

    Parameters
    ----------
    table
        The data.
    x
        Scaled times, [M].
    likelihood
        How a series scatters around its covariance.
    averages
        Whether forecasts average over fits.
    """
    observations = table.observations
    of_model = likelihood.predictive_degrees(observations.mask.sum(axis=1))
    is_forecast = (x > observations.x[-1]) & averages
    of_forecast = np.where(table.transforms.is_log, np.inf, FORECAST_DEGREES)
    return np.where(is_forecast[:, None], of_forecast, of_model)

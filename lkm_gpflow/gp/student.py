"""Names of before `likelihoods`, kept until all rooms call it."""

from __future__ import annotations

import math

from .likelihoods import GAUSSIAN, ScaledNoise, SeriesLikelihood
from .likelihoods import unit_quantile as unit_quantile
from .likelihoods import unit_scale as unit_scale


def of_degrees(degrees: float | SeriesLikelihood) -> SeriesLikelihood:
    """Return the likelihood that degrees of freedom of a scale stand for."""
    if isinstance(degrees, SeriesLikelihood):
        return degrees
    return GAUSSIAN if math.isinf(degrees) else ScaledNoise(float(degrees))


def weight(q: float, num_observed: int, degrees: float) -> float:
    """Call `SeriesLikelihood.weight`."""
    return float(of_degrees(degrees).weight(q, num_observed))

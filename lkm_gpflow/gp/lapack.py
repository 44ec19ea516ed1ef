"""Names of before `series`, kept until all rooms call it: factors and densities from `degrees`."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np
from scipy.linalg.blas import dsyr
from scipy.linalg.lapack import dpotri

from . import series
from .likelihoods import SeriesLikelihood
from .series import GaussianSeries
from .series import root as root
from .student import of_degrees
from .types import Floats


def log_density(V: Floats, y: Floats, degrees: float | SeriesLikelihood = math.inf) -> float:
    """Call `series.log_density`."""
    return series.log_density(V, y, of_degrees(degrees))


def log_densities(
    V: Iterable[Floats],
    noise_variance: Sequence[Sequence[float]],
    y: Floats,
    degrees: float | SeriesLikelihood = math.inf,
) -> Floats:
    """Call `series.log_densities`."""
    return series.log_densities(V, noise_variance, y, of_degrees(degrees))


def factorise(
    V: Floats, y: Floats, degrees: float | SeriesLikelihood = math.inf
) -> tuple[float, Floats]:
    """Return log density and b times the root of its weight: see `series.GaussianSeries`."""
    own = GaussianSeries(V, y, of_degrees(degrees), overwrite=True)
    if math.isnan(own.q):
        return np.nan, y
    return own.log_density, math.sqrt(own.weight) * own.b


def gradient(L: Floats, b: Floats) -> Floats:
    """Return what `series.GaussianSeries.lower_gradient` does."""
    G, _ = dpotri(L, lower=1, overwrite_c=1)
    G = dsyr(-1.0, b, lower=1, a=G, overwrite_a=1)
    G.T.reshape(-1)[:: len(G) + 1] *= 0.5
    return G

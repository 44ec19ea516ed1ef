"""Scans: what one more component is worth to every series, for many candidates at once.

Most candidates are worth little, and a part of the times tells (`promising`); the others are
compared on all of them (`scan`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..data.observations import Observations
from ..gp import lapack as cholesky
from ..gp.types import Floats, Integers
from ..kernels.grammar import Product
from .engine import components
from .missing import seen_by_series

_NUM_BLOCKS = 8
_BLOCK = 8
"""A rough scan sees so many blocks of so many neighbouring times: short lags and long ones."""


def scan(
    base: Floats,
    candidates: Sequence[Product],
    noise_variance: Floats,
    observations: Observations,
    degrees: float = np.inf,
) -> Floats:
    """Log densities of every series with one more component, for many candidates.

    Parameters
    ----------
    base
        Covariances of what each series has already, without noise, [N, D, D].
    candidates
        M complete products.
    noise_variance
        L noise variances to try for each series, [L, N], or with each candidate, [M, L, N].
    observations
        The data.
    degrees
        As in `engine.Objective`.

    Returns
    -------
    Array [M, L, N]; NaN where a covariance is not positive definite.
    """
    C = components(candidates, observations.x)
    return _log_densities(base, C, noise_variance, observations, degrees)


def promising(
    base: Floats,
    candidates: Sequence[Product],
    noise_variance: Floats,
    observations: Observations,
    degrees: float = np.inf,
    *,
    count: int,
) -> tuple[list[Product], Floats]:
    """Return the candidates that gain most on a part of the times, and with how much noise.

    The density of a part of the observations is exact, and cheaper than that of all.

    Parameters
    ----------
    base, candidates, noise_variance, observations, degrees
        As in `scan`; the first row of noise variances, [L, N], is what the series have now.
    count
        How many candidates at most.

    Returns
    -------
    The candidates, the best first, and the noise variance that suits each series best with each of
    them, [M, N].
    """
    places = _part(len(observations.x))
    part = observations.at_times(places)
    nothing = np.zeros((1, len(places), len(places)))
    C = np.concatenate([components(candidates, part.x), nothing])
    own = base[:, places[:, None], places]
    found = np.nan_to_num(_log_densities(own, C, noise_variance, part, degrees), nan=-np.inf)
    gains = np.maximum(found[:-1].max(axis=1) - found[-1, 0], 0.0).sum(axis=1)
    best = np.argsort(-gains, kind="stable")[:count]
    level = found[best].argmax(axis=1)
    return [candidates[m] for m in best], np.take_along_axis(noise_variance, level, axis=0)


def _part(num_times: int) -> Integers:
    """Places of the times that a rough scan sees: blocks of neighbours all along the table."""
    starts = np.linspace(0, max(num_times - _BLOCK, 0), _NUM_BLOCKS).round()
    places = np.unique(np.add.outer(starts, np.arange(_BLOCK)).astype(np.int32))
    return places[places < num_times]


def _log_densities(
    base: Floats,
    added: Floats,
    noise_variance: Floats,
    observations: Observations,
    degrees: float,
) -> Floats:
    """As `scan`, for covariances that are added to those of each series, [M, D, D]."""
    found = np.empty((len(added), *noise_variance.shape[-2:]))
    levels = np.broadcast_to(noise_variance, found.shape).transpose(2, 0, 1).tolist()
    for n, (points, y) in enumerate(zip(seen_by_series(observations), observations.Y, strict=True)):
        V = (points.block(base[n] + C) for C in added)
        found[:, :, n] = cholesky.log_densities(V, levels[n], points.rows(y), degrees)
    return found

"""Scans: what one more component is worth to every series, for many candidates at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from ..data.observations import Observations
from ..kernels.grammar import Product
from ..numerics import cholesky
from ..numerics.lags import lag_grid
from ..numerics.types import Floats, Integers
from .covariances import at
from .gaps import seen_by_series

_NUM_BLOCKS = 8
_BLOCK = 8
"""A rough scan sees so many blocks of so many neighbouring times: short lags and long ones."""

_WORTH_IT = 1.5
"""A table of so many times what a rough scan sees is scanned roughly before it is scanned."""


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
        L noise variances to try for each series, [L, N].
    observations
        The data.
    degrees
        As in `engine.Objective`.

    Returns
    -------
    Array [M, L, N]; NaN where a covariance is not positive definite.
    """
    added = (component.matrix() for component in at(candidates, lag_grid(observations.x)))
    return np.array(list(_log_densities(base, added, noise_variance, observations, degrees)))


def promising(
    base: Floats,
    candidates: Sequence[Product],
    noise_variance: Floats,
    observations: Observations,
    degrees: float = np.inf,
    *,
    count: int,
) -> list[Product]:
    """Return the candidates that gain most on a part of the times.

    The density of a part of the observations is exact, and costs a tenth or less of that of all.

    Parameters
    ----------
    base, candidates, noise_variance, observations, degrees
        As in `scan`; the first row of noise variances is what the series have now.
    count
        How many candidates at most.
    """
    places = _part(len(observations.x))
    if len(candidates) <= count or len(observations.x) < _WORTH_IT * len(places):
        return list(candidates)
    part = observations.at_times(places)
    own = base[:, places[:, None], places]
    found = np.nan_to_num(scan(own, candidates, noise_variance, part, degrees), nan=-np.inf)
    nothing = np.zeros((1, len(places), len(places)))
    [now] = _log_densities(own, nothing, noise_variance[:1], part, degrees)
    gains = np.maximum(found.max(axis=1) - now[0], 0.0).sum(axis=1)
    best = np.argsort(-gains, kind="stable")[:count]
    return [candidates[m] for m in np.sort(best)]


def _part(num_times: int) -> Integers:
    """Places of the times that a rough scan sees: blocks of neighbours all along the table."""
    starts = np.linspace(0, max(num_times - _BLOCK, 0), _NUM_BLOCKS).round()
    places = np.unique(np.add.outer(starts, np.arange(_BLOCK)).astype(np.int32))
    return places[places < num_times]


def _log_densities(
    base: Floats,
    added: Iterable[Floats],
    noise_variance: Floats,
    observations: Observations,
    degrees: float,
) -> Iterable[Floats]:
    """Of every series [N] at every noise variance [L], for each matrix that is added to its own."""
    seen = seen_by_series(observations)
    rows = [points.rows(y) for points, y in zip(seen, observations.Y, strict=True)]
    whole, levels = np.empty_like(base[0]), noise_variance.T.tolist()
    for C in added:
        found = [
            [
                cholesky.log_density(V, rows[n], degrees)
                for V in points.with_levels(np.add(base[n], C, out=whole), levels[n])
            ]
            for n, points in enumerate(seen)
        ]
        yield np.array(found).T

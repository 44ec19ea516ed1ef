"""Log densities of any structure, and their gradients: all that learning calls again and again.

A search tries hundreds of structures, so here a structure is *data* (`Layout`), and nothing is
compiled for one.  Matrices are some hundred rows large: each goes through LAPACK in place
(`cholesky`), stationary kernels are evaluated once for every lag (`lags`, `covariances`), missing
points are left out (`gaps`).  Many series that share covariances are decomposed together instead
(`sharing`).

All arrays at the door are NumPy, inputs are scaled (see `data.tables`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.linalg.blas import daxpy
from scipy.special import logsumexp

from ..data.observations import Observations
from ..kernels.grammar import Product
from ..numerics import cholesky
from ..numerics.lags import LagGrid, lag_grid, matrix
from ..numerics.types import Floats, Integers
from .covariances import Component, Structure, at
from .gaps import by_configuration, seen_by_series
from .layout import Layout
from .sharing import SharedPairs

_NO_WEIGHT = 1e-14
"""Configurations of a smaller responsibility have no part in the gradient."""


def components(products: Sequence[Product], x: Floats) -> Floats:
    """Covariances [K, D, D] of complete products on the times x [D]."""
    C = np.empty((len(products), len(x), len(x)))
    for k, component in enumerate(at(products, lag_grid(x))):
        C[k] = component.matrix()
    return C


def variances(products: Sequence[Product], x: Floats) -> Floats:
    """Diagonals [K, D] of `components`."""
    return np.array([component.diagonal() for component in at(products, lag_grid(x))])


class Objective:
    r"""Log likelihood of the series, each summed over a few configurations, with its gradient.

    .. math:: \sum_n \log \sum_{p: n_p = n} \exp[ \log p(x_n | z = t_p) + w_p ]

    Where many pairs share a covariance they are decomposed together, see `sharing`.

    Parameters
    ----------
    layout
        Where the hyperparameters stand.
    observations
        The data.
    series, configurations, log_weights
        Pairs of a series n_p and a configuration t_p, [P], sorted by series, and [P, K], and w_p,
        [P]: the log prior probability of the configuration.  One pair a series with w = 0 is the
        log likelihood of a given Z.
    degrees
        Degrees of freedom of the scale of a series, see `student`; infinite: all scales are one.
    heights
        Whether log heights [N, K] follow the hyperparameters in the flat vector, see `heights`.
    """

    def __init__(
        self,
        layout: Layout,
        observations: Observations,
        series: Integers,
        configurations: Floats,
        log_weights: Floats,
        degrees: float = np.inf,
        heights: bool = False,
    ) -> None:
        self._heights = heights
        self._layout, self._observations, self._degrees = layout, observations, degrees
        self._series, self._configurations = series, configurations
        self._log_weights = log_weights
        self._grid = lag_grid(observations.x)
        self._structure = Structure(layout, self._grid)
        self._is_moving = np.array(
            [any(not f.base.stationary for f in p.factors) for p in layout.products], bool
        )
        self._shared = SharedPairs(observations, series, configurations, degrees)
        if heights or not self._shared.are_many:
            self._prepare()

    def _prepare(self) -> None:
        """Set memory aside: a covariance for each configuration of a series at a time."""
        observations, D = self._observations, len(self._observations.x)
        seen = seen_by_series(observations)
        pairs = [np.flatnonzero(self._series == n) for n in range(observations.num_series)]
        self._plan = [
            (n, own, seen[n], np.ascontiguousarray(seen[n].rows(observations.Y[n])))
            for n, own in enumerate(pairs)
            if own.size
        ]
        # Those of the same pattern use the same memory, one series after the other.
        most: dict[int, int] = {}
        for _, own, points, _ in self._plan:
            most[id(points)] = max(most.get(id(points), 1), len(own))
        self._memory = {
            id(points): [points.covariance]
            + [matrix(len(points.covariance)) for _ in range(most[id(points)] - 1)]
            for _, _, points, _ in self._plan
        }
        self._whole, self._scattered = np.empty((D, D)), matrix(D)

    def __call__(self, flat: Floats) -> tuple[float, Floats]:
        """Value and gradient at a flat vector; NaN where a covariance is not positive definite."""
        size, num_series = self._layout.size, self._layout.num_series
        found = self._structure.at(flat[:size])
        noise_variance = np.exp(flat[size - num_series : size])
        if self._heights:
            log_heights = flat[size:].reshape(num_series, -1)
            return self._by_cholesky(found, noise_variance, log_heights)
        if self._shared.are_many:
            return self._by_eigenbases(found, noise_variance)
        return self._by_cholesky(found, noise_variance)

    def _by_cholesky(
        self, found: Sequence[Component], noise_variance: Floats, log_heights: Floats | None = None
    ) -> tuple[float, Floats]:
        """One factor for every pair; all of a series are held until their weights are known."""
        D = len(self._observations.x)
        loadings = self._configurations
        if log_heights is not None:
            loadings = loadings * np.exp(log_heights[self._series])
        own_by_pair = np.ascontiguousarray(loadings[:, self._is_moving])
        own_by_lag = np.ascontiguousarray(loadings[:, ~self._is_moving])
        has_by_lag = own_by_lag.any(axis=1).tolist()
        stationary = _stacked([c.by_lag for c in found if c.moving is None], self._grid)
        by_lag = own_by_lag @ stationary
        moving = np.array([c.matrix().ravel() for c in found if c.moving is not None])
        total, d_noise = 0.0, np.zeros(self._layout.num_series)
        d_heights = np.zeros((self._layout.num_series, len(found)))
        d_by_lag = np.zeros((own_by_lag.shape[1], len(self._grid.lags)))
        d_by_pair = [matrix(D) for _ in moving]
        for n, own, seen, y in self._plan:
            memory = self._memory[id(seen)]
            log_joint, solved = np.empty(len(own)), []
            for i, p in enumerate(own):
                V = seen.target(memory[i], self._whole)
                if len(moving):
                    np.dot(own_by_pair[p], moving, out=V.reshape(-1))
                if own_by_lag.shape[1] or not len(moving):
                    self._grid.spread_into(by_lag[p], V, add=len(moving) > 0)
                seen.select(V, noise_variance[n], memory[i])
                log_density, b = cholesky.factorise(memory[i], y, self._degrees)
                log_joint[i] = log_density + self._log_weights[p]
                solved.append(b)
            evidence = float(logsumexp(log_joint)) if len(own) > 1 else float(log_joint[0])
            total += evidence
            if not np.isfinite(total):
                return np.nan, np.full(self._size, np.nan)
            for i, (p, r) in enumerate(zip(own, np.exp(log_joint - evidence), strict=True)):
                if r < _NO_WEIGHT:
                    continue
                G = cholesky.gradient(memory[i], solved[i])
                d_noise[n] -= r * float(G.trace())
                G = seen.whole(G, self._scattered)
                for t, own_sum in zip(own_by_pair[p], d_by_pair, strict=True):
                    if t:
                        _add(own_sum, -r * t, G)
                if has_by_lag[p]:
                    sums = self._grid.collect(G)
                    d_by_lag -= np.multiply.outer(r * own_by_lag[p], sums)
                    if log_heights is not None:
                        d_heights[n, ~self._is_moving] -= r * own_by_lag[p] * (stationary @ sums)
                if log_heights is not None and own_by_pair[p].any():
                    # Covariances are symmetric: the order of their memory does not matter.
                    slopes = moving @ G.T.reshape(-1)
                    d_heights[n, self._is_moving] -= r * own_by_pair[p] * slopes
        gradient = self._gradient(found, d_by_lag, d_by_pair, noise_variance * d_noise)
        if log_heights is None:
            return total, gradient
        return total, np.concatenate([gradient, d_heights.ravel()])

    @property
    def _size(self) -> int:
        """Length of the flat vector."""
        num_heights = self._layout.num_series * len(self._layout.products) * self._heights
        return self._layout.size + num_heights

    def _by_eigenbases(
        self, found: Sequence[Component], noise_variance: Floats
    ) -> tuple[float, Floats]:
        """One eigendecomposition for every configuration, see `sharing`."""
        bases = self._shared.decompose(np.array([c.matrix() for c in found]))
        [log_densities] = self._shared.log_densities(bases, noise_variance[None])
        log_joint = log_densities + self._log_weights
        evidence = _segment_logsumexp(log_joint, self._series, len(noise_variance))
        responsibilities = np.exp(log_joint - evidence[self._series])
        d_components, d_noise = self._shared.gradients(bases, noise_variance, responsibilities)
        lower = [_doubled_lower(d) for d in d_components]
        d_by_lag = [self._grid.collect(d) for d in self._of(lower, moving=False)]
        d_by_pair = list(self._of(lower, moving=True))
        own = noise_variance * d_noise
        return float(evidence.sum()), self._gradient(found, d_by_lag, d_by_pair, own)

    def _of(self, values: Sequence[Floats], *, moving: bool) -> list[Floats]:
        return [v for v, is_own in zip(values, self._is_moving == moving, strict=True) if is_own]

    def _gradient(
        self,
        found: Sequence[Component],
        d_by_lag: Sequence[Floats] | Floats,
        d_by_pair: Sequence[Floats],
        d_noise: Floats,
    ) -> Floats:
        """From gradients by covariances and log noise variances to that by the flat vector."""
        by_lag, by_pair = iter(d_by_lag), iter(d_by_pair)
        gradient = self._structure.gather(
            [one.pull_back(next(by_lag if one.moving is None else by_pair)) for one in found]
        )
        gradient[len(gradient) - len(d_noise) :] = d_noise
        return gradient


def pair_log_densities(
    covariances: Floats,
    noise_levels: Floats,
    observations: Observations,
    series: Integers,
    configurations: Floats,
    degrees: float = np.inf,
) -> Floats:
    """``log p(x_n | z = t)`` for pairs of series [P] and configurations [P, K].

    Parameters
    ----------
    covariances
        Components, [K, D, D].
    noise_levels
        L times a noise variance for every series, [L, N].
    observations, series, configurations, degrees
        As in `Objective`.

    Returns
    -------
    Array [L, P]; NaN where a covariance is not positive definite.
    """
    shared = SharedPairs(observations, series, configurations, degrees)
    if shared.are_many:
        return shared.log_densities(shared.decompose(covariances), noise_levels)
    found = np.empty((len(noise_levels), len(series)))
    D = len(observations.x)
    seen, flat = seen_by_series(observations), covariances.reshape(len(covariances), D * D)
    rows = [points.rows(y) for points, y in zip(seen, observations.Y, strict=True)]
    levels = noise_levels.T.tolist()
    for configuration, places in by_configuration(configurations):
        V = (configuration @ flat).reshape(D, D)
        for p in places:
            n = series[p]
            own = [seen[n].block(V)]
            [found[:, p]] = cholesky.log_densities(own, [levels[n]], rows[n], degrees)
    return found


def _stacked(by_lag: Sequence[Floats], grid: LagGrid) -> Floats:
    return np.array(by_lag).reshape(len(by_lag), len(grid.lags))


def _add(total: Floats, weight: float, G: Floats) -> None:
    """Add a weighted matrix to a sum; both in Fortran's order."""
    daxpy(G.T.reshape(-1), total.T.reshape(-1), a=weight)


def _doubled_lower(G: Floats) -> Floats:
    """From a symmetric gradient to what `Component.pull_back` is given."""
    lower = matrix(len(G))
    lower[...] = 2.0 * np.tril(G)
    np.einsum("ii->i", lower)[...] *= 0.5
    return lower


def _segment_logsumexp(values: Floats, segments: Integers, count: int) -> Floats:
    """Log of the sum of exponentials within each segment, [count]; segments are sorted."""
    starts = np.searchsorted(segments, np.arange(count))
    largest = np.maximum.reduceat(values, starts)
    return largest + np.log(np.add.reduceat(np.exp(values - largest[segments]), starts))

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
from scipy.special import logsumexp

from ..data.observations import Observations
from ..gp import lapack as cholesky
from ..gp.lags import lag_grid, matrix
from ..gp.types import Floats, Integers
from ..kernels.grammar import Product
from .covariances import Component, Structure, at
from .layout import Layout
from .missing import Seen, by_configuration, seen_by_series
from .shared_pairs import SharedPairs
from .weighted_sums import Sums

_NO_WEIGHT = 1e-14
"""Configurations of a smaller responsibility are ignored in the gradient."""


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
        loadings = self._configurations
        if log_heights is not None:
            loadings = loadings * np.exp(log_heights[self._series])
        sums = Sums(found, self._grid, loadings)
        total, d_noise = 0.0, np.zeros(self._layout.num_series)
        d_heights = np.zeros((self._layout.num_series, len(found)))
        for n, own, seen, y in self._plan:
            memory = self._memory[id(seen)]
            log_densities, solved = self._factorise(sums, own, seen, noise_variance[n], y)
            log_joint = log_densities + self._log_weights[own]
            evidence = float(logsumexp(log_joint)) if len(own) > 1 else float(log_joint[0])
            total += evidence
            if not np.isfinite(total):
                return np.nan, np.full(self._size, np.nan)
            for p, r, V, b in zip(own, np.exp(log_joint - evidence), memory, solved, strict=False):
                if r < _NO_WEIGHT:
                    continue
                G = cholesky.gradient(V, b)
                d_noise[n] -= r * float(G.trace())
                G = seen.whole(G, self._scattered)
                sums.add(p, -r, G)
                if log_heights is not None:
                    d_heights[n] -= r * sums.slopes(p, G)
        gradient = self._gradient(found, sums.gradients(), noise_variance * d_noise)
        if log_heights is None:
            return total, gradient
        return total, np.concatenate([gradient, d_heights.ravel()])

    def _factorise(
        self, sums: Sums, own: Integers, seen: Seen, noise_variance: float, y: Floats
    ) -> tuple[Floats, list[Floats]]:
        """Log densities of the pairs of one series; their factors are in its memory."""
        log_densities, solved = np.empty(len(own)), []
        for i, (p, V) in enumerate(zip(own, self._memory[id(seen)], strict=False)):
            whole = seen.target(V, self._whole)
            sums.write(p, whole)
            seen.select(whole, noise_variance, V)
            log_densities[i], b = cholesky.factorise(V, y, self._degrees)
            solved.append(b)
        return log_densities, solved

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
        by_component = [
            self._grid.collect(lower) if component.moving is None else lower
            for component, lower in zip(found, map(_doubled_lower, d_components), strict=True)
        ]
        own = noise_variance * d_noise
        return float(evidence.sum()), self._gradient(found, by_component, own)

    def _gradient(
        self, found: Sequence[Component], by_component: Sequence[Floats], d_noise: Floats
    ) -> Floats:
        """From gradients by components and log noise variances to that by the flat vector."""
        gradient = self._structure.gather(
            [one.pull_back(own) for one, own in zip(found, by_component, strict=True)]
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

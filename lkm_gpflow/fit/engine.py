"""The protocol by which learning asks a model, and its implementation by LAPACK.

A search tries hundreds of structures, so a structure is data here (`Layout`), and nothing is
compiled for one.  Matrices are some hundred rows large: each goes through LAPACK in place,
stationary kernels are evaluated once for every lag (`covariances`), missing points are left out
(`Seen`), and series that share covariances are decomposed together (`shared_pairs`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import logsumexp

from ..data.observations import Observations
from ..gp.lags import LagGrid, lag_grid, matrix
from ..gp.likelihoods import GAUSSIAN, SeriesLikelihood
from ..gp.series import GaussianSeries, log_densities
from ..gp.types import Floats, Integers
from ..kernels.grammar import Product
from .assignments import Pairs
from .covariances import Components, ProductComponents, RowCovariances, components_at
from .fits import Fit, State
from .layout import Layout
from .shared_pairs import SharedPairs


class Seen:
    """The points that a series has, among all D, and memory for covariances of them.

    Series of one pattern of gaps share this.

    Parameters
    ----------
    pattern
        One where a point was observed, [D].
    """

    def __init__(self, pattern: Floats) -> None:
        self.places = np.flatnonzero(pattern)
        """Of the points that were observed, [d]."""
        self.is_all = len(self.places) == len(pattern)
        """Whether that is every point."""
        self._D = len(pattern)
        self._memory: list[Floats] = []

    @cached_property
    def _pairs(self) -> Integers:
        """Places of pairs of observed points in a flat matrix."""
        return (self.places[:, None] * self._D + self.places).ravel()

    def covariances(self, count: int) -> list[Floats]:
        """At least so many matrices [d, d] in Fortran's order, for whoever comes next."""
        while len(self._memory) < count:
            self._memory.append(matrix(len(self.places)))
        return self._memory

    def rows(self, y: Floats) -> Floats:
        """Return the observed entries of a series, [d]."""
        return y if self.is_all else y[self.places]

    def block(self, V: Floats) -> Floats:
        """Return the observed rows and columns of a matrix [D, D], [d, d]."""
        if self.is_all:
            return V
        d = len(self.places)
        return V.ravel().take(self._pairs, mode="clip").reshape(d, d)

    def select(self, V: Floats, noise_variance: Floats | float, out: Floats) -> None:
        """Write a symmetric matrix [D, D] to `out`, without missing rows, with noise.

        The noise is a number or one for each point that was observed, [d].
        V may be `out` itself.
        """
        flat = out.T.reshape(-1)
        if not self.is_all:
            V.ravel().take(self._pairs, out=flat, mode="clip")
        elif not np.may_share_memory(V, out):
            np.copyto(out.T, V)
        flat[:: len(out) + 1] += noise_variance

    def whole(self, G: Floats, out: Floats) -> Floats:
        """From a lower triangle [d, d] to one of all points, in `out` [D, D], zero elsewhere."""
        if self.is_all:
            return G
        out[...] = 0.0
        # Places are in order: what was below the diagonal is so again.
        out.T.reshape(-1)[self._pairs] = G.T.reshape(-1)
        return out


def seen_by_series(observations: Observations) -> list[Seen]:
    """Return for each series which points it has; one object a pattern."""
    of_series, patterns = observations.mask_patterns
    every = [Seen(pattern) for pattern in patterns]
    return [every[number] for number in of_series]


_NO_WEIGHT = 1e-14
"""Configurations of a smaller responsibility are ignored in the gradient."""

_NUM_BLOCKS = 8
_BLOCK = 8
"""A rough scan sees so many blocks of so many neighbouring times: short lags and long ones."""


_AT_ONCE = 500
"""Of more times diagonals are taken in parts."""


def components(products: Sequence[Product], x: Floats) -> Floats:
    """Covariances [K, D, D] of complete products on the times x [D]."""
    C = np.empty((len(products), len(x), len(x)))
    for k, component in enumerate(components_at(products, lag_grid(x))):
        C[k] = component.matrix()
    return C


def variances(products: Sequence[Product], x: Floats) -> Floats:
    """Diagonals [K, D] of `components`; of long tables a part of the times is seen at once."""
    parts = np.array_split(x, range(_AT_ONCE, len(x), _AT_ONCE))
    every = [components_at(products, lag_grid(part)) for part in parts]
    return np.array([np.concatenate(of_one) for of_one in zip(
        *([component.diagonal() for component in some] for some in every), strict=True
    )])  # fmt: skip


class Engine:
    """What learning asks of a model on the times of one table: here `LKM` itself, by LAPACK.

    A model has the hyperparameters of its kernels, noise variances and, if it is a subclass of
    `LKM`, `parameters` of its own: see `TensorEngine`.  Long regular tables have `ToeplitzEngine`.

    Parameters
    ----------
    observations
        The table.
    likelihood
        How a series scatters around its covariance.

    Attributes
    ----------
    parameters
        Where the model's own parameters begin, by path.
    """

    parameters: Mapping[str, Any]

    def __init__(self, observations: Observations, likelihood: SeriesLikelihood = GAUSSIAN) -> None:
        self.observations, self.likelihood = observations, likelihood
        self.parameters = {}

    @cached_property
    def grid(self) -> LagGrid:
        """The times with their lags."""
        return lag_grid(self.observations.x)

    def covariances(
        self, kernels: Sequence[Product], parameters: Mapping[str, Any], x: Floats | None = None
    ) -> Floats:
        """Covariances [K, D, D] of complete products on times x [D], by default the table's."""
        return components(kernels, self.observations.x if x is None else x)

    def components(self, layout: Layout, flat: Floats) -> Components:
        """Components on the table's times at a flat vector, with their pull-back."""
        return ProductComponents(layout, self.grid, flat)

    def unconstrained(self, parameters: Mapping[str, Any]) -> Floats:
        """The model's own parameters as the flat vector has them, [E]."""
        return np.empty(0)

    def constrained(self, extras: Floats) -> Mapping[str, Any]:
        """The model's own parameters by path, from the end of a flat vector, [E]."""
        return {}

    def log_prior(self, extras: Floats) -> tuple[float, Floats]:
        """Log prior density of the model's own parameters, and its gradient, [E]."""
        return 0.0, np.empty(0)

    def log_densities(self, at: State | Fit, noise_levels: Floats, pairs: Pairs) -> Floats:
        """``log p(x_n | z = t)`` of all pairs for L noise variances a series [L, N], [L, P].

        NaN where a covariance is not positive definite.
        """
        C = self.covariances(at.kernels, at.parameters)
        return pair_log_densities(C, noise_levels, self.observations, pairs, self.likelihood)

    def objective(self, layout: Layout, pairs: Pairs, log_weights: Floats) -> Objective:
        """Sum over rows and series as a function of the flat vector, with its gradient."""
        return Objective(self, layout, pairs, log_weights)

    def entrance(self, state: State) -> Entrance:
        """What each series has, for one more component to enter."""
        return Entrance(self, self.observations, state)

    def scales(self, at: State | Fit, pairs: Pairs) -> Floats:
        """Predictive scales of the likelihood for all pairs, [P]."""
        C = self.covariances(at.kernels, at.parameters)
        return np.array([
            self._series(n, np.tensordot(z, C, axes=1), at.noise_variance[n])[0].scale
            for n, z in zip(pairs.series, pairs.configurations, strict=True)
        ])  # fmt: skip

    def predict(self, at: State | Fit, x: Floats) -> tuple[Floats, Floats]:
        r"""Mean and variance of new observations at times x after the table's, [N, M].

        .. math:: C_* V^{-1} y, \qquad s\, (\mathrm{diag}(C_{**} - C_* V^{-1} C_*^\top) + \sigma^2)

        with s the predictive scale of the likelihood.

        Raises
        ------
        ValueError
            If a covariance is not positive definite.
        """
        past, D, moments = self.observations, len(self.observations.x), []
        C = self.covariances(at.kernels, at.parameters, np.concatenate([past.x, x]))
        for n, (z, noise) in enumerate(zip(at.Z, at.noise_variance, strict=True)):
            total = np.tensordot(z, C, axes=1)
            series, seen = self._series(n, total, noise)
            if np.isnan(series.q):
                raise ValueError("the covariance of a series is not positive definite")
            moments.append(series.predict(total[seen, D:], total.diagonal()[D:] + noise))
        mean, variance = zip(*moments, strict=True)
        return np.array(mean), np.array(variance)

    def _series(self, n: int, C: Floats, noise: float) -> tuple[GaussianSeries, Integers]:
        """Series n given its covariance without noise at all times, and where it was observed."""
        seen = np.flatnonzero(self.observations.mask[n])
        V = C[np.ix_(seen, seen)]
        V.flat[:: len(V) + 1] += noise + self.observations.known_of(n, seen)
        return GaussianSeries(V, self.observations.Y[n, seen], self.likelihood), seen


class Entrance:
    """What each series has already, and what one of several more components would add to it.

    Parameters
    ----------
    engine
        Gives covariances.
    observations
        The table, or some of its series.
    state
        What these have.
    """

    def __init__(self, engine: Engine, observations: Observations, state: State) -> None:
        self._engine, self._observations, self._state = engine, observations, state

    @cached_property
    def _base(self) -> Floats:
        """Covariances of what each series has, [N, D, D]."""
        C = self._engine.covariances(self._state.kernels, self._state.parameters)
        return np.tensordot(self._state.Z, C, axes=1)

    def _base_at(self, places: Integers) -> Floats:
        """The same at some of the times."""
        return self._base[:, places[:, None], places]

    def scan(self, candidates: Sequence[Product], noise_variance: Floats) -> Floats:
        """Log densities [M, L, N] of every series with one of M more components.

        Parameters
        ----------
        candidates
            M complete products.
        noise_variance
            L noise variances for each series, [L, N], or with each candidate, [M, L, N].
        """
        C = self._engine.covariances(candidates, self._state.parameters)
        return _scanned(self._base, C, noise_variance, self._observations, self._engine.likelihood)

    def promising(
        self, candidates: Sequence[Product], noise_variance: Floats, count: int
    ) -> tuple[list[Product], Floats]:
        """The candidates that gain most on a part of the times, and with how much noise.

        The density of this part of the observations is exact.

        Parameters
        ----------
        candidates, noise_variance
            As of `scan`; the first row of noise variances, [L, N], is what the series have now.
        count
            Number of candidates at most.

        Returns
        -------
        The candidates, the best first, and the noise variance that suits each series best with each
        of them, [M, N].
        """
        places = _part(len(self._observations.x))
        part = self._observations.at_times(places)
        nothing = np.zeros((1, len(places), len(places)))
        own = self._engine.covariances(candidates, self._state.parameters, part.x)
        C = np.concatenate([own, nothing])
        base = self._base_at(places)
        found = _scanned(base, C, noise_variance, part, self._engine.likelihood)
        found = np.nan_to_num(found, nan=-np.inf)
        gains = np.maximum(found[:-1].max(axis=1) - found[-1, 0], 0.0).sum(axis=1)
        best = np.argsort(-gains, kind="stable")[:count]
        level = found[best].argmax(axis=1)
        return [candidates[m] for m in best], np.take_along_axis(noise_variance, level, axis=0)


class Objective:
    r"""Log likelihood of the series, each summed over a few rows of Z, with its gradient.

    .. math:: \sum_n \log \sum_{p: n_p = n} \exp[ \log p(x_n | z = t_p) + w_p ]

    Where many pairs share a covariance they are decomposed together, see `shared_pairs`.  Others
    have a Cholesky factor each; all of a series are held until their weights are known.

    Parameters
    ----------
    engine
        Gives components at a flat vector.
    layout
        Places of the hyperparameters.
    pairs
        P pairs of a series n_p and a row t_p.
    log_weights
        w, log prior probabilities of the rows, [P].  One pair a series with w = 0 is the log
        likelihood of a given Z.
    """

    def __init__(self, engine: Engine, layout: Layout, pairs: Pairs, log_weights: Floats) -> None:
        self._engine, self._layout = engine, layout
        self._pairs, self._log_weights = pairs, log_weights
        self._shared = SharedPairs(engine.observations, pairs, engine.likelihood)

    @cached_property
    def _by_series(self) -> list[tuple[int, Integers]]:
        """Series, and places of their pairs."""
        every = range(self._engine.observations.num_series)
        places = ((n, np.flatnonzero(self._pairs.series == n)) for n in every)
        return [(n, own) for n, own in places if own.size]

    @cached_property
    def _seen(self) -> list[Seen]:
        return seen_by_series(self._engine.observations)

    @cached_property
    def _whole(self) -> tuple[Floats, Floats]:
        """Memory for a covariance at all times, and for a gradient, in Fortran's order."""
        D = len(self._engine.observations.x)
        return np.empty((D, D)), matrix(D)

    def __call__(self, flat: Floats) -> tuple[float, Floats]:
        """Value and gradient at a flat vector; NaN where a covariance is not positive definite."""
        noise_variance = np.exp(flat[self._layout.noise])
        if self._shares:
            return self._by_eigenbases(self._engine.components(self._layout, flat), noise_variance)
        self._begin(flat)
        total, d_noise = 0.0, np.zeros(self._layout.num_series)
        for n, own in self._by_series:
            factors = self._factors(n, own, noise_variance[n])
            log_joint = np.array([f.log_density for f in factors]) + self._log_weights[own]
            evidence = float(logsumexp(log_joint)) if len(own) > 1 else float(log_joint[0])
            total += evidence
            if not np.isfinite(total):
                return np.nan, np.full(self._layout.size, np.nan)
            for p, r, factor in zip(own, np.exp(log_joint - evidence), factors, strict=True):
                if r >= _NO_WEIGHT:
                    d_noise[n] += self._add(n, p, r, factor)
        gradient = self._gradient()
        gradient[self._layout.noise] += noise_variance * d_noise
        return total, gradient

    @property
    def _shares(self) -> bool:
        """Whether covariances that pairs share are decomposed."""
        return self._shared.are_many

    def _begin(self, flat: Floats) -> None:
        """Evaluate the components."""
        self._found = self._engine.components(self._layout, flat)
        self._covariances = RowCovariances(
            self._found.parts, self._engine.grid, self._pairs.configurations
        )

    def _factors(self, n: int, own: Integers, noise_variance: float) -> Sequence[Any]:
        """The pairs of series n, by place, until those of the next series are asked for.

        Each has a `log_density`, NaN if its covariance is not positive definite.
        """
        seen, observations, found = self._seen[n], self._engine.observations, []
        noise = noise_variance + observations.known_of(n, seen.places)
        y = np.ascontiguousarray(seen.rows(observations.Y[n]))
        for p, V in zip(own, seen.covariances(len(own)), strict=False):
            whole = V.T if seen.is_all else self._whole[0]
            self._covariances.write(p, whole)
            seen.select(whole, noise, V)
            found.append(GaussianSeries(V, y, self._engine.likelihood, overwrite=True))
        return found

    def _add(self, n: int, p: int, weight: float, factor: Any) -> float:
        """Add the weighted gradient of pair p of series n; return that by the noise variance."""
        G = factor.lower_gradient()
        by_noise = -weight * float(G.trace())
        self._covariances.add(p, -weight, self._seen[n].whole(G, self._whole[1]))
        return by_noise

    def _gradient(self) -> Floats:
        """The sum of what was added, by the flat vector, [size]; less what `_add` has returned."""
        return self._found.pull_back(self._covariances.gradients())

    def _by_eigenbases(self, found: Components, noise_variance: Floats) -> tuple[float, Floats]:
        """One eigendecomposition for every row, see `shared_pairs`."""
        bases = self._shared.decompose(np.array([c.matrix() for c in found.parts]))
        [densities] = self._shared.log_densities(bases, noise_variance[None])
        series = self._pairs.series
        log_joint = densities + self._log_weights
        evidence = _segment_logsumexp(log_joint, series, len(noise_variance))
        responsibilities = np.exp(log_joint - evidence[series])
        d_components, d_noise = self._shared.gradients(bases, noise_variance, responsibilities)
        by_component = [
            self._engine.grid.collect(lower) if component.is_stationary else lower
            for component, lower in zip(found.parts, map(_doubled_lower, d_components), strict=True)
        ]
        gradient = found.pull_back(by_component)
        gradient[self._layout.noise] = noise_variance * d_noise
        return float(evidence.sum()), gradient


def pair_log_densities(
    covariances: Floats,
    noise_levels: Floats,
    observations: Observations,
    pairs: Pairs,
    likelihood: SeriesLikelihood = GAUSSIAN,
) -> Floats:
    """``log p(x_n | z = t)`` of pairs of a series and a row.

    Parameters
    ----------
    covariances
        Components, [K, D, D].
    noise_levels
        L noise variances for every series, [L, N].
    observations
        The table.
    pairs
        P of them.
    likelihood
        How a series scatters around its covariance.

    Returns
    -------
    Array [L, P]; NaN where a covariance is not positive definite.
    """
    shared = SharedPairs(observations, pairs, likelihood)
    if shared.are_many:
        return shared.log_densities(shared.decompose(covariances), noise_levels)
    found = np.empty((len(noise_levels), len(pairs.series)))
    D = len(observations.x)
    seen, flat = seen_by_series(observations), covariances.reshape(len(covariances), D * D)
    rows = [points.rows(y) for points, y in zip(seen, observations.Y, strict=True)]
    levels = [
        [level + observations.known_of(n, points.places) for level in own]
        for n, (points, own) in enumerate(zip(seen, noise_levels.T.tolist(), strict=True))
    ]
    for configuration, places in pairs.by_configuration():
        V = (configuration @ flat).reshape(D, D)
        for p in places:
            n = pairs.series[p]
            own = [seen[n].block(V)]
            [found[:, p]] = log_densities(own, [levels[n]], rows[n], likelihood)
    return found


def _part(num_times: int) -> Integers:
    """Places of the times that a rough scan sees: blocks of neighbours all along the table."""
    starts = np.linspace(0, max(num_times - _BLOCK, 0), _NUM_BLOCKS).round()
    places = np.unique(np.add.outer(starts, np.arange(_BLOCK)).astype(np.int32))
    return places[places < num_times]


def _scanned(
    base: Floats,
    added: Floats,
    noise_variance: Floats,
    observations: Observations,
    likelihood: SeriesLikelihood,
) -> Floats:
    """Log densities [M, L, N] with covariances [M, D, D] added to those of each series."""
    found = np.empty((len(added), *noise_variance.shape[-2:]))
    levels = np.broadcast_to(noise_variance, found.shape).transpose(2, 0, 1).tolist()
    for n, (points, y) in enumerate(zip(seen_by_series(observations), observations.Y, strict=True)):
        V = (points.block(base[n] + C) for C in added)
        known = observations.known_of(n, points.places)
        noise = [[level + known for level in own] for own in levels[n]]
        found[:, :, n] = log_densities(V, noise, points.rows(y), likelihood)
    return found


def _doubled_lower(G: Floats) -> Floats:
    """From a symmetric gradient to what `Components.pull_back` is given."""
    lower = matrix(len(G))
    lower[...] = 2.0 * np.tril(G)
    np.einsum("ii->i", lower)[...] *= 0.5
    return lower


def _segment_logsumexp(values: Floats, segments: Integers, count: int) -> Floats:
    """Log of the sum of exponentials within each segment, [count]; segments are sorted."""
    starts = np.searchsorted(segments, np.arange(count))
    largest = np.maximum.reduceat(values, starts)
    return largest + np.log(np.add.reduceat(np.exp(values - largest[segments]), starts))

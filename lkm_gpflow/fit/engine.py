"""The protocol by which learning asks a model, and its implementation by LAPACK.

A search tries hundreds of structures, so a structure is data here (`Layout`), and nothing is
compiled for one.  Matrices are some hundred rows large: each goes through LAPACK in place,
stationary kernels are evaluated once for every lag (`covariances`), missing points are left out
(`Seen`), and series that share covariances are decomposed together (`shared_pairs`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Protocol

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
from .layout import Layout
from .shared_pairs import SharedPairs


class Seen:
    """The points that a series has, among all D, and memory for one covariance of them.

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

    @cached_property
    def _pairs(self) -> Integers:
        """Places of pairs of observed points in a flat matrix."""
        return (self.places[:, None] * self._D + self.places).ravel()

    @cached_property
    def covariance(self) -> Floats:
        """For the use of whoever comes next, [d, d] in Fortran's order."""
        return matrix(len(self.places))

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


def by_configuration(configurations: Floats) -> Iterator[tuple[Floats, Integers]]:
    """Different rows of [P, K], entries 0 or 1, each with the places of the pairs that have it."""
    # Rows as whole numbers: sorting them is much faster than sorting rows.
    codes = configurations @ 2.0 ** np.arange(configurations.shape[1])
    _, first, which = np.unique(codes, return_index=True, return_inverse=True)
    order = np.argsort(which.reshape(-1), kind="stable").astype(np.int32)
    for places in np.split(order, np.cumsum(np.bincount(which.reshape(-1)))[:-1]):
        yield configurations[places[0]], places


_NO_WEIGHT = 1e-14
"""Configurations of a smaller responsibility are ignored in the gradient."""

_NUM_BLOCKS = 8
_BLOCK = 8
"""A rough scan sees so many blocks of so many neighbouring times: short lags and long ones."""


_AT_ONCE = 500
"""Of more times diagonals are taken in parts."""


class Engine(Protocol):
    """What learning asks of a model on the times of one table.

    A model has the hyperparameters of its kernels, noise variances and, if it is a subclass of
    `LKM`, `parameters` of its own.

    Attributes
    ----------
    observations
        The table.
    likelihood
        How a series scatters around its covariance.
    parameters
        Where the model's own parameters begin, by path.
    """

    observations: Observations
    likelihood: SeriesLikelihood
    parameters: Mapping[str, Any]

    def covariances(
        self, kernels: Sequence[Product], parameters: Mapping[str, Any], x: Floats | None = None
    ) -> Floats:
        """Covariances [K, D, D] of complete products on times x [D], by default the table's."""

    def components(self, layout: Layout, flat: Floats) -> Components:
        """Components on the table's times at a flat vector, with their pull-back."""

    def unconstrained(self, parameters: Mapping[str, Any]) -> Floats:
        """The model's own parameters as the flat vector has them, [E]."""

    def constrained(self, extras: Floats) -> Mapping[str, Any]:
        """The model's own parameters by path, from the end of a flat vector, [E]."""

    def log_prior(self, extras: Floats) -> tuple[float, Floats]:
        """Log prior density of the model's own parameters, and its gradient, [E]."""

    def log_densities(
        self,
        kernels: Sequence[Product],
        parameters: Mapping[str, Any],
        noise_levels: Floats,
        pairs: Pairs,
    ) -> Floats:
        """``log p(x_n | z = t)`` of all pairs for L noise variances a series [L, N], [L, P].

        NaN where a covariance is not positive definite.
        """

    def objective(self, layout: Layout, pairs: Pairs, log_weights: Floats) -> Objective:
        """Sum over rows and series as a function of the flat vector, with its gradient."""

    def entrance(
        self, kernels: Sequence[Product], parameters: Mapping[str, Any], Z: Floats
    ) -> Entrance:
        """What each series has, [N, K] of complete products, for one more component to enter."""

    def scales(
        self,
        kernels: Sequence[Product],
        parameters: Mapping[str, Any],
        noise_variance: Floats,
        pairs: Pairs,
    ) -> Floats:
        """Predictive scales of the likelihood for all pairs, [P], noise variances [N]."""

    def predict(
        self,
        kernels: Sequence[Product],
        parameters: Mapping[str, Any],
        Z: Floats,
        noise_variance: Floats,
        x: Floats,
    ) -> tuple[Floats, Floats]:
        r"""Mean and variance of new observations at times x after the table's, [N, M].

        .. math:: C_* V^{-1} y, \qquad s\, (\mathrm{diag}(C_{**} - C_* V^{-1} C_*^\top) + \sigma^2)

        with s the predictive scale of the likelihood.

        Raises
        ------
        ValueError
            If a covariance is not positive definite.
        """


class Entrance(Protocol):
    """What each series has already, and what one of several more components would add to it."""

    def scan(self, candidates: Sequence[Product], noise_variance: Floats) -> Floats:
        """Log densities [M, L, N] of every series with one of M more components.

        Parameters
        ----------
        candidates
            M complete products.
        noise_variance
            L noise variances for each series, [L, N], or with each candidate, [M, L, N].
        """

    def promising(
        self, candidates: Sequence[Product], noise_variance: Floats, count: int
    ) -> tuple[list[Product], Floats]:
        """The candidates that gain most on a part of the times, and with how much noise.

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


class LapackEngine:
    """`Engine` of `LKM` itself: built-in and registered kernels by NumPy, densities by LAPACK.

    Parameters
    ----------
    observations
        The table.
    likelihood
        How a series scatters around its covariance.
    """

    def __init__(self, observations: Observations, likelihood: SeriesLikelihood = GAUSSIAN) -> None:
        self.observations, self.likelihood = observations, likelihood
        self.parameters: Mapping[str, Any] = {}

    @cached_property
    def grid(self) -> LagGrid:
        """The times with their lags."""
        return lag_grid(self.observations.x)

    def covariances(
        self, kernels: Sequence[Product], parameters: Mapping[str, Any], x: Floats | None = None
    ) -> Floats:
        """See `Engine.covariances`."""
        return components(kernels, self.observations.x if x is None else x)

    def components(self, layout: Layout, flat: Floats) -> Components:
        """See `Engine.components`."""
        return ProductComponents(layout, self.grid, flat)

    def unconstrained(self, parameters: Mapping[str, Any]) -> Floats:
        """See `Engine.unconstrained`; there are none."""
        return np.empty(0)

    def constrained(self, extras: Floats) -> Mapping[str, Any]:
        """See `Engine.constrained`; there are none."""
        return {}

    def log_prior(self, extras: Floats) -> tuple[float, Floats]:
        """See `Engine.log_prior`; there is none."""
        return 0.0, np.empty(0)

    def log_densities(
        self,
        kernels: Sequence[Product],
        parameters: Mapping[str, Any],
        noise_levels: Floats,
        pairs: Pairs,
    ) -> Floats:
        """See `Engine.log_densities`."""
        C = self.covariances(kernels, parameters)
        return pair_log_densities(C, noise_levels, self.observations, pairs, self.likelihood)

    def objective(self, layout: Layout, pairs: Pairs, log_weights: Floats) -> Objective:
        """See `Engine.objective`."""
        return Objective(self, layout, pairs, log_weights)

    def entrance(
        self, kernels: Sequence[Product], parameters: Mapping[str, Any], Z: Floats
    ) -> Entrance:
        """See `Engine.entrance`."""
        return LapackEntrance(self, self.observations, kernels, parameters, Z)

    def scales(
        self,
        kernels: Sequence[Product],
        parameters: Mapping[str, Any],
        noise_variance: Floats,
        pairs: Pairs,
    ) -> Floats:
        """See `Engine.scales`."""
        C, found = self.covariances(kernels, parameters), []
        for n, z in zip(pairs.series, pairs.configurations, strict=True):
            seen = np.flatnonzero(self.observations.mask[n])
            V = np.tensordot(z, C, axes=1)[np.ix_(seen, seen)]
            V.flat[:: len(V) + 1] += noise_variance[n] + self.observations.known_of(n, seen)
            found.append(GaussianSeries(V, self.observations.Y[n, seen], self.likelihood).scale)
        return np.array(found)

    def predict(
        self,
        kernels: Sequence[Product],
        parameters: Mapping[str, Any],
        Z: Floats,
        noise_variance: Floats,
        x: Floats,
    ) -> tuple[Floats, Floats]:
        """See `Engine.predict`."""
        past, D = self.observations, len(self.observations.x)
        C = self.covariances(kernels, parameters, np.concatenate([past.x, x]))
        moments = []
        for n, (y, z, noise) in enumerate(zip(past.Y, Z, noise_variance, strict=True)):
            seen = np.flatnonzero(past.mask[n])
            total = np.tensordot(z, C, axes=1)
            V = total[np.ix_(seen, seen)] + (noise + past.known_of(n, seen)) * np.eye(len(seen))
            series = GaussianSeries(V, y[seen], self.likelihood)
            if np.isnan(series.q):
                raise ValueError("the covariance of a series is not positive definite")
            moments.append(series.predict(total[seen, D:], total.diagonal()[D:] + noise))
        mean, variance = zip(*moments, strict=True)
        return np.array(mean), np.array(variance)


class LapackEntrance:
    """`Entrance` by LAPACK.

    Parameters
    ----------
    engine
        Gives covariances.
    observations
        The table, or some of its series.
    kernels, parameters, Z
        As of `Engine.entrance`.
    """

    def __init__(
        self,
        engine: LapackEngine,
        observations: Observations,
        kernels: Sequence[Product],
        parameters: Mapping[str, Any],
        Z: Floats,
    ) -> None:
        self._engine, self._observations = engine, observations
        self._kernels, self._parameters, self._Z = kernels, parameters, Z

    @cached_property
    def _base(self) -> Floats:
        """Covariances of what each series has, [N, D, D]."""
        C = self._engine.covariances(self._kernels, self._parameters)
        return np.tensordot(self._Z, C, axes=1)

    def _base_at(self, places: Integers) -> Floats:
        """The same at some of the times."""
        return self._base[:, places[:, None], places]

    def scan(self, candidates: Sequence[Product], noise_variance: Floats) -> Floats:
        """See `Entrance.scan`."""
        C = self._engine.covariances(candidates, self._parameters)
        return _scanned(self._base, C, noise_variance, self._observations, self._engine.likelihood)

    def promising(
        self, candidates: Sequence[Product], noise_variance: Floats, count: int
    ) -> tuple[list[Product], Floats]:
        """See `Entrance.promising`; the density of a part of the observations is exact."""
        places = _part(len(self._observations.x))
        part = self._observations.at_times(places)
        nothing = np.zeros((1, len(places), len(places)))
        own = self._engine.covariances(candidates, self._parameters, part.x)
        C = np.concatenate([own, nothing])
        base = self._base_at(places)
        found = _scanned(base, C, noise_variance, part, self._engine.likelihood)
        found = np.nan_to_num(found, nan=-np.inf)
        gains = np.maximum(found[:-1].max(axis=1) - found[-1, 0], 0.0).sum(axis=1)
        best = np.argsort(-gains, kind="stable")[:count]
        level = found[best].argmax(axis=1)
        return [candidates[m] for m in best], np.take_along_axis(noise_variance, level, axis=0)


class Rows(Protocol):
    """Rows of Z at a flat vector: densities of series, and what their gradients add up to."""

    def factors(self, n: int, own: Integers, noise_variance: float) -> Sequence[Any]:
        """The pairs of series n, by place: what has a `log_density`, NaN if there is none.

        They serve until those of the next series are asked for.
        """

    def add(self, n: int, p: int, weight: float, factor: Any) -> float:
        """Add the weighted gradient of pair p of series n; return that by the noise variance."""

    def gradient(self) -> Floats:
        """The sum of what was added, by the flat vector, [size]; less what `add` has returned."""


class Objective:
    r"""Log likelihood of the series, each summed over a few rows of Z, with its gradient.

    .. math:: \sum_n \log \sum_{p: n_p = n} \exp[ \log p(x_n | z = t_p) + w_p ]

    Where many pairs share a covariance they are decomposed together, see `shared_pairs`.

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

    def __init__(
        self, engine: LapackEngine, layout: Layout, pairs: Pairs, log_weights: Floats
    ) -> None:
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
    def _memory(self) -> _Memory:
        return _Memory(self._engine.observations, self._by_series)

    def __call__(self, flat: Floats) -> tuple[float, Floats]:
        """Value and gradient at a flat vector; NaN where a covariance is not positive definite."""
        noise_variance = np.exp(flat[self._layout.noise])
        if self._shares:
            return self._by_eigenbases(self._engine.components(self._layout, flat), noise_variance)
        return self._by_rows(self._rows(flat), noise_variance)

    @property
    def _shares(self) -> bool:
        """Whether covariances that pairs share are decomposed."""
        return self._shared.are_many

    def _rows(self, flat: Floats) -> Rows:
        """How the rows of Z are gone through at a flat vector."""
        found = self._engine.components(self._layout, flat)
        return _CholeskyRows(self._engine, found, self._pairs.configurations, self._memory)

    def _by_rows(self, rows: Rows, noise_variance: Floats) -> tuple[float, Floats]:
        """One factor for every pair; all of a series are held until their weights are known."""
        total, d_noise = 0.0, np.zeros(self._layout.num_series)
        for n, own in self._by_series:
            factors = rows.factors(n, own, noise_variance[n])
            log_joint = np.array([f.log_density for f in factors]) + self._log_weights[own]
            evidence = float(logsumexp(log_joint)) if len(own) > 1 else float(log_joint[0])
            total += evidence
            if not np.isfinite(total):
                return np.nan, np.full(self._layout.size, np.nan)
            for p, r, factor in zip(own, np.exp(log_joint - evidence), factors, strict=True):
                if r >= _NO_WEIGHT:
                    d_noise[n] += rows.add(n, p, r, factor)
        gradient = rows.gradient()
        gradient[self._layout.noise] += noise_variance * d_noise
        return total, gradient

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


class _Memory:
    """Memory for the covariances of all rows of one series; those of one pattern share it.

    Parameters
    ----------
    observations
        The table.
    by_series
        Series, and places of their pairs.
    """

    def __init__(
        self, observations: Observations, by_series: Sequence[tuple[int, Integers]]
    ) -> None:
        self.seen = seen_by_series(observations)
        self.y = [
            np.ascontiguousarray(points.rows(y))
            for points, y in zip(self.seen, observations.Y, strict=True)
        ]
        self._D, self._by_series = len(observations.x), by_series

    @cached_property
    def covariances(self) -> Mapping[int, Sequence[Floats]]:
        """For each pattern, as many matrices as a series has rows."""
        most: dict[int, int] = {}
        for n, own in self._by_series:
            pattern = id(self.seen[n])
            most[pattern] = max(most.get(pattern, 1), len(own))
        return {
            id(points): [points.covariance]
            + [matrix(len(points.covariance)) for _ in range(most[id(points)] - 1)]
            for points in {id(self.seen[n]): self.seen[n] for n, _ in self._by_series}.values()
        }

    @cached_property
    def whole(self) -> Floats:
        """For a covariance at all times, [D, D]."""
        return np.empty((self._D, self._D))

    @cached_property
    def scattered(self) -> Floats:
        """For a gradient at all times, [D, D] in Fortran's order."""
        return matrix(self._D)


class _CholeskyRows:
    """`Rows` by a Cholesky factor each.

    Parameters
    ----------
    engine
        Gives times and likelihood.
    found
        Components at a flat vector.
    configurations
        The rows, [P, K].
    memory
        For their covariances.
    """

    def __init__(
        self, engine: LapackEngine, found: Components, configurations: Floats, memory: _Memory
    ) -> None:
        self._likelihood, self._found, self._memory = engine.likelihood, found, memory
        self._observations = engine.observations
        self._covariances = RowCovariances(found.parts, engine.grid, configurations)

    def factors(self, n: int, own: Integers, noise_variance: float) -> list[GaussianSeries]:
        """See `Rows.factors`."""
        memory, seen, found = self._memory, self._memory.seen[n], []
        noise = noise_variance + self._observations.known_of(n, seen.places)
        for p, V in zip(own, memory.covariances[id(seen)], strict=False):
            whole = V.T if seen.is_all else memory.whole
            self._covariances.write(p, whole)
            seen.select(whole, noise, V)
            found.append(GaussianSeries(V, memory.y[n], self._likelihood, overwrite=True))
        return found

    def add(self, n: int, p: int, weight: float, factor: Any) -> float:
        """See `Rows.add`."""
        G = factor.lower_gradient()
        by_noise = -weight * float(G.trace())
        self._covariances.add(p, -weight, self._memory.seen[n].whole(G, self._memory.scattered))
        return by_noise

    def gradient(self) -> Floats:
        """See `Rows.gradient`."""
        return self._found.pull_back(self._covariances.gradients())


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
    for configuration, places in by_configuration(pairs.configurations):
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

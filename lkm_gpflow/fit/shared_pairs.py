"""Log densities of many series that share covariances.

Pairs of a series and a configuration whose series lack the same points share all but their noise:
one eigendecomposition per configuration serves them all (`gp.eigenbasis`).  What is left for each
pair is two matrix-vector products, a hundred times cheaper than a Cholesky factor of its own at a
few hundred points.  Configurations are gone through side by side, and their pairs in blocks of
which nothing is kept, so that memory does not grow with the number of pairs but for a few numbers
each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TypeVar

import numpy as np

from ..data.observations import Observations
from ..gp.eigenbasis import Basis, halves
from ..gp.likelihoods import GAUSSIAN, SeriesLikelihood
from ..gp.types import Floats, Integers
from ..runtime.executors import in_threads
from ..runtime.threads import single_threaded
from .assignments import Pairs

_WORTH_SHARING = 8
"""Pairs per covariance from which decomposing it is cheaper."""

_FEWEST_SERIES = 64
"""Smaller tables stay with Cholesky factors."""

_WORTH_THREADS = 2 * 10**6
"""Numbers in all rows and covariances of pairs from which threads gain more than they cost."""

_Result = TypeVar("_Result")


@dataclass(frozen=True)
class _Group:
    """The pairs of one pattern of missing points."""

    observed: Integers  # places of the observed points, [d]
    series: Integers  # those that have pairs
    configurations: Floats  # different rows, [T, K]
    places: tuple[Integers, ...]  # for each row: of its pairs among all
    rows: tuple[Integers, ...]  # for each row: of their series in `series`


@dataclass(frozen=True)
class Decomposed:
    """The covariances of one pattern of missing points, decomposed."""

    halves: tuple[Floats, ...]  # the coordinates, see `eigenbasis.halves`
    x: Floats  # observed values of the pattern's series in these coordinates
    bases: list[Basis]  # one for each row of Z


class SharedPairs:
    """Pairs of a series n_p and a row t_p, grouped by the covariance that they share.

    Parameters
    ----------
    observations
        The table.
    pairs
        P of them.
    likelihood
        How a series scatters around its covariance.
    """

    def __init__(
        self,
        observations: Observations,
        pairs: Pairs,
        likelihood: SeriesLikelihood = GAUSSIAN,
    ) -> None:
        self._observations, self._pairs, self._likelihood = observations, pairs, likelihood
        self._known: dict[tuple[bytes, int], Floats] = {}

    @cached_property
    def _groups(self) -> tuple[_Group, ...]:
        return _grouped(self._observations, self._pairs)

    @property
    def are_many(self) -> bool:
        """Whether so many pairs share a covariance that it is worth decomposing."""
        if self._observations.num_series < _FEWEST_SERIES or self._observations.known is not None:
            return False
        return len(self._pairs.series) >= _WORTH_SHARING * self._num_covariances

    def decompose(self, C: Floats) -> list[Decomposed]:
        """Decompose all covariances without noise, from those of components [K, D, D]."""
        return [self._decompose(group, C) for group in self._groups]

    def _decompose(self, group: _Group, C: Floats) -> Decomposed:
        own = C.take(group.observed, axis=1).take(group.observed, axis=2)
        parts = halves(own)
        by_part = [_rotated(own, rows.T) for rows in parts]

        def basis(configuration: Floats) -> Basis:
            blocks = [np.tensordot(configuration, each, axes=1) for each in by_part]
            return Basis(blocks, self._likelihood)

        bases = self._run([partial(basis, row) for row in group.configurations])
        return Decomposed(parts, self._in_coordinates(group, parts), bases)

    def _in_coordinates(self, group: _Group, parts: tuple[Floats, ...]) -> Floats:
        """Observed values of a pattern's series in the coordinates of `halves`."""
        key = group.observed.tobytes(), len(parts)
        if key not in self._known:
            x = self._observations.Y[group.series[:, None], group.observed]
            self._known[key] = x @ np.concatenate(parts).T
        return self._known[key]

    def log_densities(self, decomposed: Sequence[Decomposed], noise_levels: Floats) -> Floats:
        """``log p(x_n | z = t)`` of all pairs for each row of noise variances [L, N], [L, P]."""
        found = np.empty((len(noise_levels), len(self._pairs.series)))

        def work(basis: Basis, x: Floats, rows: Integers, places: Integers) -> None:
            found[:, places] = basis.log_densities(
                x, rows, noise_levels[:, self._pairs.series[places]]
            )

        self._run(self._jobs(work, decomposed))
        return found

    def gradients(
        self, decomposed: Sequence[Decomposed], noise_variance: Floats, upstream: Floats
    ) -> tuple[Floats, Floats]:
        """Gradients of the sum of log densities, each times its entry of `upstream` [P].

        Returns
        -------
        With respect to the components, [K, D, D], and to the noise variances, [N].
        """
        by_pair = np.empty(len(self._pairs.series))

        def work(basis: Basis, x: Floats, rows: Integers, places: Integers) -> list[Floats]:
            noise = noise_variance[self._pairs.series[places]]
            d_blocks, by_pair[places] = basis.gradients(x, rows, noise, upstream[places])
            return d_blocks

        d_blocks = iter(self._run(self._jobs(work, decomposed)))
        D = len(self._observations.x)
        d_components = np.zeros((self._pairs.configurations.shape[1], D, D))
        for group, own in zip(self._groups, decomposed, strict=True):
            by_half = zip(*(next(d_blocks) for _ in own.bases), strict=True)
            for rows, half in zip(own.halves, by_half, strict=True):
                d_half = np.tensordot(group.configurations.T, np.array(half), axes=1)
                at = np.s_[:, group.observed[:, None], group.observed]
                d_components[at] += _rotated(d_half, rows)
        d_noise = np.zeros(len(noise_variance))
        np.add.at(d_noise, self._pairs.series, by_pair)
        return d_components, d_noise

    def _run(self, jobs: Sequence[Callable[[], _Result]]) -> list[_Result]:
        """Return the results of jobs, side by side where that is worth while."""
        D, num_covariances = len(self._observations.x), self._num_covariances
        if D * (len(self._pairs.series) + D * num_covariances) < _WORTH_THREADS:
            with single_threaded():
                return [job() for job in jobs]
        return in_threads(jobs)

    @property
    def _num_covariances(self) -> int:
        return sum(len(group.configurations) for group in self._groups)

    def _jobs(
        self,
        work: Callable[[Basis, Floats, Integers, Integers], _Result],
        decomposed: Sequence[Decomposed],
    ) -> list[Callable[[], _Result]]:
        """One job for every row of every pattern."""
        return [
            partial(work, basis, own.x, rows, places)
            for group, own in zip(self._groups, decomposed, strict=True)
            for basis, rows, places in zip(own.bases, group.rows, group.places, strict=True)
        ]


def _rotated(C: Floats, R: Floats) -> Floats:
    """``R' C_k R`` of every component; one by one, as a product of stacks does without BLAS."""
    found = np.empty((len(C), R.shape[1], R.shape[1]))
    for own, C_k in zip(found, C, strict=True):
        np.matmul(R.T @ C_k, R, out=own)
    return found


def _grouped(observations: Observations, pairs: Pairs) -> tuple[_Group, ...]:
    pattern_of_series, patterns = observations.mask_patterns
    groups = []
    for number, pattern in enumerate(patterns):
        places = np.flatnonzero(pattern_of_series[pairs.series] == number)
        if not places.size:
            continue
        some = Pairs(pairs.series[places], pairs.configurations[places])
        configurations, own_places = zip(*some.by_configuration(), strict=True)
        by_row = tuple(places[own] for own in own_places)
        observed, own = np.flatnonzero(pattern), np.unique(some.series)
        rows = tuple(np.searchsorted(own, pairs.series[each]) for each in by_row)
        groups.append(_Group(observed, own, np.array(configurations), by_row, rows))
    return tuple(groups)

"""Log densities of many series that share covariances.

Pairs of a series and a configuration whose series lack the same points share all but their noise:
one eigendecomposition per configuration serves them all (`numerics.basis`).  What is left for each
pair is two matrix-vector products, a hundred times cheaper than a Cholesky factor of its own at a
few hundred points.  Configurations are gone through side by side, and their pairs in blocks of
which nothing is kept, so that memory does not grow with the number of pairs but for a few numbers
each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TypeAlias, TypeVar

import numpy as np
import tensorflow as tf

from ..data.observations import Observations
from ..numerics.basis import Basis
from ..numerics.linalg import eigenbasis
from ..numerics.types import Floats, Integers
from ..runtime.executors import in_threads

_WORTH_SHARING = 8
"""Pairs per covariance from which decomposing it is cheaper (178 points: from five on)."""

_FEWEST_SERIES = 64
"""Tables of some dozen series stay with Cholesky factors, and with the results they always had."""

_AT_ONCE = 2000
"""Series of which the observations are copied at a time."""

_Result = TypeVar("_Result")

Bases: TypeAlias = Sequence[Sequence[Basis]]
"""Of every pattern of missing points, those of its configurations."""


@dataclass(frozen=True)
class _Group:
    """Everything of one pattern of missing points.

    Parameters
    ----------
    observed
        The points that are there.
    configurations
        [T, K].
    places
        Of each configuration, the places of its pairs among all.
    """

    observed: Integers
    configurations: Floats
    places: tuple[Integers, ...]


class SharedPairs:
    """Pairs of a series n_p and a configuration t_p, sorted by what they share.

    Parameters
    ----------
    observations
        The data.
    series, configurations
        [P] and [P, K], entries 0 or 1.
    degrees
        Degrees of freedom of the scale of a series, see `student`.
    """

    def __init__(
        self,
        observations: Observations,
        series: Integers,
        configurations: Floats,
        degrees: float = np.inf,
    ) -> None:
        self._observations, self._series = observations, series
        self._configurations, self._degrees = configurations, degrees

    @cached_property
    def _groups(self) -> tuple[_Group, ...]:
        return _grouped(self._observations, self._series, self._configurations)

    @property
    def are_many(self) -> bool:
        """Whether so many pairs share a covariance that it is worth decomposing."""
        if self._observations.num_series < _FEWEST_SERIES:
            return False
        num_covariances = sum(len(group.configurations) for group in self._groups)
        return len(self._series) >= _WORTH_SHARING * num_covariances

    def decompose(self, C: Floats) -> Bases:
        """Eigenbases of all covariances without noise, from those of components [K, D, D]."""
        bases = []
        for group in self._groups:
            own = C[:, group.observed[:, None], group.observed]
            found = eigenbasis(tf.constant(np.tensordot(group.configurations, own, axes=1)))
            arrays = zip(found.values.numpy(), found.vectors.numpy(), strict=True)
            bases.append([Basis(values, vectors, self._degrees) for values, vectors in arrays])
        return bases

    def log_densities(self, bases: Bases, noise_levels: Floats) -> Floats:
        """``log p(x_n | z = t)`` of all pairs for each row of noise variances [L, N], [L, P]."""
        found = np.empty((len(noise_levels), len(self._series)))

        def work(group: _Group, basis: Basis, places: Integers) -> None:
            for some, x in self._observed(group, places):
                found[:, some] = basis.log_densities(x, noise_levels[:, self._series[some]])

        in_threads(self._jobs(work, bases))
        return found

    def gradients(
        self, bases: Bases, noise_variance: Floats, upstream: Floats
    ) -> tuple[Floats, Floats]:
        """Gradients of the sum of log densities, each times its entry of `upstream` [P].

        Returns
        -------
        With respect to the components, [K, D, D], and to the noise variances, [N].
        """
        by_pair = np.empty(len(self._series))

        def work(group: _Group, basis: Basis, places: Integers) -> Floats:
            d_covariance = np.zeros((len(group.observed), len(group.observed)))
            for some, x in self._observed(group, places):
                noise = noise_variance[self._series[some]]
                d_some, by_pair[some] = basis.gradients(x, noise, upstream[some])
                d_covariance += d_some
            return d_covariance

        d_covariances = iter(in_threads(self._jobs(work, bases)))
        D = len(self._observations.x)
        d_components = np.zeros((self._configurations.shape[1], D, D))
        for group in self._groups:
            own = np.array([next(d_covariances) for _ in group.configurations])
            d_components[:, group.observed[:, None], group.observed] += np.tensordot(
                group.configurations.T, own, axes=1
            )
        d_noise = np.zeros(len(noise_variance))
        np.add.at(d_noise, self._series, by_pair)
        return d_components, d_noise

    def _jobs(
        self, work: Callable[[_Group, Basis, Integers], _Result], bases: Bases
    ) -> list[Callable[[], _Result]]:
        """What is to be done for every configuration of every pattern."""
        return [
            partial(work, group, basis, places)
            for group, own in zip(self._groups, bases, strict=True)
            for basis, places in zip(own, group.places, strict=True)
        ]

    def _observed(self, group: _Group, places: Integers) -> Iterator[tuple[Integers, Floats]]:
        """Pairs, some at a time: their places, and what was observed of their series."""
        for first in range(0, len(places), _AT_ONCE):
            some = places[first : first + _AT_ONCE]
            yield some, self._observations.Y[self._series[some][:, None], group.observed]


def _grouped(
    observations: Observations, series: Integers, configurations: Floats
) -> tuple[_Group, ...]:
    pattern_of_series, patterns = observations.mask_patterns
    # Rows as whole numbers: sorting them is much faster than sorting rows.
    codes = configurations @ 2.0 ** np.arange(configurations.shape[1])
    groups = []
    for number, pattern in enumerate(patterns):
        places = np.flatnonzero(pattern_of_series[series] == number)
        if not places.size:
            continue
        _, first, which = np.unique(codes[places], return_index=True, return_inverse=True)
        by_row = np.split(
            places[np.argsort(which, kind="stable")], np.cumsum(np.bincount(which))[:-1]
        )
        observed = np.flatnonzero(pattern).astype(np.int32)
        groups.append(_Group(observed, configurations[places[first]], tuple(by_row)))
    return tuple(groups)

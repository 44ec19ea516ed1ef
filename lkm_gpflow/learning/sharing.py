"""Log densities of many series that share covariances.

Pairs of a series and a configuration whose series lack the same points share all but their noise:
one eigendecomposition per configuration serves them all (`linalg`).  What is left for each pair is
two matrix-vector products, a hundred times cheaper than a Cholesky factor of its own at a few
hundred points.  Pairs are gone through in blocks, and nothing of a block is kept, so that memory
does not grow with the number of pairs but for a few numbers each.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import tensorflow as tf

from ..data.observations import Observations
from ..numerics.linalg import (
    Eigenbasis,
    eigenbasis,
    gradients_in_basis,
    log_density_in_basis,
    rotate_back,
)
from ..numerics.types import Floats, FloatTensor, Integers

_WORTH_SHARING = 8
"""Pairs per covariance from which decomposing it is cheaper (178 points: from five on)."""

_FEWEST_SERIES = 64
"""Tables of some dozen series stay with Cholesky factors, and with the results they always had."""

_BLOCK_BYTES = 2**24
"""One array over the pairs and points of a block; about six exist at a time."""


@dataclass(frozen=True)
class _Block:
    """Pairs that share a covariance: which one, their places among all pairs, their series."""

    configuration: int
    places: Integers
    series: Integers


@dataclass(frozen=True)
class _Group:
    """Everything of one pattern of missing points: points that are there, who has which row."""

    observed: Integers
    configurations: Floats
    blocks: tuple[_Block, ...]


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
        self._configurations, self._degrees_value = configurations, degrees

    @cached_property
    def _degrees(self) -> FloatTensor:
        return tf.constant(self._degrees_value, tf.float64)

    @cached_property
    def _groups(self) -> tuple[_Group, ...]:
        return _grouped(self._observations, self._series, self._configurations)

    @cached_property
    def _order(self) -> Integers:
        """Places of the pairs among those of the blocks."""
        blocks = [block for group in self._groups for block in group.blocks]
        places = np.concatenate([block.places for block in blocks])
        return np.argsort(places).astype(np.int32)

    @property
    def are_many(self) -> bool:
        """Whether so many pairs share a covariance that it is worth decomposing."""
        if self._observations.num_series < _FEWEST_SERIES:
            return False
        num_covariances = sum(len(group.configurations) for group in self._groups)
        return len(self._series) >= _WORTH_SHARING * num_covariances

    def decompose(self, C: FloatTensor) -> list[Eigenbasis]:
        """Eigenbases of all covariances without noise, from those of components [K, D, D]."""
        return [
            eigenbasis(tf.tensordot(group.configurations, _rows_and_columns(C, group), axes=1))
            for group in self._groups
        ]

    def log_densities(self, bases: list[Eigenbasis], noise_levels: FloatTensor) -> FloatTensor:
        """``log p(x_n | z = t)`` of all pairs for each row of noise variances [L, N], [L, P]."""
        values = [
            _block_log_densities(*self._arguments(group, basis, block, noise_levels), self._degrees)
            for group, basis in zip(self._groups, bases, strict=True)
            for block in group.blocks
        ]
        return tf.gather(tf.concat(values, axis=1), self._order, axis=1)

    def gradients(
        self, bases: list[Eigenbasis], noise_variance: FloatTensor, weights: FloatTensor
    ) -> tuple[FloatTensor, FloatTensor]:
        """Gradients of the sum of log densities, weighted by `weights` [P].

        Returns
        -------
        With respect to the components, [K, D, D], and to the noise variances, [N].
        """
        x, N = self._observations.x, self._observations.num_series
        num_components = self._groups[0].configurations.shape[1]
        d_components = tf.zeros([num_components, len(x), len(x)], weights.dtype)
        d_noise = tf.zeros([N], weights.dtype)
        for group, basis in zip(self._groups, bases, strict=True):
            inner = [tf.zeros_like(basis.vectors[0]) for _ in group.configurations]
            for block in group.blocks:
                d_inner, d_own = _block_gradients(
                    *self._arguments(group, basis, block, noise_variance),
                    tf.gather(weights, block.places),
                    self._degrees,
                )
                inner[block.configuration] += d_inner
                d_noise = tf.tensor_scatter_nd_add(d_noise, block.series[:, None], d_own)
            d_covariances = rotate_back(basis, tf.stack(inner))
            d_group = tf.tensordot(group.configurations.T, d_covariances, axes=1)
            d_components += _spread_out(d_group, group, len(x))
        return d_components, d_noise

    def _arguments(
        self, group: _Group, basis: Eigenbasis, block: _Block, noise_variance: FloatTensor
    ) -> tuple[FloatTensor, FloatTensor, Floats, FloatTensor]:
        Y = self._observations.Y[block.series]
        if len(group.observed) < Y.shape[1]:
            Y = Y[:, group.observed]
        return (
            basis.values[block.configuration],
            basis.vectors[block.configuration],
            Y,
            tf.gather(noise_variance, block.series, axis=-1),
        )


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
        observed = np.flatnonzero(pattern).astype(np.int32)
        at_once = max(1, _BLOCK_BYTES // (8 * len(observed)))
        by_row = np.split(
            places[np.argsort(which, kind="stable")], np.cumsum(np.bincount(which))[:-1]
        )
        blocks = tuple(
            _Block(row, own[i : i + at_once].astype(np.int32), series[own[i : i + at_once]])
            for row, own in enumerate(by_row)
            for i in range(0, len(own), at_once)
        )
        groups.append(_Group(observed, configurations[places[first]], blocks))
    return tuple(groups)


def _rows_and_columns(C: FloatTensor, group: _Group) -> FloatTensor:
    """Covariances of the points that are there."""
    if len(group.observed) == C.shape[-1]:
        return C
    return tf.gather(tf.gather(C, group.observed, axis=1), group.observed, axis=2)


def _spread_out(d_group: FloatTensor, group: _Group, num_times: int) -> FloatTensor:
    """From matrices over the points that are there to matrices over all, zero elsewhere."""
    if len(group.observed) == num_times:
        return d_group
    back = np.eye(num_times)[:, group.observed]
    return tf.matmul(tf.matmul(back, d_group), back, transpose_b=True)


_F = tf.float64
_VECTOR, _MATRIX = tf.TensorSpec([None], _F), tf.TensorSpec([None, None], _F)


_NUMBER = tf.TensorSpec([], _F)


@tf.function(input_signature=[_VECTOR, _MATRIX, _MATRIX, _MATRIX, _NUMBER], autograph=False)
def _block_log_densities(values, vectors, Y, noise_levels, degrees):  # type: ignore[no-untyped-def]
    basis = Eigenbasis(values[None], vectors[None])
    return log_density_in_basis(basis, Y, noise_levels, degrees)[:, 0]


@tf.function(
    input_signature=[_VECTOR, _MATRIX, _MATRIX, _VECTOR, _VECTOR, _NUMBER], autograph=False
)
def _block_gradients(values, vectors, Y, noise_variance, weights, degrees):  # type: ignore[no-untyped-def]
    basis = Eigenbasis(values[None], vectors[None])
    inner, d_noise = gradients_in_basis(basis, Y, noise_variance, weights[None], degrees)
    return inner[0], d_noise

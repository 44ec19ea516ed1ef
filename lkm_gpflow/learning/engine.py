"""Log densities of any structure through functions that are traced once.

TensorFlow needs up to a second to trace a model, and keeps some of the memory for ever.  A search
tries hundreds of structures, so here a structure is *data*: index arrays say which hyperparameters
belong to which base kernel, and which base kernels multiply to which component (`Layout`).  The
traced functions serve every structure, every number of series and every grid.

All arrays at the door are NumPy, inputs are scaled (see `data.tables`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any

import numpy as np
import tensorflow as tf

from ..data.observations import Observations
from ..kernels.base import KERNELS, UnitKernel
from ..kernels.grammar import Product
from ..numerics.linalg import gaussian_log_density
from ..numerics.types import Floats, FloatTensor, Integers
from .layout import Layout
from .sharing import SharedPairs

_LAG_DIGITS = 13
"""Lags (in spans) that agree to so many decimals are one."""

_CHUNK_BYTES = 2**26
"""Covariance matrices that one call holds at a time."""


def components(products: Sequence[Product], x: Floats) -> FloatTensor:
    """Covariances [K, D, D] of complete products on the times x [D]."""
    layout = Layout(products, num_series=0)
    flat = layout.pack(np.empty(0))
    return _traced(layout.kinds).components(
        flat, layout.is_log, layout.factors, len(products), *_grid(x)
    )


class Objective:
    r"""Log likelihood of the series, each summed over a few configurations, with its gradient.

    .. math:: \sum_n \log \sum_{p: n_p = n} \exp[ \log p(x_n | z = t_p) + w_p ]

    Everything but the hyperparameters is handed to TensorFlow once.  Where many pairs share a
    covariance they are decomposed together, see `sharing`.

    Parameters
    ----------
    layout
        Where the hyperparameters stand.
    observations
        The data.
    series, configurations, log_weights
        Pairs of a series n_p and a configuration t_p, [P] and [P, K], and w_p, [P]: the log prior
        probability of the configuration.  One pair a series with w = 0 is the log likelihood of
        a given Z.
    """

    def __init__(
        self,
        layout: Layout,
        observations: Observations,
        series: Integers,
        configurations: Floats,
        log_weights: Floats,
    ) -> None:
        traced = _traced(layout.kinds)
        shape = tf.nest.map_structure(
            tf.convert_to_tensor,
            (layout.is_log, layout.factors, len(layout.products), *_grid(observations.x)),
        )
        shared = SharedPairs(observations, series, configurations)
        if shared.are_many:
            self._function: Callable[..., Any] = partial(
                traced.shared_value_and_gradient, shared=shared, num_series=layout.num_series
            )
            data: tuple[Any, ...] = (series, log_weights)
        else:
            self._function = (
                traced.objective if observations.is_complete else traced.masked_objective
            ).get_concrete_function()
            data = (observations.Y, observations.mask, series, configurations, log_weights)
        self._arguments = (*shape, *tf.nest.map_structure(tf.convert_to_tensor, data))

    def __call__(self, flat: Floats) -> tuple[float, Floats]:
        """Value and gradient at a flat vector; NaN where a covariance is not positive definite."""
        value, gradient = self._function(tf.convert_to_tensor(flat), *self._arguments)
        return float(value), gradient.numpy()


def pair_log_densities(
    covariances: FloatTensor,
    noise_levels: Floats,
    observations: Observations,
    series: Integers,
    configurations: Floats,
) -> Floats:
    """``log p(x_n | z = t)`` for pairs of series [P] and configurations [P, K], in chunks.

    Parameters
    ----------
    covariances
        Components, [K, D, D].
    noise_levels
        L times a noise variance for every series, [L, N].
    observations, series, configurations
        As in `Objective`.

    Returns
    -------
    Array [L, P].
    """
    shared = SharedPairs(observations, series, configurations)
    if shared.are_many:
        bases = shared.decompose(covariances)
        return np.asarray(shared.log_densities(bases, tf.convert_to_tensor(noise_levels)))
    at_once = max(1, _CHUNK_BYTES // (8 * len(observations.x) ** 2))
    chunks = [
        [
            _pair_log_densities(
                covariances, noise_variance, observations.Y, observations.mask,
                series[first : first + at_once], configurations[first : first + at_once],
            )
            for noise_variance in noise_levels
        ]
        for first in range(0, len(series), at_once)
    ]  # fmt: skip
    return np.concatenate([np.asarray(chunk) for chunk in chunks], axis=1)


def scan(
    base: FloatTensor,
    candidates: Sequence[Product],
    noise_variance: Floats,
    observations: Observations,
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

    Returns
    -------
    Array [M, L, N].
    """
    C = components(candidates, observations.x)
    if observations.is_complete:
        return np.asarray(_scan_complete(base, C, noise_variance, observations.Y))
    return np.asarray(_scan_masked(base, C, noise_variance, observations.Y, observations.mask))


def _grid(x: Floats) -> tuple[Floats, Floats, Integers]:
    """Return the times [D], their different lags [R], and which lag each pair has, [D * D].

    Stationary kernels are evaluated once for every lag: on a regular grid there are D of them.
    """
    return _grid_of(x.tobytes())


@lru_cache(maxsize=16)
def _grid_of(times: bytes) -> tuple[Floats, Floats, Integers]:
    x = np.frombuffer(times)
    distances = np.abs(x[:, None] - x[None, :]).ravel()
    _, first, lag_of_pair = np.unique(
        distances.round(_LAG_DIGITS), return_index=True, return_inverse=True
    )
    return x, distances[first], lag_of_pair.astype(np.int32)


# --- what is traced ---------------------------------------------------------------------------

_F = tf.float64


def _vector(dtype: tf.DType = _F) -> tf.TensorSpec:
    return tf.TensorSpec([None], dtype)


def _matrix(dtype: tf.DType = _F) -> tf.TensorSpec:
    return tf.TensorSpec([None, None], dtype)


_CUBE = tf.TensorSpec([None, None, None], _F)


def _graph(function: Callable[..., Any], signature: Sequence[Any]) -> Any:
    """Return the function to be traced once; plain tensor code needs no autograph."""
    return tf.function(function, input_signature=signature, autograph=False)


def _traced(kinds: tuple[str, ...]) -> _Traced:
    """Return the traced functions for these registered base kernels."""
    # By class, not by name: a notebook's cell that defines a kernel may run again, changed.
    return _traced_for(tuple(KERNELS[name] for name in kinds))


@lru_cache(maxsize=8)
def _traced_for(kernels: tuple[type[UnitKernel], ...]) -> _Traced:
    return _Traced(kernels)


class _Traced:
    """The functions that need to know the base kernels; one object for each registry."""

    def __init__(self, kernels: tuple[type[UnitKernel], ...]) -> None:
        self._kernels = kernels
        layout = [
            _vector(), _vector(tf.bool),
            tuple(
                (tf.TensorSpec([None, len(k.base.parameters)], tf.int32), _vector(tf.int32))
                for k in self._kernels
            ),
            tf.TensorSpec([], tf.int32),
        ]  # fmt: skip
        data = [_matrix(), _matrix(), _vector(tf.int32), _matrix(), _vector()]
        grid = [_vector(), _vector(), _vector(tf.int32)]
        self.components = _graph(self._components, [*layout, *grid])
        self.pull_back = _graph(self._pull_back, [*layout, *grid, _CUBE])
        self.objective = _graph(self._complete, [*layout, *grid, *data])
        self.masked_objective = _graph(self._masked, [*layout, *grid, *data])

    def _components(self, flat, is_log, factors, num_components, x, lags, lag_of_pair):  # type: ignore[no-untyped-def]
        """Covariances of all components, [K, D, D]."""
        values = tf.where(is_log, tf.exp(tf.where(is_log, flat, 0.0)), flat)
        D = tf.shape(x)[0]
        origin = tf.zeros([1, 1], _F)
        by_lag = self._products(
            True, values, factors, num_components, lags[:, None], origin, [tf.shape(lags)[0], 1]
        )
        moving = self._products(
            False, values, factors, num_components, x[:, None], x[None, :], [D, D]
        )
        by_lag = values[:num_components, None] * by_lag[:, :, 0]
        return tf.reshape(_spread(by_lag, lag_of_pair), [-1, D, D]) * moving

    def _products(self, stationary, values, factors, num_components, x, x2, shape):  # type: ignore[no-untyped-def]
        """Products of the stationary or of the other factors of each component, [K, *shape]."""
        matrices, owners = [tf.ones([0, *shape], _F)], [tf.zeros([0], tf.int32)]
        for kernel, (places, owner) in zip(self._kernels, factors, strict=True):
            if kernel.base.stationary is not stationary:
                continue
            parameters = [
                tf.gather(values, places[:, i])[:, None, None]
                for i in range(len(kernel.base.parameters))
            ]
            covariance = kernel.covariance(x, x2, *parameters)
            matrices.append(tf.broadcast_to(covariance, [tf.shape(owner)[0], *shape]))
            owners.append(owner)
        return tf.math.unsorted_segment_prod(
            tf.concat(matrices, 0), tf.concat(owners, 0), num_components
        )

    def _pull_back(self, flat, *args):  # type: ignore[no-untyped-def]
        """From a gradient with respect to the components to one with respect to `flat`."""
        *where, upstream = args
        with tf.GradientTape() as tape:
            tape.watch(flat)
            C = self._components(flat, *where)
        return tape.gradient(C, flat, upstream)

    def shared_value_and_gradient(  # type: ignore[no-untyped-def]
        self, flat, *args, shared, num_series
    ):
        """As `objective`, from eigendecompositions; not traced, because blocks differ in number."""
        *where, series, log_weights = args
        noise_variance = tf.exp(flat[tf.size(flat) - num_series :])
        bases = shared.decompose(self.components(flat, *where))
        log_joint = shared.log_densities(bases, noise_variance[None])[0] + log_weights
        evidence = _segment_logsumexp(log_joint, series, num_series)
        responsibilities = tf.exp(log_joint - tf.gather(evidence, series))
        d_components, d_noise = shared.gradients(bases, noise_variance, responsibilities)
        gradient = self.pull_back(flat, *where, d_components)
        own = tf.pad(noise_variance * d_noise, [[tf.size(flat) - num_series, 0]])
        return tf.reduce_sum(evidence), gradient + own

    def _complete(self, *args):  # type: ignore[no-untyped-def]
        return self._value_and_gradient(*args, complete=True)

    def _masked(self, *args):  # type: ignore[no-untyped-def]
        return self._value_and_gradient(*args, complete=False)

    def _value_and_gradient(  # type: ignore[no-untyped-def]
        self, flat, is_log, factors, num_components, x, lags, lag_of_pair, Y, mask, series,
        configurations, log_weights, *, complete,
    ):  # fmt: skip
        num_series = tf.shape(Y)[0]
        with tf.GradientTape() as tape:
            tape.watch(flat)
            C = self._components(flat, is_log, factors, num_components, x, lags, lag_of_pair)
            noise_variance = tf.exp(flat[tf.shape(flat)[0] - num_series :])
            V = _pair_covariances(C, noise_variance, series, configurations)
            pair_mask = None if complete else tf.gather(mask, series)
            log_density = gaussian_log_density(V, tf.gather(Y, series), pair_mask) + log_weights
            value = tf.reduce_sum(_segment_logsumexp(log_density, series, num_series))
        return value, tape.gradient(value, flat)


@tf.custom_gradient
def _spread(by_lag, lag_of_pair):  # type: ignore[no-untyped-def]
    """From values by lag [K, R] to values by pair of times [K, D * D]."""

    def gradient(upstream: FloatTensor) -> tuple[FloatTensor, None]:
        summed = tf.math.unsorted_segment_sum(
            tf.transpose(upstream), lag_of_pair, tf.shape(by_lag)[1]
        )
        return tf.transpose(summed), None

    return tf.gather(by_lag, lag_of_pair, axis=1), gradient


def _pair_covariances(
    C: FloatTensor, noise_variance: FloatTensor, series: tf.Tensor, configurations: FloatTensor
) -> FloatTensor:
    """``sum_k t_pk C_k + sigma_n^2 I`` for all pairs, [P, D, D]."""
    D = tf.shape(C)[1]
    flat = tf.matmul(configurations, tf.reshape(C, [tf.shape(C)[0], D * D]))
    V = tf.reshape(flat, [-1, D, D])
    diagonal = tf.linalg.diag_part(V) + tf.gather(noise_variance, series)[:, None]
    return tf.linalg.set_diag(V, diagonal)


def _segment_logsumexp(values: FloatTensor, segments: tf.Tensor, count: tf.Tensor) -> FloatTensor:
    """Log of the sum of exponentials within each segment, [count]."""
    largest = tf.stop_gradient(tf.math.unsorted_segment_max(values, segments, count))
    shifted = tf.exp(values - tf.gather(largest, segments))
    return largest + tf.math.log(tf.math.unsorted_segment_sum(shifted, segments, count))


def _pairs(C, noise_variance, Y, mask, series, configurations):  # type: ignore[no-untyped-def]
    V = _pair_covariances(C, noise_variance, series, configurations)
    return gaussian_log_density(V, tf.gather(Y, series), tf.gather(mask, series))


def _scan(base, candidates, noise_variance, Y, mask=None):  # type: ignore[no-untyped-def]
    def one(candidate: FloatTensor) -> FloatTensor:
        C = base + candidate
        diagonal = tf.linalg.diag_part(C) + noise_variance[:, :, None]
        levels = tf.broadcast_to(C, tf.concat([tf.shape(noise_variance)[:1], tf.shape(C)], 0))
        return gaussian_log_density(tf.linalg.set_diag(levels, diagonal), Y, mask)

    return tf.map_fn(one, candidates)


_pair_log_densities = _graph(
    _pairs, [_CUBE, _vector(), _matrix(), _matrix(), _vector(tf.int32), _matrix()]
)
_scan_complete = _graph(_scan, [_CUBE, _CUBE, _matrix(), _matrix()])
_scan_masked = _graph(_scan, [_CUBE, _CUBE, _matrix(), _matrix(), _matrix()])

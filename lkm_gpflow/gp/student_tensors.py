"""`student` for TensorFlow: what a Gaussian log density gains, and the weight of its gradient."""

from __future__ import annotations

import tensorflow as tf

from .types import FloatTensor


def tensor_gain(
    q: FloatTensor, num_observed: FloatTensor | float, degrees: FloatTensor | float
) -> FloatTensor:
    """`gain` for tensors that broadcast against each other; differentiable in q."""
    v, is_finite = _finite(degrees, q)
    halves = 0.5 * (v + num_observed)
    constant = tf.math.lgamma(halves) - tf.math.lgamma(0.5 * v)
    constant -= 0.5 * num_observed * tf.math.log(0.5 * v)
    value = constant - halves * tf.math.log1p(q / v) + 0.5 * q
    return tf.where(is_finite, value, tf.zeros_like(value))


def tensor_weight(
    q: FloatTensor, num_observed: FloatTensor | float, degrees: FloatTensor | float
) -> FloatTensor:
    """`weight` for tensors that broadcast against each other."""
    v, is_finite = _finite(degrees, q)
    value = (v + num_observed) / (v + q)
    return tf.where(is_finite, value, tf.ones_like(value))


def _finite(degrees: FloatTensor | float, like: FloatTensor) -> tuple[FloatTensor, tf.Tensor]:
    """Return degrees of freedom, one in the place of infinite ones, and whether they are finite."""
    v = tf.convert_to_tensor(degrees, like.dtype)
    is_finite = tf.math.is_finite(v)
    return tf.where(is_finite, v, tf.ones_like(v)), is_finite

"""Configurations: rows of zeros and ones, which of K components a series has."""

from __future__ import annotations

import tensorflow as tf
from check_shapes import check_shapes
from gpflow.base import TensorType
from gpflow.config import default_float

from ..gp.limits import MAX_ENUMERATED_COMPONENTS
from ..gp.types import FloatTensor


@check_shapes("numbers: [T]", "return: [T, K]")
def configurations_from_numbers(numbers: tf.Tensor, num_components: int) -> FloatTensor:
    """Rows of zeros and ones, [T, K]: component k is bit k of the number."""
    bits = tf.bitwise.right_shift(numbers[:, None], tf.range(num_components)[None, :])
    return tf.cast(tf.bitwise.bitwise_and(bits, 1), default_float())


@check_shapes("return: [T, K]")
def all_configurations(num_components: int) -> FloatTensor:
    """{0, 1}^K as rows, [2^K, K].

    Raises
    ------
    ValueError
        If K is above 12.
    """
    check_enumerable(num_components)
    return configurations_from_numbers(tf.range(2**num_components), num_components)


@check_shapes("logits: [N, K]", "configurations: [T, K]", "return: [N, T]")
def independent_log_weights(logits: TensorType, configurations: FloatTensor) -> FloatTensor:
    """Log probabilities of configurations under independent Bernoulli variables, [N, T]."""
    logits = tf.convert_to_tensor(logits)
    on, off = tf.math.log_sigmoid(logits), tf.math.log_sigmoid(-logits)
    return tf.matmul(on, configurations, transpose_b=True) + tf.matmul(
        off, 1.0 - configurations, transpose_b=True
    )


def check_enumerable(num_components: int) -> None:
    """Refuse more components than can be enumerated."""
    if num_components > MAX_ENUMERATED_COMPONENTS:
        raise ValueError(
            f"expected at most {MAX_ENUMERATED_COMPONENTS} components to enumerate all "
            f"2^K configurations, got {num_components}: use RelaxedPosterior, or fewer components"
        )

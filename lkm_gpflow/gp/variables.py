"""Variables of whole numbers that may become more or fewer."""

from __future__ import annotations

import tensorflow as tf
from gpflow.base import TensorType


def open_variable(values: TensorType) -> tf.Variable:
    """Return an untrainable variable [None] of whole numbers.

    A copy by `copy.deepcopy` is a variable of the length that it has then: who owns such variables
    opens those of a copy again, in ``__setstate__``.
    """
    return tf.Variable(tf.cast(values, tf.int32), trainable=False, shape=[None])

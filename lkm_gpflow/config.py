"""Names that every numerical module uses."""

from __future__ import annotations

import math

import tensorflow as tf

FloatTensor = tf.Tensor
"""A float64 tensor; the shape is in the docstring and in the `check_shapes` contract."""

LOG_2PI = math.log(2.0 * math.pi)

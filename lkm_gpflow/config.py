"""Names that every numerical module uses."""

from __future__ import annotations

import math

import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

FloatTensor = tf.Tensor
"""A float64 tensor; the shape is in the docstring and in the `check_shapes` contract."""

Floats = NDArray[np.float64]
Integers = NDArray[np.int32]

LOG_2PI = math.log(2.0 * math.pi)

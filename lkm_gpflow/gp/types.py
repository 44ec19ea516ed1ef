"""Array types and constants that every numerical module uses."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import tensorflow as tf

FloatTensor: TypeAlias = "tf.Tensor"
"""A float64 tensor; the shape is in the docstring and in the `check_shapes` contract."""

Floats = NDArray[np.float64]
Integers = NDArray[np.int32]
Booleans = NDArray[np.bool_]

LOG_2PI = math.log(2.0 * math.pi)

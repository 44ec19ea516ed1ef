"""Base kernels that a user registered, evaluated and differentiated by TensorFlow.

For learning, which is in NumPy (`arrays`): a user writes `UnitKernel.covariance`, and no
derivatives.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import tensorflow as tf

from ..gp.lags import Lags
from ..gp.types import Floats
from .base import KERNELS
from .grammar import BaseKernel, UnknownBaseError


def evaluate_taped(
    base: BaseKernel, grid: Lags, values: Sequence[float]
) -> tuple[Floats, Callable[[Floats], Sequence[float]]]:
    """Call the kernel's own `covariance`; what is returned is as of `arrays.evaluate`.

    Raises
    ------
    UnknownBaseError
        If the kernel is not registered in this process.
    """
    if base.name not in KERNELS:
        raise UnknownBaseError(
            f"expected the base kernel {base.name} to be registered in every process, but this "
            "worker does not know it: define it in a module, and import that module at the top of "
            "the script (a notebook: without executor)"
        )
    x, x2 = (grid.lags, np.zeros(1)) if base.stationary else (grid.x, grid.x)
    parameters = [tf.constant(value, tf.float64)[None, None, None] for value in values]
    with tf.GradientTape() as tape:
        tape.watch(parameters)
        given = KERNELS[base.name].covariance(
            tf.constant(x[:, None]), tf.constant(x2[None]), *parameters
        )
        spread = tf.broadcast_to(given, [1, len(x), len(x2)])[0]
        k = spread[:, 0] if base.stationary else spread

    def pull(g: Floats) -> Sequence[float]:
        gradients = tape.gradient(k, parameters, tf.constant(g), unconnected_gradients="zero")
        return [
            float(tf.reduce_sum(gradient)) * (value if kind.positive else 1.0)
            for gradient, value, (_, kind) in zip(gradients, values, base.parameters, strict=True)
        ]

    return k.numpy(), pull

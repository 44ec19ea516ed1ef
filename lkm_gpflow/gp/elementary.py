"""Elementary functions of numbers, arrays and tensors: one formula serves NumPy and TensorFlow.

TensorFlow is looked for among the loaded modules, never loaded.
"""

from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np
from scipy.special import betaln, gammaln
from scipy.special import digamma as scipy_digamma


def is_tensor(x: Any) -> bool:
    """Whether x is a tensor, a variable or a parameter of TensorFlow."""
    if isinstance(x, np.ndarray | float | int) or "tensorflow" not in sys.modules:
        return False
    tf = sys.modules["tensorflow"]
    return bool(tf.is_tensor(x)) or isinstance(x, tf.Module)


def log(x: Any) -> Any:
    """Logarithm."""
    if isinstance(x, float):
        return math.log(x)
    return sys.modules["tensorflow"].math.log(x) if is_tensor(x) else np.log(x)


def exp(x: Any) -> Any:
    """Exponential."""
    return sys.modules["tensorflow"].exp(x) if is_tensor(x) else np.exp(x)


def log1p(x: Any) -> Any:
    """``log(1 + x)``."""
    if isinstance(x, float):
        return math.log1p(x)
    return sys.modules["tensorflow"].math.log1p(x) if is_tensor(x) else np.log1p(x)


def log_gamma(x: Any) -> Any:
    """Logarithm of the gamma function."""
    return sys.modules["tensorflow"].math.lgamma(x) if is_tensor(x) else gammaln(x)


def log_beta(a: Any, b: Any) -> Any:
    """Logarithm of the beta function."""
    if is_tensor(a):
        tf = sys.modules["tensorflow"]
        return tf.math.lgamma(a) + tf.math.lgamma(b) - tf.math.lgamma(a + b)
    return betaln(a, b)


def digamma(x: Any) -> Any:
    """Derivative of `log_gamma`."""
    return sys.modules["tensorflow"].math.digamma(x) if is_tensor(x) else scipy_digamma(x)


def total(x: Any, axis: int | None = None) -> Any:
    """Sum over an axis, or over all."""
    return sys.modules["tensorflow"].reduce_sum(x, axis) if is_tensor(x) else np.sum(x, axis)


def stack_arrays(parts: Any, axis: int = -1) -> Any:
    """Stack arrays or tensors."""
    return (
        sys.modules["tensorflow"].stack(parts, axis)
        if is_tensor(parts[0])
        else np.stack(parts, axis)
    )

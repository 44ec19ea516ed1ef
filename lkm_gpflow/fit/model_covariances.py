"""Covariances of the components of any model, plain or a subclass of `LKM`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..data.observations import Observations
from ..gp.types import Floats
from ..kernels.grammar import Product
from .engine import components
from .fits import PLAIN_MODEL, Fit


def model_covariances(
    kernels: Sequence[Product],
    x: Floats,
    model: str,
    parameters: Mapping[str, Any],
    num_series: int,
) -> Floats:
    """Covariances [K, D, D] of complete products on any times x [D], under any model.

    Parameters
    ----------
    kernels
        K of them.
    x
        Scaled times.
    model
        Name of the model class.
    parameters
        The model's own, by path.
    num_series
        N.
    """
    if model == PLAIN_MODEL:
        return components(kernels, x)
    from .tensor_engine import TensorEngine  # with TensorFlow, which takes seconds to load

    nothing = Observations(x, *np.zeros((2, num_series, len(x))))
    return TensorEngine(nothing, model).covariances(kernels, parameters)


def fit_covariances(fit: Fit, x: Floats, kernels: Sequence[Product] | None = None) -> Floats:
    """Covariances [K, D, D] of a fit's components, or of others under its model, on x [D]."""
    own = fit.kernels if kernels is None else kernels
    return model_covariances(own, x, fit.model, fit.parameters, len(fit.Z))

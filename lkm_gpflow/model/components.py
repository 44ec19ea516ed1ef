"""What models of component kernels have in common: the covariances of the components."""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow as tf
from check_shapes import check_shapes
from gpflow.base import TensorType
from gpflow.kernels import Kernel

from ..gp.types import FloatTensor
from ..kernels.bank import stacked_covariances


class OfComponents(tf.Module):
    """A model with K component kernels.

    Attributes
    ----------
    kernels
        The components, any GPflow kernels of one output.
    """

    kernels: Sequence[Kernel]

    @check_shapes(
        "X: [D, Q]",
        "X2: [D2, Q]",
        "return: [K, D, D] if X2 is None",
        "return: [K, D, D2] if X2 is not None",
    )
    def component_covariances(self, X: TensorType, X2: TensorType | None = None) -> FloatTensor:
        """Covariance matrices of all components between X and X2 (or X), [K, D, D2]."""
        return stacked_covariances(self.kernels, X, X2)

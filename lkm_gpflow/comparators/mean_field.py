"""What models of several series by a mean field share: data, noise, objective, predictions."""

from __future__ import annotations

from abc import ABC, abstractmethod

import gpflow
import numpy as np
import tensorflow as tf
from check_shapes import check_shapes, inherit_check_shapes
from gpflow.base import AnyNDArray, MeanAndVariance, Parameter, RegressionData, TensorType
from gpflow.utilities import assert_params_false, positive, to_default_float

from ..gp.types import Floats, FloatTensor
from ..model.model_data import ModelData, checked_data
from .stacked import NOISE_FLOOR


class MeanFieldModel(gpflow.models.BayesianModel, gpflow.models.InternalDataTrainingLossMixin, ABC):
    """Series x_n(t) = g_n(t) + noise of variance sigma_n^2, learnt by a bound.

    NaN in Y [D, N] is a missing observation: it is in no sum.  `noise_base` names the transform of
    the parameter `noise_variance` [N], which a number or an array starts.
    """

    def __init__(
        self, data: RegressionData, noise_variance: float | AnyNDArray, noise_base: str | None
    ) -> None:
        super().__init__()
        X, Y = checked_data(data)
        self.data = (to_default_float(X), to_default_float(Y))
        table = ModelData.from_table(Y)
        self._Y = table.x  # [N, D]
        self._mask = tf.ones_like(table.x) if table.mask is None else table.mask
        self.num_series = N = Y.shape[1]
        noise = np.asarray(noise_variance, np.float64)
        if noise.shape not in ((), (N,)) or not np.all(noise > NOISE_FLOOR):
            raise ValueError(
                f"noise_variance: expected a number or {N} numbers above {NOISE_FLOOR:g}, one for "
                f"each series, got {noise_variance!r}"
            )
        transform = positive(lower=NOISE_FLOOR, base=noise_base)
        self.noise_variance = Parameter(np.broadcast_to(noise, N).copy(), transform=transform)

    @abstractmethod
    def elbo(self) -> FloatTensor:
        """Evidence lower bound, a scalar."""

    @abstractmethod
    def predict_signals(self, Xnew: FloatTensor) -> MeanAndVariance:
        """Mean and variance of the series without noise, [N, M] each."""

    @inherit_check_shapes
    def maximum_log_likelihood_objective(self) -> FloatTensor:
        """The evidence lower bound, `elbo`."""
        return self.elbo()

    @check_shapes("Xnew: [M, Q]", "return[0]: [M, N]", "return[1]: [M, N]")
    def predict_f(
        self, Xnew: TensorType, full_cov: bool = False, full_output_cov: bool = False
    ) -> MeanAndVariance:
        """Mean and variance of the series without noise under the posterior, [M, N] each.

        A NotImplementedError refuses `full_cov` and `full_output_cov`.
        """
        assert_params_false(self.predict_f, full_cov=full_cov, full_output_cov=full_output_cov)
        mean, variance = self.predict_signals(to_default_float(Xnew))
        return tf.transpose(mean), tf.transpose(variance)

    @check_shapes("Xnew: [M, Q]", "return[0]: [M, N]", "return[1]: [M, N]")
    def predict_y(
        self, Xnew: TensorType, full_cov: bool = False, full_output_cov: bool = False
    ) -> MeanAndVariance:
        """Mean and variance of new observations, noise included; see `predict_f`."""
        mean, variance = self.predict_f(Xnew, full_cov, full_output_cov)
        return mean, variance + self.noise_variance

    def predict_at(self, x: Floats) -> tuple[Floats, Floats]:
        """Means and variances of new observations at the times x [M], [M, N] each."""
        mean, variance = self.predict_y(x[:, None])
        return mean.numpy(), variance.numpy()

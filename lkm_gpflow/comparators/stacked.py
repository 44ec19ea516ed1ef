"""Several series as one Gaussian process: observed cells stacked, with the series as an input.

GPflow's convention for multi-output kernels that do not factorise over a common grid: the last
input column holds the number of the series, and every cell that was observed is one row.  Series
may thus have different times and gaps.
"""

from __future__ import annotations

from collections.abc import Callable

import gpflow
import numpy as np
import tensorflow as tf
from check_shapes import check_shapes, inherit_check_shapes
from gpflow.base import Parameter
from gpflow.utilities import positive

from ..data.observations import Observations
from ..gp.series import GaussianSeries
from ..gp.types import Floats, FloatTensor

NOISE_FLOOR = 1e-5
"""Least noise variance of a series of unit variance: without a floor it collapses."""


def stack(observations: Observations) -> tuple[Floats, Floats]:
    """Stack the observed cells: inputs (time, number of the series), [M, 2], and values, [M, 1]."""
    series, row = np.nonzero(observations.mask)
    inputs = np.column_stack([observations.x[row], series])
    return inputs, observations.Y[series, row][:, None]


def grid(x: Floats, num_series: int) -> Floats:
    """Inputs (time, number of the series) of all series at the times x, [N * M, 2]."""
    return np.column_stack([np.tile(x, num_series), np.repeat(np.arange(num_series), len(x))])


@check_shapes("C: [M, M]", "noise_variance: [M]", "y: [M]", "return: []")
def stacked_log_density(C: FloatTensor, noise_variance: FloatTensor, y: FloatTensor) -> FloatTensor:
    """Return log N(y | 0, C + diag(noise_variance)) with its gradient, by LAPACK.

    For a thousand rows value and gradient take half as long as `gp.tensors`', whose TensorFlow has
    no inverse of a triangular matrix.  It runs on the host, where SciPy climbs, on any device.  No
    gradient in y, and none of the gradient; NaN where the covariance is not positive definite.
    """
    value: FloatTensor = _log_density(C, noise_variance, y)
    return value


@tf.custom_gradient
def _log_density(
    C: FloatTensor, noise_variance: FloatTensor, y: FloatTensor
) -> tuple[FloatTensor, Callable[[FloatTensor], tuple[FloatTensor | None, ...]]]:
    value, slope = tf.numpy_function(_with_slope, [C, noise_variance, y], [C.dtype, C.dtype])
    value.set_shape([])
    slope.set_shape(C.shape)

    def gradient(upstream: FloatTensor) -> tuple[FloatTensor | None, ...]:
        d_C = upstream * slope
        return d_C, tf.linalg.diag_part(d_C), None

    return value, gradient


def _with_slope(C: Floats, noise_variance: Floats, y: Floats) -> tuple[Floats, Floats]:
    """Return the log density and its slope in C, as an upper triangle: C is symmetric."""
    V = C.copy().T  # in Fortran's order
    V.T.reshape(-1)[:: len(V) + 1] += noise_variance
    series = GaussianSeries(V, y, overwrite=True)
    value = series.log_density
    if np.isnan(value):
        V.fill(np.nan)
        return np.asarray(value), V
    slope = series.lower_gradient().T
    return np.asarray(value), np.negative(slope, out=slope)


class SeriesNoise(gpflow.functions.Function):
    """A noise variance sigma_n^2 [N] for every series, as that of a GPflow `Gaussian`."""

    def __init__(self, variance: Floats) -> None:
        super().__init__()
        self.variance = Parameter(variance, transform=positive(lower=NOISE_FLOOR))

    @inherit_check_shapes
    def __call__(self, X: FloatTensor) -> FloatTensor:
        series = tf.cast(X[..., -1], tf.int32)
        return tf.gather(self.variance, series)[..., None]


class StackedGPR(gpflow.models.GPR):
    """Exact regression of stacked series, with a noise variance for each.

    GPflow's `GPR` of the data that `stack` returns and a kernel of inputs (time, number of the
    series); its log marginal likelihood has an analytic gradient, see `stacked_log_density`.
    """

    def __init__(
        self,
        data: tuple[Floats, Floats],
        kernel: gpflow.kernels.Kernel,
        num_series: int,
        noise_variance: float = 0.1,
    ) -> None:
        noise = SeriesNoise(np.full(num_series, noise_variance))
        likelihood = gpflow.likelihoods.Gaussian(variance=noise)
        super().__init__(data, kernel, likelihood=likelihood)

    @check_shapes("return: []")
    def log_marginal_likelihood(self) -> FloatTensor:
        """Return log p(y), as GPflow's `GPR` does."""
        X, y = self.data
        return stacked_log_density(self.covariance(), self.likelihood.variance_at(X)[:, 0], y[:, 0])

    @check_shapes("return: [M, M]")
    def covariance(self) -> FloatTensor:
        """Return the covariance of the data without noise; models that get it cheaper override."""
        return self.kernel(self.data[0])

    def predict_series(self, x: Floats) -> tuple[Floats, Floats]:
        """Means and variances (with noise) of all series at the times x, [M, N] each."""
        num_series = self.likelihood.variance.variance.shape[0]
        mean, variance = self.predict_y(grid(x, num_series))
        shape = (num_series, len(x))
        return mean.numpy().reshape(shape).T, variance.numpy().reshape(shape).T

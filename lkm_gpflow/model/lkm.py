"""The Latent Kernel Model as a GPflow model."""

from __future__ import annotations

import numpy as np
import tensorflow as tf
from check_shapes import check_shapes
from gpflow.base import AnyNDArray, MeanAndVariance, RegressionData, TensorType
from gpflow.utilities import assert_params_false, to_default_float

from ..gp.likelihoods import student_gain
from ..gp.tensors import (
    evaluate_likelihood,
    mask_covariance,
    total_covariance,
)
from ..gp.types import LOG_2PI, Floats, FloatTensor
from .bound import LKMBound
from .posteriors import WeightedRows
from .predictions import ConditionalMoments, average_over_rows, beside

# Rows of Z whose D x D matrices a prediction holds in memory at a time.
PREDICTION_CHUNK = 64


class LKM(LKMBound):
    r"""Latent Kernel Model: every series uses some kernels of one shared list.

    .. math::
        Z &\sim \mathrm{IBP}(\alpha) \\
        f_n \mid z_n &\sim \mathcal{GP}\Big(0, \sum_k z_{nk} k_k\Big) \\
        x_n \mid f_n &\sim \mathcal{N}(f_n, \sigma_n^2 I)

    Source: Tong and Choi 2019, section "Latent Kernel Model".  The objective is the evidence lower
    bound of the posterior over Z, in which f is integrated out.

    Parameters
    ----------
    data
        ``(X, Y)``: inputs [D, Q] (time: Q = 1) and observations [D, N], one column per series.  NaN
        in Y is a missing observation.
    kernels
        The K components, any GPflow kernels of one output.
    alpha
        Concentration of the Indian Buffet Process, positive; not used if `prior` is an object.
    posterior
        "relaxed", "enumerated", or an object.
    noise_variance
        sigma_n^2, a number or an array [N], at least 1e-6; a trainable parameter [N].
    prior
        "finite", "infinite", or an object.
    likelihood
        "gaussian", as above; "scaled": a scale of each series is integrated out, and its noise
        variance is relative to this scale; or an object, see `gp.likelihoods`.

    Attributes
    ----------
    tau
        Beta parameters of the posterior of the component weights, a parameter [K, 2].

    Raises
    ------
    ValueError
        If an argument is not as described: the message says what was expected, what was given, and
        where.

    Warns
    -----
    UserWarning
        If there are more than ``LONGEST`` time points.

    Notes
    -----
    Predictions average over Z: mean and variance are those of the mixture of the Gaussians that
    belong to the posterior's configurations.  Given ``Z`` [N, K] (real, not negative), they are
    those of that Z.  As everywhere in GPflow, a White component is independent noise at new points.

    Time grows with D^3, memory with D^2: beyond ``LONGEST`` time points see `SparseLKM`.

    To change how components covary, override `component_covariances`; everything follows.
    """

    # --- prediction -----------------------------------------------------------------------------

    @check_shapes(
        "Xnew: [M, Q]",
        "Z: [N, K]",
        "return[0]: [M, N]",
        "return[1]: [N, M, M] if full_cov",
        "return[1]: [M, N] if not full_cov",
    )
    def predict_f(
        self,
        Xnew: TensorType,
        full_cov: bool = False,
        full_output_cov: bool = False,
        *,
        Z: TensorType | None = None,
    ) -> MeanAndVariance:
        """Mean and variance of the series without noise.

        Parameters
        ----------
        Xnew
            New inputs, [M, Q].
        full_cov
            Whether to return covariances over the inputs.
        full_output_cov
            Not supported: the series are independent given Z.
        Z
            Assignments [N, K] to predict from; None to average over the posterior.

        Returns
        -------
        Mean [M, N], and variance [M, N] or covariance [N, M, M].

        Raises
        ------
        NotImplementedError
            If `full_output_cov` is true.
        """
        assert_params_false(self.predict_f, full_output_cov=full_output_cov)
        whole = np.ones((1, self.num_components))
        mean, variance = self.predict_sums(Xnew, whole, full_cov, Z)
        variance = variance[:, 0] if full_cov else tf.transpose(variance[:, 0])
        return tf.transpose(mean[:, 0]), variance

    @check_shapes("Xnew: [M, Q]", "Z: [N, K]", "return[0]: [M, N]", "return[1]: [M, N]")
    def predict_y(
        self,
        Xnew: TensorType,
        full_cov: bool = False,
        full_output_cov: bool = False,
        *,
        Z: TensorType | None = None,
    ) -> MeanAndVariance:
        """Mean and variance [M, N] of new observations, noise included; see `predict_f`.

        Raises
        ------
        NotImplementedError
            If `full_cov` or `full_output_cov` is true.
        """
        assert_params_false(self.predict_y, full_cov=full_cov, full_output_cov=full_output_cov)
        mean, variance = self.predict_f(Xnew, Z=Z)
        return mean, variance + self.predict_noise(Z)

    @check_shapes("Z: [N, K]", "return: [N]")
    def predict_noise(self, Z: TensorType | None = None) -> FloatTensor:
        """Variance of the noise of each series, [N], times the mean of its scale if it has one.

        Parameters
        ----------
        Z
            As for `predict_f`.
        """
        if not self.likelihood.rescales:
            return tf.convert_to_tensor(self.noise_variance)

        def moments_of(series: tf.Tensor, z: FloatTensor) -> MeanAndVariance:
            mean = (self.expected_scales(series, z) * tf.gather(self.noise_variance, series))[
                :, None, None
            ]
            return mean, tf.zeros_like(mean)

        rows = self._weighted_rows(Z)
        mean, _ = average_over_rows(moments_of, rows, self.num_series, PREDICTION_CHUNK)
        return mean[:, 0, 0]

    @check_shapes("series: [P]", "z: [P, K]", "return: [P]")
    def expected_scales(self, series: tf.Tensor, z: FloatTensor) -> FloatTensor:
        """Factors of the predictive variance of series given their z, [P]: see `likelihoods`."""
        V = total_covariance(
            self.component_covariances(self.data[0]), tf.gather(self.noise_variance, series), z
        )
        x = tf.gather(self.observations.x, series)
        if self.observations.mask is not None:
            V = mask_covariance(V, tf.gather(self.observations.mask, series))
        whitened = tf.linalg.triangular_solve(tf.linalg.cholesky(V), x[..., None])[..., 0]
        return self._expected_scales(tf.reduce_sum(tf.square(whitened), axis=-1), series)

    def _expected_scales(self, q: FloatTensor, series: tf.Tensor) -> FloatTensor:
        """`expected_scales` from the quadratic forms of the series, [P]."""
        num_observed = tf.gather(self.observations.counts, series)
        return evaluate_likelihood(self.likelihood.predictive_scale, q, num_observed)

    @property
    def predictive_degrees(self) -> Floats:
        """Degrees of freedom of predictions, [N]; infinite for a Gaussian."""
        return np.asarray(self.likelihood.predictive_degrees(self.observations.counts))

    @check_shapes("data[0]: [M, Q]", "data[1]: [M, N]", "Z: [N, K]", "return: [M, N]")
    def predict_log_density(
        self, data: RegressionData, *, Z: TensorType | None = None
    ) -> FloatTensor:
        """Log density [M, N] of each new observation, with mean and variance of `predict_y`.

        A Gaussian, or a Student-t where `predictive_degrees` are finite.
        """
        Xnew, Ynew = (to_default_float(part) for part in data)
        mean, variance = self.predict_y(Xnew, Z=Z)
        degrees = self.predictive_degrees
        if np.isinf(degrees).all():
            return -0.5 * (LOG_2PI + tf.math.log(variance) + tf.square(Ynew - mean) / variance)
        squared_scale = variance * (degrees - 2.0) / degrees
        q = tf.square(Ynew - mean) / squared_scale
        gaussian = -0.5 * (LOG_2PI + tf.math.log(squared_scale) + q)
        return gaussian + student_gain(q, 1.0, degrees)

    @check_shapes("Xnew: [M, Q]", "Z: [N, K]", "return[0]: [K, M, N]", "return[1]: [K, M, N]")
    def predict_components(
        self, Xnew: TensorType, *, Z: TensorType | None = None
    ) -> MeanAndVariance:
        r"""Mean and variance [K, M, N] of every component of every series; means add up.

        .. math::
            f_k \mid x_n \sim \mathcal{N}(z_{nk} C_{*k} V^{-1} x_n,\;
            z_{nk} C_{**k} - z_{nk}^2 C_{*k} V^{-1} C_{*k}^\top)

        With scales of series the covariance is multiplied by `expected_scales`.  Parameters are
        those of `predict_f`.
        """
        mean, variance = self.predict_sums(Xnew, np.eye(self.num_components), False, Z)
        return tf.transpose(mean, [1, 2, 0]), tf.transpose(variance, [1, 2, 0])

    def predict_sums(
        self, Xnew: TensorType, sums: AnyNDArray, full_cov: bool, Z: TensorType | None
    ) -> MeanAndVariance:
        """Moments of G sums of components, each a row of `sums` [G, K].

        Returns
        -------
        Mean [N, G, M], and variance [N, G, M] or covariance [N, G, M, M].
        """
        rows = self._weighted_rows(Z)
        moments_of = self.conditional_moments(to_default_float(Xnew), sums, full_cov)
        return average_over_rows(moments_of, rows, self.num_series, PREDICTION_CHUNK)

    def conditional_moments(
        self, Xnew: FloatTensor, sums: AnyNDArray, full_cov: bool
    ) -> ConditionalMoments:
        """Return what `predict_sums` averages: moments given the series' numbers and their z.

        Parameters
        ----------
        Xnew, sums, full_cov
            As in `predict_sums`.

        Returns
        -------
        A function from series [P] and z [P, K] to mean [P, G, M] and variance [P, G, M] or
        covariance [P, G, M, M].
        """
        X, _ = self.data
        C = self.component_covariances(X)
        C_cross = self.component_covariances(X, Xnew)
        C_new = self.component_covariances(Xnew)
        if not full_cov:
            C_new = tf.linalg.diag_part(C_new)

        def moments_of(series: tf.Tensor, z: FloatTensor) -> MeanAndVariance:
            V = total_covariance(C, tf.gather(self.noise_variance, series), z)
            x = tf.gather(self.observations.x, series)
            parts = z[:, None, :] * sums  # [P, G, K]
            cross = tf.tensordot(parts, C_cross, axes=1)  # [P, G, D, M]
            if self.observations.mask is not None:
                mask = tf.gather(self.observations.mask, series)
                V, cross = mask_covariance(V, mask), cross * mask[:, None, :, None]
            L = tf.linalg.cholesky(V)[:, None]
            whitened = tf.linalg.triangular_solve(L, cross)
            whitened_x = tf.linalg.triangular_solve(L, x[:, None, :, None])[..., 0]
            mean = tf.linalg.matvec(whitened, whitened_x, transpose_a=True)
            variance = tf.tensordot(parts, C_new, axes=1)
            if full_cov:
                variance -= tf.matmul(whitened, whitened, transpose_a=True)
            else:
                variance -= tf.reduce_sum(tf.square(whitened), axis=-2)
            if not self.likelihood.rescales:
                return mean, variance
            q = tf.reduce_sum(tf.square(whitened_x[:, 0]), axis=-1)
            return mean, variance * beside(self._expected_scales(q, series), variance)

        return moments_of

    def _weighted_rows(self, Z: TensorType | None) -> WeightedRows:
        """Hypotheses about rows of Z: those of the posterior, or the given Z alone."""
        if Z is None:
            return self.posterior.configurations(self)
        Z = to_default_float(Z)
        return WeightedRows(tf.range(self.num_series), Z, tf.ones(self.num_series, Z.dtype))

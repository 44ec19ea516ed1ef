"""The Latent Kernel Model as a GPflow model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal

import gpflow
import numpy as np
import tensorflow as tf
from check_shapes import check_shapes, inherit_check_shapes
from gpflow.base import AnyNDArray, MeanAndVariance, RegressionData, TensorType
from gpflow.inducing_variables import InducingVariables
from gpflow.kernels import Kernel
from gpflow.utilities import assert_params_false, positive, to_default_float

from ..kernels.bank import stacked_covariances
from ..numerics.linalg import (
    check_positive_definite,
    eigen_log_density,
    gaussian_log_density,
    mask_covariance,
    total_covariance,
)
from ..numerics.student_tensors import tensor_gain
from ..numerics.types import LOG_2PI, LONGEST, FloatTensor
from . import model_data
from .amplitudes import Amplitudes, degrees_of
from .criterion import bic
from .ibp import IBP
from .posteriors import Posterior, Seed, WeightedRows
from .predictions import ConditionalMoments, average_over_rows

# Rows of Z whose D x D matrices a prediction holds in memory at a time.
PREDICTION_CHUNK = 64


class LKM(gpflow.models.BayesianModel, gpflow.models.InternalDataTrainingLossMixin):
    r"""Latent Kernel Model: every series uses some of a list of shared kernels.

    .. math::
        Z &\sim \mathrm{IBP}(\alpha) \\
        f_n \mid z_n &\sim \mathcal{GP}\Big(0, \sum_k z_{nk} k_k\Big) \\
        x_n \mid f_n &\sim \mathcal{N}(f_n, \sigma_n^2 I)

    Source: Tong and Choi 2019, section "Latent Kernel Model".  The objective is the evidence lower
    bound of the posterior over Z, in which f is integrated out.

    Parameters
    ----------
    data
        ``(X, Y)``: inputs [D, Q] (time: Q = 1) and observations [D, N], one column a series.  NaN
        in Y is a missing observation.
    kernels
        The K components, any GPflow kernels of one output.
    alpha
        Concentration of the Indian Buffet Process, positive; not used if `prior` is an object.
    posterior
        "relaxed", "enumerated", or an object.
    noise_variance
        sigma_n^2, a number or an array [N], above 1e-6; a trainable parameter [N].
    prior
        "finite", "infinite", or an object.
    amplitudes
        "none": as above.  "series": a scale of each series is integrated out, and its noise
        variance is relative to this scale.  "component": every series has a height for each
        component, a factor of its variance; see `amplitudes`.

    Attributes
    ----------
    heights
        With amplitudes "component", a parameter [N, K] with a log-normal prior, initially ones;
        otherwise None.  Likelihoods, predictions and the posterior over Z condition on it.
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

    LONGEST: ClassVar[float] = LONGEST
    """Most time points."""

    def __init__(
        self,
        data: RegressionData,
        kernels: Sequence[Kernel],
        alpha: float = 1.0,
        posterior: Literal["relaxed", "enumerated"] | Posterior = "relaxed",
        *,
        noise_variance: float | AnyNDArray = 1.0,
        prior: Literal["finite", "infinite"] | IBP = "finite",
        amplitudes: Amplitudes = "none",
    ) -> None:
        super().__init__()
        self.amplitudes, self._degrees = amplitudes, degrees_of(amplitudes)
        X, Y = model_data.checked_data(data)
        self.data = (to_default_float(X), to_default_float(Y))
        self.observations = model_data.ModelData.from_table(Y)
        model_data.warn_if_long(len(X), self.LONGEST)
        self.kernels = model_data.checked_kernels(kernels, num_inputs=X.shape[1])
        num_series, num_components = Y.shape[1], len(self.kernels)
        self.prior = model_data.checked_prior(prior, alpha, num_components)
        self.posterior = model_data.checked_posterior(posterior)
        self.posterior.build(num_series, num_components)
        self.tau = model_data.initial_tau(self.prior, num_series)
        self.heights: gpflow.Parameter | None = None
        if amplitudes == "component":
            self.heights = model_data.initial_heights(num_series, num_components)
        self.noise_variance = gpflow.Parameter(
            model_data.checked_noise(noise_variance, num_series),
            transform=positive(lower=model_data.MIN_NOISE_VARIANCE),
        )

    @property
    def num_series(self) -> int:
        """N."""
        return int(self.data[1].shape[1])

    @property
    def num_components(self) -> int:
        """K."""
        return len(self.kernels)

    # --- learning -------------------------------------------------------------------------------

    @inherit_check_shapes
    def maximum_log_likelihood_objective(self, seed: Seed = None) -> FloatTensor:
        """The evidence lower bound, `elbo`."""
        return self.elbo(seed)

    @check_shapes("return: []")
    def training_loss(self, seed: Seed = None) -> FloatTensor:
        """Minus `elbo` and minus the log density of the priors on parameters."""
        return self._training_loss(seed=seed)

    @check_shapes("return: []")
    def elbo(self, seed: Seed = None) -> FloatTensor:
        """Evidence lower bound (for a relaxed posterior, its relaxation).

        Parameters
        ----------
        seed
            None for the draws that a relaxed posterior keeps (``posterior.resample()`` changes
            them); an integer or an integer tensor [2] for others.
        """
        return self.posterior.elbo(self, seed)

    def update_tau(self) -> None:
        """Set tau to its optimum given the probabilities of Z.

        Raises
        ------
        NotImplementedError
            If the prior is infinite: tau then has no closed form.
        """
        self.tau.assign(self.prior.best_tau(self.probabilities()))

    @check_shapes(
        "X: [D, Q]",
        "X2: [D2, Q]",
        "return: [K, D, D] if X2 is None",
        "return: [K, D, D2] if X2 is not None",
    )
    def component_covariances(self, X: TensorType, X2: TensorType | None = None) -> FloatTensor:
        """Covariance matrices of all components between X and X2 (or X), [K, D, D2]."""
        return stacked_covariances(self.kernels, X, X2)

    @check_shapes("Z: [batch..., N, K]", "return: [batch..., N]")
    def log_likelihood(self, Z: TensorType) -> FloatTensor:
        """``log p(x_n | z_n)`` with f and scales integrated out, exact.

        Parameters
        ----------
        Z
            Assignments, [..., N, K], any real numbers that are not negative.

        Returns
        -------
        Tensor [..., N]; NaN where rounding makes a covariance indefinite.
        """
        C = self.component_covariances(self.data[0])
        V = total_covariance(C, self.noise_variance, self._loadings(to_default_float(Z)))
        return gaussian_log_density(V, self.observations.x, self.observations.mask, self._degrees)

    def _loadings(self, Z: FloatTensor, series: tf.Tensor | None = None) -> FloatTensor:
        """Z [..., N, K], or rows of some series [P, K], times their heights if they have any."""
        if self.heights is None:
            return Z
        return Z * (self.heights if series is None else tf.gather(self.heights, series))

    @check_shapes("configurations: [T, K]", "return: [N, T]")
    def configuration_log_likelihood(self, configurations: TensorType) -> FloatTensor:
        """``log p(x_n | t)`` for all series and configurations, exact.

        One eigendecomposition per configuration serves all series that lack the same points.

        Parameters
        ----------
        configurations
            t, [T, K].

        Returns
        -------
        Tensor [N, T].
        """
        if self.heights is not None:
            every = tf.repeat(configurations[:, None, :], self.num_series, axis=1)
            return tf.transpose(self.log_likelihood(every))
        C = tf.tensordot(configurations, self.component_covariances(self.data[0]), axes=1)
        groups = self.observations.groups
        parts = [
            eigen_log_density(
                C,
                tf.gather(self.observations.x, group.series),
                tf.gather(self.noise_variance, group.series),
                group.mask,
                self._degrees,
            )
            for group in groups
        ]
        order = np.argsort(np.concatenate([group.series for group in groups]))
        return tf.gather(tf.transpose(tf.concat(parts, axis=1)), order)

    # --- what was found -------------------------------------------------------------------------

    @check_shapes("return: [N, K]")
    def probabilities(self) -> FloatTensor:
        """Posterior probabilities that series n has component k, [N, K]."""
        return self.posterior.probabilities(self)

    @check_shapes("return: [N, K]")
    def assignment(self) -> FloatTensor:
        """The most probable Z, zeros and ones, [N, K]."""
        return self.posterior.assignment(self)

    @check_shapes("Z: [N, K]", "return: []")
    def bic(self, Z: TensorType | None = None) -> FloatTensor:
        r"""Bayesian information criterion; smaller is better.

        .. math:: -2 \sum_n \log p(x_n \mid z_n) + p \log(\text{number of observed values})

        p counts the trainable parameters of kernels that at least one series uses, N noises, and
        what a subclass has beside them.  Scales of series are integrated out and cost nothing.

        Parameters
        ----------
        Z
            Assignments [N, K]; None for `assignment`.

        Raises
        ------
        ValueError
            If a covariance is not positive definite.
        """
        Z = self.assignment() if Z is None else to_default_float(Z)
        log_likelihood = self.log_likelihood(Z)
        check_positive_definite(log_likelihood, "the series")
        used = [k for k, on in zip(self.kernels, np.any(Z, axis=0), strict=True) if on]
        own = [p for p in self.trainable_parameters if not self._is_counted_otherwise(p)]
        learnt = [*own, *(p for kernel in used for p in kernel.trainable_parameters)]
        parameters = {id(p): p for p in learnt}
        count = self.num_series + sum(int(tf.size(p)) for p in parameters.values())
        return bic(tf.reduce_sum(log_likelihood), count, self.observations.num_observed)

    def _is_counted_otherwise(self, parameter: gpflow.Parameter) -> bool:
        """Whether a parameter is a kernel's, a noise, variational, or places inducing variables."""
        inducing = (m for m in self.submodules if isinstance(m, InducingVariables))
        owners = (*self.kernels, self.posterior, *inducing)
        known = [self.tau, self.noise_variance, *(p for m in owners for p in m.parameters)]
        known += [] if self.heights is None else [self.heights]
        return any(parameter is other for other in known)

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
        if self.amplitudes != "series":
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
        r"""Posterior means of the scales of series given their z, [P].

        .. math:: E[s_n \mid x_n, z_n] = \frac{v + x_n^\top V_n^{-1} x_n}{v + D_n - 2}

        with D_n the observed points of the series.
        """
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
        num_observed = tf.gather(self.observations.num_observed_by_series, series)
        return (self._degrees + q) / (self._degrees + num_observed - 2.0)

    @property
    def predictive_degrees(self) -> FloatTensor:
        """Degrees of freedom of predictions, [N]: v + D_n, or infinite without amplitudes."""
        return self._degrees + self.observations.num_observed_by_series

    @check_shapes("data[0]: [M, Q]", "data[1]: [M, N]", "Z: [N, K]", "return: [M, N]")
    def predict_log_density(
        self, data: RegressionData, *, Z: TensorType | None = None
    ) -> FloatTensor:
        """Log density [M, N] of each new observation, with mean and variance of `predict_y`.

        A Gaussian; with scales of series a Student-t of `predictive_degrees`.
        """
        Xnew, Ynew = data
        mean, variance = self.predict_y(Xnew, Z=Z)
        if self.amplitudes != "series":
            return -0.5 * (LOG_2PI + tf.math.log(variance) + tf.square(Ynew - mean) / variance)
        degrees = self.predictive_degrees
        squared_scale = variance * (degrees - 2.0) / degrees
        q = tf.square(Ynew - mean) / squared_scale
        gaussian = -0.5 * (LOG_2PI + tf.math.log(squared_scale) + q)
        return gaussian + tensor_gain(q, 1.0, degrees)

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
            z = self._loadings(z, series)
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
            if self.amplitudes != "series":
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


def beside(values: FloatTensor, like: FloatTensor) -> FloatTensor:
    """Values [P] with dimensions of one after them, to multiply a tensor [P, ...]."""
    return tf.reshape(
        values, tf.concat([tf.shape(values), tf.ones(tf.rank(like) - 1, tf.int32)], 0)
    )

"""The Latent Kernel Model as a GPflow model: equation 1, its likelihood, and its predictions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Literal, TypeAlias

import gpflow
import numpy as np
import tensorflow as tf
import tensorflow_probability as tfp
from check_shapes import check_shapes, inherit_check_shapes
from gpflow.base import AnyNDArray, MeanAndVariance, RegressionData, TensorType
from gpflow.functions import MeanFunction, Zero
from gpflow.kernels import Kernel
from gpflow.likelihoods import Likelihood
from gpflow.utilities import assert_params_false, positive, to_default_float

from ..gp import limits
from ..gp.likelihoods import (
    GAUSSIAN,
    LikelihoodName,
    SeriesLikelihood,
    likelihood_of,
    student_gain,
)
from ..gp.tensors import (
    check_positive_definite,
    eigen_log_density,
    eigh,
    evaluate_likelihood,
    gaussian_log_density,
    mask_covariance,
    total_covariance,
)
from ..gp.types import LOG_2PI, Floats, FloatTensor
from . import model_data
from .criterion import bic
from .ibp import IBP
from .posteriors import Posterior, Seed, WeightedRows, sampling_key
from .value_sites import ValueSites

PREDICTION_CHUNK = 64
"""Rows of Z whose D x D matrices a prediction holds in memory at a time."""

ConditionalMoments: TypeAlias = Callable[[tf.Tensor, FloatTensor], MeanAndVariance]
"""From series [P] and their z [P, K] to mean [P, G, M] and variance [P, G, M] or covariance
[P, G, M, M] of G sums of components."""


class LKM(gpflow.models.BayesianModel, gpflow.models.InternalDataTrainingLossMixin):
    r"""Latent Kernel Model: every series uses some kernels of one shared list.

    .. math::
        Z &\sim \mathrm{IBP}(\alpha) \\
        f_n \mid z_n &\sim \mathcal{GP}\Big(m, \sum_k z_{nk} k_k\Big) \\
        x_n \mid f_n &\sim \mathcal{N}(f_n, \sigma_n^2 I)

    Source: Tong and Choi 2019, section "Latent Kernel Model", equation 1, where m is zero.  The
    objective is the evidence lower bound of the posterior over Z (`model.bound`), f integrated out.

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
        variance is relative to this scale; or an object, see `gp.likelihoods`.  Or one of
        ``gpflow.likelihoods``, such as Poisson: x_n is then latent, and observed is y_n with
        :math:`p(y_{nd} \mid x_{nd})`; see below.
    mean_function
        m, a mean function of GPflow with one output, which all series share, or N; None for zero.

    Attributes
    ----------
    tau
        Beta parameters of the posterior of the component weights, a parameter [K, 2].
    sites
        Of a likelihood of GPflow, `ValueSites`; otherwise None.

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

    Time grows with D^3, memory with D^2.

    With a likelihood of GPflow ``log p(x_n | z_n)`` becomes a lower bound of ``log p(y_n | z_n)``
    (`value_sites`), and predictions of y take x at a new point as normal.  The noise is one of the
    latent series, which makes counts scatter more than the likelihood says; assign 1e-6 and
    ``gpflow.set_trainable(model.noise_variance, False)`` to be without.  Sites are parameters that
    any optimiser learns with the others; `update_sites` moves them alone, in far fewer steps.

    To change how components covary, override `component_covariances`; everything follows.
    """

    LONGEST: ClassVar[float] = limits.LONGEST
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
        likelihood: LikelihoodName | SeriesLikelihood | Likelihood = "gaussian",
        mean_function: MeanFunction | None = None,
    ) -> None:
        super().__init__()
        is_of_values = isinstance(likelihood, Likelihood)
        self.likelihood: Any = likelihood
        if not isinstance(likelihood, Likelihood):
            self.likelihood = likelihood_of(likelihood)
        self._of_series: SeriesLikelihood = GAUSSIAN if is_of_values else self.likelihood
        X, Y = model_data.checked_data(data)
        self.data = (to_default_float(X), to_default_float(Y))
        self.observations = model_data.ModelData.from_table(Y)
        model_data.warn_if_long(len(X), self.LONGEST)
        self.kernels = model_data.checked_kernels(kernels, num_inputs=X.shape[1])
        num_series, num_components = Y.shape[1], len(self.kernels)
        self.prior = model_data.checked_prior(prior, alpha, num_components)
        self.tau = model_data.initial_tau(self.prior, num_series)
        self.noise_variance = gpflow.Parameter(
            model_data.checked_noise(noise_variance, num_series),
            transform=positive(lower=model_data.MIN_NOISE_VARIANCE),
        )
        self.mean_function = model_data.checked_mean(mean_function, self.data[0], num_series)
        self.sites = ValueSites(self.likelihood, X, Y) if is_of_values else None
        # Last: a posterior that was built belongs to its model for good.
        self.posterior = model_data.checked_posterior(posterior)
        self.posterior.build(num_series, num_components)
        self.update_sites()

    @property
    def num_series(self) -> int:
        """N."""
        return int(self.data[1].shape[1])

    @property
    def num_components(self) -> int:
        """K."""
        return len(self.kernels)

    # --- the likelihood -------------------------------------------------------------------------

    @check_shapes(
        "X: [D, Q]",
        "X2: [D2, Q]",
        "return: [K, D, D] if X2 is None",
        "return: [K, D, D2] if X2 is not None",
    )
    def component_covariances(self, X: TensorType, X2: TensorType | None = None) -> FloatTensor:
        """Covariance matrices of all components between X and X2 (or X), [K, D, D2]."""
        return tf.stack([kernel(X, X2) for kernel in self.kernels])

    @check_shapes("return: [N, D]")
    def residuals(self) -> FloatTensor:
        """The series, or their sites, less their mean function, zero where missing, [N, D]."""
        x, mask = self.observations.x, self.observations.mask
        if self.sites is not None:
            x = self.sites.values if mask is None else self.sites.values * mask
        if isinstance(self.mean_function, Zero):
            return x
        x = x - tf.transpose(self.mean_function(self.data[0]))
        return x if mask is None else x * mask

    @check_shapes("Z: [batch..., N, K]", "return: [batch..., N]")
    def log_likelihood(self, Z: TensorType) -> FloatTensor:
        """``log p(x_n | z_n)`` with f and scales integrated out; exact, but a bound with sites.

        Parameters
        ----------
        Z
            Assignments, [..., N, K], any real numbers that are not negative.

        Returns
        -------
        Tensor [..., N]; NaN where rounding makes a covariance indefinite.
        """
        V = self._covariances(self.component_covariances(self.data[0]), to_default_float(Z))
        r, mask = self.residuals(), self.observations.mask
        value = gaussian_log_density(V, r, mask, self._of_series)
        if self.sites is None:
            return value
        return value + self.sites.gain(V if mask is None else mask_covariance(V, mask), r)

    def _covariances(
        self, C: FloatTensor, z: FloatTensor, series: tf.Tensor | None = None
    ) -> FloatTensor:
        """Covariances of series, all or some, [..., N, D, D], with noise and that of sites."""

        def own(of_series: FloatTensor) -> FloatTensor:
            return of_series if series is None else tf.gather(of_series, series)

        V = total_covariance(C, own(self.noise_variance), z)
        if self.sites is None:
            return V
        return V + tf.linalg.diag(own(self.sites.variances))

    @check_shapes("configurations: [T, K]", "return: [N, T]")
    def configuration_log_likelihood(self, configurations: TensorType) -> FloatTensor:
        """`log_likelihood` of all series and configurations.

        One eigendecomposition per configuration serves all series that lack the same points; with
        sites there is a Cholesky factor for each series.

        Parameters
        ----------
        configurations
            t, [T, K].

        Returns
        -------
        Tensor [N, T].
        """
        t = to_default_float(configurations)
        if self.sites is not None:
            Z = tf.tile(t[:, None], [1, self.num_series, 1])
            return tf.transpose(self.log_likelihood(Z))
        C = tf.tensordot(t, self.component_covariances(self.data[0]), axes=1)  # [T, D, D]
        x, groups = self.residuals(), self.observations.groups
        parts = [
            eigen_log_density(
                C,
                tf.gather(x, group.series),
                tf.gather(self.noise_variance, group.series),
                group.mask,
                self._of_series,
            )
            for group in groups
        ]
        order = np.argsort(np.concatenate([group.series for group in groups]))
        return tf.gather(tf.transpose(tf.concat(parts, axis=1)), order)

    # --- learning -------------------------------------------------------------------------------

    @inherit_check_shapes
    def maximum_log_likelihood_objective(self, seed: Seed = None) -> FloatTensor:
        """The evidence lower bound, `elbo`."""
        return self.elbo(seed)

    @check_shapes("return: []")
    def training_loss(self, seed: Seed = None) -> FloatTensor:
        """Minus `elbo` and minus the log density of the priors on parameters."""
        # A subclass may have GPflow's own objective, which knows no seed.
        return self._training_loss() if seed is None else self._training_loss(seed)

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

    @check_shapes("Z: [N, K]")
    def update_sites(self, steps: int = 10, rate: float = 0.5, Z: TensorType | None = None) -> None:
        r"""Move the sites by natural gradients of the bound, all else fixed; without sites nothing.

        .. math:: \frac1s \leftarrow (1 - \rho) \frac1s - 2 \rho\, \partial_v E, \qquad
           \frac{\tilde y}{s} \leftarrow (1 - \rho) \frac{\tilde y}{s}
           + \rho\, (\partial_m E - 2 m\, \partial_v E), \qquad
           E = E_{\mathcal{N}(f \mid m, v)}[\log p(y \mid f)]

        Parameters
        ----------
        steps
            How many.
        rate
            :math:`\rho`, from zero to one.
        Z
            Assignments [N, K] under which q(f) is taken; None: the probabilities.
        """
        if self.sites is None:
            return
        C, mask = self.component_covariances(self.data[0]), self.observations.mask
        for _ in range(steps):
            z = self.probabilities() if Z is None else to_default_float(Z)
            V = self._covariances(C, z)
            V = V if mask is None else mask_covariance(V, mask)
            self.sites.move(*self.sites.marginals(V, self.residuals()), rate)

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
        counted = [self.tau, self.noise_variance]
        counted += [p for m in (*self.kernels, self.posterior) for p in m.parameters]
        counted += [] if self.sites is None else [self.sites.linear, self.sites.precision]
        otherwise = {id(p) for p in counted}
        own = [p for p in self.trainable_parameters if id(p) not in otherwise]
        learnt = [*own, *(p for kernel in used for p in kernel.trainable_parameters)]
        parameters = {id(p): p for p in learnt}
        count = self.num_series + sum(int(tf.size(p)) for p in parameters.values())
        return bic(tf.reduce_sum(log_likelihood), count, self.observations.num_observed)

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
        """Mean and variance of the series without noise, averaged over Z.

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
        return tf.transpose(mean[:, 0]) + self.mean_function(Xnew), variance

    @check_shapes(
        "Xnew: [M, Q]",
        "Z: [N, K]",
        "return: [M, N] if num_samples is None",
        "return: [S, M, N] if num_samples is not None",
    )
    def predict_f_samples(
        self,
        Xnew: TensorType,
        num_samples: int | None = None,
        full_cov: bool = True,
        full_output_cov: bool = False,
        *,
        Z: TensorType | None = None,
        seed: int | None = None,
    ) -> FloatTensor:
        """Draw the series without noise, each draw with a Z of its own.

        Parameters
        ----------
        Xnew
            New inputs, [M, Q].
        num_samples
            S; None for a single draw.
        full_cov
            Whether a draw is a function; otherwise its values are independent given Z.
        full_output_cov
            Not supported: the series are independent given Z.
        Z
            As for `predict_f`.
        seed
            The draws follow from it; None for others each time, by TensorFlow's global generator.

        Returns
        -------
        Draws [S, M, N], or [M, N]; Student-t ones where `predictive_degrees` are finite.

        Raises
        ------
        NotImplementedError
            If `full_output_cov` is true.
        """
        assert_params_false(self.predict_f_samples, full_output_cov=full_output_cov)
        Xnew, rows = to_default_float(Xnew), self._weighted_rows(Z)
        keys = tfp.random.split_seed(sampling_key(seed), 3)
        S, N, M = num_samples or 1, self.num_series, tf.shape(Xnew)[0]
        drawn = rows.draw(N, S, keys[0])  # [S, N]
        used, _ = tf.unique(tf.reshape(drawn, [-1]))
        moments_of = self.conditional_moments(Xnew, np.ones((1, self.num_components)), full_cov)
        dtype = self.observations.x.dtype
        normal = tf.random.stateless_normal([S, N, M], keys[1], dtype=dtype)
        degrees = self.predictive_degrees  # [N]
        if np.isfinite(degrees).all():
            squares = 2.0 * tf.random.stateless_gamma([S, N], keys[2], 0.5 * degrees, dtype=dtype)
            normal *= tf.sqrt((degrees - 2.0) / squares)[..., None]

        def with_row(samples: FloatTensor, row: tf.Tensor) -> FloatTensor:
            series = rows.series[row : row + 1]
            mean, variance = moments_of(series, rows.rows[row : row + 1])
            errors = normal[:, series[0]]  # [S, M]
            if full_cov:
                values, U = eigh(variance[0])
                root = U[0] * tf.sqrt(tf.maximum(values[0], 0.0))
                errors = tf.matmul(errors, root, transpose_b=True)
            else:
                errors *= tf.sqrt(tf.maximum(variance[0, 0], 0.0))
            has = tf.cast(drawn == row, dtype)[..., None]  # [S, N, 1]
            return samples + has * (mean[0, 0] + errors)[:, None]

        samples = tf.foldl(with_row, used, tf.zeros_like(normal))
        samples = tf.transpose(samples, [0, 2, 1]) + self.mean_function(Xnew)
        return samples[0] if num_samples is None else samples

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
        variance = variance + self.predict_noise(Z)
        if self.sites is None:
            return mean, variance
        told = self.likelihood.predict_mean_and_var(Xnew, *_columns(mean, variance))
        return tf.transpose(told[0][..., 0]), tf.transpose(told[1][..., 0])

    @check_shapes("Z: [N, K]", "return: [N]")
    def predict_noise(self, Z: TensorType | None = None) -> FloatTensor:
        """Variance of the noise of each (latent) series, [N], times the mean of its scale, if any.

        Parameters
        ----------
        Z
            As for `predict_f`.
        """
        if not self._of_series.rescales:
            return tf.convert_to_tensor(self.noise_variance)

        def moments_of(series: tf.Tensor, z: FloatTensor) -> MeanAndVariance:
            mean = (self.expected_scales(series, z) * tf.gather(self.noise_variance, series))[
                :, None, None
            ]
            return mean, tf.zeros_like(mean)

        rows = self._weighted_rows(Z)
        mean, _ = average_over_rows(moments_of, rows, self.num_series)
        return mean[:, 0, 0]

    @check_shapes("series: [P]", "z: [P, K]", "return: [P]")
    def expected_scales(self, series: tf.Tensor, z: FloatTensor) -> FloatTensor:
        """Factors of the predictive variance of series given their z, [P]: see `likelihoods`."""
        V = self._covariances(self.component_covariances(self.data[0]), z, series)
        x = tf.gather(self.residuals(), series)
        if self.observations.mask is not None:
            V = mask_covariance(V, tf.gather(self.observations.mask, series))
        whitened = tf.linalg.triangular_solve(tf.linalg.cholesky(V), x[..., None])[..., 0]
        return self._expected_scales(tf.reduce_sum(tf.square(whitened), axis=-1), series)

    def _expected_scales(self, q: FloatTensor, series: tf.Tensor) -> FloatTensor:
        """`expected_scales` from the quadratic forms of the series, [P]."""
        num_observed = tf.gather(self.observations.counts, series)
        return evaluate_likelihood(self._of_series.predictive_scale, q, num_observed)

    @property
    def predictive_degrees(self) -> Floats:
        """Degrees of freedom of predictions, [N]; infinite for a Gaussian."""
        return np.asarray(self._of_series.predictive_degrees(self.observations.counts))

    @check_shapes("data[0]: [M, Q]", "data[1]: [M, N]", "Z: [N, K]", "return: [M, N]")
    def predict_log_density(
        self, data: RegressionData, *, Z: TensorType | None = None
    ) -> FloatTensor:
        """Log density [M, N] of each new observation, with mean and variance of `predict_y`.

        A Gaussian, or a Student-t where `predictive_degrees` are finite; of a likelihood of GPflow
        its own.
        """
        Xnew, Ynew = (to_default_float(part) for part in data)
        if self.sites is not None:
            mean, variance = self.predict_f(Xnew, Z=Z)
            columns = _columns(mean, variance + self.predict_noise(Z), Ynew)
            return tf.transpose(self.likelihood.predict_log_density(Xnew, *columns))
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
        r"""Mean and variance [K, M, N] of every component of every series.

        Means add up to that of `predict_f`, less the mean function.

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
        return average_over_rows(moments_of, rows, self.num_series)

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
        X, residuals = self.data[0], self.residuals()
        C = self.component_covariances(X)
        C_cross = self.component_covariances(X, Xnew)
        C_new = self.component_covariances(Xnew)
        if not full_cov:
            C_new = tf.linalg.diag_part(C_new)

        def moments_of(series: tf.Tensor, z: FloatTensor) -> MeanAndVariance:
            V = self._covariances(C, z, series)
            x = tf.gather(residuals, series)
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
            if not self._of_series.rescales:
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


def _columns(*tables: FloatTensor) -> list[FloatTensor]:
    """Tables [M, N] as GPflow's likelihoods take them, [N, M, 1]."""
    return [tf.transpose(each)[..., None] for each in tables]


# --- mixtures over rows of Z --------------------------------------------------------------------


def average_over_rows(
    moments_of: ConditionalMoments, rows: WeightedRows, num_series: int
) -> MeanAndVariance:
    """Moments of the mixtures of Gaussians that belong to the rows of each series.

    The matrices [D, D] of `PREDICTION_CHUNK` rows are held at a time.

    Returns
    -------
    Mean [N, G, M], and variance [N, G, M] or covariance [N, G, M, M].
    """
    count = tf.size(rows.series)
    size = tf.minimum(count, PREDICTION_CHUNK)
    padding = tf.math.floormod(-count, size)  # by rows of no weight
    series, weights = (tf.pad(part, [[0, padding]]) for part in (rows.series, rows.weights))
    z = tf.pad(rows.rows, [[0, padding], [0, 0]])
    chunks = tf.reshape(series, [-1, size]), tf.reshape(z, [-1, size, z.shape[1]])
    mean, variance = (
        tf.reshape(part, tf.concat([[-1], tf.shape(part)[2:]], 0))
        for part in tf.map_fn(
            lambda chunk: moments_of(*chunk), chunks, fn_output_signature=(z.dtype, z.dtype)
        )
    )
    if variance.shape.rank == mean.shape.rank:
        variance = tf.maximum(variance, 0.0)
    centre = _sum_by_series(weights, mean, series, num_series)
    # Squares around the mean: those of the values themselves lose all digits far from zero.
    around = variance + _square(mean - tf.gather(centre, series), variance)
    return centre, _sum_by_series(weights, around, series, num_series)


def _square(deviation: FloatTensor, like: FloatTensor) -> FloatTensor:
    """Squares [P, G, M], or products [P, G, M, M] if `like` has as many dimensions."""
    if like.shape.rank == deviation.shape.rank:
        return tf.square(deviation)
    return deviation[..., :, None] * deviation[..., None, :]


def beside(values: FloatTensor, like: FloatTensor) -> FloatTensor:
    """Values [P] with dimensions of one after them, to multiply a tensor [P, ...]."""
    return tf.reshape(
        values, tf.concat([tf.shape(values), tf.ones(tf.rank(like) - 1, tf.int32)], 0)
    )


def _sum_by_series(
    weights: FloatTensor, moment: FloatTensor, series: tf.Tensor, num_series: int
) -> FloatTensor:
    """Weighted sum of moments [P, ...] within each series, [N, ...]."""
    weighted = tf.einsum("p,p...->p...", weights, moment)
    return tf.math.unsorted_segment_sum(weighted, series, num_series)

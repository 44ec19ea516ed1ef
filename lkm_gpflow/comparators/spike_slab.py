"""The spike and slab multi-task Gaussian process of Titsias and Lázaro-Gredilla.

References
----------
Titsias and Lázaro-Gredilla 2011, *Spike and Slab Variational Inference for Multi-Task and Multiple
Kernel Learning*, NIPS 24.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import gpflow
import numpy as np
import pandas as pd
import tensorflow as tf
import tensorflow_probability as tfp
from check_shapes import check_shapes
from gpflow.base import AnyNDArray, MeanAndVariance, RegressionData, TensorType
from gpflow.kernels import Kernel
from gpflow.utilities import positive, to_default_float

from ..data.tables import Table
from ..fit.initialization import typical_step
from ..gp.types import LOG_2PI, FloatTensor
from ..model.model_data import checked_kernels
from ..runtime.text import whole_number
from .lbfgs import MultiStart
from .mean_field import MeanFieldModel
from .protocol import ScaledForecast
from .stacked import NOISE_FLOOR

_MIN_PROBABILITY = 1e-9
_TINY = 1e-12


@dataclass(frozen=True)
class LatentPosterior:
    """The optimal q(phi) on the inputs of the data, see `SpikeSlabGP.latent_posterior`."""

    K: FloatTensor  # prior covariances, [M, D, D]
    alpha: FloatTensor  # K^-1 times the means, [M, D]
    root: FloatTensor  # square roots of the precisions a_m that the data add, [M, D]
    L: FloatTensor  # cholesky factors of I + diag(root) K diag(root), [M, D, D]

    @property
    def mean(self) -> FloatTensor:
        """Means, [M, D]."""
        return tf.linalg.matvec(self.K, self.alpha)

    @property
    def covariance(self) -> FloatTensor:
        """Covariances, [M, D, D]."""
        whitened = self.whiten(self.K)
        return self.K - tf.matmul(whitened, whitened, transpose_a=True)

    @property
    def variance(self) -> FloatTensor:
        """Variances, [M, D]."""
        reduction = tf.reduce_sum(tf.square(self.whiten(self.K)), axis=1)
        return tf.maximum(tf.linalg.diag_part(self.K) - reduction, 0.0)

    def whiten(self, cross: FloatTensor) -> FloatTensor:
        """``L^-1 diag(root) C`` of cross covariances C, [M, D, T]."""
        return tf.linalg.triangular_solve(self.L, self.root[..., None] * cross)


class SpikeSlabGP(MeanFieldModel):
    r"""Series that are sparse sums of latent Gaussian processes.

    .. math::
        y_n(x) &= \sum_m s_{nm} w_{nm} \phi_m(x) + \epsilon_n, \qquad
            \epsilon_n \sim \mathcal{N}(0, \sigma_n^2) \\
        \phi_m &\sim \mathcal{GP}(0, k_m), \quad w_{nm} \sim \mathcal{N}(0, \sigma_w^2), \quad
            s_{nm} \sim \mathrm{Bernoulli}(\pi)

    Source: Titsias and Lázaro-Gredilla 2011.  The posterior is their paired mean field,

    .. math::
        q = \prod_m q(\phi_m) \prod_{nm} q(s_{nm}) q(w_{nm} \mid s_{nm}), \qquad
        q(s = 1) = \gamma, \quad q(w \mid s = 1) = \mathcal{N}(\mu, v), \quad
        q(w \mid s = 0) = \mathcal{N}(0, \sigma_w^2).

    q(phi) is not stored: given the other factors its optimum has a closed form, in which the bound
    is evaluated.  So `elbo` is a function of the parameters below alone, all of which may be learnt
    by gradients; `update_weights` and `update_hyperparameters` are the closed-form steps of the EM
    algorithm, and never lower the bound.  Where the paper updates one q(phi_m) after the other,
    here the means of all are optimised jointly.

    Parameters
    ----------
    data
        ``(X, Y)``: inputs [D, Q] and observations [D, N].  NaN in Y is a missing observation.
    kernels
        k_m, any M GPflow kernels.  Their variances are redundant beside `slab_variance`.
    slab_variance, inclusion
        sigma_w^2 and pi.
    noise_variance
        sigma_n^2, a number or an array [N], above 1e-5.
    seed
        Of the first means of the weights, see `draw_weights`.

    Attributes
    ----------
    switch_logits
        logit(gamma) of q(s), a parameter [N, M].
    weight_mean
        mu, the mean of q(w | s = 1), a parameter [N, M].
    weight_variance
        v, its variance, a parameter [N, M].
    """

    def __init__(
        self,
        data: RegressionData,
        kernels: Sequence[Kernel],
        *,
        slab_variance: float = 1.0,
        inclusion: float = 0.5,
        noise_variance: float | AnyNDArray = 0.1,
        seed: int = 0,
    ) -> None:
        super().__init__(data, noise_variance, noise_base="exp")
        self.kernels = checked_kernels(kernels, num_inputs=self.data[0].shape[1])
        if not slab_variance > 0.0:
            raise ValueError(f"slab_variance: expected a positive number, got {slab_variance}")
        if not _MIN_PROBABILITY < inclusion < 1.0 - _MIN_PROBABILITY:
            raise ValueError(f"inclusion: expected a number between 0 and 1, got {inclusion}")
        self.slab_variance = gpflow.Parameter(slab_variance, transform=positive(base="exp"))
        probability = tfp.bijectors.Sigmoid(
            to_default_float(_MIN_PROBABILITY), to_default_float(1.0 - _MIN_PROBABILITY)
        )
        self.inclusion = gpflow.Parameter(inclusion, transform=probability)
        shape = (self.num_series, len(self.kernels))
        self.switch_logits = gpflow.Parameter(np.zeros(shape))
        self.weight_mean = gpflow.Parameter(np.zeros(shape))
        self.weight_variance = gpflow.Parameter(np.ones(shape), transform=positive(base="exp"))
        self.draw_weights(np.random.default_rng(seed))

    def draw_weights(self, rng: np.random.Generator) -> None:
        """Start anew: means of the weights from the slab, switches as likely as a priori."""
        shape = self.weight_mean.shape
        slab = float(self.slab_variance.numpy())
        inclusion = float(self.inclusion.numpy())
        self.weight_mean.assign(np.sqrt(slab) * rng.normal(size=shape))
        self.weight_variance.assign(np.full(shape, 0.1 * slab))
        self.switch_logits.assign(np.full(shape, np.log(inclusion / (1.0 - inclusion))))

    def switch_off(self, m: int) -> None:
        """Make latent function m improbable in every series, as a start for further learning."""
        logits = self.switch_logits.numpy()
        logits[:, m] = -10.0
        self.switch_logits.assign(logits)

    # --- learning -------------------------------------------------------------------------------

    @check_shapes("return: []")
    def elbo(self) -> FloatTensor:
        r"""Evidence lower bound, at the best q(phi) for this q(w, s).

        .. math::
            \sum_n E_q \log p(y_n \mid \cdot)
            - \tfrac12 \sum_m \big(\alpha_m^\top K_m \alpha_m + \log|I + A_m K_m|\big)
            - \mathrm{KL}(q(w, s) \,\|\, p(w, s))

        with the expectation at the means K_m alpha_m: what the covariances of q(phi) add to it
        cancels against their divergence.  It is a lower bound for any alpha and at its maximum over
        alpha, so alpha needs no gradient.
        """
        latent = self.latent_posterior()
        noise = self.noise_variance[:, None]
        squared_error = self._squared_error(latent.mean)
        fit = -0.5 * self._mask * (LOG_2PI + tf.math.log(noise) + squared_error / noise)
        log_determinants = 2.0 * tf.math.log(tf.linalg.diag_part(latent.L))
        latent_cost = 0.5 * tf.reduce_sum(latent.alpha * latent.mean + log_determinants)
        return tf.reduce_sum(fit) - latent_cost - self._weight_divergence()

    def latent_posterior(self) -> LatentPosterior:
        r"""q(phi) at its optimum given q(w, s), Gaussians.

        .. math::
            \Sigma_m = (K_m^{-1} + A_m)^{-1}, \qquad
            A_m = \mathrm{diag}_d \sum_n E[s_{nm} w_{nm}^2] / \sigma_n^2

        over the observed n at every point d.  The means of all m solve ``(K^-1 + P) mean = b``
        jointly: P is A between equal m, and has ``E[sw_nm] E[sw_nl] / sigma_n^2`` otherwise.
        """
        first, second = self._weight_moments()
        K = self.latent_covariances(self.data[0])
        precision = self._mask / self.noise_variance[:, None]
        A = tf.matmul(second, precision, transpose_a=True)
        # The square root has no derivative at zero, where nothing is known of phi_m.
        root = tf.sqrt(tf.maximum(A, _TINY))
        eye = tf.eye(tf.shape(K)[-1], dtype=K.dtype)
        L = tf.linalg.cholesky(eye + root[:, :, None] * K * root[:, None, :])
        P = tf.einsum("nm,nl,nd->dml", first, first, precision)
        P = tf.linalg.set_diag(P, tf.transpose(A))
        b = tf.matmul(first, precision * self._Y, transpose_a=True)
        return LatentPosterior(K, tf.stop_gradient(_representers(K, P, b)), root, L)

    @check_shapes("X: [D, Q]", "X2: [T, Q]", "return: [M, D, .]")
    def latent_covariances(self, X: TensorType, X2: TensorType | None = None) -> FloatTensor:
        """Prior covariances of the latent functions between X and X2 (or X)."""
        return tf.stack([kernel(X, X2) for kernel in self.kernels])

    def update_weights(self) -> None:
        r"""Update q(w_nm, s_nm) for one m after the other, given q(phi).

        .. math::
            1 / v &= 1 / \sigma_w^2 + \sum_d E[\phi_{md}^2] / \sigma_n^2, \qquad
            \mu = v \sum_d E[\phi_{md}] \big(y_{nd} - \sum_{l \neq m} E[s w_{nl}]
                E[\phi_{ld}]\big) / \sigma_n^2 \\
            \mathrm{logit}\, \gamma &= \mathrm{logit}\, \pi
                + \tfrac12 \log(v / \sigma_w^2) + \tfrac12 \mu^2 / v
        """
        latent = self.latent_posterior()
        phi, second = latent.mean, tf.square(latent.mean) + latent.variance
        precision = self._mask / self.noise_variance[:, None]
        v = 1.0 / (1.0 / self.slab_variance + tf.matmul(precision, second, transpose_b=True))
        target = tf.matmul(precision * self._Y, phi, transpose_b=True)
        overlap = tf.einsum("md,ld,nd->nml", phi, phi, precision)
        overlap = tf.linalg.set_diag(overlap, tf.zeros_like(v))
        prior_logit = tf.math.log(self.inclusion) - tf.math.log1p(-self.inclusion)
        offset = prior_logit + 0.5 * tf.math.log(v / self.slab_variance)
        weights = tf.unstack(self._weight_moments()[0], axis=1)
        logits, means = [], []
        for m in range(len(self.kernels)):
            others = tf.linalg.matvec(overlap[:, m, None, :], tf.stack(weights, axis=1))[:, 0]
            means.append(v[:, m] * (target[:, m] - others))
            logits.append(offset[:, m] + 0.5 * tf.square(means[m]) / v[:, m])
            weights[m] = tf.sigmoid(logits[m]) * means[m]
        self.weight_variance.assign(v)
        self.weight_mean.assign(tf.stack(means, axis=1))
        self.switch_logits.assign(tf.stack(logits, axis=1))

    def update_hyperparameters(self) -> None:
        """Set noise variances, slab variance and inclusion, if trainable, to their optima."""
        _, second = self._weight_moments()
        latent = self.latent_posterior()
        squared_error = self._squared_error(latent.mean) + tf.matmul(second, latent.variance)
        noise = tf.reduce_sum(self._mask * squared_error, 1) / tf.reduce_sum(self._mask, 1)
        gamma = tf.sigmoid(self.switch_logits)
        least = 2.0 * _MIN_PROBABILITY
        inclusion = tf.clip_by_value(tf.reduce_mean(gamma), least, 1.0 - least)
        # Where every switch is off, the slab is free.
        slab = (tf.reduce_sum(second) + _TINY) / (tf.reduce_sum(gamma) + _TINY)
        for parameter, value in (
            (self.noise_variance, tf.maximum(noise, 1.0001 * NOISE_FLOOR)),
            (self.slab_variance, slab),
            (self.inclusion, inclusion),
        ):
            if parameter.trainable:
                parameter.assign(value)

    def _weight_moments(self) -> tuple[FloatTensor, FloatTensor]:
        """E[s w] and E[s w^2], [N, M] each."""
        gamma = tf.sigmoid(self.switch_logits)
        first = gamma * self.weight_mean
        return first, gamma * (self.weight_variance + tf.square(self.weight_mean))

    def _squared_error(self, phi: FloatTensor) -> FloatTensor:
        """Expected squared error of the series, [N, D], if the latent functions were phi [M, D]."""
        first, second = self._weight_moments()
        excess = tf.matmul(second - tf.square(first), tf.square(phi))
        return tf.square(self._Y - tf.matmul(first, phi)) + excess

    def _weight_divergence(self) -> FloatTensor:
        """KL(q(w, s) || p(w, s)), a scalar."""
        logits = tf.convert_to_tensor(self.switch_logits)
        gamma, off = tf.sigmoid(logits), tf.sigmoid(-logits)
        ratio = self.weight_variance / self.slab_variance
        slab = ratio + tf.square(self.weight_mean) / self.slab_variance - 1.0 - tf.math.log(ratio)
        is_on = tf.math.log_sigmoid(logits) - tf.math.log(self.inclusion)
        is_off = tf.math.log_sigmoid(-logits) - tf.math.log1p(-self.inclusion)
        return tf.reduce_sum(gamma * (is_on + 0.5 * slab) + off * is_off)

    # --- what was found -------------------------------------------------------------------------

    @check_shapes("return: [N, M]")
    def probabilities(self) -> FloatTensor:
        """Posterior probabilities that series n uses latent function m, [N, M]."""
        return tf.sigmoid(self.switch_logits)

    @check_shapes("Xnew: [T, Q]", "return[0]: [M, T]", "return[1]: [M, T]")
    def predict_latent(self, Xnew: TensorType) -> MeanAndVariance:
        """Mean and variance of the latent functions under q, [M, T] each."""
        Xnew = to_default_float(Xnew)
        latent = self.latent_posterior()
        cross = self.latent_covariances(self.data[0], Xnew)
        mean = tf.linalg.matvec(cross, latent.alpha, transpose_a=True)
        prior = tf.stack([kernel(Xnew, full_cov=False) for kernel in self.kernels])
        reduction = tf.reduce_sum(tf.square(latent.whiten(cross)), axis=1)
        return mean, tf.maximum(prior - reduction, 0.0)

    def predict_signals(self, Xnew: FloatTensor) -> MeanAndVariance:
        """Mean and variance of the series without noise under q, [N, T] each."""
        mean, variance = self.predict_latent(Xnew)
        first, second = self._weight_moments()
        total = tf.matmul(second, tf.square(mean) + variance)
        total -= tf.matmul(tf.square(first), tf.square(mean))
        return tf.matmul(first, mean), total


@check_shapes("K: [M, D, D]", "P: [D, M, M]", "b: [M, D]", "return: [M, D]")
def _representers(K: FloatTensor, P: FloatTensor, b: FloatTensor) -> FloatTensor:
    """``alpha = K^-1 (K^-1 + P)^-1 b = b - R (I + R' K R)^-1 R' K b`` where ``P = R R'``.

    K is block-diagonal over latent functions, P and R over points.
    """
    num_latent, num_points = b.shape
    size = _TINY * tf.reduce_max(tf.linalg.diag_part(P)) + _TINY
    R = tf.linalg.cholesky(P + size * tf.eye(num_latent, dtype=P.dtype))
    # R' K R, with a matrix product for every point e: by einsum the bound takes twice as long.
    left = tf.transpose(K, [2, 1, 0])[:, :, None, :] * tf.linalg.matrix_transpose(R)
    inner = tf.matmul(tf.reshape(left, [num_points, -1, num_latent]), R)
    inner = tf.reshape(tf.transpose(inner, [1, 0, 2]), [num_points * num_latent] * 2)
    L = tf.linalg.cholesky(inner + tf.eye(num_points * num_latent, dtype=P.dtype))
    projected = tf.einsum("dmi,md->di", R, tf.linalg.matvec(K, b))
    solved = tf.linalg.cholesky_solve(L, tf.reshape(projected, [-1, 1]))
    return b - tf.einsum("dmi,di->md", R, tf.reshape(solved, [num_points, num_latent]))


# --- the comparator -------------------------------------------------------------------------------


@dataclass(frozen=True)
class SpikeSlab:
    """Forecasts of `SpikeSlabGP`, learnt by EM and L-BFGS from several random starts.

    The latent functions have squared exponential kernels, as in the paper, of unit variance and
    lengthscales that start spread between two steps and the span of the data.  Switches prune the
    ones that a series does not need.
    """

    num_latent: int = 6  #: How many latent functions
    starts: int = 6  #: How many random starts
    #: EM sweeps (`SpikeSlabGP.update_weights` and `update_hyperparameters`) at every start, and
    #: after the last run of L-BFGS.
    sweeps: int = 10
    #: See `MultiStart.best_of`.
    short: int = 30
    keep: int = 2
    max_iterations: int = 150

    def __post_init__(self) -> None:
        whole_number(self.num_latent, "latent functions", 1)

    def fit(self, train: pd.DataFrame, *, seed: int) -> ScaledForecast:
        """Learn from the table; see `Comparator.fit`."""
        table = Table.of(train)
        model = self.learn(table.observations.table, seed=seed)
        return ScaledForecast(table, model.predict_at)

    def learn(self, data: RegressionData, *, seed: int) -> SpikeSlabGP:
        """Return the model learnt from scaled data, X [D, 1] and Y [D, N] with NaN for missing."""
        X, Y = data
        kernels = [gpflow.kernels.SquaredExponential() for _ in range(self.num_latent)]
        for kernel in kernels:
            gpflow.set_trainable(kernel.variance, False)
        model = SpikeSlabGP((X, Y), kernels)
        shortest = 2.0 * typical_step(X[:, 0])
        rng = np.random.default_rng(seed)

        def start() -> None:
            # One lengthscale in each of M equal parts of the logarithmic range.
            places = (np.arange(len(kernels)) + rng.uniform(size=len(kernels))) / len(kernels)
            for kernel, place in zip(kernels, rng.permutation(places), strict=True):
                kernel.lengthscales.assign(shortest ** (1.0 - place))
            model.slab_variance.assign(1.0)
            model.inclusion.assign(0.5)
            model.noise_variance.assign(np.full(model.num_series, 0.1))
            model.draw_weights(rng)
            sweep()

        def sweep() -> None:
            for _ in range(self.sweeps):
                model.update_weights()
                model.update_hyperparameters()

        learner = MultiStart(model)
        best = learner.best_of(
            [start] * self.starts,
            short=self.short,
            keep=self.keep,
            max_iterations=self.max_iterations,
        )
        # A function that nobody needs may end as zero with free weights, and its switches, as
        # likely as a priori, raise the inclusion of all others.
        for m in range(len(kernels)):
            model.switch_off(m)
            sweep()
            without = learner.run(self.short)
            best = min(best, without, key=lambda optimum: optimum.loss)
            learner.values = best.values
        learner.run(self.max_iterations)
        sweep()
        return model

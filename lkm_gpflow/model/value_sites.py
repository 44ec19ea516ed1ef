r"""Series whose values are counts, shares or have outliers: a site for every value.

.. math:: \log p(y \mid z) \ge \log \mathcal{N}(\tilde y \mid m, V_z + S)
   + \sum_d E_{q(f_d)}[\log p(y_d \mid f_d) - \log \mathcal{N}(\tilde y_d \mid f_d, s_d)], \qquad
   q(f) \propto p(f \mid z)\, \mathcal{N}(\tilde y \mid f, S)

holds for any sites, at every z; at the best ones it is the bound of `gpflow.models.VGP`, or a
little lower if a log density bends upwards, where the best precision would be negative.  Source:
Adam, Chang, Khan and Solin 2021, *Dual parameterization of sparse variational Gaussian processes*.
"""

from __future__ import annotations

import gpflow
import numpy as np
import tensorflow as tf
from check_shapes import check_shapes
from gpflow.base import AnyNDArray, MeanAndVariance
from gpflow.utilities import positive

from ..gp.likelihoods import FromGPflow
from ..gp.types import LOG_2PI, FloatTensor

_LEAST = 1e-6
"""Precision of a site that says nothing."""


class ValueSites(gpflow.base.Module):
    r"""Sites of N series under one likelihood.

    Parameters
    ----------
    likelihood
        One of ``gpflow.likelihoods``, of one latent function and one value.
    X
        Inputs [D, Q].
    Y
        Values [D, N]; NaN is missing.

    Attributes
    ----------
    linear, precision
        :math:`\tilde y / s` and :math:`1 / s`, parameters [N, D].

    Raises
    ------
    ValueError
        If the likelihood is of several latent functions, or gives a value no density.
    """

    def __init__(
        self, likelihood: gpflow.likelihoods.Likelihood, X: AnyNDArray, Y: AnyNDArray
    ) -> None:
        super().__init__()
        if likelihood.latent_dim not in (None, 1):
            raise ValueError(
                f"likelihood: expected one of a single latent function, got {likelihood!r} of "
                f"{likelihood.latent_dim}"
            )
        self.likelihood, self.X = likelihood, X
        self.seen = np.isfinite(Y.T)
        first = [y[np.isfinite(y)][0] for y in Y.T]  # which has a density
        self.y = np.where(self.seen, Y.T, np.reshape(first, (-1, 1)))
        guess = np.array([FromGPflow(likelihood).guess(y) for y in self.y])
        mean = 0.5 * (guess + guess.mean(axis=1, keepdims=True))
        begin = tf.constant(mean), tf.fill(mean.shape, np.float64(0.5))
        linear, precision = self.best(*begin)
        if not np.all(has := np.isfinite(linear + self.expected(*begin))):
            n, d = np.argwhere(~has)[0]
            raise ValueError(
                f"data: expected values with a density under {type(likelihood).__name__}, got "
                f"{self.y[n, d]:g} in row {d}, column {n}"
            )
        self.linear = gpflow.Parameter(linear)
        self.precision = gpflow.Parameter(precision, transform=positive(lower=_LEAST))

    @property
    def values(self) -> FloatTensor:
        """Pseudo-observations, [N, D]."""
        return self.linear / self.precision

    @property
    def variances(self) -> FloatTensor:
        """Their variances, [N, D]."""
        return 1.0 / self.precision

    def expected(self, mean: FloatTensor, variance: FloatTensor) -> FloatTensor:
        """Expected log densities of the values, [..., N, D], zero where missing."""
        found = self.likelihood.variational_expectations(
            self.X, mean[..., None], variance[..., None], self.y[..., None]
        )
        return tf.where(self.seen, found, tf.zeros_like(found))

    @check_shapes("V: [batch..., N, D, D]", "r: [N, D]")
    def marginals(self, V: FloatTensor, r: FloatTensor) -> MeanAndVariance:
        """Mean and variance of f at the values, [..., N, D], from V + S and values less the mean.

        At missing values they are those of the sites.
        """
        L = tf.linalg.cholesky(V)
        b = tf.linalg.cholesky_solve(L, tf.broadcast_to(r, tf.shape(V)[:-1])[..., None])[..., 0]
        inverse = tf.linalg.triangular_solve(L, tf.eye(tf.shape(V)[-1], dtype=V.dtype))
        s = self.variances
        variance = s - tf.square(s) * tf.reduce_sum(tf.square(inverse), axis=-2)
        variance = tf.where(self.seen, tf.maximum(variance, 1e-12), tf.ones_like(variance))
        return self.values - s * b, variance

    @check_shapes("V: [batch..., N, D, D]", "r: [N, D]", "return: [batch..., N]")
    def gain(self, V: FloatTensor, r: FloatTensor) -> FloatTensor:
        """Expected log densities of the values less those of the sites: the sum of the bound."""
        mean, variance = self.marginals(V, r)
        s, error = self.variances, self.values - mean
        of_sites = -0.5 * (LOG_2PI + tf.math.log(s) + (tf.square(error) + variance) / s)
        gain = self.expected(mean, variance) - of_sites
        return tf.reduce_sum(tf.where(self.seen, gain, tf.zeros_like(gain)), axis=-1)

    def best(self, mean: FloatTensor, variance: FloatTensor) -> tuple[FloatTensor, FloatTensor]:
        """Natural parameters [N, D] to which a natural gradient leads from these marginals."""
        with tf.GradientTape() as tape:
            tape.watch((mean, variance))
            expected = self.expected(mean, variance)
        by_mean, by_variance = tape.gradient(expected, (mean, variance))
        precision = tf.maximum(-2.0 * by_variance, 2.0 * _LEAST)
        return by_mean + precision * mean, precision

    def move(self, mean: FloatTensor, variance: FloatTensor, rate: float) -> None:
        """Go a share of the way to the `best` ones."""
        linear, precision = self.best(mean, variance)
        self.linear.assign(self.linear + rate * (linear - self.linear))
        self.precision.assign(self.precision + rate * (precision - self.precision))

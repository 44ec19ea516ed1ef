"""Gaussian process regression networks: latent functions mixed by weights that change in time.

Wilson, Knowles and Ghahramani, *Gaussian process regression networks*, ICML 2012, with the
mean-field variational inference of Nguyen and Bonilla, *Efficient variational inference for
Gaussian process regression networks*, AISTATS 2013.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import gpflow
import numpy as np
import pandas as pd
import tensorflow as tf
from check_shapes import check_shapes
from gpflow.base import AnyNDArray, Parameter, RegressionData
from gpflow.kernels import Kernel, SquaredExponential
from gpflow.utilities import positive, set_trainable

from ..data.observations import Observations
from ..data.tables import Table
from ..fit.initialization import log_uniform, typical_step
from ..gp.types import LOG_2PI, FloatTensor
from ..model.model_data import checked_kernels
from .lbfgs import MultiStart
from .mean_field import MeanFieldModel
from .protocol import ScaledForecast


class NetworkMoments(NamedTuple):
    """Means and variances of functions at some inputs, [..., M] each."""

    mean: FloatTensor
    variance: FloatTensor

    @property
    def second(self) -> FloatTensor:
        """E[u^2], [..., M]."""
        return tf.square(self.mean) + self.variance


@dataclass(frozen=True)
class SiteFactor:
    r"""Gaussian posteriors of functions that share a prior, by their sites on the grid.

    .. math:: q(u) \propto \mathcal{N}(u \mid 0, K) \prod_i \exp(b_i u_i - \lambda_i u_i^2 / 2),
       \qquad S = (K^{-1} + \Lambda)^{-1}, \quad m = S b

    Every optimal factor of the mean field has this form, so that 2 D numbers describe a full
    Gaussian (Nguyen and Bonilla 2013).  Nothing here needs the inverse of K, or a jitter.
    """

    # lambda and b, [..., D]; both zero where nothing is observed.
    precision: FloatTensor
    linear: FloatTensor
    moments: NetworkMoments  # m and the diagonal of S, [..., D] each
    log_determinant: FloatTensor  # log|I + K Lambda|, [...]

    @classmethod
    @check_shapes("K: [D, D]", "precision: [batch..., D]", "linear: [batch..., D]")
    def of(cls, K: FloatTensor, precision: FloatTensor, linear: FloatTensor) -> SiteFactor:
        """Multiply priors of covariance K, [D, D], with sites, [..., D]."""
        mean, variance, log_determinant = _site_posterior(K, precision, linear)
        return cls(precision, linear, NetworkMoments(mean, variance), log_determinant)

    @property
    def divergence(self) -> FloatTensor:
        """KL[q(u) || p(u)], [...]: the mean log of the sites less the log of their integral."""
        mean, second = self.moments.mean, self.moments.second
        # (b'm - log|I + K Lambda|) / 2 is the log of E_p[prod_i exp(b_i u_i - lambda_i u_i^2/2)].
        return 0.5 * (
            tf.reduce_sum(self.linear * mean - self.precision * second, axis=-1)
            + self.log_determinant
        )

    @check_shapes("X: [D, Q]", "Xnew: [M, Q]")
    def predict(self, kernel: Kernel, X: FloatTensor, Xnew: FloatTensor) -> NetworkMoments:
        """Moments at new inputs, [..., M], given the prior's kernel and the grid."""
        cross = kernel(X, Xnew)
        root = tf.sqrt(self.precision)[..., None]
        whitened = tf.linalg.triangular_solve(_cholesky(kernel(X), root), root * cross)
        # K^-1 m = b - Lambda m, from S^-1 m = b.
        weights = self.linear - self.precision * self.moments.mean
        return NetworkMoments(
            tf.linalg.matvec(cross, weights, transpose_a=True),
            kernel(Xnew, full_cov=False) - tf.reduce_sum(tf.square(whitened), axis=-2),
        )


def _cholesky(K: FloatTensor, root: FloatTensor) -> FloatTensor:
    """Cholesky factor of I + sqrt(Lambda) K sqrt(Lambda): no eigenvalue is below one."""
    identity = tf.eye(tf.shape(K)[-1], dtype=K.dtype)
    return tf.linalg.cholesky(identity + root * K * tf.linalg.matrix_transpose(root))


@tf.custom_gradient
def _site_posterior(
    K: FloatTensor, precision: FloatTensor, linear: FloatTensor
) -> tuple[tuple[FloatTensor, ...], Callable[..., tuple[FloatTensor, ...]]]:
    """Mean, variance and log determinant of `SiteFactor`, with their analytic gradients.

    With T = S K^-1 = I - S Lambda:  dS = T dK T' - S dLambda S,  dm = dS b + S db  and
    d log|I + K Lambda| = tr(Lambda T dK) + tr(S dLambda).
    """
    root = tf.sqrt(precision)[..., None]
    L = _cholesky(K, root)
    A = tf.linalg.triangular_solve(L, root * K)
    S = K - tf.matmul(A, A, transpose_a=True)
    mean, variance = tf.linalg.matvec(S, linear), tf.linalg.diag_part(S)
    log_determinant = 2.0 * tf.reduce_sum(tf.math.log(tf.linalg.diag_part(L)), axis=-1)

    def gradient(
        d_mean: FloatTensor, d_variance: FloatTensor, d_log: FloatTensor
    ) -> tuple[FloatTensor, ...]:
        size = tf.shape(K)[-1]
        T = tf.eye(size, dtype=K.dtype) - S * precision[..., None, :]
        S_mean = tf.linalg.matvec(S, d_mean)
        d_log = d_log[..., None]

        def sum_of_products(left: FloatTensor, right: FloatTensor) -> FloatTensor:
            """Sum of left_f' right_f over the factors f, as one matrix product."""
            left, right = (tf.reshape(part, [-1, size]) for part in (left, right))
            return tf.matmul(left, right, transpose_a=True)

        scaled_T = T * (d_log * precision)[..., None]
        d_K = (
            sum_of_products(T, T * d_variance[..., None])
            + sum_of_products(d_mean - precision * S_mean, linear - precision * mean)
            + tf.reduce_sum(tf.reshape(scaled_T, [-1, size, size]), axis=0)
        )
        d_precision = d_log * variance - S_mean * mean - tf.linalg.matvec(tf.square(S), d_variance)
        return d_K, d_precision, S_mean

    return (mean, variance, log_determinant), gradient


class GPRN(MeanFieldModel):
    r"""Gaussian process regression network: nodes, mixed by weights that are processes too.

    .. math::
        f_k &\sim \mathcal{GP}(0, k_{f_k}), \qquad W_{nk} \sim \mathcal{GP}(0, k_W) \\
        y_n(x) &\sim \mathcal{N}\Big(\sum_k W_{nk}(x) f_k(x), \sigma_n^2\Big)

    Sources: Wilson et al. 2012, section 3; mean field :math:`q = \prod_k q(f_k) \prod_{nk}
    q(W_{nk})`, each factor a full Gaussian over the inputs: Nguyen and Bonilla 2013.

    Parameters
    ----------
    data
        ``(X, Y)``: inputs [D, Q] and observations [D, N].  NaN in Y is a missing observation.
    node_kernels
        Kernels of the K nodes.  The node noise sigma_f^2 of the papers is a ``White`` term in them.
    weight_kernel
        The kernel that all N K weights share.  Only products of a weight and a node matter: fix
        the variance of one of the two.
    noise_variance
        sigma_n^2, a number or an array [N], above 1e-5; a trainable parameter [N].

    Attributes
    ----------
    node_mean
        Means of the nodes from which the posterior starts, a parameter [K, D].
    node_variance
        Their variances, a parameter [K, D].
    weight_mean
        Means of the weights from which it starts, a parameter [K, N, D].

    Notes
    -----
    `posterior` is what one sweep of closed-form coordinate updates makes of the moments in the
    attributes, and the objective is its bound.  The papers alternate sweeps (here `update`) with
    steps on the hyperparameters; this bound may be climbed on hyperparameters and moments at once,
    which has the same fixed points and is much faster where the noise is small.
    """

    def __init__(
        self,
        data: RegressionData,
        node_kernels: Sequence[Kernel],
        weight_kernel: Kernel,
        *,
        noise_variance: float | AnyNDArray = 0.1,
    ) -> None:
        super().__init__(data, noise_variance, noise_base=None)
        num_inputs, Q = self.data[0].shape
        self.node_kernels = checked_kernels(node_kernels, num_inputs=Q)
        (self.weight_kernel,) = checked_kernels([weight_kernel], num_inputs=Q)
        nodes = (len(self.node_kernels), num_inputs)
        self.node_mean = Parameter(np.ones(nodes))
        self.node_variance = Parameter(np.ones(nodes), transform=positive(base="exp"))
        self.weight_mean = Parameter(np.zeros((nodes[0], self.num_series, num_inputs)))

    # --- learning -------------------------------------------------------------------------------

    @check_shapes("return: []")
    def elbo(self) -> FloatTensor:
        """Evidence lower bound of `posterior`, in closed form."""
        return self._bound(*self.posterior())

    def update(self) -> FloatTensor:
        """Move the moments to those of `posterior`; returns its bound, which never falls."""
        nodes, weights = self.posterior()
        bound = self._bound(nodes, weights)
        self.node_mean.assign(tf.stack([node.moments.mean for node in nodes]))
        self.node_variance.assign(tf.stack([node.moments.variance for node in nodes]))
        self.weight_mean.assign(tf.stack([weight.moments.mean for weight in weights]))
        return bound

    def posterior(self) -> tuple[list[SiteFactor], list[SiteFactor]]:
        """Sweep once through the updates: for every node its weights, then the node itself.

        Returns for each node q(f_k), sites [D], and q(W_nk) of all series, sites [N, D].
        """
        nodes, weights = [], []
        signals = list(tf.unstack(self.weight_mean * self.node_mean[:, None, :]))
        for k in range(len(self.node_kernels)):
            others = [signal for j, signal in enumerate(signals) if j != k]
            residual = self._Y - sum(others, start=tf.zeros_like(self._Y))
            start = NetworkMoments(self.node_mean[k], self.node_variance[k])
            weights.append(self.weight_factor(start, residual))
            nodes.append(self.node_factor(k, weights[k].moments, residual))
            signals[k] = weights[k].moments.mean * nodes[k].moments.mean
        return nodes, weights

    @check_shapes("node[all]: [D]", "residual: [N, D]")
    def weight_factor(self, node: NetworkMoments, residual: FloatTensor) -> SiteFactor:
        """Return the optimal q(W_nk), sites [N, D], given the moments of node k, [D].

        The residual is what the mean products of all other nodes with their weights leave, [N, D].
        """
        precision = self._mask / self.noise_variance[:, None]
        return SiteFactor.of(
            self.weight_kernel(self.data[0]),
            precision * node.second,
            precision * residual * node.mean,
        )

    @check_shapes("weight[all]: [N, D]", "residual: [N, D]")
    def node_factor(self, k: int, weight: NetworkMoments, residual: FloatTensor) -> SiteFactor:
        """Return the optimal q(f_k), sites [D], given the moments of its weights, [N, D]."""
        precision = self._mask / self.noise_variance[:, None]
        return SiteFactor.of(
            self.node_kernels[k](self.data[0]),
            tf.reduce_sum(precision * weight.second, axis=0),
            tf.reduce_sum(precision * residual * weight.mean, axis=0),
        )

    def expected_log_likelihood(
        self, nodes: Sequence[NetworkMoments], weights: Sequence[NetworkMoments]
    ) -> FloatTensor:
        """E_q[log p(y | f, W)] over the observed cells; moments of K nodes and their weights."""
        mean, variance = _sum_of_products(nodes, weights)
        noise = self.noise_variance[:, None]
        cells = LOG_2PI + tf.math.log(noise) + (tf.square(self._Y - mean) + variance) / noise
        return -0.5 * tf.reduce_sum(self._mask * cells)

    def _bound(self, nodes: Sequence[SiteFactor], weights: Sequence[SiteFactor]) -> FloatTensor:
        divergences = [tf.reduce_sum(factor.divergence) for factor in (*nodes, *weights)]
        moments = ([factor.moments for factor in factors] for factors in (nodes, weights))
        return self.expected_log_likelihood(*moments) - tf.add_n(divergences)

    # --- prediction -----------------------------------------------------------------------------

    def predict_signals(self, Xnew: FloatTensor) -> NetworkMoments:
        """Exact mean and variance, [N, M] each, of sum_k W_nk f_k under the posterior."""
        X, (nodes, weights) = self.data[0], self.posterior()
        return _sum_of_products(
            [
                node.predict(kernel, X, Xnew)
                for node, kernel in zip(nodes, self.node_kernels, strict=True)
            ],
            [weight.predict(self.weight_kernel, X, Xnew) for weight in weights],
        )


def _sum_of_products(
    nodes: Sequence[NetworkMoments], weights: Sequence[NetworkMoments]
) -> NetworkMoments:
    """Moments of sum_k W_nk f_k for independent W and f, [N, M]."""
    pairs = list(zip(nodes, weights, strict=True))
    return NetworkMoments(
        tf.add_n([w.mean * f.mean for f, w in pairs]),
        tf.add_n([tf.square(w.mean) * f.variance + w.variance * f.second for f, w in pairs]),
    )


# --- the comparator -------------------------------------------------------------------------------


@dataclass(frozen=True)
class GPRegressionNetwork:
    """A Gaussian process regression network; how many nodes it has is chosen by the bound.

    Kernels are squared exponential, as in the papers.  Every node has its own lengthscale, variance
    and noise; all weights share one lengthscale and have unit variance.
    """

    #: Numbers of nodes (latent functions) to choose from, rising.
    num_nodes: tuple[int, ...] = (1, 2, 3)
    restarts: int = 8  #: Starts for each number of nodes; only the best two continue
    max_iterations: int = 400  #: Iterations of L-BFGS for each of these two

    def __post_init__(self) -> None:
        if not self.num_nodes or sorted({0, *self.num_nodes}) != [0, *self.num_nodes]:
            raise ValueError(f"expected rising numbers of nodes from 1, got {self.num_nodes}")
        if self.restarts < 1:
            raise ValueError(f"expected at least 1 start, got {self.restarts}")

    def fit(self, train: pd.DataFrame, *, seed: int) -> ScaledForecast:
        """Climb the bound for every number of nodes and keep the highest.

        Every second start adds a node to the best network of fewer nodes.
        """
        table = Table.of(train)
        observations = table.observations
        rng = np.random.default_rng(seed)
        smaller: GPRN | None = None
        fitted = []
        for num_nodes in self.num_nodes:
            model = self._model(observations, num_nodes)
            starts = [
                partial(_start, model, observations, rng, smaller if i % 2 else None)
                for i in range(self.restarts)
            ]
            optimum = MultiStart(model).best_of(
                starts, short=40, keep=2, max_iterations=self.max_iterations
            )
            fitted.append((optimum.loss, model))
            smaller = model
        _, best = min(fitted, key=lambda pair: pair[0])
        return ScaledForecast(table, best.predict_at)

    def _model(self, observations: Observations, num_nodes: int) -> GPRN:
        nodes = [
            gpflow.kernels.Sum([SquaredExponential(), gpflow.kernels.White()])
            for _ in range(num_nodes)
        ]
        weight = SquaredExponential()
        set_trainable(weight.variance, False)
        X, Y = observations.table
        return GPRN((X, Y), nodes, weight)


def _start(
    model: GPRN, observations: Observations, rng: np.random.Generator, smaller: GPRN | None
) -> None:
    """Assign random lengthscales, and nodes that mix the leading principal components.

    Given a network of fewer nodes, its nodes come first, and the new ones are of its residuals.
    Missing cells count as zero here, and only here.
    """
    step = typical_step(observations.x)
    for kernel in model.node_kernels:
        smooth, white = kernel.kernels
        smooth.lengthscales.assign(log_uniform(3.0 * step, 0.5, rng))
        smooth.variance.assign(1.0)
        white.variance.assign(0.01)
    model.weight_kernel.lengthscales.assign(log_uniform(0.1, 2.0, rng))
    model.noise_variance.assign(np.full(observations.num_series, 0.1))
    residual = observations.Y
    if smaller is not None:
        residual = observations.mask * (residual - smaller.predict_f(model.data[0])[0].numpy().T)
    _, _, components = np.linalg.svd(residual, full_matrices=False)
    num_nodes, num_inputs = model.node_mean.shape
    leading = components[: num_nodes + 1]
    node_mean = rng.normal(size=(num_nodes, len(leading))) @ leading
    node_mean /= node_mean.std(axis=1, keepdims=True)
    node_variance = np.full((num_nodes, num_inputs), 0.1)
    weight_mean = np.zeros(model.weight_mean.shape)
    if smaller is not None:
        known = len(smaller.node_kernels)
        for part, source in zip(
            (*model.node_kernels[:known], model.weight_kernel),
            (*smaller.node_kernels, smaller.weight_kernel),
            strict=True,
        ):
            gpflow.utilities.multiple_assign(part, gpflow.utilities.parameter_dict(source))
        model.noise_variance.assign(smaller.noise_variance)
        node_mean[:known] = smaller.node_mean
        node_variance[:known] = smaller.node_variance
        weight_mean[:known] = smaller.weight_mean
    model.node_mean.assign(node_mean)
    model.node_variance.assign(node_variance)
    model.weight_mean.assign(weight_mean)

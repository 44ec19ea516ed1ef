"""The Latent Kernel Model for long series: inducing variables, shared by all series."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import ClassVar, Literal, TypeAlias

import gpflow
import numpy as np
import tensorflow as tf
from check_shapes import check_shapes, inherit_check_shapes
from gpflow.base import AnyNDArray, MeanAndVariance, RegressionData, TensorType
from gpflow.functions import MeanFunction
from gpflow.inducing_variables import InducingPoints
from gpflow.kernels import Kernel
from gpflow.utilities import to_default_float

from ..gp.likelihoods import GaussianNoise, LikelihoodName, SeriesLikelihood
from ..gp.lowrank import (
    CHUNK_SIZE,
    Features,
    Summary,
    eigen_woodbury_terms,
    summarize,
    woodbury_terms,
)
from ..gp.tensors import tensor_gain
from ..gp.types import LOG_2PI, Floats, FloatTensor
from . import model_data
from .ibp import IBP
from .lkm import LKM, ConditionalMoments, beside
from .posteriors import Posterior

TOLERANCE = 0.01
"""Nats of all series together that are not worth another inducing variable."""

NUM_INDUCING = 400
"""Inducing variables at most, by default: more than ten harmonics of four components need."""

Inducing: TypeAlias = int | AnyNDArray | InducingPoints | Sequence[InducingPoints]

_plain = tf.autograph.experimental.do_not_convert
"""For tensor code that autograph need not rewrite: looking at it takes ten seconds a trace."""


class SparseLKM(LKM):
    r"""`LKM` with a lower bound of every log likelihood that costs O(D M^2) instead of O(D^3).

    .. math::
        \log p(x_n \mid z_n) \ge \log \mathcal{N}\Big(x_n \mid 0,
            \sum_k z_{nk} Q_k + \sigma_n^2 I\Big)
            - \frac{1}{2 \sigma_n^2} \sum_k z_{nk} \operatorname{tr}(C_k - Q_k), \qquad
        Q_k = K_{fu,k} K_{uu,k}^{-1} K_{uf,k}

    Every component has inducing variables u_k at its own inputs; they serve all series, all
    configurations and all relaxed z, because these only scale components.  The work on D points is
    done once for each pattern of missing points; what is left costs O(M^3).  The objective, the
    posterior over Z, BIC and predictions are those of `LKM` with this bound in the place of the log
    likelihood: the enumerated bound stays a lower bound of the evidence.  With an inducing input at
    every input it is that of `LKM`; with one component and one series, ``gpflow.models.SGPR``.

    Source: Titsias 2009, *Variational Learning of Inducing Variables in Sparse Gaussian Processes*.

    Parameters
    ----------
    data, kernels, alpha, posterior, noise_variance, prior, likelihood, mean_function
        As for `LKM`.  A scale multiplies covariance and noise, so that it leaves the trace term as
        it is, and integrated out of the bound it leaves a bound.
    inducing
        How many inducing variables all components have together at most (they are placed by
        `place_inducing` for the given hyperparameters), or inputs [M, Q] that all components
        share, or one ``InducingPoints`` per component.

    Attributes
    ----------
    inducing_variables
        One ``InducingPoints`` per component.  Those that were given as such are trained, as GPflow
        makes them; others if ``gpflow.set_trainable(model.inducing_variables[k], True)`` says so.
    chunk_size
        Features (inducing variables times points) held at a time; memory, not the result,
        depends on it.

    Raises
    ------
    ValueError
        As `LKM`, if `inducing` is not as described, or if a subclass overrides
        `component_covariances`: the bound asks the kernels themselves.

    Notes
    -----
    `trace_term` is the cost of the inducing variables, in nats, and `upper_bound` bounds the log
    likelihood from above: together they tell whether M is enough.  No inducing variables help a
    white noise component; the noise of the series takes its place.
    """

    LONGEST: ClassVar[float] = np.inf

    def __init__(
        self,
        data: RegressionData,
        kernels: Sequence[Kernel],
        alpha: float = 1.0,
        posterior: Literal["relaxed", "enumerated"] | Posterior = "relaxed",
        *,
        inducing: Inducing = NUM_INDUCING,
        noise_variance: float | AnyNDArray = 1.0,
        prior: Literal["finite", "infinite"] | IBP = "finite",
        likelihood: LikelihoodName | SeriesLikelihood = "gaussian",
        mean_function: MeanFunction | None = None,
    ) -> None:
        if type(self).component_covariances is not LKM.component_covariances:
            raise ValueError(
                f"{type(self).__name__}: expected component_covariances of LKM, because the bound "
                "asks the kernels themselves, got others: give kernels of your own instead"
            )
        X, _ = model_data.checked_data(data)
        kernels = model_data.checked_kernels(kernels, num_inputs=X.shape[1])
        inducing = _checked_inducing(inducing, len(kernels), X.shape[1])
        super().__init__(
            data, kernels, alpha, posterior,
            noise_variance=noise_variance, prior=prior, likelihood=likelihood,
            mean_function=mean_function,
        )  # fmt: skip
        groups, mask = self.observations.groups, self.observations.mask
        num_series, num_times = self.observations.x.shape
        first = [int(group.series[0]) for group in groups]
        complete = tf.ones([1, num_times], self.observations.x.dtype)
        self._masks = complete if mask is None else tf.gather(mask, first)
        self._group_of = np.empty(num_series, np.int32)
        for g, group in enumerate(groups):
            self._group_of[group.series] = g
        self._num_observed = tf.gather(tf.reduce_sum(self._masks, axis=1), self._group_of)
        self.chunk_size = CHUNK_SIZE
        if isinstance(inducing, int):
            self.place_inducing(inducing)
        else:
            self.inducing_variables = inducing

    def place_inducing(self, count: int = NUM_INDUCING) -> None:
        """Place inducing variables anew, for the hyperparameters and probabilities as they are.

        Functions that were traced before (``training_loss_closure``) keep the old ones.

        Parameters
        ----------
        count
            Inducing variables of all components together at most, at least K.
        """
        uses = np.ones((self.num_series, self.num_components))
        if hasattr(self, "inducing_variables"):
            uses = np.asarray(self.probabilities())
        # A component that no series has now should still be told from nothing.
        weights = 0.5 / self.noise_variance.numpy() @ np.maximum(uses, 0.01)
        X = self.data[0].numpy()
        self.inducing_variables = place_inducing(self.kernels, X, count, weights)

    # --- the bound ------------------------------------------------------------------------------

    @inherit_check_shapes
    @_plain
    def log_likelihood(self, Z: TensorType) -> FloatTensor:
        """Lower bound of ``log p(x_n | z_n)``; otherwise as `LKM.log_likelihood`.

        It needs the roots of z: where a z is exactly zero so is the gradient by it.
        """
        Z = to_default_float(Z)
        features, summary = self._summary()
        lost = self._lost(summary, Z)
        quadratic, log_determinant = self._terms(features, summary, Z, self.noise_variance)
        return self._bound(quadratic, log_determinant, lost)

    @inherit_check_shapes
    @_plain
    def configuration_log_likelihood(self, configurations: TensorType) -> FloatTensor:
        """Lower bounds of ``log p(x_n | t)``; otherwise as `LKM.configuration_log_likelihood`."""
        t = to_default_float(configurations)
        features, summary = self._summary()
        scale = features.by_component(_root(t))
        parts = []
        for g, group in enumerate(self.observations.groups):
            W = summary.gram[g] * scale[:, :, None] * scale[:, None, :]
            y = tf.gather(summary.projected, group.series) * scale[:, None, :]
            noise = tf.gather(self.noise_variance, group.series)
            parts.append(eigen_woodbury_terms(W, y, noise))
        order = np.argsort(np.concatenate([group.series for group in self.observations.groups]))
        quadratic, log_determinant = (
            tf.gather(tf.concat(part, axis=1), order, axis=1) for part in zip(*parts, strict=True)
        )
        lost = tf.matmul(t, tf.gather(summary.lost, self._group_of), transpose_b=True)
        return tf.transpose(self._bound(quadratic, log_determinant, lost))

    @check_shapes("Z: [batch..., N, K]", "return: [batch..., N]")
    def trace_term(self, Z: TensorType | None = None) -> FloatTensor:
        r"""What the bound loses outright, :math:`\sum_k z_{nk} tr(C_k - Q_k) / 2 \sigma_n^2`.

        In nats.  Well below one nat per series, more inducing variables bring nothing.

        Parameters
        ----------
        Z
            Assignments [..., N, K]; None for `assignment`.
        """
        Z = self.assignment() if Z is None else to_default_float(Z)
        _, summary = self._summary()
        return 0.5 * self._lost(summary, Z) / self.noise_variance

    @check_shapes("Z: [batch..., N, K]", "return: [batch..., N]")
    def upper_bound(self, Z: TensorType | None = None) -> FloatTensor:
        r"""Upper bound of ``log p(x_n | z_n)``, to set beside `log_likelihood`.

        The trace of what the features leave is taken for its largest eigenvalue, hence for more
        noise in the quadratic term.  Source: Titsias 2014, *Variational Inference for Gaussian and
        Determinantal Point Processes* (``gpflow.models.SGPR.upper_bound``).

        Parameters
        ----------
        Z
            Assignments [..., N, K]; None for `assignment`.
        """
        Z = self.assignment() if Z is None else to_default_float(Z)
        features, summary = self._summary()
        _, log_determinant = self._terms(features, summary, Z, self.noise_variance)
        noise = self.noise_variance + self._lost(summary, Z)
        quadratic, _ = self._terms(features, summary, Z, noise)
        q = (self._squares - quadratic) / noise
        gaussian = -0.5 * (q + self._log_volume(log_determinant))
        return gaussian + tensor_gain(self.likelihood, q, self._num_observed)

    @property
    def _squares(self) -> FloatTensor:
        """Sums of squares of the residuals, [N]."""
        return tf.reduce_sum(tf.square(self.residuals()), axis=1)

    def _summary(self) -> tuple[Features, Summary]:
        features = Features(self.kernels, self.inducing_variables)
        summary = summarize(
            features,
            self.num_components,
            self.data[0],
            self.residuals(),
            self._masks,
            self.chunk_size,
        )
        return features, summary

    def _lost(self, summary: Summary, Z: FloatTensor) -> FloatTensor:
        """``sum_k z_nk tr(C_k - Q_k)`` over the points of each series, [..., N]."""
        return tf.reduce_sum(Z * tf.gather(summary.lost, self._group_of), axis=-1)

    def _terms(
        self, features: Features, summary: Summary, Z: FloatTensor, noise: FloatTensor
    ) -> tuple[FloatTensor, FloatTensor]:
        """``y' V^-1 y`` and ``log |V|`` [..., N] of ``V = z H z + noise`` in the features."""
        scale = features.by_component(_root(Z))
        gram = tf.gather(summary.gram, self._group_of)
        W = gram * scale[..., :, None] * scale[..., None, :]
        noise = tf.broadcast_to(noise, tf.shape(W)[:-2])
        return woodbury_terms(W, summary.projected * scale, noise)

    def _bound(
        self, quadratic: FloatTensor, log_determinant: FloatTensor, lost: FloatTensor
    ) -> FloatTensor:
        """From the terms of V to the bound; the last dimension is that of the series."""
        squares = (self._squares - quadratic + lost) / self.noise_variance
        gaussian = -0.5 * (squares + self._log_volume(log_determinant))
        if isinstance(self.likelihood, GaussianNoise):
            return gaussian
        q = (self._squares - quadratic) / self.noise_variance
        return gaussian + tensor_gain(self.likelihood, q, self._num_observed)

    def _log_volume(self, log_determinant: FloatTensor) -> FloatTensor:
        """``log |2 pi (Q + sigma_n^2 I)|`` of the observed points, from log |V| in M dimensions."""
        num_features = sum(int(u.Z.shape[0]) for u in self.inducing_variables)
        rest = (self._num_observed - num_features) * tf.math.log(self.noise_variance)
        return log_determinant + rest + self._num_observed * LOG_2PI

    # --- prediction -----------------------------------------------------------------------------

    def conditional_moments(
        self, Xnew: FloatTensor, sums: AnyNDArray, full_cov: bool
    ) -> ConditionalMoments:
        """As `LKM.conditional_moments`, from the posterior of the inducing variables.

        Where their prior is ``v ~ N(0, I)``, their posterior given z_n is normal with mean
        ``V^-1 z B x_n`` and covariance ``sigma_n^2 V^-1``, ``V = z B B' z + sigma_n^2 I`` (z: the
        roots of z_n).  The result adds up over components, as that of `LKM` does.
        """
        features, summary = self._summary()
        B = features.at(Xnew, features.factors())  # [M, Mnew]
        chosen = features.by_component(to_default_float(sums))  # [G, M]
        if full_cov:
            prior = self.component_covariances(Xnew)
            parts = tf.stack([tf.matmul(b, b, transpose_a=True) for b in features.split(B)])
            residual = prior - parts
        else:
            residual = features.residual_variances(Xnew, B)

        def moments_of(series: tf.Tensor, z: FloatTensor) -> MeanAndVariance:
            scale = features.by_component(_root(z))
            noise = tf.gather(self.noise_variance, series)
            gram = tf.gather(summary.gram, tf.gather(self._group_of, series))
            W = gram * scale[:, :, None] * scale[:, None, :]
            L = tf.linalg.cholesky(tf.linalg.set_diag(W, tf.linalg.diag_part(W) + noise[:, None]))
            y = tf.gather(summary.projected, series) * scale
            v = tf.linalg.cholesky_solve(L, y[..., None])[..., 0]  # [P, M]
            selected = chosen * scale[:, None, :]  # [P, G, M]

            def spread(row: tuple[FloatTensor, FloatTensor]) -> FloatTensor:
                factor, weights = row
                whitened = tf.linalg.triangular_solve(factor, weights[:, None] * B)
                if full_cov:
                    return tf.matmul(whitened, whitened, transpose_a=True)
                return tf.reduce_sum(tf.square(whitened), axis=0)

            # One sum of components of one row at a time: [M, Mnew] is large over a long history.
            num_sums, M = tf.shape(selected)[1], tf.shape(selected)[2]
            pairs = tf.repeat(L, num_sums, axis=0), tf.reshape(selected, [-1, M])
            shape = tf.concat([tf.shape(selected)[:2], tf.shape(residual)[1:]], 0)
            known = tf.map_fn(spread, pairs, parallel_iterations=1, fn_output_signature=B.dtype)
            known = tf.reshape(known, shape)
            level = tf.reshape(noise, [-1, 1, 1, 1] if full_cov else [-1, 1, 1])
            mean = tf.tensordot(selected * v[:, None, :], B, axes=1)
            variance = tf.tensordot(z[:, None, :] * sums, residual, axes=1) + level * known
            if not self.likelihood.rescales:
                return mean, variance
            return mean, variance * beside(self._scales(y, v, noise, series), variance)

        return moments_of

    @inherit_check_shapes
    def expected_scales(self, series: tf.Tensor, z: FloatTensor) -> FloatTensor:
        """As `LKM.expected_scales`, with ``Q + sigma_n^2 I`` in the place of V."""
        features, summary = self._summary()
        scale, noise = features.by_component(_root(z)), tf.gather(self.noise_variance, series)
        gram = tf.gather(summary.gram, tf.gather(self._group_of, series))
        W = gram * scale[:, :, None] * scale[:, None, :]
        y = tf.gather(summary.projected, series) * scale
        L = tf.linalg.cholesky(tf.linalg.set_diag(W, tf.linalg.diag_part(W) + noise[:, None]))
        return self._scales(y, tf.linalg.cholesky_solve(L, y[..., None])[..., 0], noise, series)

    def _scales(
        self, y: FloatTensor, v: FloatTensor, noise: FloatTensor, series: tf.Tensor
    ) -> FloatTensor:
        """Expected scales from the projected series, ``V^-1`` of them, and their noise, [P]."""
        squares = tf.gather(self._squares, series)
        return self._expected_scales((squares - tf.reduce_sum(y * v, axis=-1)) / noise, series)


def _root(Z: FloatTensor) -> FloatTensor:
    """Square roots of z >= 0, with a gradient of zero at zero, where theirs is infinite."""
    return tf.sqrt(tf.maximum(Z, 1e-200))


def _checked_inducing(
    inducing: Inducing, num_components: int, num_inputs: int
) -> int | list[InducingPoints]:
    """How many inducing variables are wanted, or one set of inducing points per component."""
    if isinstance(inducing, Integral):
        return _checked_count(int(inducing), num_components)
    if isinstance(inducing, Sequence):
        chosen = list(inducing)
    elif isinstance(inducing, InducingPoints):
        chosen = [inducing] * num_components
    else:
        shared = InducingPoints(np.asarray(inducing, np.float64))
        gpflow.set_trainable(shared, False)
        chosen = [shared] * num_components
    for k, points in enumerate(chosen):
        shape = tuple(points.Z.shape) if isinstance(points, InducingPoints) else points
        if not isinstance(points, InducingPoints) or 0 in shape or shape[1] != num_inputs:
            raise ValueError(
                f"inducing[{k}]: expected InducingPoints with at least one row and {num_inputs} "
                f"column(s), got {shape!r}"
            )
    if len(chosen) != num_components:
        raise ValueError(
            f"inducing: expected one InducingPoints for each of {num_components} components, "
            f"got {len(chosen)}"
        )
    return chosen


def _checked_count(count: int, num_components: int) -> int:
    """Return how many inducing variables there may be, if every component can have one."""
    if count < num_components:
        raise ValueError(
            f"inducing: expected at least {num_components}, one for each component, got {count}"
        )
    return count


# --- where inducing inputs go -------------------------------------------------------------------


def place_inducing(
    kernels: Sequence[Kernel],
    X: AnyNDArray,
    count: int,
    weights: AnyNDArray,
    tolerance: float = TOLERANCE,
) -> list[InducingPoints]:
    r"""Choose inducing inputs of all components among the inputs of the data.

    Inputs are placed one at a time: the component k whose weighted residual variance
    :math:`w_k \sum_d k_k(x_d, x_d) - q_k(x_d, x_d)` is largest gets one where it is largest, by a
    pivoted Cholesky factorisation of every component.  A line needs one, a slow component few, a
    fast one many.  Source: Burt, Rasmussen and van der Wilk 2020, *Convergence of Sparse
    Variational Inference in Gaussian Processes Regression*, section 4.2.

    Parameters
    ----------
    kernels
        The K components.
    X
        Inputs, [D, Q].
    count
        Inducing variables of all components together, at least K.
    weights
        What a unit of residual variance costs in nats, [K]: for series n that has the component,
        1 / (2 sigma_n^2).
    tolerance
        Nats of residual variance at which fewer than `count` will do.

    Returns
    -------
    One set of inducing points per component, at least one point each, which are not trained unless
    ``gpflow.set_trainable`` says so.

    Raises
    ------
    ValueError
        If `count` is less than K.
    """
    count = _checked_count(count, len(kernels))
    X = to_default_float(X).numpy() if hasattr(X, "numpy") else np.asarray(X, np.float64)
    columns = [_PivotedCholesky(kernel, X) for kernel in kernels]
    for column in columns:
        column.pivot()
    for _ in range(count - len(kernels)):
        nats = np.array([w * c.residual.sum() for w, c in zip(weights, columns, strict=True)])
        open_ = np.array([c.can_pivot for c in columns])
        if nats.sum() < tolerance or not open_.any():
            break
        columns[int(np.argmax(np.where(open_, nats, -np.inf)))].pivot()
    chosen = [InducingPoints(X[np.sort(column.rows)]) for column in columns]
    for points in chosen:
        gpflow.set_trainable(points, False)
    return chosen


class _PivotedCholesky:
    """Pivoted Cholesky factorisation of one kernel on the inputs, a pivot at a time."""

    def __init__(self, kernel: Kernel, X: Floats) -> None:
        self._kernel = kernel
        self._X = X
        self.residual: Floats = kernel(X, full_cov=False).numpy()
        self._least = 1e-10 * float(self.residual.max())
        self._factor = np.empty((16, len(X)))
        self.rows: list[int] = []

    @property
    def can_pivot(self) -> bool:
        """Whether more than rounding errors is left."""
        return len(self.rows) < len(self._X) and float(self.residual.max()) > self._least

    def pivot(self) -> None:
        """Make the input of the largest residual variance a pivot."""
        row, m = int(np.argmax(self.residual)), len(self.rows)
        if m == len(self._factor):
            self._factor = np.concatenate([self._factor, np.empty_like(self._factor)])
        column = self._kernel(self._X[row : row + 1], self._X).numpy()[0]
        column -= self._factor[:m, row] @ self._factor[:m]
        self._factor[m] = column / np.sqrt(max(self.residual[row], np.finfo(float).tiny))
        self.residual = np.maximum(self.residual - np.square(self._factor[m]), 0.0)
        self.residual[row] = 0.0
        self.rows.append(row)

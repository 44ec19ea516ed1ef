r"""Components through inducing variables: all that a bound needs to know of D points.

Component k has inducing variables ``u_k = f_k(Z_k)`` at its own inputs Z_k [M_k, Q].  With
``L_k L_k' = K_uu,k`` and the *features* ``b_k(x) = L_k^-1 k_k(Z_k, x)``, stacked over components
to ``B`` [M, D], the series are Gaussian with covariances ``B' diag(z_n) B + sigma_n^2 I``,
whatever z_n: the products ``B B'`` and ``B x_n`` [M] are all that is needed of the D points.  They
cost O(D M^2), once for all series and configurations, and are summed over chunks of points.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np
import tensorflow as tf
from check_shapes import check_shapes
from gpflow.covariances import Kuf, Kuu
from gpflow.inducing_variables import InducingPoints
from gpflow.kernels import Kernel

from .tensors import eigh
from .types import FloatTensor

T = TypeVar("T")

JITTER = 1e-8
"""Of the mean prior variance at the inducing inputs, added to it: still a bound, a little lower."""

CHUNK_SIZE = 2**20
"""Features (inducing variables times points) that are held at a time; the gradient holds about 60
numbers for each."""


class Features:
    """The whitened features b(x) of all components, M in number.

    Parameters
    ----------
    kernels
        The K components.
    inducing_variables
        One per component.
    """

    def __init__(
        self, kernels: Sequence[Kernel], inducing_variables: Sequence[InducingPoints]
    ) -> None:
        self._parts = list(zip(inducing_variables, kernels, strict=True))
        self._sizes = [int(u.Z.shape[0]) for u in inducing_variables]

    @property
    def count(self) -> int:
        """M, the number of features of all components."""
        return sum(self._sizes)

    def by_component(self, values: FloatTensor) -> FloatTensor:
        """Values of components [..., K] at their features, [..., M]."""
        return tf.gather(values, np.repeat(np.arange(len(self._sizes)), self._sizes), axis=-1)

    def factors(self) -> list[FloatTensor]:
        """L_k, one per component, [M_k, M_k]."""
        factors = []
        for u, kernel in self._parts:
            covariance = Kuu(u, kernel)
            diagonal = tf.linalg.diag_part(covariance)
            jitter = JITTER * tf.reduce_mean(diagonal)
            factors.append(tf.linalg.cholesky(tf.linalg.set_diag(covariance, diagonal + jitter)))
        return factors

    @check_shapes("X: [D, Q]", "return: [M, D]")
    def at(self, X: FloatTensor, factors: Sequence[FloatTensor]) -> FloatTensor:
        """B at these inputs, [M, D]."""
        parts = [
            tf.linalg.triangular_solve(L, Kuf(u, kernel, X))
            for L, (u, kernel) in zip(factors, self._parts, strict=True)
        ]
        return tf.concat(parts, axis=0)

    @check_shapes("X: [D, Q]", "B: [M, D]", "return: [K, D]")
    def residual_variances(self, X: FloatTensor, B: FloatTensor) -> FloatTensor:
        """What the features leave of each component's prior variance, [K, D]."""
        prior = tf.stack([kernel(X, full_cov=False) for _, kernel in self._parts])
        squares = self.split(tf.square(B))
        return prior - tf.stack([tf.reduce_sum(part, axis=0) for part in squares])

    def split(self, B: FloatTensor) -> list[FloatTensor]:
        """Features [M, D] by component, [M_k, D] each."""
        return tf.split(B, self._sizes)


class Summary(NamedTuple):
    """Sums over the observed points of each of G groups of series."""

    gram: FloatTensor
    """``B B'``, [G, M, M]."""
    projected: FloatTensor
    """``B x_n``, [N, M]."""
    lost: FloatTensor
    """Prior variance of the components that the features leave, summed, [G, K]."""


@check_shapes("X: [D, Q]", "x: [N, D]", "masks: [G, D]")
def summarize(
    features: Features,
    num_components: int,
    X: FloatTensor,
    x: FloatTensor,
    masks: FloatTensor,
    chunk_size: int,
) -> Summary:
    """Sum over the points, a chunk at a time; the gradient visits the chunks again.

    Parameters
    ----------
    features
        Of the components.
    num_components
        K.
    X
        Inputs, [D, Q].
    x
        Series, zero where missing, [N, D].
    masks
        Which points the series of a group have, one where observed, [G, D].
    chunk_size
        Features that are held at a time; one row of them at least.
    """
    M, length = features.count, max(1, chunk_size // features.count)
    empty = Summary(
        tf.zeros([len(masks), M, M], X.dtype),
        tf.zeros([len(x), M], X.dtype),
        tf.zeros([len(masks), num_components], X.dtype),
    )
    starts = tf.range(0, len(X), length)

    def of_chunk(start: tf.Tensor, x: FloatTensor, factors: Sequence[FloatTensor]) -> Summary:
        rows = X[start : start + length]
        mask, values = masks[:, start : start + length], x[:, start : start + length]
        B = features.at(rows, factors)
        return Summary(
            tf.matmul(B * mask[:, None, :], B, transpose_b=True),
            tf.matmul(values, B, transpose_b=True),
            tf.matmul(mask, features.residual_variances(rows, B), transpose_b=True),
        )

    # Plain automatic differentiation would hold the intermediate results of all chunks at once.
    @tf.custom_gradient
    def total(x: FloatTensor, *factors: FloatTensor) -> tuple[Summary, Callable[..., Any]]:
        def gradient(
            *upstream: FloatTensor, variables: Sequence[tf.Variable] = ()
        ) -> tuple[Sequence[FloatTensor], Sequence[FloatTensor]]:
            sources = [x, *factors, *variables]

            def of_sources(start: tf.Tensor) -> tuple[FloatTensor, ...]:
                with tf.GradientTape(watch_accessed_variables=False) as tape:
                    tape.watch(sources)
                    parts = of_chunk(start, x, factors)
                return tuple(
                    tape.gradient(parts, sources, Summary(*upstream), unconnected_gradients="zero")
                )

            found = _sum(of_sources, starts, tuple(tf.zeros_like(source) for source in sources))
            return found[: 1 + len(factors)], list(found[1 + len(factors) :])

        return _sum(lambda start: of_chunk(start, x, factors), starts, empty), gradient

    return Summary(*total(x, *features.factors()))


def _sum(part: Callable[[tf.Tensor], T], starts: tf.Tensor, zero: T) -> T:
    """Sum a structure of tensors over chunks, one chunk at a time."""

    def add(total: T, start: tf.Tensor) -> T:
        return tf.nest.map_structure(tf.add, total, part(start))

    return tf.foldl(add, starts, zero, parallel_iterations=1)


@check_shapes("W: [batch..., M, M]", "y: [batch..., M]", "noise_variance: [batch...]")
def woodbury_terms(
    W: FloatTensor, y: FloatTensor, noise_variance: FloatTensor
) -> tuple[FloatTensor, FloatTensor]:
    """``y' V^-1 y`` and ``log |V|`` [...] of ``V = W + sigma^2 I``, by one Cholesky factor each.

    NaN where V is not positive definite.
    """
    diagonal = tf.linalg.diag_part(W) + noise_variance[..., None]
    quadratic, log_determinant = _cholesky_terms(tf.linalg.set_diag(W, diagonal), y)
    return quadratic, log_determinant


@tf.custom_gradient
def _cholesky_terms(
    V: FloatTensor, y: FloatTensor
) -> tuple[tuple[FloatTensor, FloatTensor], Callable[..., tuple[FloatTensor, FloatTensor]]]:
    L = tf.linalg.cholesky(V)
    b = tf.linalg.cholesky_solve(L, y[..., None])
    log_determinant = 2.0 * tf.reduce_sum(tf.math.log(tf.linalg.diag_part(L)), axis=-1)

    def gradient(
        d_quadratic: FloatTensor, d_log_determinant: FloatTensor
    ) -> tuple[FloatTensor, FloatTensor]:
        eye = tf.eye(tf.shape(V)[-1], batch_shape=tf.shape(V)[:-2], dtype=V.dtype)
        weighted = d_quadratic[..., None, None] * b
        dV = d_log_determinant[..., None, None] * tf.linalg.cholesky_solve(L, eye)
        return dV - tf.matmul(weighted, b, transpose_b=True), 2.0 * weighted[..., 0]

    return (tf.reduce_sum(y * b[..., 0], axis=-1), log_determinant), gradient


@tf.custom_gradient
def eigen_woodbury_terms(
    W: FloatTensor, y: FloatTensor, noise_variance: FloatTensor
) -> tuple[tuple[FloatTensor, FloatTensor], Callable[..., tuple[FloatTensor, ...]]]:
    """As `woodbury_terms` for T matrices and N series at once.

    Parameters
    ----------
    W
        [T, M, M]: one eigendecomposition each serves all series, whatever their noise.
    y
        [T, N, M]
    noise_variance
        [N]

    Returns
    -------
    Both [T, N].
    """
    eigenvalues, U = eigh(W)
    rotated = tf.matmul(y, U)
    # Rounding may leave eigenvalues a little below zero.
    spectrum = tf.maximum(eigenvalues, 0.0)[:, None, :] + noise_variance[None, :, None]
    b = rotated / spectrum

    def gradient(
        d_quadratic: FloatTensor, d_log_determinant: FloatTensor
    ) -> tuple[FloatTensor, ...]:
        weighted = d_quadratic[..., None] * b
        per_value = d_log_determinant[..., None] / spectrum
        inner = tf.linalg.diag(tf.reduce_sum(per_value, axis=1))
        inner -= tf.matmul(weighted, b, transpose_a=True)
        dW = tf.matmul(U, tf.matmul(inner, U, transpose_b=True))
        dy = 2.0 * tf.matmul(weighted, U, transpose_b=True)
        return dW, dy, tf.reduce_sum(per_value - weighted * b, axis=[0, 2])

    terms = tf.reduce_sum(rotated * b, axis=-1), tf.reduce_sum(tf.math.log(spectrum), axis=-1)
    return terms, gradient

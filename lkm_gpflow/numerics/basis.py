"""Log densities of many series in the eigenbasis of the covariance that they share, by NumPy.

`linalg` has the same for TensorFlow.  Arrays here stay in the processor's cache, block by block:
what is left is little more than a product of matrices for each block.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from .student import gains, weights
from .types import LOG_2PI, Floats

_BLOCK_BYTES = 2**19
"""Of an array over some series and all points: two or three of them stay in the cache."""

_FACTORS = 8
"""So many entries of a spectrum are multiplied before the logarithm is taken."""


class Basis:
    r"""The eigenvectors U of a covariance C = U diag(l) U', for series of different noise.

    .. math:: \log \mathcal{N}(x_n \mid 0, C + \sigma_n^2 I) = -\tfrac12 \sum_d \Big[
       \frac{(U^\top x_n)_d^2}{l_d + \sigma_n^2} + \log(l_d + \sigma_n^2) \Big]
       - \tfrac{D}{2} \log 2\pi

    Parameters
    ----------
    values, vectors
        l, [D], and U, [D, D].
    degrees
        Degrees of freedom of the scale of a series, see `student`.
    """

    def __init__(self, values: Floats, vectors: Floats, degrees: float = math.inf) -> None:
        self._values, self._vectors, self._degrees = values, vectors, degrees
        D = len(values)
        self._at_once = max(1, _BLOCK_BYTES // (8 * max(D, 1)))
        self._firsts = np.arange(0, D, _FACTORS)

    def log_densities(self, x: Floats, noise_levels: Floats) -> Floats:
        """Log densities at L noise variances for every series.

        Parameters
        ----------
        x
            Series, [N, D].
        noise_levels
            [L, N].

        Returns
        -------
        Array [L, N].
        """
        found = np.empty(noise_levels.shape)
        for some, u, s in self._blocks(x):
            np.square(u, out=u)
            for level, noise_variance in enumerate(noise_levels):
                np.add(self._values, noise_variance[some, None], out=s)
                log_det = np.log(np.multiply.reduceat(s, self._firsts, axis=1)).sum(axis=1)
                q = np.divide(u, s, out=s).sum(axis=1)
                found[level, some] = -0.5 * (q + log_det) + gains(q, x.shape[1], self._degrees)
        return found - 0.5 * LOG_2PI * x.shape[1]

    def gradients(
        self, x: Floats, noise_variance: Floats, upstream: Floats
    ) -> tuple[Floats, Floats]:
        """Gradients of the sum of log densities, each times its entry of `upstream`.

        Parameters
        ----------
        x
            Series, [N, D].
        noise_variance, upstream
            [N].

        Returns
        -------
        With respect to C, [D, D], and to the noise variances, [N].
        """
        D = x.shape[1]
        inner, diagonal, d_noise = np.zeros((D, D)), np.zeros(D), np.empty(len(x))
        for some, u, s in self._blocks(x):
            np.add(self._values, noise_variance[some, None], out=s)
            own = upstream[some]
            np.reciprocal(s, out=s)
            q = np.einsum("nd,nd,nd->n", u, u, s)
            b = np.multiply(u, s, out=u)
            weighted = own * weights(q, D, self._degrees)
            d_noise[some] = weighted * np.einsum("nd,nd->n", b, b) - own * s.sum(axis=1)
            diagonal += own @ s
            inner += b.T @ np.multiply(weighted[:, None], b, out=s)
        inner.flat[:: D + 1] -= diagonal
        return 0.5 * (self._vectors @ inner @ self._vectors.T), 0.5 * d_noise

    def _blocks(self, x: Floats) -> Iterator[tuple[slice, Floats, Floats]]:
        """Some series at a time: which, their coordinates in the basis, and memory as large."""
        memory = np.empty((2, min(self._at_once, len(x)), x.shape[1]))
        for first in range(0, len(x), self._at_once):
            some = slice(first, first + self._at_once)
            u, s = memory[:, : len(x[some])]
            yield some, np.matmul(x[some], self._vectors, out=u), s

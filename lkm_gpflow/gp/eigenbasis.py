"""Log densities of many series in the eigenbasis of the covariance that they share, by NumPy.

`tensors` has the same for TensorFlow.  Arrays here stay in the processor's cache, block by block:
what is left is little more than a product of matrices for each block.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from .likelihoods import GAUSSIAN, SeriesLikelihood
from .types import LOG_2PI, Floats, Integers

_BLOCK_BYTES = 2**19
"""Of an array over some series and all points: three of them stay in the cache."""

_FACTORS = 8
"""So many entries of a spectrum are multiplied before the logarithm is taken."""


class Basis:
    r"""The eigenvectors U of a covariance C = U diag(l) U', for series of different noise.

    .. math:: \log \mathcal{N}(x_n \mid 0, C + \sigma_n^2 I) = -\tfrac12 \sum_d \Big[
       \frac{(U^\top x_n)_d^2}{l_d + \sigma_n^2} + \log(l_d + \sigma_n^2) \Big]
       - \tfrac{D}{2} \log 2\pi

    C may be block diagonal, as in the coordinates of `halves`: then so are its eigenvectors.

    Parameters
    ----------
    covariances
        C without noise, or its blocks: [d, d], the d adding up to D.
    likelihood
        Gaussian, or another of the quadratic form.
    """

    def __init__(
        self, covariances: Sequence[Floats], likelihood: SeriesLikelihood = GAUSSIAN
    ) -> None:
        self._likelihood = likelihood
        found = [_eigen(C) for C in covariances]
        self._values = np.concatenate([values for values, _ in found])
        ends = np.cumsum([len(values) for values, _ in found]).tolist()
        self._blocks = [
            (slice(end - len(values), end), vectors)
            for end, (values, vectors) in zip(ends, found, strict=True)
        ]
        self._at_once = max(1, _BLOCK_BYTES // (8 * len(self._values)))
        self._firsts = np.arange(0, len(self._values), _FACTORS)

    def log_densities(self, x: Floats, rows: Integers, noise_levels: Floats) -> Floats:
        """Log densities of some series, at L noise variances each.

        Parameters
        ----------
        x
            Series, [N, D].
        rows
            Which of them, [n].
        noise_levels
            [L, n].

        Returns
        -------
        Array [L, n].
        """
        found = np.empty(noise_levels.shape)
        for some, u, s in self._projected(x, rows):
            np.square(u, out=u)
            for level, noise_variance in enumerate(noise_levels):
                np.add(self._values, noise_variance[some, None], out=s)
                log_det = np.log(np.multiply.reduceat(s, self._firsts, axis=1)).sum(axis=1)
                q = np.divide(u, s, out=s).sum(axis=1)
                found[level, some] = -0.5 * (q + log_det) + self._likelihood.gain(q, x.shape[1])
        return found - 0.5 * LOG_2PI * x.shape[1]

    def gradients(
        self, x: Floats, rows: Integers, noise_variance: Floats, upstream: Floats
    ) -> tuple[list[Floats], Floats]:
        """Gradients of the sum of log densities, each times its entry of `upstream`.

        Parameters
        ----------
        x
            Series, [N, D].
        rows
            Which of them, [n].
        noise_variance, upstream
            [n].

        Returns
        -------
        With respect to each block of C, [d, d], and to the noise variances, [n].
        """
        diagonal, d_noise = np.zeros(x.shape[1]), np.empty(len(rows))
        inner = [np.zeros_like(vectors) for _, vectors in self._blocks]
        for some, u, s in self._projected(x, rows):
            np.add(self._values, noise_variance[some, None], out=s)
            own = upstream[some]
            np.reciprocal(s, out=s)
            q = np.einsum("nd,nd,nd->n", u, u, s)
            b = np.multiply(u, s, out=u)
            weighted = own * self._likelihood.weight(q, x.shape[1])
            d_noise[some] = weighted * np.einsum("nd,nd->n", b, b) - own * s.sum(axis=1)
            diagonal += own @ s
            np.multiply(weighted[:, None], b, out=s)
            for total, (columns, _) in zip(inner, self._blocks, strict=True):
                total += b[:, columns].T @ s[:, columns]
        d_blocks = []
        for total, (columns, vectors) in zip(inner, self._blocks, strict=True):
            total.flat[:: len(total) + 1] -= diagonal[columns]
            d_blocks.append(0.5 * (vectors @ total @ vectors.T))
        return d_blocks, 0.5 * d_noise

    def _projected(self, x: Floats, rows: Integers) -> Iterator[tuple[slice, Floats, Floats]]:
        """Some series at a time: which, their coordinates in the basis, and memory as large."""
        memory = np.empty((3, min(self._at_once, len(rows)), x.shape[1]))
        for first in range(0, len(rows), self._at_once):
            some = slice(first, first + self._at_once)
            own, u, s = memory[:, : len(rows[some])]
            np.take(x, rows[some], axis=0, out=own, mode="clip")
            for columns, vectors in self._blocks:
                np.matmul(own[:, columns], vectors, out=u[:, columns])
            yield some, u, s


def _eigen(C: Floats) -> tuple[Floats, Floats]:
    """Eigenvalues and eigenvectors; NaN where there are none."""
    try:
        values, vectors = np.linalg.eigh(C)
    except np.linalg.LinAlgError:
        return np.full(len(C), np.nan), np.full_like(C, np.nan)
    # Rounding may leave eigenvalues a little below zero.
    return np.maximum(values, 0.0), vectors


def halves(C: Floats) -> tuple[Floats, ...]:
    r"""Coordinates in which covariances that look the same from both ends are block diagonal.

    Those of stationary kernels on a regular grid do: with J, which turns the order of points round,
    J C J = C.  Then what is even about the middle of the points does not
    depend on what is odd: a problem of D points is two of D / 2 (Cantoni and Butler 1976).

    Parameters
    ----------
    C
        Covariances, [K, D, D].

    Returns
    -------
    Orthonormal rows for each block, [d, D], the d adding up to D; one block, the points themselves,
    where a covariance looks different from the other end.
    """
    D = C.shape[-1]
    one = np.eye(D)
    if D < 2 or not np.array_equal(C, C[:, ::-1, ::-1]):
        return (one,)
    even, odd = (one + sign * one[::-1] for sign in (1.0, -1.0))
    even, odd = even[: (D + 1) // 2], odd[: D // 2]
    return tuple(rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (even, odd))

r"""A series given its covariance: density, gradient, whitening and prediction, by LAPACK.

`GaussianSeries` factorises the covariance once, and every question about the series is a method.
For matrices of some hundred rows the calls of LAPACK are all the work there is, so one matrix at a
time is as fast as a batch.  The functions below it answer one question for many covariances, in
memory that the caller sets aside.  `tensors` has the same densities for TensorFlow.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np
from scipy.linalg.blas import dsyr, dtrsm, dtrsv
from scipy.linalg.lapack import dpotrf, dpotri, dpotrs

from .lags import matrix
from .likelihoods import GAUSSIAN, SeriesLikelihood
from .types import LOG_2PI, Floats

_CORNER = 1e100
"""Larger than any quadratic form: it keeps a bordered matrix positive definite."""


class GaussianSeries:
    r"""Observed values y of a series with covariance V = L L', noise included.

    .. math:: y \sim \mathcal{N}(0, V), \qquad q = y^\top V^{-1} y, \qquad b = V^{-1} y

    or another likelihood of q, see `likelihoods`.  Where V is not positive definite, `log_density`
    and everything else is NaN.

    Parameters
    ----------
    V
        Covariance of the observed values, [D, D]; only its lower triangle is read.
    y
        Observed values, [D].
    likelihood
        Gaussian, or another.
    overwrite
        Whether L may take the place of V, which is in Fortran's order then.

    Attributes
    ----------
    L
        The factor, [D, D], its upper triangle zero.
    b
        ``V^-1 y``, [D].
    q
        ``y' V^-1 y``.
    """

    __slots__ = ("L", "b", "likelihood", "q", "y")

    def __init__(
        self,
        V: Floats,
        y: Floats,
        likelihood: SeriesLikelihood = GAUSSIAN,
        *,
        overwrite: bool = False,
    ) -> None:
        self.L, failed = dpotrf(V, lower=1, clean=1, overwrite_a=overwrite)
        self.y, self.likelihood = y, likelihood
        if failed:
            self.L.fill(np.nan)
            self.b, self.q = np.full(len(y), np.nan), np.nan
        else:
            self.b, _ = dpotrs(self.L, y, lower=1)
            self.q = float(y @ self.b)

    @property
    def log_density(self) -> float:
        """``log p(y)``."""
        log_determinant = 2.0 * float(np.add.reduce(np.log(self.L.diagonal())))
        return float(self.likelihood.log_density(self.q, log_determinant, len(self.y)))

    @property
    def weight(self) -> float:
        """w, the weight of ``b b'`` in the gradient; one for a Gaussian."""
        return float(self.likelihood.weight(self.q, len(self.y)))

    @property
    def scale(self) -> float:
        """Factor of the predictive variance; one for a Gaussian."""
        return float(self.likelihood.predictive_scale(self.q, len(self.y)))

    def gradient(self) -> Floats:
        """Gradient of `log_density` with respect to V, ``(w b b' - V^-1) / 2``, [D, D]."""
        inverse, _ = dpotri(self.L, lower=1)
        inverse = np.tril(inverse) + np.tril(inverse, -1).T
        return 0.5 * (self.weight * np.outer(self.b, self.b) - inverse)

    def lower_gradient(self) -> Floats:
        r"""Gradient of minus `log_density` as sums over pairs of times want it, in L's place.

        .. math:: -d \log p(y) = \sum_{i \ge j} G_{ij}\, dV_{ij}

        Returns
        -------
        ``V^-1 - w b b'``, [D, D]: its lower triangle with half the diagonal, the upper one zero.
        """
        G, _ = dpotri(self.L, lower=1, overwrite_c=1)
        G = dsyr(-1.0, math.sqrt(self.weight) * self.b, lower=1, a=G, overwrite_a=1)
        G.T.reshape(-1)[:: len(G) + 1] *= 0.5
        return G

    def whiten(self, B: Floats) -> Floats:
        """``L^-1 B`` of a matrix [D, M], or of a vector [D]."""
        if B.ndim == 1:
            return np.asarray(dtrsv(self.L, B, lower=1))
        return np.asarray(dtrsm(1.0, self.L, B, lower=1))

    def predict(self, cross: Floats, prior: Floats) -> tuple[Floats, Floats]:
        r"""Mean and variance of M other values, given those that were observed.

        .. math:: C_*^\top V^{-1} y, \qquad s\, (C_{**} - C_*^\top V^{-1} C_*)

        with s the `scale`.

        Parameters
        ----------
        cross
            Covariances of observed and other values, [D, M].
        prior
            Variances of the others, [M], or their covariance, [M, M].

        Returns
        -------
        Mean [M], and variance [M] or covariance [M, M].
        """
        W = self.whiten(cross)
        known = np.square(W).sum(axis=0) if prior.ndim == 1 else W.T @ W
        return cross.T @ self.b, self.scale * (prior - known)


def root(covariance: Floats) -> Floats:
    """Return A with A A' the covariance, which may be singular."""
    values, vectors = np.linalg.eigh(covariance)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))


def log_density(V: Floats, y: Floats, likelihood: SeriesLikelihood = GAUSSIAN) -> float:
    """`GaussianSeries.log_density` alone, by one triangular solve; V [D, D] is overwritten.

    Parameters
    ----------
    V
        Covariance, [D, D] in Fortran's order; only its lower triangle is read.
    y
        Observed values, [D].
    likelihood
        Gaussian, or another.
    """
    L, failed = dpotrf(V, lower=1, clean=0, overwrite_a=1)
    if failed:
        return np.nan
    white = dtrsv(L, y, lower=1)
    log_determinant = 2.0 * float(np.add.reduce(np.log(L.diagonal())))
    return float(likelihood.log_density(float(white @ white), log_determinant, len(y)))


def log_densities(
    V: Iterable[Floats],
    noise_variance: Sequence[Sequence[Floats | float]],
    y: Floats,
    likelihood: SeriesLikelihood = GAUSSIAN,
) -> Floats:
    """`log_density` of a series under many covariances, at several noise variances each.

    The series borders a covariance as a last row; that of the factor is then L^-1 y.

    Parameters
    ----------
    V
        M covariances without noise, [D, D].
    noise_variance
        L noise variances of each covariance: numbers, or one for each value, [D].
    y
        Observed values, [D].
    likelihood
        Gaussian, or another.

    Returns
    -------
    The log densities, [M, L]; NaN where a matrix is not positive definite.
    """
    D = len(y)
    bordered = matrix(D + 1)
    flat = bordered.T.reshape(-1)
    own, diagonal, border = bordered.T[:D, :D], flat[: -D - 1 : D + 2], flat[D : -D - 1 : D + 1]
    diagonals, borders = [], []
    for covariance, levels in zip(V, noise_variance, strict=True):
        for variance in levels:
            np.copyto(own, covariance)
            diagonal += variance
            border[:], flat[-1] = y, _CORNER
            _, failed = dpotrf(bordered, lower=1, clean=0, overwrite_a=1)
            diagonals.append(diagonal * np.nan if failed else diagonal.copy())
            borders.append(border.copy())
    log_determinant = 2.0 * np.log(diagonals).sum(axis=1)
    q = np.square(borders).sum(axis=1)
    found = likelihood.gain(q, D) - 0.5 * (q + log_determinant + D * LOG_2PI)
    return found.reshape(len(noise_variance), -1)

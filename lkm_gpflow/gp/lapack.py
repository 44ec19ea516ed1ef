"""Gaussian log densities and their gradients by LAPACK, in place, one matrix at a time.

With finite degrees of freedom the scale of V is integrated out: a Student-t, see `student`.  For
matrices of some hundred rows the calls of LAPACK are all the work there is; a batch would only
leave the processor's cache.  `linalg` has the same for TensorFlow.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np
from scipy.linalg.blas import dsyr, dtrsv
from scipy.linalg.lapack import dpotrf, dpotri, dpotrs

from .lags import matrix
from .student import gain, gains, weight
from .types import LOG_2PI, Floats

_CORNER = 1e100
"""Larger than any quadratic form: it keeps a bordered matrix positive definite."""


def root(covariance: Floats) -> Floats:
    """Return A with A A' the covariance, which may be singular."""
    values, vectors = np.linalg.eigh(covariance)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))


def log_density(V: Floats, y: Floats, degrees: float = math.inf) -> float:
    """``log N(y | 0, V)``, or that of a Student-t; V is overwritten.

    Parameters
    ----------
    V
        Covariance, [D, D] in Fortran's order; only its lower triangle is read.
    y
        Observations, [D].
    degrees
        Degrees of freedom; infinite for a Gaussian.

    Returns
    -------
    The log density; NaN where V is not positive definite.
    """
    L, failed = dpotrf(V, lower=1, clean=0, overwrite_a=1)
    if failed:
        return np.nan
    white = dtrsv(L, y, lower=1)
    return _value(L, float(white @ white), degrees)


def log_densities(
    V: Iterable[Floats],
    noise_variance: Sequence[Sequence[float]],
    y: Floats,
    degrees: float = math.inf,
) -> Floats:
    """`log_density` of a series under many covariances, at several noise variances each.

    The series borders a covariance as a last row: that of the factor is L^-1 y.

    Parameters
    ----------
    V
        M covariances without noise, [D, D].
    noise_variance
        L of each of them.
    y
        Observations, [D].
    degrees
        As of `log_density`.

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
    found = gains(q, D, degrees) - 0.5 * (q + log_determinant + D * LOG_2PI)
    return found.reshape(len(noise_variance), -1)


def factorise(V: Floats, y: Floats, degrees: float = math.inf) -> tuple[float, Floats]:
    """As `log_density`, and what the gradient needs: V holds L then, its upper triangle zero.

    Returns
    -------
    The log density (NaN where V is not positive definite), and ``b = V^-1 y``, [D]; of a Student-t
    times the root of its weight, so that its gradient is that of a Gaussian with this b.
    """
    L, failed = dpotrf(V, lower=1, clean=1, overwrite_a=1)
    if failed:
        return np.nan, y
    b, _ = dpotrs(L, y, lower=1)
    q = float(y @ b)
    if not math.isinf(degrees):
        b *= math.sqrt(weight(q, len(y), degrees))
    return _value(L, q, degrees), b


def _value(L: Floats, q: float, degrees: float) -> float:
    """From a factor and the quadratic form to the log density."""
    log_determinant = 2.0 * float(np.add.reduce(np.log(L.diagonal())))
    gaussian = -0.5 * (q + log_determinant + len(L) * LOG_2PI)
    return gaussian if math.isinf(degrees) else gaussian + gain(q, len(L), degrees)


def gradient(L: Floats, b: Floats) -> Floats:
    r"""From `factorise`, by what a change of V changes minus the log density; in the place of L.

    .. math:: -d \log N(y \mid 0, V) = \sum_{ij} G_{ij}\, dV_{ij},
       \qquad G = \tfrac12 (V^{-1} - b b^\top)

    Returns
    -------
    2 G, [D, D], its lower triangle with half the diagonal: the sum of its products with dV is that
    of G with dV.
    """
    G, _ = dpotri(L, lower=1, overwrite_c=1)
    G = dsyr(-1.0, b, lower=1, a=G, overwrite_a=1)
    G.T.reshape(-1)[:: len(G) + 1] *= 0.5
    return G

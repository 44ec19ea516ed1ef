r"""A series at regular times whose covariance is Toeplitz plus a few columns, in O(D^2).

.. math:: V = T + U^\top W U, \qquad T_{ij} = r_{|i - j|}

Levinson's recursion finds how T predicts a value from those before it, a, and with it the
determinant.  The inverse is then a difference of products of triangular Toeplitz matrices (Gohberg
and Semencul 1972), applied by fast Fourier transforms, and Woodbury's identity adds the columns.  A
value that is missing is a column of its own, with a weight that tends to infinity: nothing is
approximated.  `series` has the same for any covariance, in O(D^3).
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import fft

from .likelihoods import GAUSSIAN, SeriesLikelihood
from .types import Floats, Integers

try:  # not public: `durbin` does the same, in four times the time
    from scipy.linalg._solve_toeplitz import levinson
except ImportError:
    levinson = None

_EVEN = 1e-9
"""Times are regular if they are off by a smaller share of a step."""


def are_regular(x: Floats) -> bool:
    """Whether times, [D], are evenly spaced."""
    off = np.abs(x - np.linspace(x[0], x[-1], len(x))).max()
    return bool(off * (len(x) - 1) <= _EVEN * (x[-1] - x[0]))


class RowTransforms:
    """Fourier transforms of rows of D numbers, long enough that products do not wrap around.

    Parameters
    ----------
    D
        Length of the rows.
    """

    def __init__(self, D: int) -> None:
        self.D = D
        self._length = fft.next_fast_len(2 * D, real=True)

    def forward(self, rows: Floats) -> NDArray[np.complex128]:
        """RowTransforms of rows [..., D] or shorter."""
        return np.asarray(fft.rfft(rows, self._length))

    def back(self, transformed: NDArray[np.complex128]) -> Floats:
        """The first D entries of what was transformed, [..., D]."""
        return np.asarray(fft.irfft(transformed, self._length)[..., : self.D])

    def units(self, places: Integers) -> NDArray[np.complex128]:
        """RowTransforms of rows that are one at a place and zero elsewhere."""
        rows = np.zeros((len(places), self.D))
        rows[np.arange(len(places)), places] = 1.0
        return self.forward(rows)


def durbin(r: Floats) -> tuple[Floats, Floats]:
    """Coefficients of the best prediction from D - 1 values before, and partial correlations.

    Parameters
    ----------
    r
        Covariances by lag, [D].

    Returns
    -------
    Both [D - 1].
    """
    phi, partial, error = np.empty(len(r) - 1), np.empty(len(r) - 1), r[0]
    for j in range(len(phi)):
        known = phi[:j]
        phi[j] = partial[j] = (r[j + 1] - known @ r[j:0:-1]) / error
        known -= partial[j] * known[::-1].copy()
        error *= 1.0 - partial[j] ** 2
    return phi, partial


def _predicted(r: Floats) -> tuple[Floats, Floats]:
    """`durbin`, compiled where SciPy has it."""
    if levinson is None:
        return durbin(r)
    phi, partial = levinson(np.concatenate([r[-2:0:-1], r[:-1]]), r[1:].copy())
    return np.asarray(phi), np.asarray(partial)[1:]


class ToeplitzSeries:
    r"""Observed values y of a series with covariance T + U' W U, noise included.

    As `GaussianSeries`; where the covariance is not positive definite, `log_density` is NaN.

    Parameters
    ----------
    r
        T by lag, [D], positive definite by itself.
    transforms
        Of rows of D numbers.
    rows
        RowTransforms of y, of the m columns U and of the units at the g places where y is missing,
        [1 + m + g, F].
    W
        Weights of the columns, [m, m], symmetric; they may be singular or indefinite.
    likelihood
        Gaussian, or another.
    """

    def __init__(
        self,
        r: Floats,
        transforms: RowTransforms,
        rows: NDArray[np.complex128],
        W: Floats,
        likelihood: SeriesLikelihood = GAUSSIAN,
    ) -> None:
        self._transforms, self._likelihood, self._m = transforms, likelihood, len(W)
        self._count = len(r) + 1 + len(W) - len(rows)
        self.log_density = np.nan
        if self._invert(r):
            self._condition(rows, W)

    def _invert(self, r: Floats) -> bool:
        """Find T's inverse and determinant; whether it is positive definite."""
        try:
            phi, partial = _predicted(r)
        except np.linalg.LinAlgError:
            return False
        if not (r[0] > 0.0 and np.all(np.abs(partial) < 1.0)):
            return False
        log_errors = np.log(r[0]) + np.cumsum(np.log1p(-np.square(partial)))
        self._log_determinant = float(np.log(r[0]) + log_errors.sum())
        self._error = float(np.exp(log_errors[-1]))
        self._ab = np.zeros((2, len(r)))
        self._ab[0, 0], self._ab[0, 1:], self._ab[1, 1:] = 1.0, -phi, -phi[::-1]
        self._AB = self._transforms.forward(self._ab)
        return True

    def _condition(self, rows: NDArray[np.complex128], W: Floats) -> None:
        """Add the columns, leave missing values out, and find the density."""
        A, B = self._AB
        self._La, self._Lb = (self._transforms.back(one.conj() * rows) for one in (A, B))
        G = (self._La @ self._La.T - self._Lb @ self._Lb.T) / self._error  # X T^-1 X'
        m, count = self._m, len(rows) - 1
        self._G = G[1:, 1:]
        # W with the limit of infinite weights for missing values, both sides divided by these.
        weights, self._K = np.eye(count), np.zeros((count, count))
        weights[:m, :m] = W
        self._K.flat[: m * count : count + 1] = 1.0
        self._K += weights @ self._G
        sign, log_determinant = np.linalg.slogdet(self._K)
        if not sign > 0.0:
            return
        self._S = np.linalg.solve(self._K, weights)
        self._S = 0.5 * (self._S + self._S.T)
        self._v = np.concatenate([[1.0], -self._S @ G[1:, 0]])
        q = float(G[0] @ self._v)
        self._h = G[1 : 1 + m] @ self._v
        if q > 0.0:
            log_determinant += self._log_determinant
            self._weight = float(self._likelihood.weight(q, self._count))
            self.log_density = float(self._likelihood.log_density(q, log_determinant, self._count))

    @cached_property
    def _M(self) -> Floats:
        """Of X T^-1, the gradient by V without that of T alone, [1 + m + g, 1 + m + g]."""
        M = 0.5 * self._weight * np.outer(self._v, self._v)
        M[1:, 1:] += 0.5 * self._S
        return M

    def gradient(self) -> tuple[Floats, Floats, Floats]:
        """Gradients of `log_density` by r [D], by columns [m, D] and by their weights [m, m]."""
        D, (A, B) = self._transforms.D, self._AB
        forward, back = self._transforms.forward, self._transforms.back
        Z = back(A * forward(self._La) - B * forward(self._Lb)) / self._error  # X T^-1
        MZ = self._M @ Z
        both = np.einsum("pf,pf->f", forward(MZ).conj(), forward(Z))
        k = np.arange(D)
        steps = forward(self._ab * k)
        ones = np.square(np.abs(A)) - np.square(np.abs(B))
        moments = steps[0].conj() * A - steps[1].conj() * B
        by_lag, ones, moments = back(np.array([both, ones, moments]))
        by_lag -= 0.5 * ((D - k) * ones - moments) / self._error
        by_lag[1:] *= 2.0
        m = self._m
        inverse = np.linalg.solve(self._K.T, self._G[:, :m]).T[:, :m] if m else np.empty((0, 0))
        weights = self._weight * np.outer(self._h, self._h)
        weights -= 0.5 * (inverse + inverse.T)
        return by_lag, -2.0 * MZ[1 : 1 + m], 0.5 * weights

r"""Correlations of series as loadings: low rank plus diagonal, found by L-BFGS.

.. math:: R_k[n, m] = w_{kn}^\top w_{km} \; (n \ne m), \qquad R_k[n, n] = 1, \qquad
   w_{kn} = u_{kn} / \sqrt{1 + |u_{kn}|^2}

A series' loading w has a length below one, so every R_k is a correlation matrix, whatever u is.
The covariance of pattern k is :math:`B_k[n, m] = a_{nk} a_{mk} R_k[n, m]`, with a the amplitudes.
The prior :math:`\prod (1 - |w_{kn}|^2)` keeps correlations off one, as that of Lewandowski,
Kurowicka and Joe (2009) does.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import minimize
from scipy.special import gammaln

from ..gp.types import Booleans, Floats
from .density import CoupledDensity

_FAILED = 1e30  # loss where the true one is not a number: the line search goes back
_PRECISION = 1e-7  # L-BFGS ends where the relative gain is smaller


@dataclass(frozen=True)
class Loadings:
    """A point of the search for correlations."""

    u: Floats  # unbounded loadings, [K, N, R]; zero where they are not free
    free: Booleans  # which are free, [K, N, R]
    log_likelihood: float = np.nan

    @classmethod
    def none(cls, K: int, N: int, R: int) -> Loadings:
        """No correlation: every R_k is the identity."""
        return cls(np.zeros((K, N, R)), np.zeros((K, N, R), bool))

    @property
    def w(self) -> Floats:
        """Loadings of length below one, [K, N, R]."""
        return bounded(self.u)

    def column(self, k: int, r: int, values: Floats, free: Booleans) -> Loadings:
        """Put other values into one column of one pattern."""
        u, is_free = self.u.copy(), self.free.copy()
        u[k, :, r], is_free[k, :, r] = np.where(free, values, 0.0), free
        return replace(self, u=u, free=is_free, log_likelihood=np.nan)

    def without(self, k: int) -> Loadings:
        """Let R_k be the identity."""
        u, free = self.u.copy(), self.free.copy()
        u[k], free[k] = 0.0, False
        return replace(self, u=u, free=free, log_likelihood=np.nan)

    def price(self, owners: Booleans, num_times: int) -> float:
        """Return what its freedom costs, in nats, if series have patterns as `owners` [N, K] says.

        Half the logarithm of the number of times for each free number, as in BIC, and the logarithm
        of the number of choices of the series that a column joins (Chen and Chen 2008).
        """
        total = 0.0
        for k, own in enumerate(owners.T):
            joined = self.free[k].sum(axis=0)
            columns, most = int((joined > 0).sum()), int(own.sum())
            series = int(self.free[k].any(axis=1).sum())
            numbers = int(joined.sum()) - columns * (columns - 1) // 2
            numbers = min(numbers, series * (series - 1) // 2)
            total += 0.5 * numbers * np.log(num_times)
            for count in joined[joined > 0]:
                total += gammaln(most + 1) - gammaln(count + 1) - gammaln(most - count + 1)
        return float(total)


def bounded(u: Floats) -> Floats:
    """Loadings w of length below one from any u, [K, N, R]."""
    return u / np.sqrt(1.0 + np.square(u).sum(axis=2, keepdims=True))


def correlations(w: Floats) -> Floats:
    """R [K, N, N] from loadings [K, N, R]."""
    R = w @ w.transpose(0, 2, 1)
    R[:, np.arange(w.shape[1]), np.arange(w.shape[1])] = 1.0
    return R


def covariances(w: Floats, amplitudes: Floats) -> Floats:
    """B [K, N, N] from loadings [K, N, R] and amplitudes [N, K]."""
    a = amplitudes.T
    return correlations(w) * a[:, :, None] * a[:, None, :]


class Climber:
    """Log likelihood and prior as a function of the free loadings, given amplitudes [N, K]."""

    def __init__(self, density: CoupledDensity, amplitudes: Floats) -> None:
        self.density, self.amplitudes = density, amplitudes
        a = amplitudes.T
        self._aa = a[:, :, None] * a[:, None, :]
        self._off = ~np.eye(len(amplitudes), dtype=bool)

    def value(self, u: Floats) -> float:
        """Log likelihood; -inf where it cannot be had."""
        value = self.density.value(covariances(bounded(u), self.amplitudes))
        return value if np.isfinite(value) else -np.inf

    def slope(self, u: Floats) -> tuple[float, Floats]:
        """Log likelihood, and its gradient by the entries of R off the diagonal, [K, N, N]."""
        value, G = self.density.value_and_gradient(covariances(bounded(u), self.amplitudes))
        return value, np.asarray(G * self._aa * self._off)

    def climb(self, at: Loadings, max_iterations: int = 30) -> Loadings:
        """Return the best free loadings from here."""
        if not at.free.any():
            return replace(at, log_likelihood=self.value(at.u))
        u = at.u.copy()

        def evaluate(values: Floats) -> tuple[float, Floats]:
            u[at.free] = values
            value, by_R = self.slope(u)
            if not np.isfinite(value):
                return _FAILED, np.zeros_like(values)
            w, length = bounded(u), 1.0 + np.square(u).sum(axis=2, keepdims=True)
            by_w = 2.0 * by_R @ w
            by_u = (by_w - w * (w * by_w).sum(axis=2, keepdims=True)) / np.sqrt(length)
            by_u -= 2.0 * u / length  # of the prior
            return float(np.log(length).sum()) - value, -by_u[at.free]

        found = minimize(
            evaluate,
            at.u[at.free],
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": max_iterations, "ftol": _PRECISION},
        )
        u[at.free] = found.x
        return replace(at, u=u, log_likelihood=self.value(u))

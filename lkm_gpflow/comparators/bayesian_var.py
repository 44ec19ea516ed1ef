"""A Bayesian vector autoregression of levels, shrunk towards random walks."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np
import pandas as pd
from scipy.linalg import cho_factor, cho_solve, solve_triangular
from scipy.special import multigammaln
from scipy.stats import invwishart

from ..numerics.types import Floats
from .gaps import Ahead
from .registry import register
from .scaled import ScaledForecast
from .statistical import LEVEL, sd_of_interval
from .vector import fit_vector

TIGHTNESS = (0.03, 0.1, 0.2, 0.4, 0.8)
"""Candidates for lambda."""

LOOSENESS = (0.3, 1.0, 3.0, 10.0, 100.0)
"""Candidates for mu; of the last one the dummy observations say next to nothing."""

_CONSTANT = 1e-2
"""Prior precision of the constants, as a root: they are left free."""

_LEAST_STEP = 1e-3
"""Smallest sd of steps, in sds of the series, that the prior is scaled by."""

_DRAWS = 1000
"""Paths that a forecast is summed up from."""


@register("bayesian-var")
@dataclass(frozen=True)
class BayesianVAR:
    r"""A vector autoregression of levels with a Minnesota prior.

    .. math:: y_t = c + \sum_{l=1}^{p} B_l y_{t-l} + e_t, \qquad e_t \sim N(0, \Sigma)

    Before anything is seen each series is a random walk: the coefficient of series j, l rows ago,
    in the equation of series i has the mean one for l = 1 and i = j, else zero, and the sd
    :math:`\lambda \sigma_i / (l \sigma_j)` with the sds of steps (Litterman 1986).  Dummy
    observations of weight :math:`1 / \mu` say that the coefficients on a series' own past add up to
    one (Doan, Litterman and Sims 1984), and that series which stand still go on standing still
    (Sims 1993): so trends may be common.  The prior is conjugate, :math:`\Sigma` inverse Wishart of
    N + 2 degrees of freedom; of 25 pairs :math:`(\lambda, \mu)` the one with the largest marginal
    likelihood is taken (Giannone, Lenza and Primiceri 2015).

    A forecast is the median of 1,000 paths, drawn with their coefficients and errors, and the sd
    that belongs to their central 90% interval.

    Parameters
    ----------
    lags
        p; of fewer than eight rows for each lag it is smaller.
    season
        Steps in a season, see `seasons_of`.
    """

    lags: int = 4
    season: int | None = None

    def fit(self, train: pd.DataFrame, *, seed: int) -> ScaledForecast:
        """Choose the prior's width; the paths follow from the seed."""
        return fit_vector(train, self.season, lambda Y: _learn(Y, self.lags, seed))


@dataclass(frozen=True)
class NormalInverseWishart:
    r"""Coefficients B [K, N] and covariance of errors, the prior of both or their posterior.

    .. math:: \Sigma \sim IW(S, \nu), \qquad B \mid \Sigma \sim MN(\bar B, A^{-1}, \Sigma)

    Parameters
    ----------
    precision
        A, [K, K].
    mean
        :math:`\bar B`, [K, N].
    scale
        S, [N, N].
    degrees
        nu.
    """

    precision: Floats
    mean: Floats
    scale: Floats
    degrees: float

    def given(self, X: Floats, Y: Floats) -> NormalInverseWishart:
        """Return the posterior after rows Y [T, N] were seen with regressors X [T, K]."""
        A = self.precision + X.T @ X
        moment = self.precision @ self.mean
        B = cho_solve(cho_factor(A), moment + X.T @ Y)
        S = self.scale + Y.T @ Y + self.mean.T @ moment - B.T @ A @ B
        return NormalInverseWishart(A, B, 0.5 * (S + S.T), self.degrees + len(Y))

    @property
    def log_normalizer(self) -> float:
        """Log of what its unnormalized density integrates to, without powers of two and pi."""
        N = len(self.scale)
        log_det_A, log_det_S = (np.linalg.slogdet(M)[1] for M in (self.precision, self.scale))
        gamma = float(multigammaln(0.5 * self.degrees, N))
        return gamma - 0.5 * N * float(log_det_A) - 0.5 * self.degrees * float(log_det_S)

    def log_evidence(self, X: Floats, Y: Floats) -> float:
        r"""Return :math:`\log p(Y \mid X)`, coefficients and covariance integrated out."""
        gain = self.given(X, Y).log_normalizer - self.log_normalizer
        return gain - 0.5 * Y.size * float(np.log(np.pi))

    def draws(self, count: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Draw coefficients [count, K, N] and Cholesky factors of the covariance [count, N, N]."""
        N = len(self.scale)
        drawn = invwishart.rvs(self.degrees, self.scale, size=count, random_state=rng)
        factors = np.linalg.cholesky(np.reshape(drawn, (count, N, N)))
        normal = rng.standard_normal((count, *self.mean.shape))
        # A^-1 = L^-T L^-1 with A = L L'.
        rows = solve_triangular(
            np.linalg.cholesky(self.precision),
            normal.transpose(1, 0, 2).reshape(len(self.mean), -1),
            trans="T",
            lower=True,
        )
        rows = rows.reshape(len(self.mean), count, N).transpose(1, 0, 2)
        return self.mean + rows @ factors.transpose(0, 2, 1), factors


def minnesota(Y: Floats, lags: int, tightness: float, looseness: float) -> NormalInverseWishart:
    """Return the prior of `BayesianVAR`.

    Parameters
    ----------
    Y
        Levels as z-scores, [D, N]: their steps and first rows scale it.
    lags
        p.
    tightness, looseness
        lambda and mu.
    """
    N = Y.shape[1]
    sds = np.maximum(np.diff(Y, axis=0).std(axis=0), _LEAST_STEP)
    begin = Y[:lags].mean(axis=0)
    walks = np.zeros((lags * N, N))
    walks[:N] = np.diag(sds)
    own = np.diag(np.outer(np.arange(1, lags + 1), sds).ravel()) / tightness
    still = np.hstack([np.tile(np.vstack([np.eye(N), begin]), lags), np.eye(N + 1)[:, [N]]])
    X = np.vstack([np.hstack([own, np.zeros((lags * N, 1))]), still / looseness])
    target = np.vstack([walks / tightness, np.vstack([np.eye(N), begin]) / looseness])
    free = np.zeros((lags * N + 1,) * 2)
    free[-1, -1] = _CONSTANT**2
    nothing = NormalInverseWishart(free, np.zeros((len(free), N)), np.diag(sds**2), 0.0)
    dummies = nothing.given(X, target)
    return NormalInverseWishart(dummies.precision, dummies.mean, dummies.scale, N + 2.0)


def regressors(Y: Floats, lags: int) -> Floats:
    """Return what rows p, p + 1, ... are explained by: p rows before, the last first, and one."""
    D = len(Y)
    return np.hstack([*(Y[lags - i : D - i] for i in range(1, lags + 1)), np.ones((D - lags, 1))])


def _learn(Y: Floats, most_lags: int, seed: int) -> Ahead:
    lags = min(most_lags, max(1, len(Y) // 8))
    X, seen = regressors(Y, lags), Y[lags:]
    priors = [minnesota(Y, lags, *widths) for widths in product(TIGHTNESS, LOOSENESS)]
    posterior = max(priors, key=lambda prior: prior.log_evidence(X, seen)).given(X, seen)

    def ahead(h: int) -> tuple[Floats, Floats]:
        paths = _paths(posterior, Y[-lags:], h, np.random.default_rng(seed))
        tail = 0.5 - LEVEL / 200
        lower, median, upper = np.quantile(paths, [tail, 0.5, 1.0 - tail], axis=0)
        return median, sd_of_interval(lower, upper)

    return ahead


def _paths(
    posterior: NormalInverseWishart, last: Floats, h: int, rng: np.random.Generator
) -> Floats:
    """Draw the h rows after the last p ones, [p, N]: [draws, h, N]."""
    coefficients, factors = posterior.draws(_DRAWS, rng)
    N = last.shape[1]
    rows = [np.broadcast_to(row, (_DRAWS, N)) for row in last]
    for _ in range(h):
        past = np.hstack([*rows[: -len(last) - 1 : -1], np.ones((_DRAWS, 1))])
        errors = np.einsum("snm,sm->sn", factors, rng.standard_normal((_DRAWS, N)))
        rows.append(np.einsum("sk,skn->sn", past, coefficients) + errors)
    return np.stack(rows[len(last) :], axis=1)

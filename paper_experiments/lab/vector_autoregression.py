r"""A Bayesian vector autoregression of levels, shrunk towards random walks.

.. math:: y_t = c + \sum_{l=1}^{p} B_l y_{t-l} + e_t, \qquad e_t \sim N(0, \Sigma)

Before anything is seen each series is a random walk: the coefficient of series j, l rows ago,
in the equation of series i has the mean one for l = 1 and i = j, else zero, and the sd
:math:`\lambda \sigma_i / (l \sigma_j)` with the sds of steps (Litterman 1986).  Dummy
observations of weight :math:`1 / \mu` say that the coefficients on a series' own past add up to
one (Doan, Litterman and Sims 1984), and that series which stand still go on standing still
(Sims 1993): so trends may be common.  The prior is conjugate, :math:`\Sigma` inverse Wishart of
N + 2 degrees of freedom; of 35 pairs :math:`(\lambda, \mu)` the one with the largest marginal
likelihood is taken (Giannone, Lenza and Primiceri 2015).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice, product

import numpy as np
from scipy.linalg import cho_factor, cho_solve, solve_triangular
from scipy.special import multigammaln
from scipy.stats import invwishart, norm

from lkm_gpflow.comparators.protocol import Ahead
from lkm_gpflow.data.observations import filled
from lkm_gpflow.gp.types import Floats, Integers

LAGS = 4
"""p where nothing else is asked for."""

TIGHTNESS = (0.003, 0.01, 0.03, 0.1, 0.2, 0.4, 0.8)
"""Candidates for lambda; the evidence of many independent walks asks for the smallest."""

LOOSENESS = (0.3, 1.0, 3.0, 10.0, 100.0)
"""Candidates for mu; of the last one the dummy observations say next to nothing."""

_CONSTANT = 1e-2
"""Prior precision of the constants, as a root: they are left free."""

_LEAST_STEP = 1e-3
"""Smallest sd of steps, in sds of the series, that the prior is scaled by."""

_DRAWS = 1000
"""Paths that a forecast is summed up from."""

_SHARE = 1.0 / 9.0
"""Share of the rows: so many steps ahead the coefficients forecast."""

_LEVEL = 0.9
"""Probability of the central interval from whose width the sd is taken."""


def autoregression(x: Floats, Y: Floats, *, seed: int, most_lags: int = LAGS) -> Ahead:
    """Learn from levels, choosing the prior's width.

    A forecast is the median of 1,000 paths, drawn with their coefficients and errors, and the sd
    that belongs to their central 90% interval.  Uncertain coefficients make paths explode in the
    long run.  So after a ninth of the table's length the forecast goes on as that of a walk, with
    the errors alone.  Paths of a series that ended early begin at its last value, and walk through
    the rows that it lacks.

    Parameters
    ----------
    x
        Times, [D].
    Y
        Levels as z-scores, [D, N]; NaN is missing, and filled by straight lines.
    seed
        Of the paths.
    most_lags
        p; of fewer than eight rows for each lag it is smaller.
    """
    missing = np.argmax(np.isfinite(Y[::-1]), axis=0)
    Y = filled(x, Y)
    lags, furthest = min(most_lags, max(1, len(Y) // 8)), max(1, round(_SHARE * len(Y)))
    X, seen = regressors(Y, lags), Y[lags:]
    priors = [minnesota(Y, lags, *widths) for widths in product(TIGHTNESS, LOOSENESS)]
    posterior = max(priors, key=lambda prior: prior.log_evidence(X, seen)).given(X, seen)

    def ahead(h: int) -> tuple[Floats, Floats]:
        rng, tail = np.random.default_rng(seed), 0.5 - 0.5 * _LEVEL
        steps = _steps(posterior, Y[-lags:], missing, rng)
        told = [
            np.quantile(rows, [tail, 0.5, 1.0 - tail], axis=0)
            for rows in islice(steps, min(h, furthest))
        ]
        lower, mean, upper = np.swapaxes(told, 0, 1)
        sd = (upper - lower) / (2.0 * norm.ppf(1.0 - tail))
        steps_ahead = np.arange(1, h + 1)
        near = np.minimum(steps_ahead, furthest) - 1
        further = (steps_ahead - near - 1)[:, None] * posterior.covariance.diagonal()
        return mean[near], np.sqrt(np.square(sd[near]) + further)

    return ahead


def _steps(
    posterior: NormalInverseWishart, last: Floats, missing: Integers, rng: np.random.Generator
) -> Iterator[Floats]:
    """Yield the next steps of 1,000 paths, [S, N] each, for ever."""
    coefficients, factors = posterior.draws(_DRAWS, rng)
    rows = _wandering(factors, last, missing, rng)
    while True:
        past = np.hstack([*rows[::-1], np.ones((len(factors), 1))])
        mean = np.einsum("sk,skn->sn", past, coefficients)
        errors = np.einsum("snm,sm->sn", factors, rng.standard_normal(mean.shape))
        rows = [*rows[1:], mean + errors]
        yield rows[-1]


def _wandering(
    factors: Floats, last: Floats, missing: Integers, rng: np.random.Generator
) -> list[Floats]:
    """Return the last p rows of all paths: they differ where a series had ended, [S, N]."""
    most = int(missing.max())
    steps = rng.standard_normal((most, *factors.shape[:2]))
    errors = np.einsum("snm,tsm->tsn", factors, steps)
    walks = np.cumsum(
        np.where(np.arange(most)[:, None, None] >= most - missing, errors, 0.0), axis=0
    )
    p = len(last)
    walks = np.concatenate([np.zeros((p, *factors.shape[:2])), walks])[-p:]
    return [row + walk for row, walk in zip(last, walks, strict=True)]


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
    def covariance(self) -> Floats:
        """Mean of Sigma, S / (nu - N - 1)."""
        return self.scale / (self.degrees - len(self.scale) - 1.0)

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
    """Return the prior of the module's docstring.

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

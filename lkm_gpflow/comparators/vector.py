"""Vector autoregressions: of differences, by least squares or ridge, and with error correction.

The library statsmodels comes with the extra ``comparators``, like scikit-learn.  A step
is a row of the table, whatever time it takes.  Series are z-scored; a season is taken off as
`Waves`.

These methods have no missing observations.  Gaps are filled by straight lines in time, and a series
that begins late or ends early keeps its first or last value there, because the others need the
rows.  The forecasts take what is filled in for observed: their sds are too small for such series
(one step ahead of a walk that ended 15 of 80 rows ago 0.8 sds of its steps, where 4 are right).
`arima-110`, `dynamic-factor` and `unobserved-components` pass over missing observations instead.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from ..data.observations import filled
from ..data.seasons import Waves, seasons_of
from ..data.tables import Table
from ..gp.types import Floats
from .gaps import Ahead
from .libraries import library
from .registry import register
from .scaled import MIN_SD, ScaledForecast
from .statistical import LEVEL, sd_of_interval

MOST_LAGS = 4
"""Of a vector autoregression; twelve series and a hundred times bear no more."""

MOST_ROOT = 1.05
"""By how much a forecast of levels may grow in one step for ever; those of walks do by one."""


@register("var")
@dataclass(frozen=True)
class DifferencedVAR:
    r"""A vector autoregression of first differences, by least squares (Lütkepohl 2005, chapter 3).

    .. math:: \Delta y_t = c + \sum_{i=1}^{p} A_i \Delta y_{t-i} + e_t, \qquad e_t \sim N(0, \Sigma)

    The order p is chosen by AIC.  Where the covariance of errors is singular, as of two equal
    series, AIC has no value, and a `RidgeVAR` of order one is fitted.

    Parameters
    ----------
    season
        Steps in a season, see `seasons_of`.
    """

    season: int | None = None

    def fit(self, train: pd.DataFrame, *, seed: int) -> ScaledForecast:
        """Choose the order and fit; nothing is random."""
        return fit_vector(train, self.season, _least_squares)


@register("ridge-var")
@dataclass(frozen=True)
class RidgeVAR:
    """`DifferencedVAR` of order `lags`, its coefficients shrunk to zero equation by equation.

    The covariance of errors is that of the residuals of equations that were fitted without the time
    in question.

    Parameters
    ----------
    lags
        p.
    season
        Steps in a season, see `seasons_of`.
    """

    lags: int = 2
    season: int | None = None

    def fit(self, train: pd.DataFrame, *, seed: int) -> ScaledForecast:
        """Choose the penalties by leaving one time out; nothing is random."""
        return fit_vector(train, self.season, lambda Y: _ridge(Y, self.lags))


@register("vecm")
@dataclass(frozen=True)
class VECM:
    r"""Vector error correction (Johansen 1995), with a constant and one lagged difference.

    .. math:: \Delta y_t = \alpha \beta^\top y_{t-1} + \Gamma \Delta y_{t-1} + c + e_t

    The rank is that of Johansen's trace test at 5%.  At rank zero, or where the fit is singular or
    explodes (a root beyond `MOST_ROOT`), it is a VAR of differences.

    Parameters
    ----------
    season
        Steps in a season, see `seasons_of`.
    """

    season: int | None = None

    def fit(self, train: pd.DataFrame, *, seed: int) -> ScaledForecast:
        """Choose the rank and fit; nothing is random."""
        return fit_vector(train, self.season, _error_correction)


def fit_vector(
    train: pd.DataFrame, season: int | None, learn: Callable[[Floats], Ahead]
) -> ScaledForecast:
    """Fit z-scores of all series together, seasons taken off and gaps filled.

    Parameters
    ----------
    train, season
        As of the comparators.
    learn
        From the z-scores, [D, N], to their forecasts.
    """
    table = Table.of(train)
    x, Y = table.observations.x, table.observations.table[1]
    waves, rows = Waves.of(Y, seasons_of(table, season)), np.arange(len(Y))
    bare = filled(x, Y - waves.at(rows))  # a value that is carried on would bend the season
    with warnings.catch_warnings():
        # An index without a frequency, orders that the data do not bear.
        warnings.simplefilter("ignore")
        ahead = learn(bare)

    def predict(times: Floats) -> tuple[Floats, Floats]:
        mean, sd = ahead(len(times))
        return mean + waves.at(len(Y) + np.arange(len(times))), np.square(np.maximum(sd, MIN_SD))

    return ScaledForecast(table, predict)


def _least_squares(Y: Floats) -> Ahead:
    if Y.shape[1] == 1:  # the library has no vector of one
        return _ridge(Y, 1)
    _check_rows(Y, 2 * Y.shape[1] + 3)
    model = library("statsmodels.tsa.api").VAR(np.diff(Y, axis=0))
    # At least three equations' worth of times for each coefficient.
    most = max(1, min(MOST_LAGS, (len(Y) // 3 - 1) // Y.shape[1]))
    try:
        fitted = model.fit(maxlags=most, ic="aic", trend="c")
    except np.linalg.LinAlgError:
        return _ridge(Y, 1)
    if fitted.k_ar == 0:
        coefs = np.zeros((0, Y.shape[1], Y.shape[1]))
        constant = np.diff(Y, axis=0).mean(axis=0)
    else:
        coefs, constant = fitted.coefs, fitted.intercept
    return lambda h: integrate(Y, coefs, constant, np.asarray(fitted.sigma_u), h)


def _check_rows(Y: Floats, least: int) -> None:
    if len(Y) < least:
        raise ValueError(f"expected at least {least} rows for {Y.shape[1]} series, got {len(Y)}")


def _ridge(Y: Floats, lags: int) -> Ahead:
    _check_rows(Y, lags + 5)
    linear = library("sklearn.linear_model")
    steps = np.diff(Y, axis=0)
    N = Y.shape[1]
    past = np.hstack([steps[lags - i : len(steps) - i] for i in range(1, lags + 1)])
    target = steps[lags:]
    coefs, constant, residuals = np.empty((lags, N, N)), np.empty(N), np.empty_like(target)
    left, values, _ = np.linalg.svd(past - past.mean(axis=0), full_matrices=False)
    for n in range(N):
        model = linear.RidgeCV(alphas=np.logspace(-2, 4, 25)).fit(past, target[:, n])
        coefs[:, n] = model.coef_.reshape(lags, N)
        constant[n] = model.intercept_
        leverage = np.square(left) @ (values**2 / (values**2 + model.alpha_)) + 1.0 / len(past)
        residuals[:, n] = (target[:, n] - model.predict(past)) / (1.0 - leverage)
    sigma = residuals.T @ residuals / len(target)
    return lambda h: integrate(Y, coefs, constant, sigma, h)


def _error_correction(Y: Floats) -> Ahead:
    if Y.shape[1] == 1:
        return _ridge(Y, 1)
    vecm = library("statsmodels.tsa.vector_ar.vecm")
    _check_rows(Y, 2 * Y.shape[1] + 4)
    try:
        rank = vecm.select_coint_rank(Y, det_order=0, k_ar_diff=1, signif=0.05).rank
        if rank == 0:
            return _least_squares(Y)
        fitted = vecm.VECM(Y, k_ar_diff=1, coint_rank=rank, deterministic="co").fit()
    except np.linalg.LinAlgError:
        return _least_squares(Y)
    if _largest_root(fitted.var_rep) > MOST_ROOT:
        return _least_squares(Y)

    def ahead(h: int) -> tuple[Floats, Floats]:
        mean, lower, upper = fitted.predict(steps=h, alpha=1.0 - LEVEL / 100)
        return mean, sd_of_interval(lower, upper)

    return ahead


def _largest_root(coefs: Floats) -> float:
    """The spectral radius of a vector autoregression of levels, A [p, N, N]."""
    p, N, _ = coefs.shape
    companion = np.eye(p * N, k=-N)
    companion[:N] = np.hstack(list(coefs))
    return float(np.abs(np.linalg.eigvals(companion)).max())


def integrate(
    Y: Floats, coefs: Floats, constant: Floats, sigma: Floats, h: int
) -> tuple[Floats, Floats]:
    r"""Forecast levels from a vector autoregression of their differences.

    With the moving average weights :math:`\Psi_0 = I, \Psi_j = \sum_i A_i \Psi_{j-i}` of the
    differences, an error of h steps in the levels is :math:`\sum_j \Theta_j e_{h-j}` with
    :math:`\Theta_j = \sum_{i \le j} \Psi_i`.

    Parameters
    ----------
    Y
        Levels, [D, N].
    coefs, constant, sigma
        A [p, N, N], c [N] and the covariance of the errors [N, N].
    h
        Steps.

    Returns
    -------
    Means and sds of the next h levels, [h, N] each.
    """
    p, N = len(coefs), Y.shape[1]
    steps = list(np.diff(Y, axis=0)[len(Y) - 1 - p :])
    psi: list[Floats] = [np.eye(N)]
    for j in range(h):
        lagged = [coefs[i] @ steps[-1 - i] for i in range(p)]
        steps.append(constant + np.sum(lagged, axis=0) if p else constant)
        terms = [coefs[i] @ psi[j - i] for i in range(min(p, j + 1))]
        psi.append(np.sum(terms, axis=0) if terms else np.zeros((N, N)))
    mean = Y[-1] + np.cumsum(steps[p:], axis=0)
    theta = np.cumsum(psi[:h], axis=0)
    variance = np.cumsum(np.einsum("hij,jk,hik->hi", theta, sigma, theta), axis=0)
    return mean, np.sqrt(variance)

"""Whether what a fit leaves unexplained looks like noise."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.linalg import cholesky, solve_triangular
from scipy.stats import chi2, shapiro

from ..discovery.result import Discovery
from ..gp import limits
from ..gp.types import Floats

LAGS = 10
"""Autocorrelations that are tested together, or a fifth of the observations if that is less."""

_LAST = 1000  # times that are looked at where all would be too many
_FEWEST = 8  # with fewer observations nothing is tested


@dataclass(frozen=True)
class ResidualTests:
    """Tests of the residuals of one series; a p-value is NaN where observations are too few."""

    residuals: pd.Series  # One-step forecast errors in their own standard deviations
    autocorrelation: float  # p-value of Ljung and Box (1978): small if errors are correlated
    normality: float  # p-value of Shapiro and Wilk (1965): small if errors are not Gaussian


def whitened(found: Discovery) -> list[pd.Series]:
    r"""Return the one-step forecast errors of every series in their standard deviations.

    .. math:: r = s_n^{-1/2} L^{-1} x_n, \quad L L^\top = \sum_k z_{nk} C_k + \sigma_n^2 I

    with s_n the expected scale of the series (one if it has none) are independent standard normal
    if the fit is right; r_i is how far x_i was from what the observations before it said.  Of more
    than `LKM.LONGEST` times only the last 1,000 count, as if no others had come before.
    """
    fit, first = found.fit, 0
    if len(found.table.frame) > limits.LONGEST:
        first = len(found.table.frame) - _LAST
    frame, x = found.table.frame.iloc[first:], found.table.observations.x[first:]
    observations = found.table.observations
    mask, Y = observations.mask[:, first:], observations.Y[:, first:]
    noise = observations.noise(fit.noise_variance)[:, first:]
    predictor = found.predictors.of(fit)
    C, scales = predictor.covariances(x), predictor.scales(fit.Z)
    residuals = []
    for n, name in enumerate(frame.columns):
        seen = mask[n] > 0.0
        V = np.tensordot(fit.Z[n], C, axes=1) + np.diag(noise[n])
        L = cholesky(V[np.ix_(seen, seen)], lower=True)
        values = solve_triangular(L, Y[n][seen], lower=True) / np.sqrt(scales[n])
        residuals.append(pd.Series(values, frame.index[seen], name=name))
    return residuals


def residual_tests(found: Discovery) -> list[ResidualTests]:
    """Test the residuals of every series."""
    tests = []
    for residuals in whitened(found):
        values = residuals.to_numpy()
        enough = len(values) >= _FEWEST
        tests.append(
            ResidualTests(
                residuals,
                ljung_box(values) if enough else np.nan,
                float(shapiro(values).pvalue) if enough else np.nan,
            )
        )
    return tests


def ljung_box(values: Floats) -> float:
    r"""Return the p-value of the test of Ljung and Box (1978) for no autocorrelation of values [D].

    .. math:: Q = D (D + 2) \sum_{h=1}^{H} \frac{\hat\rho_h^2}{D - h} \sim \chi^2_H

    with H = `LAGS`, or a fifth of D if that is less.
    """
    D = len(values)
    centred = values - values.mean()
    h = np.arange(1, max(1, min(LAGS, D // 5)) + 1)
    rho = np.array([centred[i:] @ centred[:-i] for i in h]) / (centred @ centred)
    return float(chi2.sf(D * (D + 2) * np.sum(np.square(rho) / (D - h)), len(h)))

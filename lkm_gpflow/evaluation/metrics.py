"""Scores of Gaussian forecasts against what happened.

Observations y and forecasts are arrays or data frames [M, N]: rows are time points, columns series.
A NaN observation is missing and ignored; a forecast of an observed value must be finite, so that a
method cannot improve its score by declining to forecast.  An sd includes the noise and is positive.
Scores are in the units of the data, except MNLP (nats), coverage and MASE.

References
----------
Gneiting and Raftery 2007, *Strictly Proper Scoring Rules, Prediction, and Estimation*.
Hyndman and Koehler 2006, *Another Look at Measures of Forecast Accuracy*.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from .predictive import normal_crps, normal_nlpd

Matrix = NDArray[np.float64]


@dataclass(frozen=True)
class Scores:
    r"""Scores of a forecast of N series at M times, with observations y, means mu and sds s.

    .. math::
        \mathrm{RMSE} &= \frac{1}{N} \sum_n \sqrt{\frac{1}{M_n} \sum_m (y_{mn} - \mu_{mn})^2} \\
        \mathrm{MNLP} &= \operatorname{mean}_{mn}
            -\log \mathcal{N}(y_{mn} \mid \mu_{mn}, s_{mn}^2) \\
        \mathrm{CRPS} &= \operatorname{mean}_{mn} \int (F_{mn}(x) - 1[x \ge y_{mn}])^2 \, dx

    Missing observations do not count.
    """

    rmse: float  #: Root mean squared error per series, averaged over series (the paper's)
    rmse_pooled: float  #: The same over all cells
    mnlp: float  #: Mean negative log predictive density over all cells, in nats
    crps: float  #: Continuous ranked probability score (Gneiting and Raftery 2007), in units
    coverage90: float  #: Share of observations inside the central 90% interval


def score(test: ArrayLike, mean: ArrayLike, sd: ArrayLike) -> Scores:
    """Score a Gaussian forecast in every way at once.

    Arrays are [M, N], or DataFrames of the same labels.  A ValueError says if their shapes or
    labels differ, nothing was observed, or the forecast of an observed value is not finite or has
    an sd that is not positive.
    """
    Y, mu, s = _matrices(test, mean=mean, sd=sd)
    seen = ~np.isnan(Y)
    if np.any(s[seen] <= 0.0):
        raise ValueError(f"sd: expected positive numbers, got {s[seen].min()}.")
    squares = np.square(Y - mu)
    inside = squares <= np.square(ndtri(0.95) * s)
    return Scores(
        rmse=float(np.nanmean(np.sqrt(_column_means(squares)))),
        rmse_pooled=float(np.sqrt(np.nanmean(squares))),
        mnlp=float(np.nanmean(normal_nlpd(Y, mu, np.square(s)))),
        crps=float(np.nanmean(normal_crps(Y, mu, s))),
        coverage90=float(np.mean(inside[seen])),
    )


def mase(y: ArrayLike, mean: ArrayLike, train: ArrayLike) -> float:
    r"""Mean absolute scaled error per series, averaged over series; y and mean are [M, N].

    .. math::
        \frac{1}{N} \sum_n \frac{\operatorname{mean}_m |y_{mn} - \mu_{mn}|}
            {\operatorname{mean}_t |x_{tn} - x_{t-1,n}|}

    The scale is the error, inside the training part x [T, N], of carrying the last value one step
    forward (Hyndman and Koehler 2006).  Steps next to a missing observation do not count, and a
    series without observations is left out.

    Raises
    ------
    ValueError
        As every score; and if an observed series never changes, or has no two successive
        observations, in its training part.
    """
    Y, mu = _matrices(y, mean=mean)
    X = _matrix("train", train)
    if X.shape[1] != Y.shape[1]:
        raise ValueError(f"train: expected {Y.shape[1]} columns, got shape {X.shape}.")
    steps = mean_steps(X)
    unscaled = np.flatnonzero(~np.isnan(Y).all(axis=0) & ~(steps > 0))
    if unscaled.size:
        raise ValueError(f"train: expected series that change, got no change in {unscaled}.")
    return mase_of_steps(Y, mu, steps)


def mean_steps(train: Matrix) -> Matrix:
    """Mean absolute steps of series, [T, N] to [N], by which `mase` divides; NaN without steps."""
    return _column_means(np.abs(np.diff(train, axis=0)))


def mase_of_steps(y: Matrix, mean: Matrix, steps: Matrix) -> float:
    """Return `mase` for known mean steps, [N]; NaN if an observed series takes none."""
    seen = ~np.isnan(y).all(axis=0)
    errors = _column_means(np.abs(y - mean))[seen]
    return float(np.mean(errors / np.where(steps > 0.0, steps, np.nan)[seen]))


def _matrix(name: str, value: ArrayLike) -> Matrix:
    """Return a value as a float matrix; a ValueError says if it is none."""
    if isinstance(value, pd.DataFrame):
        value = value.to_numpy(dtype=np.float64, na_value=np.nan)  # pandas' own NA included
    matrix = np.asarray(value, dtype=np.float64)
    if matrix.ndim != 2:
        raise ValueError(f"{name}: expected shape [M, N], got shape {matrix.shape}.")
    return matrix


def _matrices(y: ArrayLike, **forecasts: ArrayLike) -> list[Matrix]:
    """Return observations and forecasts as matrices of one shape, labels and values checked."""
    Y = _matrix("y", y)
    observed = ~np.isnan(Y)
    if not observed.any():
        raise ValueError(f"y: expected at least one observation, got shape {Y.shape} of NaN.")
    matrices = [Y]
    for name, forecast in forecasts.items():
        F = _matrix(name, forecast)
        if F.shape != Y.shape:
            raise ValueError(f"{name}: expected shape {Y.shape}, got shape {F.shape}.")
        if (
            isinstance(y, pd.DataFrame)
            and isinstance(forecast, pd.DataFrame)
            and not (y.index.equals(forecast.index) and y.columns.equals(forecast.columns))
        ):
            raise ValueError(f"{name}: expected the labels of y, got other rows or columns.")
        if not np.isfinite(F[observed]).all():
            raise ValueError(f"{name}: expected finite forecasts of observed values, got others.")
        matrices.append(F)
    return matrices


def _column_means(values: Matrix) -> Matrix:
    """Mean over the rows that are not NaN, [N]; NaN, without a warning, where there is none."""
    count = np.sum(~np.isnan(values), axis=0)
    means = np.full(values.shape[1], np.nan)
    np.divide(np.nansum(values, axis=0), count, out=means, where=count > 0)
    return means

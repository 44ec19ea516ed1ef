"""Which series are modelled by their logarithms, if nobody says: a likelihood ratio for each."""

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from ..gp.types import Booleans, Floats

ORDERS = (1, 3, 12)
"""Orders of the autoregressions that are asked: all must agree."""

STRONG = 10.0
"""Nats that the logarithm must gain, by each order.

Chosen on the last windows of tables of the benchmark that choose defaults.  It leaves the prices of
the paper's four data sets as they are.
"""

_ONE_UNIT = 10.0
"""Series whose medians differ by a smaller factor may be of one unit."""

_MOST = 0.75
"""Share of the series of one unit, with the one that is asked, that must want the logarithm."""

_EXACT = 1e-14
"""A mean squared error that is less of the mean square is one of rounding."""

_ROWS_PER_COEFFICIENT = 3
"""An order is asked if there are so many complete rows for each of its coefficients."""


def wants_logarithm(values: Floats) -> Booleans:
    """Which of N series [D, N] are better described by their logarithms, [N]; see `log_gain`.

    Where most series of one magnitude are, as those of one unit, the others are, too, unless they
    are clearly better described as they are.
    """
    gains = np.array([log_gain(column) for column in values.T])
    chosen: Booleans = gains >= STRONG
    with np.errstate(invalid="ignore"):
        positive = ~np.any(values <= 0.0, axis=0)
        size = np.log(np.abs(np.nanmedian(values, axis=0)) + 1e-300)
    open_ = positive & ~chosen & (np.abs(gains) < STRONG)
    for n in np.flatnonzero(open_):
        near = positive & (np.abs(size - size[n]) < np.log(_ONE_UNIT))
        chosen[n] = near.sum() > 2 and (gains[near] >= STRONG).sum() >= _MOST * near.sum()
    return chosen


def log_gain(values: Floats) -> float:
    r"""By how many nats an autoregression of the logarithms describes a series better.

    .. math:: \ell^* - \ell, \qquad
       \ell = -\tfrac n2 \log \hat\sigma^2, \qquad
       \ell^* = -\tfrac n2 \log \hat\sigma_*^2 - \sum_t \log y_t

    with :math:`\hat\sigma^2` the mean squared error of the least squares regression of
    :math:`y_t` on a constant and the values before it, :math:`\hat\sigma_*^2` that of
    :math:`\log y_t`; the sum is the Jacobian (Box and Cox 1964, *An analysis of transformations*).
    Swings that grow with the level make it large.  Of `ORDERS` the one that gains least counts:
    what only one of them sees may be the shape of a season.

    Parameters
    ----------
    values
        [D], at equal steps; missing observations are NaN.

    Returns
    -------
    Zero where nothing can be said: too few values, or one that is not positive.
    """
    seen = values[np.isfinite(values)]
    if not len(seen) or np.any(seen <= 0.0):
        return 0.0
    # Units make no difference, but regressions of tiny or huge numbers would.
    values = values / np.exp(np.log(seen).mean())
    gains = [gain for order in ORDERS if (gain := _gain(values, order)) is not None]
    return min(gains, default=0.0)


def _gain(values: Floats, order: int) -> float | None:
    if len(values) <= order:
        return None
    rows = sliding_window_view(values, order + 1)
    rows = rows[np.isfinite(rows).all(axis=1)]
    if len(rows) < _ROWS_PER_COEFFICIENT * (order + 1):
        return None
    logs = np.log(rows)
    errors = _mean_squared_error(rows), _mean_squared_error(logs)
    if any(
        error <= _EXACT * np.mean(np.square(each[:, -1]))
        for error, each in zip(errors, (rows, logs), strict=True)
    ):
        return None
    return float(-0.5 * len(rows) * np.log(errors[1] / errors[0]) - logs[:, -1].sum())


def _mean_squared_error(rows: Floats) -> float:
    """Of the last column regressed on a constant and those before it."""
    before = np.column_stack([np.ones(len(rows)), rows[:, :-1]])
    coefficients = np.linalg.lstsq(before, rows[:, -1], rcond=None)[0]
    return float(np.mean(np.square(rows[:, -1] - before @ coefficients)))

"""Weighted sums of series: their moments, and where logarithms are modelled their quantiles.

A sum of lognormals has a mean and a variance in closed form, but no quantiles: these are drawn.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..data.transforms import Transforms
from ..gp.lapack import root
from ..gp.types import Floats
from .prediction import Prediction

DRAWS = 20_000
"""The ends of a 90% interval then have a standard error of 0.15% in probability."""


def sum_moments(
    predictions: Sequence[Prediction], correlations: Sequence[Floats | None], weights: Floats
) -> list[Prediction]:
    """Return weight, mean and variance of a weighted sum of series by every forecaster, [M] each.

    Parameters
    ----------
    predictions
        In the units of the series.
    correlations
        Of the series at every time, [M, N, N]; None: they are independent.
    weights
        Of the series, [N].
    """
    some = np.flatnonzero(weights)  # the variance of another may be infinite
    sums = []
    for (share, mean, variance), correlation in zip(predictions, correlations, strict=True):
        sd = np.sqrt(variance[:, some]) * weights[some]
        others = sd if correlation is None else _between(sd, correlation[:, some][:, :, some])
        sums.append((share[:, 0], mean[:, some] @ weights[some], (sd * others).sum(axis=1)))
    return sums


def _between(values: Floats, matrices: Floats) -> Floats:
    """Multiply rows [M, n] by matrices [M, n, n]."""
    return np.asarray(np.einsum("mi,mij->mj", values, matrices))


def sum_quantiles(
    predictions: Sequence[Prediction],
    correlations: Sequence[Floats | None],
    transforms: Transforms,
    weights: Floats,
    quantiles: Sequence[float],
) -> Floats:
    r"""Quantiles of weighted sums of series at every time.

    .. math:: \sum_n w_n g_n(y_n), \qquad y_n \sim \sum_f p_f N(m_{fn}, v_{fn})

    with g the way back to the units of a series; series of one forecaster f are normal, with its
    correlations.  All times share their random numbers, so that intervals do not flutter.

    Parameters
    ----------
    predictions
        On the modelled scale.
    correlations
        See `sum_moments`.
    transforms
        Of the series.
    weights
        Of the series, [N].
    quantiles
        Probabilities, [Q].

    Returns
    -------
    [Q, M].
    """
    places = np.flatnonzero(weights)
    some, rng = transforms.of_series(places), np.random.default_rng(0)
    normal = rng.standard_normal((DRAWS, len(places)))
    shares = np.hstack([weight for weight, _, _ in predictions])
    shares = np.cumsum(shares, axis=1) / shares.sum(axis=1, keepdims=True)
    # Every forecaster has its share of the draws, to the nearest draw.
    wanted = (np.arange(DRAWS) + 0.5) / DRAWS
    told = []
    for m, share in enumerate(shares):
        which = np.searchsorted(share, wanted)
        values = np.empty_like(normal)
        for f, (_, mean, variance) in enumerate(predictions):
            own, correlation = normal[which == f], correlations[f]
            if correlation is not None:
                own = own @ root(correlation[m][np.ix_(places, places)]).T
            values[which == f] = mean[m, places] + np.sqrt(variance[m, places]) * own
        told.append(np.quantile(some.back(values) @ weights[places], quantiles))
    return np.reshape(told, (-1, len(quantiles))).T

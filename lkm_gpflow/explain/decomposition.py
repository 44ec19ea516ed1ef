"""What every component contributes to every series over the history."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.stats import norm

from ..discovery.result import Discovery
from ..forecast.mixture import mixture_moments
from ..gp.types import Floats

MOST_SERIES = 200
"""So many are taken apart at a time: each is a posterior over all times, and a page to read."""

_SURELY = 0.95
"""A component rises or falls if its posterior does, and its ends differ with this probability."""


@dataclass(frozen=True)
class Decomposition:
    r"""The components of every series over the history, on average over the fits of the search.

    Each fit speaks of its most probable Z,

    .. math:: f_k \mid x_n \sim \mathcal{N}(C_{*k} V^{-1} x_n,\;
       C_{**k} - C_{*k} V^{-1} C_{*k}^\top)

    where :math:`z_{nk} = 1`, zero elsewhere; moments are those of the mixture over the fits.  In
    standard deviations of the series.
    """

    # Of every component at the times of the table, [K, D, N].
    mean: Floats
    sd: Floats
    trend: Floats  # 1 where a component rises throughout, -1 where it falls, 0 elsewhere, [N, K]
    # Variance over time of the means, and last that of the noise, [N, K + 1]; of several fits the
    # shares of these in each, averaged.
    variance: Floats
    has: Floats  # which series has which component, 0 or 1, [N, K]
    others: Floats  # as `variance`, of components that are not among these, [N]

    @classmethod
    def of(cls, found: Discovery) -> Decomposition:
        """Take a discovery apart; a ValueError says if it has more than `MOST_SERIES` series."""
        check_few(found)
        consensus, x = found.consensus, found.table.observations.x
        moments, variances = [], []
        for fit, weight in zip(consensus.fits, consensus.weights, strict=True):
            predictor, sums = found.predictors.of(fit), consensus.sums(fit)
            mean, variance = predictor.sums(x, sums, Z=fit.Z)
            at_ends = predictor.sums(x[[0, -1]], sums, full_cov=True, Z=fit.Z)
            moments.append((float(weight), mean, variance, *_gain(*at_ends)))
            own = np.column_stack([mean.var(axis=2), predictor.noise(fit.Z)])
            variances.append(own if len(consensus.fits) == 1 else own / own.sum(axis=1)[:, None])
        mean, variance = mixture_moments([each[:3] for each in moments])
        gain = mixture_moments([(each[0], *each[3:]) for each in moments])
        by_part = np.tensordot(consensus.weights, variances, axes=1)
        K = len(consensus.kernels)
        parts = np.arange(K + 2) != K
        return cls(
            mean[:, :K].transpose(1, 2, 0),
            np.sqrt(np.maximum(variance[:, :K], 0.0)).transpose(1, 2, 0),
            _trend(mean[:, :K], gain[0][:, :K], gain[1][:, :K]),
            by_part[:, parts],
            consensus.Z,
            by_part[:, K],
        )

    @property
    def share(self) -> Floats:
        """Share of each component, and last of the noise, in the variation of a series, [N, K + 1].

        The variances that add up to one are those of the posterior means over time, those of
        `others` among them, and of the noise.
        """
        return self.variance / self._whole

    @property
    def share_of_others(self) -> Floats:
        """Share of the components that are not among these, [N]."""
        return self.others / self._whole[:, 0]

    @property
    def _whole(self) -> Floats:
        whole: Floats = self.variance.sum(axis=1, keepdims=True) + self.others[:, None]
        return whole


def check_few(found: Discovery) -> None:
    """Raise a ValueError if a discovery has more than `MOST_SERIES` series."""
    columns = list(found.table.frame.columns)
    if len(columns) > MOST_SERIES:
        raise ValueError(
            f"expected at most {MOST_SERIES} series to report on, got {len(columns)}: choose "
            f"some, for example found.select({columns[:3]})"
        )


def _gain(mean: Floats, covariance: Floats) -> tuple[Floats, Floats]:
    """Mean and variance of the difference between the last and the first time, [N, G]."""
    variance = covariance[..., 0, 0] + covariance[..., 1, 1] - 2.0 * covariance[..., 0, 1]
    return mean[..., 1] - mean[..., 0], np.maximum(variance, 0.0)


def _trend(mean: Floats, gain: Floats, variance: Floats) -> Floats:
    """Direction of every component [N, K, D] that surely has one, [N, K]."""
    is_sure = np.abs(gain) > norm.ppf(_SURELY) * np.sqrt(variance)
    steps = np.diff(mean, axis=2)
    one_way = np.all(steps >= 0.0, axis=2) | np.all(steps <= 0.0, axis=2)
    return np.where(is_sure & one_way, np.sign(gain), 0.0)

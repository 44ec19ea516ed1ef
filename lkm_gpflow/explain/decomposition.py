"""What every component contributes to every series over the history."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.stats import norm

from ..discovery.result import Discovery
from ..numerics.types import Floats

MOST_SERIES = 200
"""So many are taken apart at a time: each is a posterior over all times, and a page to read."""

_SURELY = 0.95
"""A component rises or falls if its posterior does, and its ends differ with this probability."""


@dataclass(frozen=True)
class Decomposition:
    r"""The components of the best fit, given its most probable Z.

    .. math:: f_k \mid x_n \sim \mathcal{N}(C_{*k} V^{-1} x_n,\;
       C_{**k} - C_{*k} V^{-1} C_{*k}^\top)

    where :math:`z_{nk} = 1`; zero elsewhere.  In standard deviations of the series.

    Parameters
    ----------
    mean, sd
        Of every component at the times of the table, [K, D, N].
    trend
        1 where a component rises throughout, -1 where it falls, 0 elsewhere, [N, K].
    variance
        Variance over time of the means, and last that of the noise, [N, K + 1].
    """

    mean: Floats
    sd: Floats
    trend: Floats
    variance: Floats

    @classmethod
    def of(cls, found: Discovery) -> Decomposition:
        """Take a discovery apart.

        Raises
        ------
        ValueError
            If it has more than `MOST_SERIES` series.
        """
        columns = list(found.table.frame.columns)
        if len(columns) > MOST_SERIES:
            raise ValueError(
                f"expected at most {MOST_SERIES} series to report on, got {len(columns)}: choose "
                f"some, for example found.select({columns[:3]})"
            )
        x = found.table.observations.x[:, None]
        Z = found.fit.Z
        mean, variance = (np.asarray(m) for m in found.model.predict_components(x, Z=Z))
        over_time = mean.var(axis=1).T
        return cls(
            mean,
            np.sqrt(variance),
            _trend(found, mean),
            np.column_stack([over_time, found.model.predict_noise(Z)]),
        )

    @property
    def share(self) -> Floats:
        """Share of each component, and last of the noise, in the variation of a series, [N, K + 1].

        The variances that add up to one are those of the posterior means over time and of the
        noise.
        """
        return self.variance / self.variance.sum(axis=1, keepdims=True)


def _trend(found: Discovery, mean: Floats) -> Floats:
    """Direction of every component that surely has one, [N, K]."""
    x = found.table.observations.x
    K = len(found.names)
    at_ends, covariance = (
        np.asarray(m)
        for m in found.model.predict_sums(x[[0, -1], None], np.eye(K), True, found.fit.Z)
    )
    gain = at_ends[..., 1] - at_ends[..., 0]
    variance = covariance[..., 0, 0] + covariance[..., 1, 1] - 2.0 * covariance[..., 0, 1]
    is_sure = np.abs(gain) > norm.ppf(_SURELY) * np.sqrt(np.maximum(variance, 0.0))
    steps = np.diff(mean, axis=1)
    one_way = np.all(steps >= 0.0, axis=1) | np.all(steps <= 0.0, axis=1)
    return np.where(is_sure & one_way.T & (gain != 0.0), np.sign(gain), 0.0)

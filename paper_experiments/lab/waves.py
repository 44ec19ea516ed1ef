"""A season as a sum of waves, for methods that have none: taken off before and put back after."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lkm_gpflow.gp.types import Floats, Integers

MOST_WAVES = 6  # of a season; twelve months are exact with six

_MIN_PER_COEFFICIENT = 3
"""Observations for the waves; of seasons of up to twelve steps three must have been seen."""


@dataclass(frozen=True)
class Waves:
    r"""A season of m steps, estimated from differences so that trends and walks do not disturb it.

    .. math:: s_t = \sum_{k=1}^{K} a_k \cos(2 \pi k t / m) + b_k \sin(2 \pi k t / m)

    with K = min(`MOST_WAVES`, m // 2), by least squares of :math:`\Delta y_t` on a constant and
    the waves of :math:`\Delta s_t`.  Differences with a gap at either end do not count.  Series
    with less than three observations for each coefficient have no waves: they would explain the
    noise, and what is left would look certain.
    """

    season: int  # m; one for no season
    coefficients: Floats  # a and b of every series, [2 K, N]

    @classmethod
    def of(cls, Y: Floats, seasons: Sequence[int]) -> Waves:
        """Estimate the season of every column of Y, [D, N]; NaN is missing.

        Each column has the same season, or one step for none.
        """
        season = max(seasons)
        basis = _basis(np.arange(len(Y), dtype=np.int32), season)
        coefficients = np.zeros((basis.shape[1], Y.shape[1]))
        regressors = np.column_stack([np.ones(len(Y) - 1), np.diff(basis, axis=0)])
        # Of an even season the shortest sine is zero.
        least = _MIN_PER_COEFFICIENT * min(regressors.shape[1], season)
        for n, moves in enumerate(np.diff(Y, axis=0).T):
            seen = np.isfinite(moves)
            if seasons[n] > 1 and seen.sum() + 1 >= least:
                found = np.linalg.lstsq(regressors[seen], moves[seen], rcond=None)[0]
                coefficients[:, n] = found[1:]
        return cls(season, coefficients)

    def at(self, steps: Integers) -> Floats:
        """Return the season at some steps [M], [M, N]."""
        return _basis(steps, self.season) @ self.coefficients


def _basis(steps: Integers, season: int) -> Floats:
    waves = np.arange(1, min(MOST_WAVES, season // 2) + 1)
    angles = 2.0 * np.pi * np.outer(steps, waves) / season
    return np.hstack([np.cos(angles), np.sin(angles)])

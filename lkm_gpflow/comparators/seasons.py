"""Seasons for methods that have none: a sum of waves, taken off before and put back after."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..data.tables import Table
from ..numerics.types import Floats
from .naive import season_length

MAX_SEASON = 12
"""Longer seasons are not modelled unless asked for."""

MIN_SEASONS = 3
"""So many seasons must have been seen for a season to be modelled unasked."""

MOST_WAVES = 6
"""Of a season; twelve months are exact with six."""


def checked_season(table: Table, season: int | None) -> int:
    """Return the steps in a season, one for none.

    Parameters
    ----------
    table
        The training data.
    season
        What was asked for.  None: by the frequency of the index, where it is at most `MAX_SEASON`
        and `MIN_SEASONS` of it were seen, otherwise one.

    Raises
    ------
    ValueError
        If the season is longer than the table, or not positive.
    """
    num_times = len(table.frame)
    if season is None:
        found = season_length(table)
        return found if found <= MAX_SEASON and MIN_SEASONS * found <= num_times else 1
    if not 1 <= season < num_times:
        raise ValueError(f"expected a season of 1 to {num_times - 1} steps, got {season}")
    return season


@dataclass(frozen=True)
class Waves:
    r"""A season of m steps, estimated from differences so that trends and walks do not disturb it.

    .. math:: s_t = \sum_{k=1}^{K} a_k \cos(2 \pi k t / m) + b_k \sin(2 \pi k t / m)

    with K = min(`MOST_WAVES`, m // 2), by least squares of :math:`\Delta y_t` on a constant and
    the waves of :math:`\Delta s_t`.  Differences with a gap at either end do not count.

    Parameters
    ----------
    season
        m; one for no season.
    coefficients
        a and b of every series, [2 K, N].
    """

    season: int
    coefficients: Floats

    @classmethod
    def of(cls, Y: Floats, season: int) -> Waves:
        """Estimate the season of every column of Y, [D, N]; NaN is missing."""
        basis = _basis(0, len(Y), season)
        coefficients = np.zeros((basis.shape[1], Y.shape[1]))
        regressors = np.column_stack([np.ones(len(Y) - 1), np.diff(basis, axis=0)])
        for n, steps in enumerate(np.diff(Y, axis=0).T):
            seen = np.isfinite(steps)
            # The least norm where steps are fewer than waves.
            coefficients[:, n] = np.linalg.lstsq(regressors[seen], steps[seen], rcond=None)[0][1:]
        return cls(season, coefficients)

    def at(self, first: int, count: int) -> Floats:
        """Return the season at `count` steps from `first` on, [count, N]."""
        return _basis(first, count, self.season) @ self.coefficients


def _basis(first: int, count: int, season: int) -> Floats:
    steps = np.arange(first, first + count)
    waves = np.arange(1, min(MOST_WAVES, season // 2) + 1)
    angles = 2.0 * np.pi * np.outer(steps, waves) / season
    return np.hstack([np.cos(angles), np.sin(angles)])


def interpolated(table: Table) -> Floats:
    """Return the z-scores with gaps filled by straight lines in time, [D, N].

    The first and last observation are carried to the ends.
    """
    observations = table.observations
    columns = [
        np.interp(observations.x, observations.x[mask > 0.0], y[mask > 0.0])
        for y, mask in zip(observations.Y, observations.mask, strict=True)
    ]
    return np.column_stack(columns)

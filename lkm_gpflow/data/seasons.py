"""Seasons by the frequency of the index; and, for methods that have none, a sum of waves.

The waves are taken off before and put back after.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..gp.types import Floats, Integers
from .observations import Observations
from .tables import Table

MAX_SEASON = 12  # comparators model longer seasons only if they are asked to
MIN_SEASONS = 3  # so many seasons must have been seen for a season to be modelled unasked
MOST_WAVES = 6  # of a season; twelve months are exact with six

MIN_PER_COEFFICIENT = 3
"""Observations for the waves; for seasons of up to twelve steps the same as `MIN_SEASONS`."""


def season_length(table: Table) -> int:
    """Return the steps in a season by the grid of the dates, one where there is none.

    A season is a year of months, quarters or weeks, a week of days, and a day of anything shorter:
    24 hours, 48 half-hours.  Every second week has 26 steps; every second day, of which a week has
    no whole number, has no season.  Of a timetable a season is a day, or a week if the table has
    one row a day: ten rows of office hours, six of Monday to Saturday.
    """
    return table.axis.season


def checked_season(table: Table, season: int) -> int:
    """Return a season that was asked for; a ValueError says if it is longer than the table."""
    most = len(table.frame) - 1
    if not 1 <= season <= most:
        raise ValueError(f"expected a season of 1 to {most} steps, got {season}")
    return season


def seasons_of(table: Table, season: int | None) -> list[int]:
    """Return the steps in a season of every series, one for none, or the one that was asked for.

    Unasked it is that of the index, where it is at most `MAX_SEASON` and was seen often enough.
    """
    observations = table.observations
    if season is not None:
        return [checked_season(table, season)] * observations.num_series
    by_frequency = season_length(table)
    return seen_seasons(observations, by_frequency if by_frequency <= MAX_SEASON else 1)


def seen_seasons(observations: Observations, season: int) -> list[int]:
    """Return the steps in a season of every series, one where too few seasons were seen.

    `MIN_SEASONS` of it must lie between the first and the last observation of a series.
    """
    begins, stops = observations.ends
    return [season if season <= most else 1 for most in (stops - begins) // MIN_SEASONS]


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
    def of(cls, Y: Floats, seasons: Sequence[int], steps: Integers | None = None) -> Waves:
        """Estimate the season of every column of Y, [D, N]; NaN is missing.

        Each column has the same season, or one step for none.  `steps` are the numbers of the rows
        where some rows are absent, such as holidays.
        """
        season = max(seasons)
        steps = np.arange(len(Y), dtype=np.int32) if steps is None else steps
        basis = _basis(steps, season)
        coefficients = np.zeros((basis.shape[1], Y.shape[1]))
        regressors = np.column_stack([np.diff(steps), np.diff(basis, axis=0)])
        # Of an even season the shortest sine is zero.
        least = MIN_PER_COEFFICIENT * min(regressors.shape[1], season)
        for n, moves in enumerate(np.diff(Y, axis=0).T):
            seen = np.isfinite(moves)
            if seasons[n] > 1 and seen.sum() + 1 >= least:
                found = np.linalg.lstsq(regressors[seen], moves[seen], rcond=None)[0]
                coefficients[:, n] = found[1:]
        return cls(season, coefficients)

    def at(self, steps: Integers | Floats) -> Floats:
        """Return the season at some steps [M], also between them, [M, N]."""
        return _basis(steps, self.season) @ self.coefficients


def _basis(steps: Integers | Floats, season: int) -> Floats:
    waves = np.arange(1, min(MOST_WAVES, season // 2) + 1)
    angles = 2.0 * np.pi * np.outer(steps, waves) / season
    return np.hstack([np.cos(angles), np.sin(angles)])

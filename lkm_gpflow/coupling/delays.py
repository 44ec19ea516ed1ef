r"""Series that do the same some rows after others: their delays, and rows without them.

A series that follows by d rows is moved d rows back, so that what goes together stands in one row;
then delays are no matter any more.  As kernels may begin at the first time (RW) no series goes
before it: those that lead are moved to later rows instead.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np

from ..data.observations import Observations
from ..gp.types import Floats, Integers

MOST_ROWS = 24  # of a delay; in short tables an eighth of the rows
_NEARER = 0.01  # nats that a delay costs for each row: of two as good the shorter one is taken


def most_rows(num_times: int) -> int:
    """Return the longest delay that is looked for."""
    return min(MOST_ROWS, num_times // 8)


def later(x: Floats, rows: Integers, grid: Floats) -> Floats:
    """Times so many rows later than x [P]; between rows of the grid in proportion."""
    step = (grid[-1] - grid[0]) / (len(grid) - 1)
    far = 1e6
    known = np.concatenate([[grid[0] - far * step], grid, [grid[-1] + far * step]])
    number = np.concatenate([[-far], np.arange(len(grid)), [len(grid) - 1 + far]])
    return np.asarray(np.interp(np.interp(x, known, number) + rows, number, known))


def aligned(observations: Observations, delays: Integers, ahead: Floats) -> Observations:
    """Return the observations with rows moved, as `ahead` [>= largest delay] goes on with times."""
    most, (N, D) = int(delays.max(initial=0)), observations.Y.shape
    Y, mask = np.zeros((2, N, D + most))
    for n, rows in enumerate(most - delays):
        Y[n, rows : rows + D], mask[n, rows : rows + D] = observations.Y[n], observations.mask[n]
    return Observations(np.concatenate([observations.x, ahead[:most]]), Y, mask)


def best_delays(gains: Floats, least: float) -> Integers:
    """Delays [N] along the pairs of series that promise most, the shortest of them zero.

    `gains` [2 L + 1, N, N] are nats that correlations of series n and m promise if m follows n by
    -L to L rows; a pair must promise the `least` to count, and a delay that much beyond none.
    """
    L, N = len(gains) // 2, gains.shape[1]
    gains = gains - _NEARER * np.abs(np.arange(-L, L + 1))[:, None, None]
    most = gains.max(axis=0)
    rows = np.where(most > gains[L] + least, gains.argmax(axis=0) - L, 0)
    group, delays = np.arange(N), np.zeros(N, np.int32)
    for n, m in sorted(combinations(range(N), 2), key=lambda pair: -most[pair]):
        if group[n] != group[m] and most[n, m] > least:
            joined = group == group[m]
            delays[joined] += delays[n] + rows[n, m] - delays[m]
            group[joined] = group[n]
    for own in np.unique(group):  # most series of a group stay where the others are
        each, counts = np.unique(delays[group == own], return_counts=True)
        delays[group == own] -= each[counts.argmax()]
    delays -= delays.min()
    return delays if delays.max() <= L else np.zeros(N, np.int32)

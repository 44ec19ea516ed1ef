"""Times with their different lags: from values by lag to matrices, and sums over lags back."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from .types import Floats, Integers

_LAG_DIGITS = 13
"""Lags (in spans) that agree to so many decimals are one."""

_WALKS = 4
"""How many walks of different starts a grid remembers."""

_LONG, _LONGEST = 500, 1000
"""Of more times a grid takes many megabytes, and hundreds."""


class Lags:
    """Times [D], and R different lags between two of them: what stationary kernels look at.

    Parameters
    ----------
    x
        Scaled times, [D], sorted.
    lags
        [R], increasing.
    """

    def __init__(self, x: Floats, lags: Floats) -> None:
        self.x, self.lags = x, lags


class LagGrid(Lags):
    """Times [D] with the places of their lags, for matrices over pairs of times.

    A stationary kernel is evaluated once for every lag.  On a regular grid these are D, and a
    matrix and its sums over lags are views of its memory with other strides; elsewhere they are
    looked up.

    Parameters
    ----------
    x
        Scaled times, [D], sorted.
    """

    def __init__(self, x: Floats) -> None:
        D = len(x)
        distances = np.abs(x[:, None] - x[None, :]).ravel()
        _, first, lag_of_pair = np.unique(
            distances.round(_LAG_DIGITS), return_index=True, return_inverse=True
        )
        super().__init__(x, distances[first])
        self.lag_of_pair: Integers = lag_of_pair.reshape(-1).astype(np.int32)
        steps = np.abs(np.subtract.outer(np.arange(D), np.arange(D)))
        self._is_regular = np.array_equal(self.lag_of_pair, steps.ravel())
        self._lookup = self.lag_of_pair.astype(np.intp).reshape(D, D)
        # Places of the lower triangle in memory (columns one after the other), sorted by lag.
        columns, rows = np.triu_indices(D)
        lag = self._lookup[rows, columns]
        order = np.argsort(lag, kind="stable")
        self._lower = (columns * D + rows)[order]
        self._first = np.searchsorted(lag[order], np.arange(len(self.lags)))
        self._walks: dict[float, Floats] = {}
        self._ones = np.ones(D)

    def spread(self, by_lag: Floats) -> Floats:
        """From values by lag [R] to a new matrix over pairs of times [D, D]."""
        return np.array(self._view(by_lag) if self._is_regular else by_lag[self._lookup])

    def spread_into(self, by_lag: Floats, out: Floats, *, add: bool = False) -> None:
        """As `spread`, into a matrix that is there; added to what is in it, if wanted."""
        values = self._view(by_lag) if self._is_regular else by_lag[self._lookup]
        if add:
            out += values
        else:
            np.copyto(out, values)

    def collect(self, lower: Floats) -> Floats:
        """Sums over all pairs of a lag, [R], of a matrix whose upper triangle is zero.

        Parameters
        ----------
        lower
            [D, D] in Fortran's order; of memory with D numbers to spare (`matrix`) on a regular
            grid, or it is copied.
        """
        D = len(self.x)
        if not self._is_regular:
            flat = lower.ravel(order="F")
            return np.add.reduceat(flat[self._lower], self._first)
        if not _has_spare(lower):
            copy = matrix(D)
            copy[...] = lower
            lower = copy
        # Every column a place further down: what is below the diagonal of the next is zero.
        return self._ones @ np.ndarray((D, D), np.float64, lower.base, 0, (8 * (D + 1), 8))

    def walk(self, start: float) -> Floats:
        """``max(min(x, x') - start, 0)``, [D, D], not to be written to."""
        walk = self._walks.get(start)
        if walk is None:
            walk = np.maximum(np.minimum.outer(self.x, self.x) - start, 0.0)
            if len(self._walks) >= _WALKS:
                self._walks.clear()  # another thread may look for its own right now
            self._walks[start] = walk
        return walk

    def _view(self, by_lag: Floats) -> Floats:
        """Return the symmetric Toeplitz matrix as a view."""
        D = len(by_lag)
        both_ways = np.concatenate([by_lag[:0:-1], by_lag])
        return np.ndarray((D, D), np.float64, both_ways, 8 * (D - 1), (-8, 8))


def matrix(D: int) -> Floats:
    """Return a matrix of zeros, [D, D] in Fortran's order, for `LagGrid.collect`."""
    return np.zeros(D * D + D)[: D * D].reshape(D, D, order="F")


def _has_spare(A: Floats) -> bool:
    """Whether memory goes on for D numbers after a matrix: whether `matrix` made it."""
    return A.base is not None and A.base.shape == (len(A) * (len(A) + 1),)


def _grid_of(times: bytes) -> LagGrid:
    return LagGrid(np.frombuffer(times))


_short, _long = lru_cache(maxsize=32)(_grid_of), lru_cache(maxsize=8)(_grid_of)
_longest = lru_cache(maxsize=1)(_grid_of)


def lag_grid(x: Floats) -> LagGrid:
    """Return the grid of these times, [D]; the last ones are remembered, of long ones fewer."""
    grid_of = _short if len(x) <= _LONG else _long if len(x) <= _LONGEST else _longest
    return grid_of(x.tobytes())

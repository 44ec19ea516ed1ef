"""The vector autoregression that forecasts average over, beside fits of a search and walks.

Kernels say what a series does by itself.  What all series did last says something, too: some lead,
some are drawn together.  `learning.vector_autoregression` knows such things and nothing of
patterns, so it speaks only of what comes after the data, and is weighed as all others are
(`stacking.weigh`).  A step is a row of the table.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice

import numpy as np

from ..data.observations import Observations
from ..data.seasons import Waves, season_length, seen_seasons
from ..data.tables import Table
from ..learning.vector_autoregression import VectorAutoregression
from ..numerics.types import Floats, Integers
from ..runtime.executors import single_threaded
from .held_out import HeldOut, Past, Window, nothing_told, score, windows

MOST_SERIES = 50
"""Of more series it is not asked: its coefficients grow with the square of their number."""

_LEAST_SEEN = 0.8
"""Share of the steps that are rows, and of the values of each series that are there.

Gaps are filled by straight lines, and then taken for observed.
"""

_LEAST_SD = 1e-3
"""Smallest sd of a forecast, in sds of its series."""

_SAME = 1e-9
"""Times that differ by less, in spans of the table, are the same."""


def season_of(table: Table) -> int | None:
    """Return the steps in a season of a table, one for none; None if it cannot be asked.

    It cannot of one series or of more than `MOST_SERIES`, nor if rows are no steps of time, nor if
    more than a fifth of the steps or of a series is missing.
    """
    observations = table.observations
    if not 2 <= observations.num_series <= MOST_SERIES:
        return None
    if observations.mask.mean(axis=1).min() < _LEAST_SEEN or not _has_steps(table):
        return None
    return season_length(table)


def _has_steps(table: Table) -> bool:
    """Whether rows are steps of time, of which few are missing."""
    rows = len(table.frame) - 1
    try:
        grid = table.axis.after(table.frame.index[0], int(rows / _LEAST_SEEN) + 1)
    except ValueError:  # it leaves the calendar
        return False
    steps = 1 + np.searchsorted(table.scaled_times(grid), 1.0 - _SAME)
    return bool(_LEAST_SEEN * steps <= rows <= steps / _LEAST_SEEN)


@dataclass(frozen=True)
class Ahead:
    """A vector autoregression of scaled observations: seasons come off first, and on again after.

    Parameters
    ----------
    learnt
        Without seasons, gaps filled.
    waves
        The seasons.
    filled
        The rows, [D, N].
    missing
        By so many rows a series ends before the table, [N].
    """

    learnt: VectorAutoregression
    waves: Waves
    filled: Floats
    missing: Integers

    @classmethod
    @single_threaded()
    def of(cls, observations: Observations, season: int) -> Ahead:
        """Learn it from scaled observations."""
        filled, (_, stops) = observations.filled, observations.ends
        waves = Waves.of(observations.table[1], seen_seasons(observations, season))
        learnt = VectorAutoregression.of(filled - waves.at(0, len(filled)))
        return cls(learnt, waves, filled, len(filled) - stops)

    @single_threaded()
    def moments(self, h: int, seed: int) -> tuple[Floats, Floats]:
        """Return mean and variance of the next h rows, [h, N] each.

        A series that ended some rows ago is as uncertain as so many rows further ahead.
        """
        mean, sd = self.learnt.ahead(h + int(self.missing.max()), seed)
        places = np.arange(h)[:, None] + self.missing
        sd = np.maximum(np.take_along_axis(sd, places, axis=0), _LEAST_SD)
        return mean[:h] + self.waves.at(len(self.filled), h), np.square(sd)

    @single_threaded()
    def paths(self, count: int, h: int, rng: np.random.Generator) -> Floats:
        """Draw paths of the next h rows, [count, h, N]."""
        drawn = np.stack(list(islice(self.learnt.paths(count, rng), h)), axis=1)
        return np.asarray(drawn + self.waves.at(len(self.filled), h))


@dataclass(frozen=True, eq=False)
class Autoregression:
    """The vector autoregression as a part of a forecast.

    Parameters
    ----------
    table
        All series, from which it is learnt.
    weight
        Its weight in the average of forecasts; fits have the rest.
    seed
        Of its paths.
    places
        Of the series that it speaks of; None: of all.
    """

    table: Table
    weight: float
    seed: int
    places: Integers | None = None

    def of_series(self, places: Integers) -> Autoregression:
        """Return what it says of some of its series."""
        return replace(self, places=places if self.places is None else self.places[places])

    def observed(self, x: Floats) -> tuple[Floats, Floats]:
        """Mean and variance of new observations at scaled times, [M, N] each.

        Between two steps they lie on straight lines; within the data, of which this does not speak,
        they are zero.
        """
        x = np.maximum(x, 1.0)
        grid = self._steps(x)
        mean, variance = self._ahead.moments(len(grid) - 1, self.seed)
        mean = np.concatenate([self._ahead.filled[-1:], mean])
        variance = np.concatenate([np.zeros_like(variance[:1]), variance])
        is_ahead = (x > 1.0)[:, None]
        mean, variance = (
            np.where(is_ahead, self._between(x, grid, each), 0.0) for each in (mean, variance)
        )
        return mean, variance

    def samples(self, count: int, x: Floats, rng: np.random.Generator) -> Floats:
        """Draw paths at scaled times after the data, [count, N, M]."""
        grid = self._steps(x)
        drawn = self._ahead.paths(count, len(grid) - 1, rng)
        now = np.broadcast_to(self._ahead.filled[-1], (count, 1, drawn.shape[2]))
        return self._between(x, grid, np.concatenate([now, drawn], axis=1)).swapaxes(1, 2)

    def held_out_forecast(self, window: Window) -> HeldOut:
        """Forecast a window of the past from what came before it, see `held_out_forecast`."""
        told = held_out_forecast(self.table.observations, self._season, window)
        places = slice(None) if self.places is None else self.places
        return HeldOut(told.mean[places], told.variance[places])

    def _steps(self, x: Floats) -> Floats:
        """Return scaled times of the last row and the steps after it, as far as x goes."""
        table, furthest = self.table, x.max() - _SAME
        count = max(1, round((furthest - 1.0) * (len(table.frame) - 1)))
        while True:
            grid = table.scaled_times(table.axis.after(table.frame.index[-1], count))
            if grid[-1] >= furthest:
                return np.concatenate([[1.0], grid])
            count += 1 + count // 10

    def _between(self, x: Floats, grid: Floats, values: Floats) -> Floats:
        """Read values at steps, [..., steps, N], off at times x: [..., M, n]."""
        right = np.clip(np.searchsorted(grid, x - _SAME), 1, len(grid) - 1)
        share = ((x - grid[right - 1]) / (grid[right] - grid[right - 1]))[:, None]
        places = slice(None) if self.places is None else self.places
        some = values[..., places]
        return (1.0 - share) * some[..., right - 1, :] + share * some[..., right, :]

    @property
    def _season(self) -> int:
        return season_of(self.table) or 1

    @cached_property
    def _ahead(self) -> Ahead:
        return Ahead.of(self.table.observations, self._season)


def held_out_forecast(
    observations: Observations, season: int, window: Window, seed: int = 0
) -> HeldOut:
    """Learn a vector autoregression from what came before a window, and forecast the window."""
    past = Past.of(observations, window)
    if past is None:
        return nothing_told(observations, window)
    mean, variance = Ahead.of(past.observations, season).moments(window.end - window.begin, seed)
    return past.back(mean.T, variance.T)


def held_out_scores(observations: Observations, season: int) -> list[float]:
    """Score it on windows of the past, as fits are (`held_out.held_out_score`)."""
    every = windows(len(observations.x))
    return [
        score(held_out_forecast(observations, season, window), observations, window)
        for window in every
    ]

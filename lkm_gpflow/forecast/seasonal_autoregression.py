"""A vector autoregression of a table with seasons and gaps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..data.observations import Observations, filled
from ..data.seasons import Waves
from ..gp.types import Floats, Integers
from ..runtime.threads import single_threaded
from .vector_autoregression import LAGS, Moments, VectorAutoregression, between

_MOST_WALKS = 10.0
"""A forecast has exploded if its sd is more than so many times that of a random walk with the same
steps: on 108 windows of real tables the largest is 4.5 times that of a walk."""

_LEAST_SD = 1e-3
"""Smallest sd of a forecast, in sds of its series."""


@dataclass(frozen=True, eq=False)
class SeasonalAutoregression:
    """A `VectorAutoregression` of what seasons leave; its forecasts have the seasons again.

    Rows that are absent, such as holidays, are skipped, but count in the season.

    Parameters
    ----------
    learnt
        Without seasons, gaps filled.
    waves
        The seasons.
    last
        Number of the step of the last row.
    rate
        Rows in a step: one unless rows are absent.
    step
        Root mean square of the steps of every series from row to row, [N].
    seed
        Of the paths that a forecast is summed up from.
    """

    learnt: VectorAutoregression
    waves: Waves
    last: int
    rate: float
    step: Floats
    seed: int

    @classmethod
    @single_threaded()
    def of(
        cls,
        observations: Observations,
        seasons: Sequence[int],
        seed: int,
        *,
        steps: Integers | None = None,
        lags: int = LAGS,
    ) -> SeasonalAutoregression:
        """Learn it.

        Parameters
        ----------
        observations
            Scaled.
        seasons
            Steps in a season of every series, see `data.seasons.seen_seasons`.
        seed
            See above.
        steps
            Numbers of the rows; None: no rows are absent.
        lags
            See `VectorAutoregression.of`.
        """
        Y = observations.table[1]
        steps = np.arange(len(Y), dtype=np.int32) if steps is None else steps
        waves = Waves.of(Y, seasons, steps)
        # First the seasons: a value that is carried over a gap would bend them.
        bare = filled(observations.x, Y - waves.at(steps))
        missing = (len(Y) - observations.ends[1]).astype(np.int32)
        learnt = VectorAutoregression.of(bare, lags, missing)
        last, step = int(steps[-1]), np.sqrt(np.square(np.diff(bare, axis=0)).mean(axis=0))
        return cls(learnt, waves, last, (len(Y) - 1) / (last - int(steps[0])), step, seed)

    def moments(self, steps: Floats) -> tuple[Floats, Floats]:
        """Return mean and variance so many steps after the last row, [M, N] each.

        Between two steps both lie on straight lines.  Before the first step they are those of the
        first: nothing is said of what happens within a step.
        """
        told, rows = self._told, self._rows(steps)
        near = np.minimum(rows, self.learnt.furthest)
        mean, variance = between(near, told.mean), between(near, np.square(told.sd))
        further = (rows - near)[:, None] * self.learnt.posterior.covariance.diagonal()
        variance = np.maximum(variance + further, _LEAST_SD**2)
        return mean + self.waves.at(self.last + np.maximum(steps, 1.0)), variance

    @property
    def explodes(self) -> bool:
        """Whether it runs away from its series, as after an outlier in the last row."""
        told, ahead = self._told, np.arange(1, self.learnt.furthest + 1)[:, None]
        walks = (
            _MOST_WALKS * np.maximum(self.step, _LEAST_SD) * np.sqrt(ahead + self.learnt.missing)
        )
        # The mean may move in proportion to time, as a trend does.
        is_far = np.abs(told.mean - self.learnt.last[-1]) > walks * np.sqrt(ahead)
        return bool(np.any(is_far | (told.sd > walks)))

    def correlations(self, steps: Floats) -> Floats:
        """Return correlations of the series, [M, N, N], those of the nearest step."""
        nearest = np.minimum(self._rows(steps), self.learnt.furthest).round().astype(int)
        return self._told.correlations[nearest - 1]

    @single_threaded()
    def samples(self, count: int, steps: Floats, rng: np.random.Generator) -> Floats:
        """Draw paths so many steps after the last row, [count, M, N]."""
        drawn = self.learnt.samples(count, self._rows(steps), rng)
        return drawn + self.waves.at(self.last + np.maximum(steps, 1.0))

    def _rows(self, steps: Floats) -> Floats:
        return np.maximum(steps * self.rate, 1.0)

    @cached_property
    @single_threaded()
    def _told(self) -> Moments:
        return self.learnt.moments(self.seed)

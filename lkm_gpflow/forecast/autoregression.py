"""The vector autoregression as one of the forecasters of an ensemble.

Kernels say what a series does by itself.  What all series did last says something, too: some lead,
some are drawn together.  A vector autoregression knows such things and nothing of patterns, so it
speaks only of what comes after the data.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ..data.observations import Observations
from ..data.seasons import season_length, seen_seasons
from ..data.tables import Table
from ..fit.fits import FitSettings
from ..gp.types import Floats, Integers
from .held_out import IMPOSSIBLE, HeldOut, Past, Window, nothing_told, score_of_window, windows
from .seasonal_autoregression import SeasonalAutoregression

if TYPE_CHECKING:
    from .forecasters import Kind
    from .predictors import Predictors

MOST_SERIES = 50
"""Of more series it is not asked: its coefficients grow with the square of their number."""

_MOST_MISSING = 0.2
"""Share of the steps, or of the values of a series, that may be missing: gaps are filled by
straight lines, and then taken for observed."""

_MOST_STEPS = 10_000
"""Further ahead dates are not looked up: a step takes the time of an average one."""


@dataclass(frozen=True)
class Calendar:
    """Which steps of time the rows of a table are.

    Parameters
    ----------
    steps
        Numbers of the rows, [D], from zero on; rows may be absent.
    season
        Steps in a season, one for none.
    """

    steps: Integers
    season: int

    @classmethod
    def of(cls, table: Table) -> Calendar | None:
        """Read it off a table; None if a vector autoregression cannot be asked.

        That is so of one series, of more than `MOST_SERIES`, of counts and shares, of rows at
        irregular times, and if more than a fifth of the steps or of a series is missing.
        """
        observations, rows = table.observations, len(table.frame)
        if not 2 <= observations.num_series <= MOST_SERIES or table.transforms.links:
            return None
        if observations.mask.mean(axis=1).min() < 1.0 - _MOST_MISSING:
            return None
        steps = _steps_of_rows(table)
        if np.any(np.diff(steps) < 1) or rows - 1 < (1.0 - _MOST_MISSING) * steps[-1]:
            return None
        return cls(steps, season_length(table))

    @property
    def note(self) -> str:
        """Key under which a ledger keeps how the windows were forecast: other dates, other key."""
        dates = zlib.crc32(self.steps.tobytes())
        return f"weighed autoregression, season of {self.season}, {dates}"


def _steps_of_rows(table: Table) -> Integers:
    """Return the steps next to the rows, [D].

    They are of the frequency of the index or, where it has none, of a typical distance of rows.
    """
    axis, x = table.axis, table.observations.x
    if axis.grid is None:
        count = np.clip(1.0 / np.median(np.diff(x)), len(x) - 1, 2 * len(x)).round()
        return np.round(x * count).astype(np.int32)
    grid = _grid(table, table.frame.index[0], 0.0, int(len(x) / (1.0 - _MOST_MISSING)))
    return np.searchsorted(0.5 * (grid[1:] + grid[:-1]), x).astype(np.int32)


def _grid(table: Table, first: object, x: float, count: int) -> Floats:
    """Return scaled times of a row, x, and so many steps after it, as far as dates can tell."""
    try:
        return np.concatenate([[x], table.scaled_times(table.axis.after(first, count))])
    except ValueError:  # they leave what dates can tell
        return np.array([x, x + table.axis.step / table.span])


@dataclass(frozen=True, eq=False)
class LearntOnce:
    """The vector autoregression of a table, learnt when it is asked for the first time.

    Parameters
    ----------
    table
        Of all series.
    calendar
        The steps that its rows are.
    seed
        Of the paths that it is summed up from.
    """

    table: Table
    calendar: Calendar
    seed: int

    @cached_property
    def learnt(self) -> SeasonalAutoregression:
        """What it says of the steps after the last row."""
        return _learn(self.table.observations, self.calendar, self.seed)

    def steps(self, x: Floats) -> Floats:
        """Return by how many steps scaled times lie after the last row, [M]; also between two."""
        a_step = 1.0 / self.calendar.steps[-1]
        count = int(np.clip(np.ceil((x.max(initial=1.0) - 1.0) / a_step), 1, _MOST_STEPS))
        grid = _grid(self.table, self.table.frame.index[-1], 1.0, count)
        further = np.maximum(x - grid[-1], 0.0) / a_step
        return np.interp(x, grid, np.arange(len(grid))) + further


@dataclass(frozen=True, eq=False)
class Autoregression:
    """The vector autoregression of a table as a forecaster; see `forecasters.BaseForecaster`.

    Parameters
    ----------
    whole
        What it says of all series.
    weight
        Its weight in forecasts.
    places
        Of the series that it is asked for; None: of all.
    """

    whole: LearntOnce
    weight: float
    places: Integers | None = None

    kind: ClassVar[Kind] = "autoregression"
    is_ahead_only: ClassVar[bool] = True

    @classmethod
    def of(cls, table: Table, seed: int, weight: float = 0.0) -> Autoregression | None:
        """Return that of a table; None if there can be none, see `Calendar.of`."""
        calendar = Calendar.of(table)
        return None if calendar is None else cls(LearntOnce(table, calendar, seed), weight)

    @property
    def note(self) -> str:
        """See `Calendar.note`."""
        return self.whole.calendar.note

    def held_out_scores(self, observations: Observations, settings: FitSettings) -> list[float]:
        """Score it on windows of the past; one that explodes after the last row has no chance."""
        calendar, every = self.whole.calendar, windows(len(observations.x))
        if _learn(observations, calendar, seed=0).explodes:
            return [IMPOSSIBLE] * len(every)
        return [
            score_of_window(
                _held_out_forecast(observations, calendar, window), observations, window
            )
            for window in every
        ]

    def held_out(
        self, observations: Observations, window: Window, settings: FitSettings
    ) -> HeldOut:
        """Forecast a window of the past from what all series did before it."""
        every = self.whole.table.observations
        told = _held_out_forecast(every, self.whole.calendar, window)
        return HeldOut(told.mean[self._which], told.variance[self._which])

    def moments(self, x: Floats, asked: Predictors) -> tuple[Floats, Floats]:
        """Mean and variance of new observations, [M, N] each; zero within the data."""
        mean, variance = self.whole.learnt.moments(self.whole.steps(x))
        is_ahead = (x > 1.0)[:, None]
        return (
            np.where(is_ahead, mean[:, self._which], 0.0),
            np.where(is_ahead, variance[:, self._which], 0.0),
        )

    def correlations(self, x: Floats) -> Floats:
        """Return correlations of new observations of the series, [M, N, N]."""
        every = self.whole.learnt.correlations(self.whole.steps(x))
        return every[:, self._which][:, :, self._which]

    def samples(
        self, count: int, x: Floats, degrees: Floats, asked: Predictors, rng: np.random.Generator
    ) -> Floats:
        """Draw paths, [count, N, M]; zero within the data."""
        is_ahead = x > 1.0
        drawn = self.whole.learnt.samples(count, self.whole.steps(x[is_ahead]), rng)
        paths = np.zeros((count, len(x), drawn.shape[2]))
        paths[:, is_ahead] = drawn
        return paths[:, :, self._which].swapaxes(1, 2)

    def of_series(self, places: Integers) -> Autoregression:
        """Return what it says of some of its series."""
        return replace(self, places=places if self.places is None else self.places[places])

    def to_json(self) -> dict[str, Any]:
        """Return what a file keeps: the rest follows from the table."""
        return {"kind": self.kind, "weight": self.weight}

    @property
    def _which(self) -> Integers | slice:
        return slice(None) if self.places is None else self.places


def _held_out_forecast(observations: Observations, calendar: Calendar, window: Window) -> HeldOut:
    """Learn a vector autoregression from what came before a window, and forecast the window."""
    past = Past.of(observations, window)
    if past is None:
        return nothing_told(observations, window)
    before, within = np.split(calendar.steps[: window.end], [window.begin])
    learnt = _learn(past.observations, replace(calendar, steps=before), seed=0)
    mean, variance = learnt.moments((within - before[-1]).astype(np.float64))
    return past.back(mean.T, variance.T)


def _learn(observations: Observations, calendar: Calendar, seed: int) -> SeasonalAutoregression:
    observations = observations.plain
    seasons = seen_seasons(observations, calendar.season)
    return SeasonalAutoregression.of(observations, seasons, seed, steps=calendar.steps)

"""The progress bar of a search, and how long a search is expected to take."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager

import numpy as np

from ..data.observations import Observations
from ..fit.fits import CRITERIA
from ..runtime.executors import num_workers
from ..runtime.progress import Progress
from ..runtime.text import duration
from .ledger import Entry
from .settings import SearchSettings

_SECONDS = 5e-4
"""Processor seconds per series and squared number of times for a default search with its averaging;
the middle of the searches in the benchmark's journal."""

_LOWER, _UPPER = 0.1, 4.2
"""Factors on it that held nine tenths of these searches."""

_LONG = 200
"""From so many times on, time grows with their power 2.7 (tests/benchmarks/test_long_speed.py)."""


class SearchReport:
    """The progress bar: which structure, its criterion, the best one, the time left."""

    def __init__(self, bar: Progress, settings: SearchSettings, parallel: int) -> None:
        self._bar = bar
        self._settings = settings
        self._parallel = parallel
        self._name = CRITERIA[settings.fit.criterion]
        self._best = np.inf
        self._seconds: list[float] = []
        self._num_left = 0
        self.hear = bar.hear

    def begin(self, num_fits: int, num_later: int) -> None:
        """Begin a step of so many fits, after which so many may follow at the same depth."""
        self._bar.expect(num_fits + num_later - self._num_left)
        self._num_left = num_fits + num_later

    def show(self, entry: Entry) -> None:
        """Show a fit that was made, and how long the rest may take."""
        self._best = min(self._best, entry.fit.criterion)
        self._seconds.append(entry.fit.seconds)
        self._num_left -= 1
        self._bar.label(entry.action)
        # Every component may be expanded once at each depth that is left.
        later = (self._settings.depth - entry.depth) * len(entry.fit.kernels)
        count = self._num_left + later * self._settings.restarts
        time_left = left(self._seconds, count, self._parallel)
        scores = f"{self._name} {entry.fit.criterion:.1f}, best {self._best:.1f}"
        self._bar.update(", ".join(filter(None, [scores, time_left])))

    def end(self) -> None:
        """Expect nothing more."""
        self.begin(0, 0)


@contextmanager
def progress_bar(
    observations: Observations, settings: SearchSettings, executor: Executor | None, progress: bool
) -> Iterator[SearchReport]:
    """Show the bar of a search while it goes on."""
    parallel = min(settings.restarts, num_workers(executor))
    with Progress("start", shown=progress) as bar:
        N, D = observations.Y.shape
        bar.stand(beforehand(D, N, settings, parallel))
        yield SearchReport(bar, settings, parallel)


def expected_seconds(
    num_times: int, num_series: int, settings: SearchSettings, parallel: int = 1
) -> tuple[float, float]:
    """Return bounds on the seconds of a search by the learner "scan", `parallel` fits at a time."""
    growth = max(1.0, num_times / _LONG) ** 0.7
    size = num_series * num_times**2 * growth
    work = (1 + settings.depth) / 3.0 * settings.restarts / 3.0
    seconds = _SECONDS * size * work / min(parallel, settings.restarts)
    return _LOWER * seconds, _UPPER * seconds


def beforehand(num_times: int, num_series: int, settings: SearchSettings, parallel: int) -> str:
    """Say how long a search is expected to take; empty for a learner that was not measured."""
    if settings.fit.learner != "scan":
        return ""
    lower, upper = expected_seconds(num_times, num_series, settings, parallel)
    return f"expected {duration(lower)} to {duration(upper)}"


def left(seconds: Sequence[float], count: int, parallel: int) -> str:
    """Say how long so many more fits are expected to take, from the seconds of those before."""
    if not seconds or count < 1:
        return ""
    return f"about {duration(float(np.mean(seconds)) * count / parallel)} left"

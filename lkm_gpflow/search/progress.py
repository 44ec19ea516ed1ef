"""What the progress bar of a search says."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import contextmanager

import numpy as np

from ..data.observations import Observations
from ..fit.fits import CRITERIA
from ..runtime.executors import num_workers
from ..runtime.progress import Progress
from .expectation import beforehand, left
from .ledger import Entry
from .settings import SearchSettings


class SearchReport:
    """The progress bar: which structure, its BIC, the best one, the time left at most."""

    def __init__(self, bar: Progress, settings: SearchSettings, parallel: int) -> None:
        self._bar = bar
        self._settings = settings
        self._parallel = parallel
        self._name = CRITERIA[settings.fit.criterion]
        self._best = np.inf
        self._seconds: list[float] = []
        self._num_left = 0
        self.hear = bar.hear
        self.expect(settings.restarts)

    def expect(self, num_fits: int) -> None:
        """Say that so many more fits will be made, or fewer."""
        self._num_left += num_fits
        self._bar.expect(num_fits)

    def show(self, entry: Entry) -> None:
        """Show a fit that was made, and how long what is left may take."""
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

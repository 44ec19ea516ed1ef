"""From a table of series to a discovered model: the package's main entry."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ..data.doubts import doubts
from ..data.foreign import Tabular
from ..data.tables import Table
from ..forecast.forecasters import Member
from ..forecast.stacking import expected_seconds_of_windows, hold_out, weigh
from ..runtime.budget import Guard, OutOfBudget
from ..runtime.executors import kept_in, num_workers
from ..runtime.progress import part_of
from ..runtime.warn import warn
from ..search.ledger import Entry, Ledger
from ..search.many_series import extend_best, extended
from ..search.settings import check_size, draw, ledger_header
from ..search.structure_search import search_steps
from .keywords import DiscoverSettings, keywords_of
from .result import Discovery

_SEARCH_SHARE = 0.75
"""Share of a time budget for the search; the rest is for what follows it, if anything does."""


@keywords_of(DiscoverSettings)
def discover(frame: Tabular, settings: DiscoverSettings) -> Discovery:
    """Discover which patterns several time series share and which are their own.

    Parameters
    ----------
    frame
        Rows are times (dates or numbers), columns are series, NaN is a missing observation; of
        pandas, polars, PyArrow or xarray (see `data.foreign.as_frame`).
    settings
        Given as keywords.

    Raises
    ------
    ValueError
        If the table or a setting is wrong; the message says what was expected, what was given, and
        where.  Also if the table has more than ``LKM.LONGEST`` times, or 10,000 if they are
        regular: see `thin`.
    OSError, WorkersLost
        If the ledger cannot be written, or workers are lost for good; the message says how to
        continue.
    KeyboardInterrupt
        After Ctrl-C; the message says how to continue.

    Warns
    -----
    UserWarning
        If the table has more than 1,000 irregular times, more than 50 series without a subset, or
        raises a doubt (`data.doubts`): few values, times on no grid, numbers that may be dates,
        values far from all others.
    """
    try:
        (found,) = deque(_steps(frame, settings), maxlen=1)
    except KeyboardInterrupt as stopped:
        raise stopped.with_traceback(None) from None
    return found


@keywords_of(DiscoverSettings)
def discover_steps(frame: Tabular, settings: DiscoverSettings) -> Iterator[Discovery]:
    """Discover as `discover` does, and yield a result each time a better one is found.

    The first comes when the first fit is done, long before the search ends: it has components,
    probabilities and a forecast, which averages over the fits so far, weighted by BIC.  The last is
    what `discover` returns; with a subset there is no other.  Leave the loop, or press Ctrl-C, to
    keep the last result.  With a `ledger` the same call later continues from there, and its first
    result is the best in the ledger.

    >>> for found in lkm.discover_steps(frame, ledger="prices.jsonl"):    # doctest: +SKIP
    ...     print(found.bic, found.kernels)

    Parameters
    ----------
    frame
        As `discover` takes it.
    settings
        Given as keywords.

    Yields
    ------
    Discovery
        Each of a lower BIC than the one before, then the whole.

    Raises
    ------
    ValueError
        As `discover`, at once.
    OSError, WorkersLost
        As `discover`.

    Warns
    -----
    UserWarning
        As `discover`.
    """
    return _steps(frame, settings)


def _steps(frame: Tabular, settings: DiscoverSettings) -> Iterator[Discovery]:
    """Check what is given, then search and weigh the best fits within the budgets."""
    guard = Guard(settings.time_budget, settings.memory_budget)
    table = Table.of(frame, settings.transforms, settings.suspicious, settings.points)
    check_size(table.observations, settings.search.fit, settings.subset)
    for doubt in [*doubts(table.frame, table.suspicious), *table.notes]:
        warn(doubt)
    header = ledger_header(settings.search, table, settings.subset)
    ledger = Ledger(header, None if settings.ledger is None else Path(settings.ledger))
    if settings.subset is not None:
        draw(table.observations.num_series, settings.subset, settings.seed)  # or refuse it at once
    return _learn(table, settings, ledger, guard)


def _learn(
    table: Table, settings: DiscoverSettings, ledger: Ledger, guard: Guard
) -> Iterator[Discovery]:
    """Yield the best so far after every better fit, then what forecasts average over."""
    search, subset, everything = settings.search, settings.subset, table.observations
    stacks = settings.weighting == "stacked"
    share = _SEARCH_SHARE if stacks or subset is not None else 1.0
    stops: list[str] = []

    def result(rows: Sequence[Entry], stacked: Sequence[Member] = ()) -> Discovery:
        return Discovery(
            table, search, settings.weighting, tuple(rows), tuple(stacked), _sentence(stops)
        )

    with kept_in(settings.ledger, "ledger"), part_of(settings.progress, "search") as bar:
        running: dict[str, Any] = {"executor": settings.executor, "progress": bar}
        workers = num_workers(settings.executor)
        after = expected_seconds_of_windows(everything, workers) if stacks else 0.0
        bar.later += after
        some = everything
        if subset is not None:
            some = everything.of_series(draw(everything.num_series, subset, search.seed))
        with _noting(stops, lambda: f"the search after {_reached(ledger)}"):
            found = search_steps(some, search, ledger, spent=partial(guard.spent, share), **running)
            for so_far in _better(found, ledger):
                if subset is None:
                    yield result(so_far)
        bar.later -= after
        rows: Sequence[Entry] = ledger.rows
        if subset is not None:
            with _noting(stops, lambda: "the learning on all series before all fits were learnt"):
                extend_best(everything, search.fit, ledger, spent=guard.spent, **running)
            rows = extended(ledger)
        stacked: Sequence[Member] = ()
        if stacks:
            fits = [entry.fit for entry in rows]
            weighed = partial(weigh, fits, search, ledger)
            with _noting(stops, lambda: f"the averaging {_weighed(weighed())}"):
                hold_out(fits, everything, search, ledger, spent=guard.spent, **running)
            stacked = weighed()
        yield result(rows, stacked)


@contextmanager
def _noting(stops: list[str], what: Callable[[], str]) -> Iterator[None]:
    """Let a budget end the work inside, and note in words what it ended."""
    try:
        yield
    except OutOfBudget as which:
        stops.append(f"{which} ended {what()}")


def _better(found: Iterator[Entry], ledger: Ledger) -> Iterator[Sequence[Entry]]:
    """Yield what the ledger has, if anything, and again after every fit that is the best so far."""
    best = min((entry.fit.criterion for entry in ledger.rows), default=np.inf)
    if ledger.entries:
        yield ledger.rows
    for entry in found:
        if entry.fit.criterion < best:
            best = entry.fit.criterion
            yield ledger.rows


def _reached(ledger: Ledger) -> str:
    """Say how far a search has come."""
    rows = ledger.rows
    last = rows[-1]
    count = "the first fit" if len(rows) == 1 else f"{len(rows)} fits"
    where = f"depth {last.depth}, {last.action}" if last.depth else last.action
    return f"{count} ({where})"


def _weighed(members: Sequence[Member]) -> str:
    """Say what forecasts average over when not all is weighed."""
    if not members:
        return "before a fit was weighed by held-out windows: BIC weighs them"
    return f"when {len(members)} of the fits and walks were weighed"


def _sentence(stops: Sequence[str]) -> str:
    """Return one sentence, or nothing."""
    text = ", and ".join(stops)
    return f"{text[0].upper()}{text[1:]}." if text else ""

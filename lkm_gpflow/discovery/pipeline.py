"""Search and averaging within budgets, and in words what a budget cut short."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from ..data.observations import Observations
from ..forecast.autoregression import Calendar
from ..forecast.averaging import Member
from ..forecast.stacking import Stack, hold_out, weigh
from ..runtime.budget import Guard, OutOfBudget
from ..search.ledger import Entry, Ledger
from ..search.many_series import extend_best, extended
from ..search.settings import SearchSettings, draw
from ..search.structure_search import search_steps

_SEARCH_SHARE = 0.75
"""Of a time budget; the rest is kept for what follows the search, if anything does."""


@dataclass(frozen=True)
class Learnt:
    """What a search and what follows it came to.

    Parameters
    ----------
    entries
        Every fit of the search; with a subset, those that were learnt on all series.
    stack
        What forecasts average over, if that was asked for and a fit was weighed in time.
    stopped
        Which budget ended what, in a sentence; empty if nothing was stopped.
    """

    entries: tuple[Entry, ...]
    stack: Stack = field(default_factory=Stack)
    stopped: str = ""


def learn_in_steps(
    observations: Observations,
    settings: SearchSettings,
    ledger: Ledger,
    guard: Guard,
    *,
    subset: int | None,
    stacks: bool,
    calendar: Calendar | None,
    executor: Executor | None,
    progress: bool,
) -> Iterator[Learnt]:
    """Search structures, then weigh the best fits, until all is done or a budget is spent.

    Yields what the ledger has already, then what there is after every fit that is better than all
    before it (both without a subset), and at the end what all came to.

    Parameters
    ----------
    observations, settings, ledger, executor, progress
        See `search_steps`.
    guard
        Watches the budgets.
    subset
        If not None, the search sees so many of the series, and the best fits are then learnt on
        all; see `many_series`.
    stacks
        Whether the fits are weighed by held-out windows; see `stacking`.
    calendar
        For a vector autoregression that is weighed beside them; None: it is not.
    """
    some = observations
    if subset is not None:
        some = observations.of_series(draw(observations.num_series, subset, settings.seed))
    share = 1.0 if subset is None and not stacks else _SEARCH_SHARE
    stops: list[str] = []
    stack = Stack()
    with _noting(stops, lambda: f"the search after {_reached(ledger)}"):
        found = search_steps(
            some, settings, ledger,
            executor=executor, progress=progress, spent=partial(guard.spent, share),
        )  # fmt: skip
        for rows in _better(found, ledger):
            if subset is None:
                yield Learnt(rows)
    entries = ledger.rows
    if subset is not None:
        with _noting(stops, lambda: "the learning on all series before all fits were learnt"):
            extend_best(
                observations, settings.fit, ledger,
                executor=executor, progress=progress, spent=guard.spent,
            )  # fmt: skip
        entries = extended(ledger)
    if stacks:
        fits = [entry.fit for entry in entries]
        weighed = partial(weigh, fits, settings, ledger, calendar)
        with _noting(stops, lambda: f"the averaging {_weighed(weighed().members)}"):
            hold_out(
                fits, observations, settings, ledger, calendar,
                executor=executor, progress=progress, spent=guard.spent,
            )  # fmt: skip
        stack = weighed()
    yield Learnt(tuple(entries), stack, _sentence(stops))


@contextmanager
def _noting(stops: list[str], what: Callable[[], str]) -> Iterator[None]:
    """Let a budget end what is done here, and note so in words."""
    try:
        yield
    except OutOfBudget as which:
        stops.append(f"{which} ended {what()}")


def _better(found: Iterator[Entry], ledger: Ledger) -> Iterator[tuple[Entry, ...]]:
    """Yield what the ledger has, if anything, and again after every fit that is the best so far."""
    best = min((entry.fit.criterion for entry in ledger.rows), default=np.inf)
    if ledger.entries:
        yield tuple(ledger.rows)
    for entry in found:
        if entry.fit.criterion < best:
            best = entry.fit.criterion
            yield tuple(ledger.rows)


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

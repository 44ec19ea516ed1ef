"""Search and averaging within budgets: as far as they come, and in words how far that is."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial

from .averaging import Member
from .budget import Guard, OutOfBudget
from .layout import Observations
from .ledger import Entry, Ledger
from .search import SearchSettings, search
from .stacking import stack, weigh

_SEARCH_SHARE = 0.75
"""Of a time budget; the rest is kept for the averaging, if there is one."""


@dataclass(frozen=True)
class Learnt:
    """What a search and the averaging over its fits came to.

    Parameters
    ----------
    entries
        Every fit of the search.
    stacked
        The members of the average, if one was asked for and a fit was weighed in time.
    stopped
        Which budget ended what, in a sentence; empty if nothing was stopped.
    """

    entries: tuple[Entry, ...]
    stacked: tuple[Member, ...]
    stopped: str


def learn(
    observations: Observations,
    settings: SearchSettings,
    ledger: Ledger,
    guard: Guard,
    *,
    stacks: bool,
    executor: Executor | None,
    progress: bool,
) -> Learnt:
    """Search structures, then weigh the best fits, until all is done or a budget is spent.

    Parameters
    ----------
    observations, settings, ledger, executor, progress
        See `search.search`.
    guard
        Watches the budgets.
    stacks
        Whether the fits are weighed by held-out windows; see `stacking.stack`.
    """
    stops: list[str] = []
    stacked: list[Member] = []
    try:
        spent = partial(guard.spent, _SEARCH_SHARE if stacks else 1.0)
        search(observations, settings, ledger, executor=executor, progress=progress, spent=spent)
    except OutOfBudget as which:
        stops.append(f"{which} ended the search after {_reached(ledger)}")
    if stacks:
        fits = [entry.fit for entry in ledger.rows]
        try:
            stacked = stack(
                fits, observations, settings, ledger,
                executor=executor, progress=progress, spent=guard.spent,
            )  # fmt: skip
        except OutOfBudget as which:
            stacked = weigh(fits, settings, ledger)
            stops.append(f"{which} ended the averaging {_weighed(stacked)}")
    return Learnt(tuple(ledger.rows), tuple(stacked), _sentence(stops))


def _reached(ledger: Ledger) -> str:
    """Say how far a search has come."""
    rows = ledger.rows
    last = rows[-1]
    count = "the first fit" if len(rows) == 1 else f"{len(rows)} fits"
    where = f"depth {last.depth}, expanding {last.expanded}" if last.depth else "start"
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

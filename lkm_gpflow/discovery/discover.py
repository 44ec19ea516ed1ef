"""From a table of series to a discovered model: the package's main entry."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import asdict
from pathlib import Path
from typing import Any, get_args

import pandas as pd

from ..data.tables import Table
from ..kernels.grammar import EXTENDED_BASES
from ..learning.fits import FitSettings, LearnerName
from ..runtime.budget import Guard
from ..runtime.executors import kept_in
from ..search.ledger import Ledger
from ..search.pipeline import Learnt, learn_in_steps
from ..search.settings import SearchSettings, Strategy, check_size
from .result import Averaging, Discovery


def discover(
    frame: pd.DataFrame,
    *,
    bases: Sequence[str] = EXTENDED_BASES,
    depth: int = 2,
    restarts: int = 3,
    strategy: Strategy = "partial",
    alpha: float = 1.0,
    priors: bool = True,
    learner: LearnerName = "scan",
    averaging: Averaging | None = None,
    subset: int | None = None,
    seed: int = 0,
    ledger: str | Path | None = None,
    executor: Executor | None = None,
    time_budget: float | str | None = None,
    memory_budget: float | str | None = None,
    progress: bool = True,
) -> Discovery:
    """Discover which patterns several time series share and which are their own.

    Parameters
    ----------
    frame
        Rows are times (dates or numbers), columns are series, NaN is a missing observation.
    bases
        Base kernels of the grammar; `PAPER_BASES` are those of the paper.
    depth
        How often every component may be expanded into products.
    restarts
        Fits of each structure from different random numbers.
    strategy
        "partial" set expansion (the paper's algorithm 1) or "full".
    alpha
        Concentration of the Indian Buffet Process: larger means more components a series.
    priors
        Weak priors on the hyperparameters.
    learner
        "scan" (components enter one by one, see `training`) or "relaxed" (the paper's relaxed
        posterior finds Z first; slower).
    averaging
        "stacked": forecasts average over the best fits and over walks, weighted by how they
        forecast windows of the past (see `stacking`); "tempered": over the best fits, weighted by
        BIC; "none": the best alone (the paper).  By default "stacked", with a subset "tempered".
    subset
        For thousands of series: search on so many, drawn at random, then learn the best fits again
        on all; beyond 1,000 series, on 1,000, and the best of these on all (see
        `search.many_series`).
        Approximate is which structures are tried; bound, probabilities and BIC of the result are
        exact, of all series.
    seed
        The same seed gives the same result, whatever the executor.
    ledger
        File that keeps every fit as it happens; a search that was stopped goes on from it.
    executor
        Runs the fits, for example `lkm_gpflow.process_pool()` or that of a Dask client; None:
        this process.
    time_budget
        Seconds, or a text such as "10m", after which search and averaging end with the best so
        far, and `Discovery.stopped` says so; a search ends after three quarters if more follows it.
        The first fit is finished in any case, and so is one under way in this process; those of an
        executor are not waited for.  A later call with the same ledger goes on.
    memory_budget
        The same for bytes, or a text such as "4GB"; see `budget.resident_memory`.
    progress
        Whether to show a progress bar.

    Raises
    ------
    ValueError
        If the table or a setting is wrong: what was expected, what was given, and where; also if it
        has more than ``LKM.LONGEST`` times: see `thin` and `refit_sparse`.
    OSError, WorkersLost
        If the ledger cannot be written, or workers are lost for good: how to go on.

    Warns
    -----
    UserWarning
        If it has more than 1,000 times, or more than 50 series and no subset is asked for.
    """
    steps = _steps(
        frame, bases, depth, restarts, strategy, alpha, priors, learner, averaging, subset, seed,
        ledger, executor, Guard(time_budget, memory_budget), progress,
    )  # fmt: skip
    (found,) = deque(steps, maxlen=1)
    return found


def discover_steps(
    frame: pd.DataFrame,
    *,
    bases: Sequence[str] = EXTENDED_BASES,
    depth: int = 2,
    restarts: int = 3,
    strategy: Strategy = "partial",
    alpha: float = 1.0,
    priors: bool = True,
    learner: LearnerName = "scan",
    averaging: Averaging | None = None,
    subset: int | None = None,
    seed: int = 0,
    ledger: str | Path | None = None,
    executor: Executor | None = None,
    time_budget: float | str | None = None,
    memory_budget: float | str | None = None,
    progress: bool = True,
) -> Iterator[Discovery]:
    """Discover as `discover` does, and yield a result each time a better one is found.

    The first comes when the first fit is done, long before the search ends: it has components,
    probabilities and a forecast.  The last is what `discover` returns.  Whoever has waited long
    enough leaves the loop, or presses Ctrl-C, and keeps the last result; with a `ledger` the same
    call goes on from there later, and the first result is what the ledger has.

    >>> for found in lkm.discover_steps(frame, ledger="prices.jsonl"):    # doctest: +SKIP
    ...     print(found.bic, found.kernels)

    Parameters
    ----------
    frame, bases, depth, restarts, strategy, alpha, priors, learner, averaging, subset, seed, ledger
        As of `discover`.  Forecasts average over the fits so far, weighted by BIC, until held-out
        windows weigh them at the end.  With a subset only the last result is yielded.
    executor, time_budget, memory_budget, progress
        As of `discover`; a time budget begins with the call.

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
    return _steps(
        frame, bases, depth, restarts, strategy, alpha, priors, learner, averaging, subset, seed,
        ledger, executor, Guard(time_budget, memory_budget), progress,
    )  # fmt: skip


def _steps(
    frame: pd.DataFrame,
    bases: Sequence[str],
    depth: int,
    restarts: int,
    strategy: Strategy,
    alpha: float,
    priors: bool,
    learner: LearnerName,
    averaging: Averaging | None,
    subset: int | None,
    seed: int,
    ledger: str | Path | None,
    executor: Executor | None,
    guard: Guard,
    progress: bool,
) -> Iterator[Discovery]:
    """Check what was given, then return what learns."""
    if learner not in ("scan", "relaxed"):
        raise ValueError(f"expected learner 'scan' or 'relaxed', got {learner!r}")
    averaging = averaging or ("stacked" if subset is None else "tempered")
    if averaging not in get_args(Averaging):
        raise ValueError(f"expected averaging among {get_args(Averaging)}, got {averaging!r}")
    if subset is not None and averaging == "stacked":
        raise ValueError("expected averaging 'tempered' or 'none' with a subset, got 'stacked'")
    fit_settings = FitSettings(alpha=alpha, priors=priors, learner=learner)
    settings = SearchSettings(tuple(bases), depth, restarts, strategy, seed, fit_settings)
    table = Table.of(frame)
    check_size(*table.frame.shape, subset)
    observations = table.observations
    header: dict[str, Any] = {"settings": asdict(settings), "data": observations.fingerprint}
    if subset is not None:
        header["subset"] = subset
    kept = Ledger(header, None if ledger is None else Path(ledger))
    learnt = learn_in_steps(
        observations, settings, kept, guard,
        subset=subset, stacks=averaging == "stacked", executor=executor, progress=progress,
    )  # fmt: skip
    return _discoveries(table, settings, averaging, learnt, ledger)


def _discoveries(
    table: Table,
    settings: SearchSettings,
    averaging: Averaging,
    steps: Iterator[Learnt],
    ledger: str | Path | None,
) -> Iterator[Discovery]:
    with kept_in(ledger, "ledger"):
        for learnt in steps:
            yield Discovery(
                table, settings, averaging, learnt.entries, learnt.stacked, learnt.stopped
            )

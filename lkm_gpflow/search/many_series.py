"""Many series: structures are found on some of them, and learnt on all.

Two things are approximate: which structures are tried, and where learning on all series begins.
Both come from a random subset.  Learning on all series is as exact as on a few: the enumerated
posterior, its bound and its gradient count every series (see `sharing`).
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import replace
from functools import partial

import numpy as np

from ..data.observations import Observations
from ..fit.fits import MOST_ROUNDS, Fit, FitSettings
from ..fit.training import Learner
from ..runtime.budget import OutOfBudget, Spent, never_spent
from ..runtime.executors import run_all
from ..runtime.progress import Progress, part_of
from ..runtime.threads import single_threaded
from .ledger import Entry, Ledger, different, fit_from_json, fit_to_json
from .settings import draw

MOST_EXTENDED = 3
"""How many fits to the subset are learnt again on more series."""

ENOUGH_TO_CHOOSE = 1000
"""Series on which the best of these is chosen, if there are more."""

_ALL = "all series"


def extend(
    fit: Fit, observations: Observations, settings: FitSettings, *, rounds: int = MOST_ROUNDS
) -> Fit:
    """Learn kernels, noise and posterior on all series, from the kernels of a fit to some.

    Every series begins with the best of a few noise levels; then L-BFGS on all hyperparameters,
    N noise variances among them, and the enumerated posterior with its closed form of tau, in
    turn, until a round gains less than a hundred-thousandth of a nat for each observed value.

    Parameters
    ----------
    fit
        A fit to some of the series, in the same scaled time.
    observations
        All series.
    settings
        With which the fit was learnt.
    rounds
        Largest number of rounds.
    """
    began = time.perf_counter()
    learner = Learner(observations, settings, np.random.default_rng(0))
    with single_threaded():
        return learner.finish(learner.adopt(fit), began, rounds)


def extend_best(
    observations: Observations,
    settings: FitSettings,
    ledger: Ledger,
    *,
    executor: Executor | None = None,
    progress: bool | Progress = True,
    spent: Spent = never_spent,
) -> None:
    """Learn the best fits of a ledger again on all series; `extended` reads them.

    If there are more than `ENOUGH_TO_CHOOSE` series, one round is made on so many first, drawn at
    random, and the fit of lowest BIC there goes on to all: it begins nearly where it will end.

    Parameters
    ----------
    observations
        All series.
    settings
        With which the fits were learnt.
    ledger
        Fits to a subset.  What is learnt on all series is noted in it.
    executor
        Runs them where there are several; None, or a single one: this process, all its threads.
    progress
        Whether to show a progress bar; or one that is open.
    spent
        Says which budget is spent; it is asked after the first fit to all series.

    Raises
    ------
    OutOfBudget
        If a budget is spent while fits are left.
    """

    def learn(
        name: str, entries: Sequence[Entry], some: Observations, rounds: int = MOST_ROUNDS
    ) -> None:
        """Learn fits again on more series, whose name the notes have; one in any case."""
        jobs = {
            _note(name, entry): partial(extend, entry.fit, some, settings, rounds=rounds)
            for entry in entries
            if _note(name, entry) not in ledger.notes
        }

        def spent_after_first() -> str:
            return spent() if any(_note(name, entry) in ledger.notes for entry in entries) else ""

        workers = executor if len(jobs) > 1 else None
        with part_of(progress, name, len(jobs)) as bar:
            for key, fit in run_all(jobs, workers, spent_after_first, bar.hear):
                ledger.note(key, fit_to_json(fit))
                bar.update()

    best, stopped = _best(ledger), None
    if observations.num_series > ENOUGH_TO_CHOOSE:
        some = observations.of_series(draw(observations.num_series, ENOUGH_TO_CHOOSE, seed=0))
        name = f"{ENOUGH_TO_CHOOSE} series"
        try:
            learn(name, best, some, rounds=1)
        except OutOfBudget as which:
            stopped = which
        best = [min(_learnt(name, best, ledger), key=lambda entry: entry.fit.criterion)]
    learn(_ALL, best, observations)
    if stopped is not None:
        raise stopped


def extended(ledger: Ledger) -> list[Entry]:
    """Return the entries that `extend_best` has learnt on all series, with their fits to these.

    The decision of each says how they compare in BIC on all series.
    """
    return decided(_learnt(_ALL, _best(ledger), ledger))


def _best(ledger: Ledger) -> list[Entry]:
    """Return the `MOST_EXTENDED` best fits to the subset.

    Of those that found the same optimum one counts.
    """
    best = different([entry.fit for entry in ledger.rows])[:MOST_EXTENDED]
    return [next(entry for entry in ledger.rows if entry.fit is fit) for fit in best]


def _learnt(name: str, entries: Sequence[Entry], ledger: Ledger) -> list[Entry]:
    """Return those that were learnt again, with the fits to the series of that name."""
    return [
        replace(entry, fit=fit_from_json(ledger.notes[_note(name, entry)]))
        for entry in entries
        if _note(name, entry) in ledger.notes
    ]


def _note(name: str, entry: Entry) -> str:
    return f"{name} {entry.step}.{entry.restart}"


def decided(entries: Sequence[Entry]) -> list[Entry]:
    """Say of every entry how its BIC compares with the lowest."""
    lowest = min(entry.fit.criterion for entry in entries)
    return [
        replace(
            entry,
            decision="accepted"
            if entry.fit.criterion == lowest
            else f"another is better by {entry.fit.criterion - lowest:.1f} in BIC",
        )
        for entry in entries
    ]

"""The driver of a structure search: it learns what the algorithm proposes.

`partial_set_expansion` decides what to try.  Around it stand here the restarts of a structure, the
ledger, the budget, the executor and the progress bar.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from functools import partial

import numpy as np

from ..data.observations import Observations
from ..fit.fits import CRITERIA, Fit
from ..fit.training import fit
from ..kernels.grammar import CHANGE_POINTS
from ..runtime.budget import Spent, never_spent
from ..runtime.executors import num_workers, run_all
from ..runtime.progress import Progress, part_of
from ..runtime.text import counted
from .ledger import ACCEPTED, REGROUPED, Entry, Ledger
from .partial_set_expansion import Attempt, Proposal, improves, proposals
from .settings import SearchSettings, expected_seconds

_HOPELESS = 10
"""A fit is hopeless if it is behind the best one by the price in BIC of so many parameters, or of
one a series if there are more series."""

_REGROUPED_HOPELESS = 5
"""The same for regrouped sets."""


def search_steps(
    observations: Observations,
    settings: SearchSettings,
    ledger: Ledger,
    *,
    executor: Executor | None = None,
    progress: bool | Progress = True,
    spent: Spent = never_spent,
) -> Iterator[Entry]:
    """Search structures; yield every new fit as soon as it is in the ledger.

    The best fit is the last one that the ledger says was accepted.

    Parameters
    ----------
    observations
        Scaled data.
    settings
        See `SearchSettings`.
    ledger
        Every fit is added to it; fits that it has already are not run again.
    executor
        Runs the restarts of a structure; None runs them in this process.  The result is the same.
    progress
        Whether to show a progress bar; or one that is open.
    spent
        Says when to stop; the first fit is finished in any case.

    Raises
    ------
    OutOfBudget
        If it was stopped so; the fits are in the ledger.
    """

    def spent_after_first() -> str:
        return spent() if ledger.entries else ""

    algorithm, step, accepted = proposals(settings), 0, -1
    with part_of(progress, "search") as bar:
        report = _SearchReport(bar, settings, min(settings.restarts, num_workers(executor)))
        report.expect(*observations.Y.shape)
        proposal = next(algorithm)
        while True:
            attempts = _attempts(proposal, settings, observations.is_long)
            report.num_left = len(attempts) + proposal.waiting * settings.restarts
            known = [n for n in range(len(attempts)) if (step, n) in ledger.entries]
            for number in known:
                report.show(ledger.entries[step, number])
            jobs = _jobs(step, proposal, attempts, observations, settings, skip=known)
            for number, found in run_all(jobs, executor, spent_after_first, bar.hear):
                entry = Entry(
                    step, number, proposal.depth, proposal.expanded, accepted,
                    attempts[number].structure, found,
                )  # fmt: skip
                ledger.add(entry)
                report.show(entry)
                yield entry
            fits = [ledger.entries[step, number].fit for number in range(len(attempts))]
            best, decisions = _decide(fits, proposal, settings)
            for number, decision in enumerate(decisions):
                ledger.decide(step, number, decision)
            if decisions[best] == ACCEPTED:
                accepted = step
            try:
                proposal = algorithm.send(fits[best])
            except StopIteration:
                return
            step += 1


class _SearchReport:
    """What the progress bar says of a search: its fits, what is tried, the time left."""

    def __init__(self, bar: Progress, settings: SearchSettings, parallel: int) -> None:
        self._bar, self._settings, self._parallel = bar, settings, parallel
        self._seconds: list[float] = []
        self.num_left = 0  # fits of this step, and of those that may follow at the same depth

    def expect(self, num_series: int, num_times: int) -> None:
        """Say how long a search may take; nothing for a learner that was not measured."""
        if self._settings.fit.learner == "scan":
            self._bar.left(*expected_seconds(num_times, num_series, self._settings, self._parallel))

    def show(self, entry: Entry) -> None:
        """Show that a fit was made, and how long the rest may take."""
        self._seconds.append(entry.fit.seconds)
        self.num_left -= 1
        # Every component may be expanded once at each depth that is left.
        later = (self._settings.depth - entry.depth) * len(entry.fit.kernels)
        count = self.num_left + later * self._settings.restarts
        self._bar.left(float(np.mean(self._seconds)) * count / self._parallel)
        self._bar.stand(counted(len(self._seconds), "fit"))


def _attempts(proposal: Proposal, settings: SearchSettings, is_long: bool) -> list[Attempt]:
    """Regrouped sets are learnt once each, any other set `restarts` times.

    Of a long table, where the best of all members enters, an expansion is tried in two ways: beside
    the member, and in its place.
    """
    if proposal.expanded == REGROUPED:
        return list(proposal.alternatives)
    [first] = proposal.alternatives
    if is_long and first.rest is not None and settings.fit.learner == "scan":
        others = [each for each in first.members if str(each.structure) != proposal.expanded]
        return [first, Attempt(others, first.rest)][: settings.restarts]
    again = first
    if first.rest is not None and settings.fit.learner == "scan":
        # A scan hardly depends on its random numbers: others start from nothing, so that not all
        # end where the parent is.  A relaxed posterior starts at random anyway.
        again = Attempt([kernel.structure for kernel in (*first.rest.kernels, *first.members)])
    return [first] + [again] * (settings.restarts - 1)


def _jobs(
    step: int,
    proposal: Proposal,
    attempts: Sequence[Attempt],
    observations: Observations,
    settings: SearchSettings,
    skip: Sequence[int],
) -> dict[int, Callable[[], Fit]]:
    """The fits of a step, by number."""
    hopeless = np.inf
    # A change point, which is looked for later, may gain far more.
    if proposal.best is not None and CHANGE_POINTS not in settings.bases:
        is_regrouped = proposal.expanded == REGROUPED
        behind = _REGROUPED_HOPELESS if is_regrouped else max(_HOPELESS, observations.num_series)
        hopeless = proposal.best.criterion + behind * np.log(observations.num_observed)
    expands = any(attempt.rest is not None for attempt in attempts)
    jobs: dict[int, Callable[[], Fit]] = {}
    for number, attempt in enumerate(attempts):
        own = settings.fit
        if expands and attempt.rest is None:
            # The next restart is another start from nothing already.
            own = replace(own, num_starts=1)
        if number not in skip:
            jobs[number] = partial(
                fit, observations, tuple(attempt.members), seed=(settings.seed, step, number),
                settings=own, start=attempt.rest, hopeless=hopeless,
            )  # fmt: skip
    return jobs


def _decide(
    fits: Sequence[Fit], proposal: Proposal, settings: SearchSettings
) -> tuple[int, list[str]]:
    """The number of the best fit of a step, and the decision on every fit in words."""
    # The paper's learner compares starts by the bound that they climbed.
    by_bound = settings.fit.learner == "relaxed"
    costs = [-found.elbo if by_bound else found.criterion for found in fits]
    best = int(np.argmin(costs))
    name = CRITERIA[settings.fit.criterion]
    other = "another set" if proposal.expanded == REGROUPED else "another restart"
    decisions = [
        f"{other} is better by {cost - costs[best]:.1f} in {'its bound' if by_bound else name}"
        for cost in costs
    ]
    decisions[best] = ACCEPTED
    if proposal.best is not None and not improves(fits[best], proposal.best):
        change = round(fits[best].criterion - proposal.best.criterion, 1) + 0.0  # no -0.0
        decisions[best] = f"rolled back: {name} changes by {change:+.1f}"
    return best, decisions

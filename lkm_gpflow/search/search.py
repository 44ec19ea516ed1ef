"""Structure search: partial and full set expansion (paper, section 5 and algorithm 1).

A set of product kernels is kept.  *Partial* expansion replaces one member S by expand(S), learns,
and keeps the new set if its BIC is lower; else it rolls back.  *Full* expansion replaces all
members at once.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

import numpy as np

from ..data.observations import Observations
from ..kernels.grammar import CHANGE_POINTS, Product, expand
from ..learning.fits import CRITERIA, Fit, State
from ..learning.training import fit
from ..runtime.ahead import Ahead
from ..runtime.budget import Spent, never_spent
from ..runtime.executors import num_workers, run_all
from ..runtime.progress import Progress
from .expectation import beforehand, left
from .ledger import Entry, Ledger
from .settings import SearchSettings

ACCEPTED = "accepted"
"""The decision on the best fit of a step that is better than all before it."""

MIN_IMPROVEMENT = 0.1
"""A BIC that is lower by less is a matter of where the optimiser stopped."""

_HOPELESS = 10
"""A fit is hopeless that is behind the best one by what BIC asks for so many parameters, or for one
a series if these are more.

Looking for other optima gains that much at times, but hardly ever more.
"""


def search(
    observations: Observations,
    settings: SearchSettings,
    ledger: Ledger,
    *,
    executor: Executor | None = None,
    progress: bool = True,
    spent: Spent = never_spent,
) -> Fit:
    """Search structures and return the fit with the lowest BIC.

    Parameters
    ----------
    observations
        Scaled data.
    settings
        See `SearchSettings`.
    ledger
        Every fit is added to it; fits that it has already are not run again.
    executor
        Runs the restarts of a structure, and in idle workers those of the one that comes next if
        it is rolled back; None runs them in this process.  The result is the same.
    progress
        Whether to show a progress bar.
    spent
        Says when to stop; the first fit is finished in any case.

    Raises
    ------
    OutOfBudget
        If it was stopped so; the fits are in the ledger.
    """
    for _ in search_steps(
        observations, settings, ledger, executor=executor, progress=progress, spent=spent
    ):
        pass
    accepted = [entry for entry in ledger.rows if entry.decision == ACCEPTED]
    return accepted[-1].fit


def search_steps(
    observations: Observations,
    settings: SearchSettings,
    ledger: Ledger,
    *,
    executor: Executor | None = None,
    ahead: Ahead | None = None,
    progress: bool = True,
    spent: Spent = never_spent,
) -> Iterator[Entry]:
    """As `search`, yielding every new fit as soon as it is in the ledger.

    What is wanted after the search is in `ahead`: idle workers begin that first.
    """

    def spent_after_first() -> str:
        return spent() if ledger.entries else ""

    with _progress_bar(observations, settings, executor, progress) as report:
        ahead = ahead or Ahead(executor, num_workers(executor))
        yield from _Search(
            observations, settings, ledger, executor, ahead, report, spent_after_first
        ).run()


class _Search:
    def __init__(
        self,
        observations: Observations,
        settings: SearchSettings,
        ledger: Ledger,
        executor: Executor | None,
        ahead: Ahead,
        report: _Report,
        spent: Spent,
    ) -> None:
        self._observations = observations
        self._settings = settings
        self._ledger = ledger
        self._executor = executor
        self._report = report
        self._spent = spent
        self._step = 0
        self._asked: set[tuple[int, Product]] = set()
        self._ahead = ahead

    def run(self) -> Iterator[Entry]:
        try:
            yield from self._run()
        finally:
            self._ahead.drop()

    def _run(self) -> Iterator[Entry]:
        self._best, self._best_step = yield from self._learn(
            self._settings.start, None, 0, "start", -1
        )
        expand_all = self._expand_one if self._settings.strategy == "partial" else self._expand_full
        for depth in range(1, self._settings.depth + 1):
            before = self._best_step
            yield from expand_all(depth)
            if self._best_step == before:
                # The same questions would be asked again.
                break

    def _expand_one(self, depth: int) -> Iterator[Entry]:
        """Partial set expansion: one member after the other, in order of structure."""
        waiting = sorted((k.structure for k in self._best.kernels), key=lambda k: k.sort_key)
        self._report.expect(len(waiting))
        for number, member in enumerate(waiting, start=1):
            if (self._best_step, member) in self._asked:
                # Nothing has changed since this member was expanded the last time.
                self._report.expect(-1)
                continue
            self._asked.add((self._best_step, member))
            if question := self._expansion(member):
                self._look_ahead(waiting[number:])
                yield from self._try(*question, depth)

    def _expansion(self, member: Product) -> tuple[Sequence[Product], State] | None:
        """Return what takes the place of a member, and the rest; None if it is gone."""
        places = [k for k, own in enumerate(self._best.kernels) if own.structure == member]
        if not places:
            return None
        rest = _state(self._best).without(places[0])
        return expand(self._best.kernels[places[0]], self._settings.bases), rest

    def _look_ahead(self, waiting: Sequence[Product]) -> None:
        """Let idle workers begin the next expansion, which is asked if this one is rolled back."""
        new = (member for member in waiting if (self._best_step, member) not in self._asked)
        question = next(filter(None, map(self._expansion, new)), None)
        self._ahead.expect({} if question is None else self._jobs(self._step + 1, *question))

    def _expand_full(self, depth: int) -> Iterator[Entry]:
        """Full set expansion: every member at once."""
        self._report.expect(1)
        derived: dict[Product, Product] = {}
        for kernel in self._best.kernels:
            for product in expand(kernel, self._settings.bases)[1:]:
                derived.setdefault(product.structure, product)
        yield from self._try((*self._best.kernels, *derived.values()), None, depth)

    def _try(self, members: Sequence[Product], rest: State | None, depth: int) -> Iterator[Entry]:
        """Learn a set; keep it if BIC is lower."""
        expanded = str(members[0].structure) if rest is not None else "every member"
        found, step = yield from self._learn(members, rest, depth, expanded, self._best_step)
        if self._is_better(found):
            self._best, self._best_step = found, step
            self._ahead.drop()

    def _is_better(self, found: Fit) -> bool:
        return found.criterion < self._best.criterion - MIN_IMPROVEMENT

    def _learn(
        self,
        members: Sequence[Product],
        rest: State | None,
        depth: int,
        expanded: str,
        parent: int,
    ) -> Generator[Entry, None, tuple[Fit, int]]:
        """Fit one set with all restarts; say in the ledger what became of each."""
        step, self._step = self._step, self._step + 1
        kept = () if rest is None else rest.kernels
        structure = tuple(str(product.structure) for product in (*kept, *members))

        def entry(restart: int, found: Fit) -> Entry:
            return Entry(step, restart, depth, expanded, parent, structure, found)

        fits = yield from self._run_restarts(step, members, rest, entry)
        # The paper's learner compares starts by what they climbed.
        by_bound = self._settings.fit.learner == "relaxed"
        costs = [-found.elbo if by_bound else found.criterion for found in fits]
        best = int(np.argmin(costs))
        name = CRITERIA[self._settings.fit.criterion]
        limit = self._best.criterion - MIN_IMPROVEMENT if step else np.inf
        for restart, found in enumerate(fits):
            if restart != best:
                by = f"{costs[restart] - costs[best]:.1f} in {'its bound' if by_bound else name}"
                decision = f"another restart is better by {by}"
            elif found.criterion < limit:
                decision = ACCEPTED
            else:
                change = (
                    round(found.criterion - self._best.criterion, 1) + 0.0
                )  # no minus before a zero
                decision = f"rolled back: {name} changes by {change:+.1f}"
            self._ledger.decide(step, restart, decision)
        return fits[best], step

    def _run_restarts(
        self,
        step: int,
        members: Sequence[Product],
        rest: State | None,
        entry: Callable[[int, Fit], Entry],
    ) -> Generator[Entry, None, list[Fit]]:
        known = self._ledger.entries
        jobs = self._jobs(step, members, rest)
        hear = self._report.hear
        for (_, restart), found in run_all(jobs, self._executor, self._spent, hear, self._ahead):
            self._ledger.add(entry(restart, found))
            if step and self._is_better(found):
                self._ahead.drop()  # this step will not be rolled back
            self._report.show(known[step, restart])
            yield known[step, restart]
        return [known[step, restart].fit for restart in range(self._settings.restarts)]

    def _jobs(
        self, step: int, members: Sequence[Product], rest: State | None
    ) -> dict[tuple[int, int], Callable[[], Fit]]:
        """Return the fits of a step that the ledger has not, by step and restart."""
        hopeless = np.inf
        # A change point, which is looked for later, may gain far more.
        if step and CHANGE_POINTS not in self._settings.bases:
            count = max(_HOPELESS, self._observations.num_series)
            hopeless = self._best.criterion + count * np.log(self._observations.num_observed)

        def job(restart: int) -> Callable[[], Fit]:
            seed = (self._settings.seed, step, restart)
            start, new, settings = rest, tuple(members), self._settings.fit
            if restart > 0 and rest is not None and self._settings.fit.learner == "scan":
                # A scan hardly depends on its random numbers: others start from nothing, so that
                # not all end where the parent is.  A relaxed posterior starts at random anyway.
                start, new = None, tuple(member.structure for member in (*rest.kernels, *members))
                # The next restart is another start from nothing already.
                settings = replace(settings, num_starts=1)
            return partial(
                fit, self._observations, new,
                seed=seed, settings=settings, start=start, hopeless=hopeless,
            )  # fmt: skip

        restarts, known = range(self._settings.restarts), self._ledger.entries
        return {(step, r): job(r) for r in restarts if (step, r) not in known}


def _state(fit: Fit) -> State:
    log_heights = None if fit.heights is None else np.log(fit.heights)
    return State(fit.kernels, fit.Z, fit.noise_variance, log_heights=log_heights)


class _Report:
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
        self.expect(1)

    def expect(self, num_structures: int) -> None:
        self._num_left += num_structures * self._settings.restarts
        self._bar.expect(num_structures * self._settings.restarts)

    def show(self, entry: Entry) -> None:
        self._best = min(self._best, entry.fit.criterion)
        self._seconds.append(entry.fit.seconds)
        self._num_left -= 1
        self._bar.label(f"expanding {entry.expanded}" if entry.depth else "start")
        # Every component may be expanded once at each depth that is left.
        later = (self._settings.depth - entry.depth) * len(entry.fit.kernels)
        count = self._num_left + later * self._settings.restarts
        time_left = left(self._seconds, count, self._parallel)
        scores = f"{self._name} {entry.fit.criterion:.1f}, best {self._best:.1f}"
        self._bar.update(", ".join(filter(None, [scores, time_left])))


@contextmanager
def _progress_bar(
    observations: Observations, settings: SearchSettings, executor: Executor | None, progress: bool
) -> Iterator[_Report]:
    parallel = min(settings.restarts, num_workers(executor))
    with Progress("start", shown=progress) as bar:
        N, D = observations.Y.shape
        bar.stand(beforehand(D, N, settings, parallel))
        yield _Report(bar, settings, parallel)

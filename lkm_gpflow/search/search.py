"""Structure search: partial and full set expansion (paper, section 5 and algorithm 1).

A set of product kernels is kept.  *Partial* expansion replaces one member S by expand(S), learns,
and keeps the new set if its BIC is lower; else it rolls back.  *Full* expansion replaces all
members at once.

Expansion alone seldom finds that two members are better multiplied: each explains what the other
leaves, so that nothing is left for their product.  So partial expansion by the learner "scan" ends
with *regrouping*: each two members of the best set become their product, and each product a sum.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from ..data.observations import Observations
from ..fit.fits import CRITERIA, Fit, State, Trial
from ..fit.training import fit, try_start
from ..kernels.grammar import CHANGE_POINTS, Product, expand, multiplied, split
from ..runtime.ahead import Ahead
from ..runtime.budget import Spent, never_spent
from ..runtime.executors import num_workers, run_all
from .halving import TRIAL_STEPS, better_half, has_ended_early, is_halved, reached
from .ledger import ACCEPTED, EVERY, REGROUPED, START, Entry, Ledger
from .progress import SearchReport, progress_bar
from .settings import SearchSettings

_Key: TypeAlias = tuple[int, int]
"""Step, and number of the attempt."""

MIN_IMPROVEMENT = 0.1
"""A BIC that is lower by less is a matter of where the optimiser stopped."""

_HOPELESS = 10
"""A fit is hopeless that is behind the best one by what BIC asks for so many parameters, or for one
a series if these are more.

Looking for other optima gains that much at times, but hardly ever more.
"""

_REGROUPED_HOPELESS = 5
"""The same of regrouped sets.

Of 133 in searches of 13 tables, 8 were better than the set they came from; when their product or
sum had entered, they were up to 33 behind it in BIC, with 36 to 39 as the limit.
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

    with progress_bar(observations, settings, executor, progress) as report:
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
        report: SearchReport,
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
        start = self._restarts(self._settings.start, None)
        self._best, self._best_step = yield from self._learn(start, 0, START, -1)
        expand_all = self._expand_one if self._settings.strategy == "partial" else self._expand_full
        depth = 0
        for depth in range(1, self._settings.depth + 1):
            before = self._best_step
            yield from expand_all(depth)
            if self._best_step == before:
                # The same questions would be asked again.
                break
        if depth and self._settings.strategy == "partial" and self._settings.fit.learner == "scan":
            yield from self._regroup(depth)

    def _expand_one(self, depth: int) -> Iterator[Entry]:
        """Partial set expansion: one member after the other, in order of structure."""
        waiting = sorted((k.structure for k in self._best.kernels), key=lambda k: k.sort_key)
        self._report.expect(len(waiting) * self._settings.restarts)
        for number, member in enumerate(waiting, start=1):
            # Nothing may have changed since this member was expanded the last time, or it is gone.
            is_asked = (self._best_step, member) in self._asked
            attempts = () if is_asked else self._expansion(member)
            self._asked.add((self._best_step, member))
            if attempts:
                self._look_ahead(waiting[number:])
                yield from self._try(attempts, depth, str(member))
            else:
                self._report.expect(-self._settings.restarts)

    def _expansion(self, member: Product) -> Sequence[_Attempt]:
        """Starts of what takes the place of a member; none if it is gone."""
        places = [k for k, own in enumerate(self._best.kernels) if own.structure == member]
        if not places:
            return ()
        rest = _state(self._best).without(places[0])
        return self._restarts(expand(self._best.kernels[places[0]], self._settings.bases), rest)

    def _look_ahead(self, waiting: Sequence[Product]) -> None:
        """Let idle workers begin the next expansion, which is asked if this one is rolled back."""
        new = (member for member in waiting if (self._best_step, member) not in self._asked)
        attempts = next(filter(None, map(self._expansion, new)), ())
        self._ahead.expect(self._jobs(self._step + 1, attempts))

    def _expand_full(self, depth: int) -> Iterator[Entry]:
        """Full set expansion: every member at once."""
        self._report.expect(self._settings.restarts)
        derived: dict[Product, Product] = {}
        for kernel in self._best.kernels:
            for product in expand(kernel, self._settings.bases)[1:]:
                derived.setdefault(product.structure, product)
        attempts = self._restarts((*self._best.kernels, *derived.values()), None)
        yield from self._try(attempts, depth, EVERY)

    def _regroup(self, depth: int) -> Iterator[Entry]:
        """Multiply two members, or split a product, as long as that makes the set better."""
        before = -1
        while self._best_step != before and (attempts := self._regroupings()):
            before = self._best_step
            self._report.expect(len(attempts))
            yield from self._try(attempts, depth, REGROUPED)

    def _regroupings(self) -> Sequence[_Attempt]:
        kernels, state = self._best.kernels, _state(self._best)
        attempts = []
        for i, j in itertools.combinations(range(len(kernels)), 2):
            product = multiplied(kernels[i], kernels[j])
            # As many factors as expansions come to.
            if product is not None and len(product.factors) <= self._settings.depth + 1:
                rest = state.without(j).without(i)
                attempts.append(_Attempt((product,), rest, _REGROUPED_HOPELESS))
        for k, kernel in enumerate(kernels):
            rest = state.without(k)
            attempts += [_Attempt(terms, rest, _REGROUPED_HOPELESS) for terms in split(kernel)]
        return attempts

    def _try(self, attempts: Sequence[_Attempt], depth: int, expanded: str) -> Iterator[Entry]:
        """Learn sets; keep the best if its BIC is lower."""
        found, step = yield from self._learn(attempts, depth, expanded, self._best_step)
        if self._is_better(found):
            self._best, self._best_step = found, step
            self._ahead.drop()

    def _is_better(self, found: Fit) -> bool:
        return found.criterion < self._best.criterion - MIN_IMPROVEMENT

    def _learn(
        self, attempts: Sequence[_Attempt], depth: int, expanded: str, parent: int
    ) -> Generator[Entry, None, tuple[Fit, int]]:
        """Make all attempts of a step; say in the ledger what became of each."""
        step, self._step = self._step, self._step + 1

        def entry(number: int, found: Fit) -> Entry:
            structure = attempts[number].structure
            return Entry(step, number, depth, expanded, parent, structure, found)

        fits = yield from self._run_attempts(step, attempts, entry)
        # The paper's learner compares starts by what they climbed.
        by_bound = self._settings.fit.learner == "relaxed"
        costs = [-found.elbo if by_bound else found.criterion for found in fits]
        ended = [has_ended_early(found, self._settings.fit) for found in fits]
        best = int(np.argmin(np.where(ended, np.inf, costs)))
        name = CRITERIA[self._settings.fit.criterion]
        limit = self._best.criterion - MIN_IMPROVEMENT if step else np.inf
        other = "another set" if expanded == REGROUPED else "another restart"
        for number, found in enumerate(fits):
            if ended[number]:
                behind = reached(fits[best].history) - reached(found.history)
                decision = f"ended after {TRIAL_STEPS} steps: by then {behind:.1f} behind another"
            elif number != best:
                by = f"{costs[number] - costs[best]:.1f} in {'its bound' if by_bound else name}"
                decision = f"{other} is better by {by}"
            elif found.criterion < limit:
                decision = ACCEPTED
            else:
                change = (
                    round(found.criterion - self._best.criterion, 1) + 0.0
                )  # no minus before a zero
                decision = f"rolled back: {name} changes by {change:+.1f}"
            self._ledger.decide(step, number, decision)
        return fits[best], step

    def _run_attempts(
        self, step: int, attempts: Sequence[_Attempt], entry: Callable[[int, Fit], Entry]
    ) -> Generator[Entry, None, list[Fit]]:
        known = self._ledger.entries
        for number in range(len(attempts)):
            if (step, number) in known:
                self._report.show(known[step, number])
        for number, found in self._learnt(step, attempts):
            self._ledger.add(entry(number, found))
            if step and self._is_better(found):
                self._ahead.drop()  # this step will not be rolled back
            self._report.show(known[step, number])
            yield known[step, number]
        return [known[step, number].fit for number in range(len(attempts))]

    def _learnt(self, step: int, attempts: Sequence[_Attempt]) -> Iterator[tuple[int, Fit]]:
        """Learn what the ledger has not; yield each fit as soon as it is there."""
        jobs = self._jobs(step, attempts)
        if not is_halved(self._settings.fit, len(attempts)):
            yield from self._run_jobs(jobs)
            return
        trials: dict[int, Trial] = dict(sorted(self._run_jobs(jobs)))
        known = {n: own.fit for (s, n), own in self._ledger.entries.items() if s == step}
        better = better_half(
            {n: own.history for n, own in known.items()}
            | {n: trial.climb.objective for n, trial in trials.items()}
        )
        # Starts that end early come last: the best result so far shall be one learnt to the end.
        for own, most_steps in (
            ([n for n in trials if n in better], None),
            ([n for n in trials if n not in better], TRIAL_STEPS),
        ):
            yield from self._run_jobs(
                {(step, n): self._job(step, n, attempts[n], trials[n], most_steps) for n in own}
            )

    def _run_jobs(self, jobs: Mapping[_Key, Callable[[], Any]]) -> Iterator[tuple[int, Any]]:
        hear = self._report.hear
        for (_, number), result in run_all(jobs, self._executor, self._spent, hear, self._ahead):
            yield number, result

    def _restarts(self, members: Sequence[Product], rest: State | None) -> Sequence[_Attempt]:
        """All starts of a set: of the members, and what there is beside them."""
        behind = max(_HOPELESS, self._observations.num_series)
        first = again = _Attempt(tuple(members), rest, behind)
        if rest is not None and self._settings.fit.learner == "scan":
            # A scan hardly depends on its random numbers: others start from nothing, so that not
            # all end where the parent is.  A relaxed posterior starts at random anyway.
            bare = tuple(member.structure for member in (*rest.kernels, *members))
            again = _Attempt(bare, None, behind, from_nothing=True)
        return [first] + [again] * (self._settings.restarts - 1)

    def _jobs(self, step: int, attempts: Sequence[_Attempt]) -> dict[_Key, Callable[[], Any]]:
        """Return what learns the fits of a step that the ledger has not, or begins, if halved."""
        is_trial = is_halved(self._settings.fit, len(attempts))
        return {
            (step, number): self._trial(step, number, attempt)
            if is_trial
            else self._job(step, number, attempt)
            for number, attempt in enumerate(attempts)
            if (step, number) not in self._ledger.entries
        }

    def _trial(self, step: int, number: int, attempt: _Attempt) -> Callable[[], Trial]:
        return partial(
            try_start, self._observations, attempt.members, num_steps=TRIAL_STEPS,
            seed=(self._settings.seed, step, number), settings=self._settings.fit,
            start=attempt.rest,
        )  # fmt: skip

    def _job(
        self,
        step: int,
        number: int,
        attempt: _Attempt,
        trial: Trial | None = None,
        most_steps: int | None = None,
    ) -> Callable[[], Fit]:
        settings, hopeless = self._settings.fit, np.inf
        # A change point, which is looked for later, may gain far more.
        if step > 0 and CHANGE_POINTS not in self._settings.bases:
            price = np.log(self._observations.num_observed)
            hopeless = self._best.criterion + attempt.behind * price
        if attempt.from_nothing:
            # The next restart is another start from nothing already.
            settings = replace(settings, num_starts=1)
        return partial(
            fit, self._observations, attempt.members,
            seed=(self._settings.seed, step, number), settings=settings,
            start=attempt.rest, hopeless=hopeless, trial=trial, most_steps=most_steps,
        )  # fmt: skip


@dataclass(frozen=True)
class _Attempt:
    """What one fit of a step begins with.

    Parameters
    ----------
    members
        What enters; numbers that they have are starting values.
    rest
        What is there already, if anything is.
    behind
        How far behind the best fit it is hopeless, as the price of so many parameters.
    from_nothing
        Whether it was given up, so that members enter anew.
    """

    members: tuple[Product, ...]
    rest: State | None
    behind: int
    from_nothing: bool = False

    @property
    def structure(self) -> tuple[str, ...]:
        """All members of the set, as they are written in the ledger."""
        kept = () if self.rest is None else self.rest.kernels
        return tuple(str(product.structure) for product in (*kept, *self.members))


def _state(fit: Fit) -> State:
    log_heights = None if fit.heights is None else np.log(fit.heights)
    return State(fit.kernels, fit.Z, fit.noise_variance, log_heights=log_heights)

"""Fit one structure: which series use which component, and all hyperparameters.

Local optima are the main enemy, so no step relies on a gradient from a random start alone.

1. *Grow*: components enter one by one.  For each, many hyperparameters drawn from the data's
   own scales are scanned at once against what every series has so far; the best one enters for
   the series that gain from it.
2. *Refine*: L-BFGS on all hyperparameters, and the best row z_n of every series given these, in
   turn until nothing changes.
3. *Reseed*: every component in turn is taken out and scanned again, as if it were new, and the
   better of the two is kept.  This is what leaves local optima.  Where the relaxed posterior began
   ("relaxed+scan") it finds all components at once, and may give a factor to the wrong one of two:
   they exchange factors while that scores better.
4. *Prune* (in a search): components that do not pay for their parameters in BIC are dropped.  If
   members change at a point in time, so may other components, before and after that (`split`).
5. *Finish*: the posterior over Z, enumerated per series, with the closed form of tau, and
   L-BFGS on the evidence lower bound over it.

A fit that is far behind the best one of its search after step 2 is *hopeless*: it is not reseeded,
and step 5 is one round.  It still counts in averages, with the score that it has.  One that began
at a state of the search is near the best already if it is to win: if it is far behind after step 1,
it is not learnt on at all.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

from ..data.observations import Observations
from ..kernels.grammar import Product
from ..runtime.threads import single_threaded
from .fits import MOST_ROUNDS, Fit, FitSettings, State, Trial
from .learner import Learner


def fit(
    observations: Observations,
    structure: Sequence[Product],
    *,
    seed: int | Sequence[int],
    settings: FitSettings | None = None,
    start: State | None = None,
    hopeless: float = np.inf,
    trial: Trial | None = None,
    most_steps: int | None = None,
) -> Fit:
    """Learn one structure; with the learner "relaxed", see `relaxed.learn_relaxed`.

    Parameters
    ----------
    observations
        Scaled data.
    structure
        Members to grow; numbers that they have already are starting values.
    seed
        Everything random follows from it.
    settings
        See `FitSettings`.
    start
        A state to grow from; by default an empty one.
    hopeless
        From which criterion on (see `Learner.cost`) no time is spent on other optima; not looked at
        by the learner "relaxed".
    trial, most_steps
        What `try_start` returned, to go on from, and to how many steps; of the learner "relaxed"
        alone.
    """
    settings = settings or FitSettings()
    if settings.learner == "relaxed":
        from .relaxed import learn_relaxed  # with TensorFlow, which takes seconds to load

        return learn_relaxed(
            observations, structure, seed=seed, settings=settings, start=start,
            trial=trial, most_steps=most_steps,
        )  # fmt: skip
    with single_threaded():
        return _fit(observations, structure, seed, settings, start, hopeless)


def try_start(
    observations: Observations,
    structure: Sequence[Product],
    *,
    num_steps: int,
    seed: int | Sequence[int],
    settings: FitSettings,
    start: State | None = None,
) -> Trial:
    """Take the first steps of the learner "relaxed"; see `relaxed.try_relaxed`."""
    from .relaxed import try_relaxed  # with TensorFlow, which takes seconds to load

    return try_relaxed(
        observations, structure, num_steps=num_steps, seed=seed, settings=settings, start=start
    )


def _fit(
    observations: Observations,
    structure: Sequence[Product],
    seed: int | Sequence[int],
    settings: FitSettings,
    start: State | None,
    hopeless: float,
) -> Fit:
    began = time.perf_counter()
    learner = Learner(observations, settings, np.random.default_rng(seed))
    begin = learner.grow if learner.settings.learner == "scan" else learner.relax
    if start is None:
        empty = State.empty(observations.num_series)
        grown = [begin(empty, structure) for _ in range(learner.settings.num_starts)]
        state = max(grown, key=lambda state: state.score)
        num_known = 0
    else:
        state = begin(start, structure)
        num_known = len(start.kernels) + sum(member.is_complete for member in structure)
    is_bounded = hopeless < np.inf
    if is_bounded and start is not None and learner.cost(state) > hopeless:
        return learner.finish(learner.limit(state), began, rounds=0)
    state = learner.refine(state)
    is_hopeless = is_bounded and learner.cost(state) > hopeless
    if len(state.kernels) > num_known and not is_hopeless:
        # Otherwise nothing new has entered: what is there was reseeded when it was learnt.
        state = learner.reseed(state, structure)
        if learner.settings.learner == "relaxed+scan":
            state = learner.exchange(state)
    state = learner.split(state, structure)
    if learner.settings.prune:
        pruned = learner.prune(state)
        if pruned is not state:
            state = learner.split(pruned, structure)
    state = learner.limit(state)
    return learner.finish(state, began, rounds=1 if is_hopeless else MOST_ROUNDS)

"""The steps that learn one structure, each from a state to a better one; see `training`."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from ..gp.limits import MAX_ENUMERATED_COMPONENTS
from ..gp.types import Floats
from ..kernels.change_points import change_point
from ..kernels.grammar import Product, parse
from ..model.annealing import Annealing
from ..runtime.news import tell
from .assignments import Pairs, RowPosterior
from .fits import MOST_ROUNDS, PLAIN_MODEL, Fit, State
from .initialization import shuffled, typical_step
from .moves import Moves
from .scores import ENUMERATE_AT_MOST

_FAINT = parse("0.001 x C")
"""Stands for "no component": a model needs one."""

_WORTH_LEARNING_ON = 10.0
"""A replaced component this much (in nats) below the old score after ten steps is given up."""

_TOO_DEAR = 0.1
"""A component stays untried if dropping it raises the criterion so much per observed value.

Of 129 that two searches tried to drop, 36 were dropped; at first that had cost at most 0.05.
"""

_MANY = 64
_CONVERGED = 1e-5
"""Learning of so many series ends when a round gains less, in nats for each observed value."""

_CHANGES = np.linspace(0.05, 0.95, 19).tolist()
"""Where a component may change, in spans of the data."""

_RATIOS = (0.3, 1.0, 3.0)
"""By which factors its variance before the change may differ, and by one over that after it."""

_RELAXED_SAMPLES = 3
"""S of a relaxed posterior that is thresholded and learnt on."""

_LEAST_NOISE = 0.05
"""Noise variance that a relaxed posterior begins with, at least."""

_NOISE_LEVELS = np.geomspace(1e-4, 1.0, 9)
"""Noise variances that a series may begin with where the kernels are given."""


class Learner(Moves):
    """The steps of `fit`, each from a state to a better one."""

    def grow(self, state: State, members: Sequence[Product]) -> State:
        """Let members enter in random order, those with numbers first."""
        known = [member for member in members if member.is_complete]
        unknown = [member for member in members if not member.is_complete]
        for number, member in enumerate([*known, *shuffled(unknown, self.rng)], start=1):
            self._tell(f"{member.structure} enters ({number} of {len(members)})", state)
            grown = self._enter(state, member)
            if grown is not None:
                state = self._improve(self._polish(grown, max_iterations=12)[0])
        return state

    def adopt(self, kernels: Sequence[Product]) -> State:
        """Give every series the best of a few noise levels, and its best row, for known kernels."""
        num_series, K = self.observations.num_series, len(kernels)
        state = State(tuple(kernels), np.zeros((num_series, K)), np.ones(num_series))
        best = np.full(num_series, -np.inf)
        # Beyond ten components rows are found step by step, two entries at a time.
        for _ in range(1 if K <= ENUMERATE_AT_MOST else K):
            before, pairs = state, Pairs.around(state.Z, ENUMERATE_AT_MOST)
            levels = np.tile(_NOISE_LEVELS[:, None], num_series)
            every = self._at_levels(state.kernels, levels, pairs)
            for level, own in zip(_NOISE_LEVELS, every, strict=True):
                log_densities = pairs.by_series(own, -np.inf)
                row = pairs.starts + np.argmax(log_densities, axis=1)
                gains = log_densities.max(axis=1) > best
                best = np.where(gains, log_densities.max(axis=1), best)
                state = replace(
                    state,
                    Z=np.where(gains[:, None], pairs.configurations[row], state.Z),
                    noise_variance=np.where(gains, level, state.noise_variance),
                )
            if np.array_equal(state.Z, before.Z):
                break
        return state

    def relax(self, state: State, members: Sequence[Product]) -> State:
        """Learn the members beside what is there with the relaxed posterior; threshold it."""
        from .relaxed import relaxed_start  # with TensorFlow, which takes seconds to load

        settings = replace(
            self.settings,
            num_samples=_RELAXED_SAMPLES,
            annealing=Annealing(),
            prior="finite",
            priors=False,
            model=PLAIN_MODEL,
        )
        noisy = replace(state, noise_variance=np.maximum(state.noise_variance, _LEAST_NOISE))
        relaxed = relaxed_start(
            self.observations, members, rng=self.rng, settings=settings, start=noisy
        )
        return self._improve(relaxed.used())

    def limit(self, state: State) -> State:
        """Drop the components that are missed least, down to what can be enumerated."""
        while len(state.kernels) > MAX_ENUMERATED_COMPONENTS:
            without = [self._improve(state.without(k)) for k in range(len(state.kernels))]
            state = self.refine(max(without, key=lambda smaller: smaller.score), rounds=2)
        return state

    def refine(self, state: State, rounds: int = 8, max_iterations: int = 40) -> State:
        """Hyperparameters and rows of Z in turn until nothing changes."""
        for _ in range(rounds):
            before = state
            self._tell("refining", state)
            polished, has_converged = self._polish(state, max_iterations)
            state = self._improve(polished)
            if state.score < before.score + 0.01 or (has_converged and _same_rows(state, polished)):
                break
        return state

    def reseed(self, state: State, members: Sequence[Product]) -> State:
        """Take components out one by one and let them enter anew; try unused members again."""
        for _ in range(self.settings.num_reseeds):
            before = state.score
            for k in range(len(state.kernels)):
                if k < len(state.kernels):
                    self._tell(f"{state.kernels[k].structure} enters anew", state)
                    reduced = state.without(k)
                    state = self._keep_better(state, reduced, state.kernels[k].structure)
            for member in _missing(members, state.kernels):
                state = self._keep_better(state, state, member.structure)
            if state.score < before + 0.1:
                break
        return self.refine(state)

    def _keep_better(self, state: State, reduced: State, member: Product) -> State:
        """Let a member enter the reduced state; the old state if that scores no better."""
        grown = self._enter(reduced, member)
        if grown is None:
            return state
        grown = self._improve(self._polish(grown, max_iterations=10)[0])
        if grown.score <= state.score and _who_has_what(grown) == _who_has_what(state):
            return state  # On its way back to where it was.
        if grown.score > state.score - _WORTH_LEARNING_ON:
            grown = self.refine(grown, rounds=2, max_iterations=20)
        return grown if grown.score > state.score + 0.01 else state

    def split(self, state: State, members: Sequence[Product]) -> State:
        """Let components change at a point in time, if members do, while the criterion falls.

        A component of one height all along leaves little to gain for one that begins or ends:
        k x UNTIL and k x FROM take its place together, at the best of a few times and heights.  All
        components are tried, not only the one that the search expands.
        """
        if not any(factor.base.is_window for member in members for factor in member.factors):
            return state
        k = 0
        while k < len(state.kernels):
            kernel = state.kernels[k]
            if not any(factor.base.is_window for factor in kernel.factors):
                self._tell(f"{kernel.structure} changes", state)
                changed = max(self._changed(state, k),
                              key=lambda one: self._log_likelihoods(one).sum())  # fmt: skip
                changed = self.refine(changed, rounds=3, max_iterations=20)
                if self.cost(changed) < self.cost(state):
                    state = changed
                    continue  # The two in its place are the last ones: k is the next component.
            k += 1
        return state

    def _changed(self, state: State, k: int) -> Iterator[State]:
        """States in which a component changes in height, at some point in time."""
        rest, kernel = state.without(k), state.kernels[k]
        width = typical_step(self.observations.x)
        for at, ratio in itertools.product(_CHANGES, _RATIOS):
            assert kernel.variance is not None
            before = replace(kernel, variance=kernel.variance * ratio)
            after = replace(kernel, variance=kernel.variance / ratio)
            yield replace(
                rest,
                kernels=(*rest.kernels, *change_point(before, after, at, width)),
                Z=np.column_stack([rest.Z, state.Z[:, [k, k]]]),
                log_heights=None
                if state.log_heights is None or rest.log_heights is None
                else np.column_stack([rest.log_heights, state.log_heights[:, [k, k]]]),
            )

    def exchange(self, state: State) -> State:
        """Let components exchange factors, two at a time, while that scores better."""
        before = None
        while state is not before:
            before = state
            for changed in before.exchanges():
                better = self.refine(changed, rounds=4)
                if better.score > state.score + 0.1:
                    state = better
                    break
        return state

    def prune(self, state: State) -> State:
        """Drop components while the criterion falls."""
        while len(state.kernels) > 1:
            cost = self.cost(state)
            loss = [self.cost(self._improve(state.without(k))) for k in range(len(state.kernels))]
            # A component that looks a little too dear after learning again may still be cheap.
            for k in np.argsort(loss)[:2]:
                if loss[k] > cost + _TOO_DEAR * self.observations.num_observed:
                    continue
                smaller = self.refine(state.without(int(k)), rounds=3)
                if self.cost(smaller) < cost:
                    state = smaller
                    break
            else:
                return state
        return state

    def finish(self, state: State, began: float, rounds: int = MOST_ROUNDS) -> Fit:
        """Learn the posterior over Z and the hyperparameters together."""
        if not state.kernels:
            state = replace(state, kernels=(_FAINT,), Z=np.zeros((len(state.Z), 1)))
        many = self.observations.num_series >= _MANY
        enough = max(0.01, _CONVERGED * self.observations.num_observed if many else 0.0)
        # Relative to the loss, which grows with the series.
        tolerance = 1e-9 if many else 1e-7
        history = []
        while True:
            posterior = self.posterior(state)
            history.append(posterior.elbo)
            for _ in range(rounds):
                before = posterior.elbo
                self._tell("finishing", state)
                state, _ = self._polish(state, 60, posterior, tolerance=tolerance)
                posterior = self.posterior(state)
                history.append(posterior.elbo)
                if posterior.elbo < before + enough:
                    break
            state = replace(state, Z=posterior.most_probable)
            used = state.used()
            if len(used.kernels) in (0, len(state.kernels)):
                break
            state = used
        if self._has_heights:
            state = self._settled(state)
        return self.describe(state, posterior, np.array(history), began)

    def describe(self, state: State, posterior: RowPosterior, history: Floats, began: float) -> Fit:
        """Return a state, with its posterior over Z, as a fit."""
        state = replace(state, Z=posterior.most_probable)
        return Fit(
            kernels=state.kernels,
            Z=state.Z,
            probabilities=posterior.marginals,
            tau=posterior.tau,
            noise_variance=state.noise_variance,
            log_likelihood=float(self._log_likelihoods(state).sum()),
            bic=self.bic(state),
            elbo=posterior.elbo,
            seconds=time.perf_counter() - began,
            history=history,
            cost=None if self.settings.criterion == "bic" else self.cost(state),
            heights=None if state.log_heights is None else np.exp(state.log_heights),
        )

    def _tell(self, what: str, state: State) -> None:
        """Tell whoever waits for the fit what it does, and how far it is."""
        tell(lambda: f"{what}, BIC {self.bic(state):.1f}" if state.kernels else what)


def _same_rows(a: State, b: State) -> bool:
    """Whether two states agree on who has what, and on how high it is."""
    return a.Z.shape == b.Z.shape and np.allclose(a.loadings, b.loadings)


def _who_has_what(state: State) -> list[tuple[str, list[float]]]:
    """Return structures with their columns of Z, sorted: states may list them in another order."""
    structures = [str(kernel.structure) for kernel in state.kernels]
    return sorted(zip(structures, state.Z.T.tolist(), strict=True))


def _missing(members: Sequence[Product], kernels: Sequence[Product]) -> list[Product]:
    """Members that no kernel stands for, with multiplicity."""
    left = [kernel.structure for kernel in kernels]
    missing = []
    for member in members:
        if member.structure in left:
            left.remove(member.structure)
        else:
            missing.append(member)
    return missing

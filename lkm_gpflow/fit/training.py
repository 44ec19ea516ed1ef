"""Fit one structure: which series use which component, and all hyperparameters.

Local optima are the main enemy, so no step relies on a gradient from a random start alone.

1. *Grow*: components enter one by one.  For each, many hyperparameters drawn from the data's own
   scales are scanned against what every series has so far; the best one enters for the series that
   gain from it.  Members enter in random order; of a long table (`limits.LONG`), where order counts
   for more and a scan costs more, the best candidate of all members enters, until none pays.
2. *Refine*: L-BFGS on all hyperparameters, and the best row z_n of every series given these, in
   turn until nothing changes.
3. *Reseed*: every component in turn is taken out and enters anew, and the better of the two states
   is kept.  This step leaves local optima.
4. *Prune* (in a search): components that do not pay for their parameters are dropped.  If members
   change at a point in time, so may other components, before and after that (`Learner.split`).
5. *Finish*: the posterior over Z, enumerated per series, with the closed form of tau, and L-BFGS on
   the evidence lower bound over it.

A fit that is far behind the best one of its search after step 2 is *hopeless*: it is not reseeded,
and step 5 is one round.  It still counts in averages, with the score that it has.  A fit that began
at a state of the search is judged after step 1 already.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from scipy.optimize import minimize

from ..data.observations import Observations
from ..gp import limits
from ..gp.types import Floats
from ..kernels.grammar import Product, change_point, parse
from ..model.criterion import bic
from ..model.ibp import FiniteIBP
from ..runtime.news import tell
from ..runtime.threads import single_threaded
from .assignments import Pairs, RowPosterior, best_rows, log_prior_weights
from .engine import Engine, components
from .fits import MOST_ROUNDS, PLAIN_MODEL, Fit, FitSettings, State
from .initialization import Proposer, Ranges, shuffled, typical_step
from .layout import Layout
from .target import Target
from .toeplitz_engine import ToeplitzEngine

ENUMERATE_AT_MOST = 10
"""The posterior is over all rows of Z up to this K, over neighbours of the rows beyond."""

_ENUMERATE_IN_MOVES = 4
"""The same while Z and hyperparameters are still learnt in turn."""

_LEAST_RESPONSIBILITY = 1e-3
"""Rows of Z of less responsibility are ignored when hyperparameters are learnt."""

_REMEMBERED = 32
"""States whose log likelihoods are remembered: scores and BIC ask for them again."""

_REMEMBERED_STEPS = 40
"""Steps from which L-BFGS knows curvature."""

_NOISE_FACTORS = np.array([1.0, 0.2, 0.03])
"""A new component may explain what passed for noise: each candidate is tried with less of it."""

_SCANNED = 8
"""Candidates for a new component that pass the rough scan, and one more for each other member."""

_WORTH_LEARNING_ON = 10.0
"""A replaced component this much (in nats) below the old score after ten steps is given up."""

_TOO_DEAR = 0.1
"""A component is kept untried if dropping it raises the criterion so much per observed value."""

_MANY = 64
_CONVERGED = 1e-5
"""Learning of so many series ends when a round gains less, in nats for each observed value."""

_CHANGES = np.linspace(0.05, 0.95, 19).tolist()
"""Where a component may change, in spans of the data."""

_RATIOS = (0.3, 1.0, 3.0)
"""Factors of its variance before the change; after it one over that."""

_NOISE_LEVELS = np.geomspace(1e-4, 1.0, 9)
"""Noise variances that a series may begin with where the kernels are given."""

_FAINT = parse("0.001 x C")
"""Stands for "no component": a model needs one."""

StateKey: TypeAlias = tuple[tuple[Product, ...], bytes, bytes, str]
"""Tells a state from others: kernels, Z, noise variances, parameters."""


def fit(
    observations: Observations,
    structure: Sequence[Product],
    *,
    seed: int | Sequence[int],
    settings: FitSettings | None = None,
    start: State | None = None,
    hopeless: float = np.inf,
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
        Criterion from which on no time is spent on other optima (see `Learner.cost`); the learner
        "relaxed" does not look at it.
    """
    settings = settings or FitSettings()
    if settings.learner == "relaxed":
        from .relaxed import learn_relaxed  # with TensorFlow, which takes seconds to load

        return learn_relaxed(observations, structure, seed=seed, settings=settings, start=start)
    with single_threaded():
        return _fit(observations, structure, seed, settings, start, hopeless)


def _fit(
    observations: Observations,
    structure: Sequence[Product],
    seed: int | Sequence[int],
    settings: FitSettings,
    start: State | None,
    hopeless: float,
) -> Fit:
    """The five steps."""
    began = time.perf_counter()
    learner = Learner(observations, settings, np.random.default_rng(seed))
    # 1. Grow
    if start is None:
        # Where the best of all members enters, the next start would be much the same.
        num_starts = 1 if observations.is_long else settings.num_starts
        grown = [learner.grow(learner.nothing(), structure) for _ in range(num_starts)]
        state = max(grown, key=lambda state: state.score)
        num_known = 0
    else:
        state = learner.grow(start, structure)
        num_known = len(start.kernels) + sum(member.is_complete for member in structure)
    is_bounded = hopeless < np.inf
    if is_bounded and start is not None and learner.cost(state) > hopeless:
        return learner.finish(learner.limit(state), began, rounds=0)
    # 2. Refine
    state = learner.refine(state)
    is_hopeless = is_bounded and learner.cost(state) > hopeless
    # 3. Reseed, unless nothing new has entered: the rest was reseeded when it was learnt
    if len(state.kernels) > num_known and not is_hopeless:
        state = learner.reseed(state, structure)
    # 4. Prune
    state = learner.split(state, structure)
    if settings.prune:
        pruned = learner.prune(state)
        if pruned is not state:
            state = learner.split(pruned, structure)
    # 5. Finish
    state = learner.limit(state)
    return learner.finish(state, began, rounds=1 if is_hopeless else MOST_ROUNDS)


def engine_for(observations: Observations, settings: FitSettings) -> Engine:
    """Return the engine of a model class: that of `LKM` itself, or TensorFlow for a subclass."""
    if settings.model == PLAIN_MODEL:
        plain = ToeplitzEngine if ToeplitzEngine.serves(observations) else Engine
        return plain(observations, settings.likelihood)
    from .tensor_engine import TensorEngine  # with TensorFlow, which takes seconds to load

    return TensorEngine(observations, settings.model, settings.likelihood)


def most_times(observations: Observations, settings: FitSettings) -> int:
    """Most times of a table on which its models are learnt and asked: more if it is regular."""
    is_plain = settings.model == PLAIN_MODEL and settings.learner == "scan"
    is_fast = is_plain and ToeplitzEngine.serves(observations)
    return limits.LONGEST_REGULAR if is_fast else limits.LONGEST


def model_covariances(
    kernels: Sequence[Product],
    x: Floats,
    model: str,
    parameters: Mapping[str, Any],
    num_series: int,
) -> Floats:
    """Covariances [K, D, D] of complete products on any times x [D], under any model.

    Parameters
    ----------
    kernels
        K of them.
    x
        Scaled times.
    model
        Name of the model class.
    parameters
        The model's own, by path.
    num_series
        N.
    """
    if model == PLAIN_MODEL:
        return components(kernels, x)
    from .tensor_engine import TensorEngine  # with TensorFlow, which takes seconds to load

    nothing = Observations(x, *np.zeros((2, num_series, len(x))))
    return TensorEngine(nothing, model).covariances(kernels, parameters)


def fit_covariances(fit: Fit, x: Floats, kernels: Sequence[Product] | None = None) -> Floats:
    """Covariances [K, D, D] of a fit's components, or of others under its model, on x [D]."""
    own = fit.kernels if kernels is None else kernels
    return model_covariances(own, x, fit.model, fit.parameters, len(fit.Z))


class Learner:
    """The steps of `fit`, each from a state to a better one.

    Parameters
    ----------
    observations
        The data.
    settings
        How one structure is learnt.
    rng
        Draws hyperparameters of new components.
    """

    def __init__(
        self, observations: Observations, settings: FitSettings, rng: np.random.Generator
    ) -> None:
        self.observations = observations
        self.settings = settings
        self.rng = rng
        self.engine = engine_for(observations, settings)
        self._step = typical_step(observations.x)
        self._known: dict[StateKey, Floats] = {}

    @cached_property
    def _proposer(self) -> Proposer:
        return Proposer.of(self.observations)

    def nothing(self) -> State:
        """Return the state in which every series is noise."""
        N = self.observations.num_series
        return State((), np.zeros((N, 0)), np.ones(N), parameters=self.engine.parameters)

    # --- step 1: grow ---

    def grow(self, state: State, members: Sequence[Product]) -> State:
        """Let members enter, those with numbers first: in random order, or the best of them."""
        known = [member for member in members if member.is_complete]
        unknown = shuffled([m for m in members if not m.is_complete], self.rng)
        waiting = [*([member] for member in known), *self._choices(unknown)]
        for number, choice in enumerate(waiting, start=1):
            self._tell(f"adding {choice[0].structure} ({number} of {len(members)})")
            grown = self.enter(state, *choice)
            if grown is None:
                continue
            state = self.improve(self.polish(grown, max_iterations=12)[0])
            entered = [m.structure for m in choice].index(grown.kernels[-1].structure)
            if len(choice) > 1:
                waiting.append(choice[:entered] + choice[entered + 1 :])
        return state

    def _choices(self, members: Sequence[Product]) -> list[list[Product]]:
        """Of which members the best enters: of a long table of all, else of one after another."""
        if self.observations.is_long and members:
            return [list(members)]
        return [[member] for member in members]

    def enter(self, state: State, *members: Product) -> State | None:
        """Add the best of many candidates for one of the members, for series that gain from it."""
        count = self.settings.num_candidates
        every = [self._proposer.propose(member, count, self.rng) for member in members]
        candidates = list(itertools.chain.from_iterable(every))
        noise = _NOISE_FACTORS[:, None] * state.noise_variance  # [L, N]
        entrance = self.engine.entrance(state)
        now = self._log_likelihoods(state)
        if len(candidates) > 1:
            most = _SCANNED + len(members) - 1
            candidates, likely = entrance.promising(candidates, noise, most)
            found = entrance.scan(candidates, likely[:, None])
            gain = np.maximum(np.nan_to_num(found[:, 0], nan=-np.inf) - now, 0.0).sum(axis=1)
            prices = np.array([self._price(candidate) for candidate in candidates])
            candidates = [candidates[int(np.argmax(gain - 2.0 * (prices - prices.min())))]]
        [densities] = entrance.scan(candidates, noise)
        densities = np.nan_to_num(densities, nan=-np.inf)
        gains = np.maximum(densities.max(axis=0) - now, 0.0)
        if gains.sum() <= self._price(candidates[0]):
            return None
        chosen = gains > 0.0
        level = np.argmax(densities, axis=0)
        own = noise[level, np.arange(len(chosen))]
        return State(
            kernels=(*state.kernels, *candidates),
            Z=np.column_stack([state.Z, chosen.astype(np.float64)]),
            noise_variance=np.where(chosen, np.maximum(own, 2e-5), state.noise_variance),
            parameters=state.parameters,
        )

    def _price(self, kernel: Product) -> float:
        """Half the price of its parameters: learning on will raise what a kernel gains."""
        share = 0.25 if self.settings.prune else 0.0
        return share * kernel.num_parameters * float(np.log(self.observations.num_observed))

    def adopt(self, fit: Fit) -> State:
        """Give every series the best of a few noise levels, and its best row, for known kernels."""
        num_series, K = self.observations.num_series, len(fit.kernels)
        state = replace(
            State.of(fit), Z=np.zeros((num_series, K)), noise_variance=np.ones(num_series)
        )
        best = np.full(num_series, -np.inf)
        # Beyond ten components rows are found step by step, two entries at a time.
        for _ in range(1 if K <= ENUMERATE_AT_MOST else K):
            before, pairs = state, Pairs.around(state.Z, ENUMERATE_AT_MOST)
            levels = np.tile(_NOISE_LEVELS[:, None], num_series)
            every = self._at_levels(state, levels, pairs)
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

    # --- step 2: refine ---

    def refine(self, state: State, rounds: int = 8, max_iterations: int = 40) -> State:
        """Hyperparameters and rows of Z in turn until nothing changes."""
        for _ in range(rounds):
            before = state
            self._tell("refining")
            polished, has_converged = self.polish(state, max_iterations)
            state = self.improve(polished)
            is_same = state.Z.shape == polished.Z.shape and np.allclose(state.Z, polished.Z)
            if state.score < before.score + 0.01 or (has_converged and is_same):
                break
        return state

    def polish(
        self,
        state: State,
        max_iterations: int,
        posterior: RowPosterior | None = None,
        tolerance: float = 1e-6,
    ) -> tuple[State, bool]:
        """L-BFGS on all hyperparameters, given Z or (if given) over the posterior's rows.

        Returns
        -------
        The better state, and whether L-BFGS converged before it was stopped.
        """
        if not state.kernels:
            return state, True
        target = self.target(state, posterior)
        scale = target.scale
        found = minimize(
            target.scaled_loss, target.begin * scale, jac=True, method="L-BFGS-B",
            bounds=np.column_stack([target.lower * scale, target.upper * scale]),
            options={
                "maxiter": max_iterations, "maxfun": 2 * max_iterations, "ftol": tolerance,
                "maxcor": _REMEMBERED_STEPS,
            },
        )  # fmt: skip
        flat = found.x / scale
        kernels, noise_variance = target.layout.unpack(flat)
        parameters = self.engine.constrained(flat[target.layout.extras])
        polished = replace(
            state, kernels=kernels, noise_variance=noise_variance, parameters=parameters
        )
        return polished, bool(found.success)

    def improve(self, state: State) -> State:
        """Best rows of Z given the hyperparameters, without unused components; then the score."""
        if state.kernels:
            pairs = Pairs.around(state.Z, _ENUMERATE_IN_MOVES)
            log_densities = self._log_densities(state, pairs)
            rows = best_rows(state.Z, self._prior(state), pairs, log_densities)
            state = replace(state, Z=pairs.configurations[rows]).used()
            self._remember(state, log_densities[rows])
        score = float(self._log_likelihoods(state).sum()) + self._log_prior(state)
        return replace(state, score=score)

    # --- step 3: reseed ---

    def reseed(self, state: State, members: Sequence[Product]) -> State:
        """Take components out one by one and let them enter anew; try unused members again."""
        for _ in range(self.settings.num_reseeds):
            before = state.score
            for k in range(len(state.kernels)):
                if k < len(state.kernels):
                    self._tell(f"trying {state.kernels[k].structure} anew")
                    reduced = state.without(k)
                    state = self.keep_better(state, reduced, state.kernels[k : k + 1])
            for choice in self._choices(_missing(members, state.kernels)):
                state = self.keep_better(state, state, choice)
            if state.score < before + 0.1:
                break
        return self.refine(state)

    def keep_better(self, state: State, reduced: State, choice: Sequence[Product]) -> State:
        """Let the best of a choice enter the reduced state; the old state if that is no better."""
        grown = self.enter(reduced, *(member.structure for member in choice))
        if grown is None:
            return state
        grown = self.improve(self.polish(grown, max_iterations=10)[0])
        if grown.score <= state.score and _who_has_what(grown) == _who_has_what(state):
            return state  # On its way back to where it was.
        if grown.score > state.score - _WORTH_LEARNING_ON:
            grown = self.refine(grown, rounds=2, max_iterations=20)
        return grown if grown.score > state.score + 0.01 else state

    # --- step 4: prune ---

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
                self._tell(f"does {kernel.structure} change?")
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
        for at, ratio in itertools.product(_CHANGES, _RATIOS):
            assert kernel.variance is not None
            before = replace(kernel, variance=kernel.variance * ratio)
            after = replace(kernel, variance=kernel.variance / ratio)
            yield replace(
                rest,
                kernels=(*rest.kernels, *change_point(before, after, at, self._step)),
                Z=np.column_stack([rest.Z, state.Z[:, [k, k]]]),
            )

    def prune(self, state: State) -> State:
        """Drop components while the criterion falls."""
        while len(state.kernels) > 1:
            cost = self.cost(state)
            loss = [self.cost(self.improve(state.without(k))) for k in range(len(state.kernels))]
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

    def limit(self, state: State) -> State:
        """Drop the components that are missed least, down to what can be enumerated."""
        while len(state.kernels) > limits.MAX_ENUMERATED_COMPONENTS:
            without = [self.improve(state.without(k)) for k in range(len(state.kernels))]
            state = self.refine(max(without, key=lambda smaller: smaller.score), rounds=2)
        return state

    # --- step 5: finish ---

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
                self._tell("finishing")
                state, _ = self.polish(state, 60, posterior, tolerance=tolerance)
                posterior = self.posterior(state)
                history.append(posterior.elbo)
                if posterior.elbo < before + enough:
                    break
            state = replace(state, Z=posterior.most_probable)
            used = state.used()
            if len(used.kernels) in (0, len(state.kernels)):
                break
            state = used
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
            model=self.settings.model,
            parameters=state.parameters,
        )

    # --- scores of a state ---

    def bic(self, state: State) -> float:
        """BIC: p counts variances and shapes of components in use, noises, own parameters."""
        used = state.used()
        count = sum(kernel.num_parameters for kernel in used.kernels) + len(state.noise_variance)
        count += self.engine.unconstrained(state.parameters).size
        log_likelihood = float(self._log_likelihoods(state).sum())
        return bic(log_likelihood, count, self.observations.num_observed)

    def cost(self, state: State) -> float:
        """The criterion that compares structures, smaller is better.

        "bic+prior" is BIC less twice the log prior of Z, weights of components integrated out.
        """
        if self.settings.criterion == "bic" or not state.kernels:
            return self.bic(state)
        return self.bic(state) - 2.0 * float(self._prior(state).log_prob(state.Z))

    def posterior(self, state: State) -> RowPosterior:
        """The posterior over Z given the hyperparameters."""
        pairs = Pairs.around(state.Z, ENUMERATE_AT_MOST)
        log_densities = self._log_densities(state, pairs)
        return RowPosterior.infer(self._prior(state), pairs, log_densities, state.Z)

    def target(self, state: State, posterior: RowPosterior | None) -> Target:
        """The function that hyperparameters are learnt on, given Z or over the posterior's rows."""
        if posterior is None:
            pairs, log_weights = Pairs.of_rows(state.Z), np.zeros(len(state.Z))
        else:
            pairs = posterior.active(_LEAST_RESPONSIBILITY)
            log_weights = log_prior_weights(self._prior(state), posterior.tau, pairs)
        layout, flat = self._packed(state)
        ranges = self._ranges(layout)
        objective = self.engine.objective(layout, pairs, log_weights)
        begin = np.clip(flat, ranges.lower, ranges.upper)
        return Target(self.engine, layout, ranges, objective, begin, self.settings.priors)

    def _packed(self, state: State) -> tuple[Layout, Floats]:
        """The layout of a state, and its flat vector."""
        extras = self.engine.unconstrained(state.parameters)
        layout = Layout(state.kernels, len(state.noise_variance), len(extras))
        return layout, layout.pack(state.noise_variance, extras)

    def _ranges(self, layout: Layout) -> Ranges:
        return Ranges.of(layout, self._step, exact=self.settings.exact)

    def _prior(self, state: State) -> FiniteIBP:
        prior = self.settings.ibp(len(state.kernels))
        assert isinstance(prior, FiniteIBP)  # `FitSettings` has seen to it
        return prior

    def _log_prior(self, state: State) -> float:
        """Log prior of Z with pi integrated out, and of the hyperparameters."""
        if not state.kernels:
            return 0.0
        value = float(self._prior(state).log_prob(state.Z))
        if self.settings.priors:
            layout, flat = self._packed(state)
            value += self._ranges(layout).log_prior(flat)[0]
            value += self.engine.log_prior(flat[layout.extras])[0]
        return value

    def _log_likelihoods(self, state: State) -> Floats:
        """``log p(x_n | z_n)``, [N]; those of the last states are remembered."""
        key = _key(state)
        if key not in self._known:
            self._remember(state, self._log_densities(state, Pairs.of_rows(state.Z)))
        return self._known[key]

    def _remember(self, state: State, log_likelihoods: Floats) -> None:
        key = _key(state)
        if len(self._known) >= _REMEMBERED:
            del self._known[next(iter(self._known))]
        self._known[key] = log_likelihoods

    def _log_densities(self, state: State, pairs: Pairs) -> Floats:
        """``log p(x_n | t)`` of all pairs, [P]; minus infinity where there is none."""
        return self._at_levels(state, state.noise_variance[None], pairs)[0]

    def _at_levels(self, state: State, noise_levels: Floats, pairs: Pairs) -> Floats:
        """`_log_densities` for each row of noise variances [L, N], [L, P]."""
        found = self.engine.log_densities(state, noise_levels, pairs)
        return np.nan_to_num(found, nan=-np.inf)

    def _tell(self, what: str) -> None:
        """Tell whoever waits for the fit what it does."""
        tell(lambda: what)


def _key(state: State) -> StateKey:
    return state.kernels, state.Z.tobytes(), state.noise_variance.tobytes(), str(state.parameters)


def _who_has_what(state: State) -> list[tuple[str, list[float]]]:
    """Structures with their columns of Z, sorted: states may list them in another order."""
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

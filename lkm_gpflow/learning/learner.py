"""The steps that learn one structure, each from a state to a better one; see `training`."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import TypeAlias

import numpy as np
from scipy.optimize import minimize

from ..data.observations import Observations
from ..kernels.base import to_kernel
from ..kernels.grammar import Product, parse
from ..models.amplitudes import HEIGHT_SD, degrees_of
from ..models.criterion import bic
from ..models.lkm import LKM
from ..models.posteriors import MAX_ENUMERATED_COMPONENTS, RelaxedPosterior
from ..models.relaxation import anneal
from ..numerics.types import Floats
from ..runtime.news import tell
from .assignments import Pairs, RowPosterior, best_rows, log_prior_weights
from .engine import Objective, components, pair_log_densities
from .evidence import log_evidence
from .fits import MOST_ROUNDS, Fit, FitSettings, State
from .heights import (
    LEVELS,
    MOST_SERIES,
    SeriesEvidence,
    chosen_heights,
    every_series,
    pair_evidence,
    would_be,
)
from .initialization import Proposer, Ranges, shuffled, typical_step
from .layout import Layout
from .prior import RowPrior
from .scanning import promising, scan
from .target import MANY, Target

_ENUMERATE_IN_MOVES = 4
_ENUMERATE_AT_THE_END = 10
"""Rows of Z range over all configurations up to this K, over neighbours of the rows beyond."""

_FAINT = parse("0.001 x C")
"""Stands for "no component": a model needs one."""

_WORTH_LEARNING_ON = 10.0
"""A replaced component this much (in nats) below the old score after ten steps is given up."""

_CONVERGED = 1e-5
"""Learning of many series ends when a round gains less, in nats for each observed value."""

_NOISE_LEVELS = np.geomspace(1e-4, 1.0, 9)
"""Noise variances that a series may begin with where the kernels are given."""

_NOISE_FACTORS = np.array([1.0, 0.2, 0.03])
"""A new component may explain what passed for noise: each candidate is tried with less of it."""

_SCANNED = 8
"""Of a new component's candidates so many, the best by a part of the times, are tried on all."""

_REMEMBERED = 32
"""States whose log likelihoods a learner remembers: scores and BIC ask for them again."""

_StateKey: TypeAlias = tuple[tuple[Product, ...], bytes, bytes, bytes]
"""Kernels, Z, noise variances and heights of a state."""


class Learner:
    """The steps of `fit`, each from a state to a better one."""

    def __init__(
        self, observations: Observations, settings: FitSettings, rng: np.random.Generator
    ) -> None:
        self.observations = observations
        self.settings = settings
        self.rng = rng
        self._degrees = degrees_of(settings.amplitudes)
        self._has_heights = settings.amplitudes == "component"
        if self._has_heights and observations.num_series > MOST_SERIES:
            raise ValueError(
                f"amplitudes: expected at most {MOST_SERIES} series with 'component', because each "
                f"then has covariances of its own, got {observations.num_series}: 'series' serves "
                "any number"
            )
        if settings.criterion == "laplace" and observations.num_series > MOST_SERIES:
            raise ValueError(
                f"criterion: expected at most {MOST_SERIES} series with 'laplace', which takes a "
                f"gradient for every hyperparameter, got {observations.num_series}: 'bic' and "
                "'bic+prior' serve any number"
            )
        if settings.criterion == "laplace" and not settings.priors:
            raise ValueError("criterion: expected priors=True with 'laplace', got priors=False")
        self._step = typical_step(observations.x)
        self._known: dict[_StateKey, Floats] = {}

    @cached_property
    def _proposer(self) -> Proposer:
        return Proposer.of(self.observations)

    # --- the steps ---

    def grow(self, state: State, members: Sequence[Product]) -> State:
        """Let members enter in random order, those with numbers first."""
        known = [member for member in members if member.is_complete]
        unknown = [member for member in members if not member.is_complete]
        for number, member in enumerate([*known, *shuffled(unknown, self.rng)], start=1):
            self._tell(f"{member.structure} enters ({number} of {len(members)})", state)
            grown = self._enter(state, member)
            if grown is not None:
                state = self._improve(self._polish(grown, max_iterations=12))
        return state

    def adopt(self, kernels: Sequence[Product]) -> State:
        """Give every series the best of a few noise levels, and its best row, for known kernels."""
        num_series, K = self.observations.num_series, len(kernels)
        state = State(tuple(kernels), np.zeros((num_series, K)), np.ones(num_series))
        best = np.full(num_series, -np.inf)
        # Beyond ten components rows are found step by step, two entries at a time.
        for _ in range(1 if K <= _ENUMERATE_AT_THE_END else K):
            before, pairs = state, Pairs.around(state.Z, _ENUMERATE_AT_THE_END)
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
        drawn = [self._proposer.propose(member, 1, self.rng)[0] for member in members]
        model = LKM(
            self.observations.table,
            kernels=[to_kernel(kernel) for kernel in (*state.kernels, *drawn)],
            alpha=self.settings.alpha,
            posterior=RelaxedPosterior(num_samples=3, temperature=1.0),
            noise_variance=np.maximum(state.noise_variance, 0.05),
            amplitudes=self.settings.amplitudes,
        )
        anneal(model, seed=int(self.rng.integers(2**31)))
        relaxed = State(
            kernels=tuple(kernel.to_expression() for kernel in model.kernels),
            Z=np.asarray(model.assignment()),
            noise_variance=model.noise_variance.numpy(),
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
            state = self._improve(self._polish(state, max_iterations))
            if state.score < before.score + 0.01:
                break
        return state

    def reseed(self, state: State, members: Sequence[Product]) -> State:
        """Take components out one by one and let them enter anew; try unused members again."""
        tried: set[tuple[_StateKey, int | Product]] = set()
        for _ in range(self.settings.num_reseeds):
            before = state.score
            for k in range(len(state.kernels)):
                if k < len(state.kernels) and _is_new(tried, state, k):
                    self._tell(f"{state.kernels[k].structure} enters anew", state)
                    reduced = state.without(k)
                    state = self._keep_better(state, reduced, state.kernels[k].structure)
            for member in _missing(members, state.kernels):
                if _is_new(tried, state, member):
                    state = self._keep_better(state, state, member.structure)
            if state.score < before + 0.1:
                break
        return self.refine(state)

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
        many = self.observations.num_series >= MANY
        enough = max(0.01, _CONVERGED * self.observations.num_observed if many else 0.0)
        history = []
        while True:
            posterior = self.posterior(state)
            history.append(posterior.elbo)
            for _ in range(rounds):
                before = posterior.elbo
                self._tell("finishing", state)
                state = self._polish(state, 60, posterior, tolerance=1e-7)
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

    # --- scores ---

    def bic(self, state: State) -> float:
        """BIC with the variances and shapes of the components in use, and a noise a series."""
        used = state.used()
        count = sum(kernel.num_parameters for kernel in used.kernels) + len(state.noise_variance)
        log_likelihood = float(self._log_likelihoods(state).sum())
        return bic(log_likelihood, count, self.observations.num_observed)

    def cost(self, state: State) -> float:
        """What structures are compared by, smaller is better: on the scale of BIC.

        "bic+prior" is BIC less twice the log prior of Z, weights of components integrated out;
        "laplace" is minus twice the log evidence, see `evidence`.
        """
        if self.settings.criterion == "bic" or not state.kernels:
            return self.bic(state)
        if self.settings.criterion == "bic+prior":
            prior = RowPrior(self.settings.alpha, len(state.kernels))
            return self.bic(state) - 2.0 * prior.log_prob(state.Z)
        posterior = self.posterior(state)
        return -2.0 * log_evidence(self.target(state, posterior), posterior.elbo)

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
        if self._has_heights:
            return pair_evidence(self._evidence(state), pairs, _log_heights(state))[0]
        return self._at_levels(state.kernels, state.noise_variance[None], pairs)[0]

    def _at_levels(self, kernels: Sequence[Product], noise_levels: Floats, pairs: Pairs) -> Floats:
        """`_log_densities` for each row of noise variances [L, N], [L, P]."""
        log_densities = pair_log_densities(
            components(kernels, self.observations.x), noise_levels, self.observations,
            pairs.series, pairs.configurations, self._degrees,
        )  # fmt: skip
        return np.nan_to_num(log_densities, nan=-np.inf)

    def _evidence(self, state: State) -> list[SeriesEvidence]:
        """What rows are worth to each series where heights differ."""
        C = components(state.kernels, self.observations.x)
        return every_series(C, state.noise_variance, self.observations)

    def _settled(self, state: State) -> State:
        """Heights at their best for Z."""
        log_heights, pairs = _log_heights(state), Pairs.of_rows(state.Z)
        _, found = pair_evidence(self._evidence(state), pairs, log_heights)
        return replace(state, log_heights=np.where(state.Z > 0.0, found, log_heights))

    def posterior(self, state: State) -> RowPosterior:
        """The posterior over Z given the hyperparameters."""
        pairs = Pairs.around(state.Z, _ENUMERATE_AT_THE_END)
        prior = RowPrior(self.settings.alpha, len(state.kernels))
        return RowPosterior.infer(prior, pairs, self._log_densities(state, pairs), state.Z)

    def _log_prior(self, state: State) -> float:
        """Of Z with pi integrated out, and of the hyperparameters."""
        if not state.kernels:
            return 0.0
        value = RowPrior(self.settings.alpha, len(state.kernels)).log_prob(state.Z)
        if self.settings.priors:
            layout = Layout(state.kernels, len(state.noise_variance))
            flat = layout.pack(state.noise_variance)
            value += Ranges.of(layout, self._step, exact=self.settings.exact).log_prior(flat)[0]
        return value

    # --- moves ---

    def _enter(self, state: State, member: Product) -> State | None:
        """Add the best of many candidates for a member, for the series that gain from it."""
        candidates = self._proposer.propose(member, self.settings.num_candidates, self.rng)
        noise = _NOISE_FACTORS[:, None] * state.noise_variance
        covariances = components(state.kernels, self.observations.x)
        base = np.tensordot(state.loadings, covariances, axes=1)
        candidates = promising(
            base, candidates, noise, self.observations, self._degrees, count=_SCANNED
        )
        log_densities = scan(base, candidates, noise, self.observations, self._degrees)
        log_densities = np.nan_to_num(log_densities, nan=-np.inf)
        log_heights = None
        if self._has_heights:
            log_densities, log_heights = self._scan_heights(log_densities, base, candidates, noise)
        best_noise = log_densities.max(axis=1)
        gains = np.maximum(best_noise - self._log_likelihoods(state), 0.0)
        best = int(np.argmax(gains.sum(axis=1)))
        # Learning on will raise the gain: half the price of its parameters is enough to enter.
        price = 0.25 * member.num_parameters * np.log(self.observations.num_observed)
        if gains[best].sum() <= (price if self.settings.prune else 0.0):
            return None
        chosen = gains[best] > 0.0
        level = np.argmax(log_densities[best], axis=0)
        own = noise[level, np.arange(len(chosen))]
        return State(
            kernels=(*state.kernels, candidates[best]),
            Z=np.column_stack([state.Z, chosen.astype(np.float64)]),
            noise_variance=np.where(chosen, np.maximum(own, 2e-5), state.noise_variance),
            log_heights=None
            if log_heights is None
            else np.column_stack([_log_heights(state), log_heights[best]]),
        )

    def _scan_heights(
        self, at_one: Floats, base: Floats, candidates: Sequence[Product], noise: Floats
    ) -> tuple[Floats, Floats]:
        """Let each series take the best height of a few, see `scan`.

        Returns
        -------
        Log densities with the prior of heights, [M, L, N], and log heights [M, N].
        """
        found, log_heights = at_one, np.zeros((len(candidates), base.shape[0]))
        for level in LEVELS:
            if level == 1.0:
                continue
            scaled = [replace(c, variance=level * (c.variance or 1.0)) for c in candidates]
            own = scan(base, scaled, noise, self.observations)
            own = np.nan_to_num(own, nan=-np.inf) - 0.5 * np.square(np.log(level) / HEIGHT_SD)
            gains = own.max(axis=1) > found.max(axis=1)
            found = np.where(gains[:, None, :], own, found)
            log_heights = np.where(gains, np.log(level), log_heights)
        return found, log_heights

    def _keep_better(self, state: State, reduced: State, member: Product) -> State:
        """Let a member enter the reduced state; the old state if that scores no better."""
        grown = self._enter(reduced, member)
        if grown is None:
            return state
        grown = self._improve(self._polish(grown, max_iterations=10))
        if grown.score > state.score - _WORTH_LEARNING_ON:
            grown = self.refine(grown, rounds=2, max_iterations=20)
        return grown if grown.score > state.score + 0.01 else state

    def _polish(
        self,
        state: State,
        max_iterations: int,
        posterior: RowPosterior | None = None,
        tolerance: float = 1e-5,
    ) -> State:
        """L-BFGS on all hyperparameters, given Z or (if given) over the posterior's rows."""
        if not state.kernels:
            return state
        target = self.target(state, posterior)
        scale = target.scale
        found = minimize(
            target.scaled_loss, target.begin * scale, jac=True, method="L-BFGS-B",
            bounds=np.column_stack([target.lower * scale, target.upper * scale]),
            options={"maxiter": max_iterations, "maxfun": 2 * max_iterations, "ftol": tolerance},
        )  # fmt: skip
        flat, size = found.x / scale, target.layout.size
        kernels, noise_variance = target.layout.unpack(flat[:size])
        log_heights = state.log_heights
        if self._has_heights:
            log_heights = flat[size:].reshape(state.Z.shape)
        return replace(
            state, kernels=kernels, noise_variance=noise_variance, log_heights=log_heights
        )

    def target(self, state: State, posterior: RowPosterior | None) -> Target:
        """Return what hyperparameters are learnt on, given Z or over the posterior's rows."""
        num_series = len(state.noise_variance)
        if posterior is None:
            pairs, log_weights = Pairs.of_rows(state.Z), np.zeros(num_series)
        else:
            pairs = posterior.active(1e-3)
            log_weights = log_prior_weights(posterior.tau, pairs)
            if self._has_heights:
                log_weights += self._log_volumes(state, pairs)
        layout = Layout(state.kernels, num_series)
        ranges = Ranges.of(layout, self._step, exact=self.settings.exact)
        objective = Objective(
            layout, self.observations, pairs.series, pairs.configurations, log_weights,
            self._degrees, self._has_heights,
        )  # fmt: skip
        begin = np.clip(layout.pack(state.noise_variance), ranges.lower, ranges.upper)
        if not self._has_heights:
            return Target(layout, ranges, objective, begin, self.settings.priors)
        begin = np.concatenate([begin, _log_heights(state).ravel()])
        is_used = pairs.by_series(pairs.configurations, 0.0).max(axis=1)
        return Target(layout, ranges, objective, begin, self.settings.priors, is_used)

    def _log_volumes(self, state: State, pairs: Pairs) -> Floats:
        """What the evidence of each pair has beside its density at the state's heights, [P]."""
        evidence, log_heights = self._evidence(state), _log_heights(state)
        values, _ = pair_evidence(evidence, pairs, log_heights)
        plain = [
            evidence[n].log_density(row, log_heights[n])
            for n, row in zip(pairs.series, pairs.configurations, strict=True)
        ]
        return values - np.array(plain)

    def _improve(self, state: State) -> State:
        """Best rows of Z given the hyperparameters, without unused components; then the score."""
        if state.kernels:
            pairs, log_heights = Pairs.around(state.Z, _ENUMERATE_IN_MOVES), None
            if self._has_heights:
                evidence = self._evidence(state)
                tried = would_be(evidence, state.Z, _log_heights(state))
                log_densities, heights = pair_evidence(evidence, pairs, tried)
            else:
                log_densities = self._log_densities(state, pairs)
            rows = best_rows(state.Z, self.settings.alpha, pairs, log_densities)
            Z = pairs.configurations[rows]
            if self._has_heights:
                log_heights = chosen_heights(pairs, log_densities, heights, Z, tried)
            state = replace(state, Z=Z, log_heights=log_heights).used()
            self._remember(state, log_densities[rows])
        score = float(self._log_likelihoods(state).sum()) + self._log_prior(state)
        return replace(state, score=score)


def _key(state: State) -> _StateKey:
    heights = b"" if state.log_heights is None else state.log_heights.tobytes()
    return state.kernels, state.Z.tobytes(), state.noise_variance.tobytes(), heights


def _is_new(
    tried: set[tuple[_StateKey, int | Product]], state: State, what: int | Product
) -> bool:
    """Whether this was not tried from the same state before; from now on it was."""
    question = _key(state), what
    is_new = question not in tried
    tried.add(question)
    return is_new


def _log_heights(state: State) -> Floats:
    """Log heights [N, K], zero where none are known yet."""
    return np.zeros_like(state.Z) if state.log_heights is None else state.log_heights


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

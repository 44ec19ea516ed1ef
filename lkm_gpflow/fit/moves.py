"""Moves from one state to another: a component enters, hyperparameters and rows get better."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np
from scipy.optimize import minimize

from ..data.observations import Observations
from ..gp.types import Floats
from ..kernels.grammar import Product
from ..model.amplitudes import HEIGHT_SD
from .assignments import Pairs, RowPosterior, best_rows
from .engine import components
from .fits import FitSettings, State
from .heights import LEVELS, chosen_heights, pair_evidence, would_be
from .initialization import Proposer
from .scanning import promising, scan
from .scores import Scores, log_heights_of

_ENUMERATE_IN_MOVES = 4
"""Rows of Z range over all configurations up to this K, over neighbours of the rows beyond."""

_NOISE_FACTORS = np.array([1.0, 0.2, 0.03])
"""A new component may explain what passed for noise: each candidate is tried with less of it."""

_SCANNED = 8
"""Of a new component's candidates so many, the best by a part of the times, are tried on all."""

_REMEMBERED_STEPS = 40
"""From which L-BFGS knows curvature; by default ten."""


class Moves(Scores):
    """Moves from one state to another.

    Parameters
    ----------
    observations, settings
        As of `Scores`.
    rng
        Draws hyperparameters of new components.
    """

    def __init__(
        self, observations: Observations, settings: FitSettings, rng: np.random.Generator
    ) -> None:
        super().__init__(observations, settings)
        self.rng = rng

    @cached_property
    def _proposer(self) -> Proposer:
        return Proposer.of(self.observations)

    def _enter(self, state: State, member: Product) -> State | None:
        """Add the best of many candidates for a member, for the series that gain from it."""
        candidates = self._proposer.propose(member, self.settings.num_candidates, self.rng)
        noise = _NOISE_FACTORS[:, None] * state.noise_variance
        covariances = components(state.kernels, self.observations.x)
        base = np.tensordot(state.loadings, covariances, axes=1)
        now = self._log_likelihoods(state)
        if len(candidates) > 1:
            candidates, likely = promising(
                base, candidates, noise, self.observations, self._degrees, count=_SCANNED
            )
            found, _ = self._scan(base, candidates, likely[:, None])
            gain = np.maximum(found[:, 0] - now, 0.0).sum(axis=1)
            candidates = [candidates[int(np.argmax(gain))]]
        [log_densities], log_heights = self._scan(base, candidates, noise)
        gains = np.maximum(log_densities.max(axis=0) - now, 0.0)
        # Learning on will raise the gain: half the price of its parameters is enough to enter.
        price = 0.25 * member.num_parameters * np.log(self.observations.num_observed)
        if gains.sum() <= (price if self.settings.prune else 0.0):
            return None
        chosen = gains > 0.0
        level = np.argmax(log_densities, axis=0)
        own = noise[level, np.arange(len(chosen))]
        return State(
            kernels=(*state.kernels, *candidates),
            Z=np.column_stack([state.Z, chosen.astype(np.float64)]),
            noise_variance=np.where(chosen, np.maximum(own, 2e-5), state.noise_variance),
            log_heights=None
            if log_heights is None
            else np.column_stack([log_heights_of(state), *log_heights]),
        )

    def _scan(
        self, base: Floats, candidates: Sequence[Product], noise: Floats
    ) -> tuple[Floats, Floats | None]:
        """As `scan`; where series have heights, each takes the best of a few.

        Returns
        -------
        Log densities, with the prior of heights, [M, L, N], and log heights [M, N].
        """
        found = scan(base, candidates, noise, self.observations, self._degrees)
        found = np.nan_to_num(found, nan=-np.inf)
        if not self._has_heights:
            return found, None
        log_heights = np.zeros((len(candidates), len(base)))
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

    def _polish(
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
        flat, size = found.x / scale, target.layout.size
        kernels, noise_variance = target.layout.unpack(flat[:size])
        log_heights = state.log_heights
        if self._has_heights:
            log_heights = flat[size:].reshape(state.Z.shape)
        polished = replace(
            state, kernels=kernels, noise_variance=noise_variance, log_heights=log_heights
        )
        return polished, bool(found.success)

    def _improve(self, state: State) -> State:
        """Best rows of Z given the hyperparameters, without unused components; then the score."""
        if state.kernels:
            pairs, log_heights = Pairs.around(state.Z, _ENUMERATE_IN_MOVES), None
            if self._has_heights:
                evidence = self._evidence(state)
                tried = would_be(evidence, state.Z, log_heights_of(state))
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

    def _settled(self, state: State) -> State:
        """Heights at their best for Z."""
        log_heights, pairs = log_heights_of(state), Pairs.of_rows(state.Z)
        _, found = pair_evidence(self._evidence(state), pairs, log_heights)
        return replace(state, log_heights=np.where(state.Z > 0.0, found, log_heights))

"""Scores of a state: log densities, the posterior over Z, criteria to compare and to learn by."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from ..data.observations import Observations
from ..gp.types import Floats
from ..kernels.grammar import Product
from ..model.amplitudes import degrees_of
from ..model.criterion import bic
from ..model.row_prior import RowPrior
from .assignments import Pairs, RowPosterior, log_prior_weights
from .engine import Objective, components, pair_log_densities
from .evidence import log_evidence
from .fits import FitSettings, State
from .heights import MOST_SERIES, SeriesEvidence, every_series, pair_evidence
from .initialization import Ranges, typical_step
from .layout import Layout
from .target import Target

ENUMERATE_AT_MOST = 10
"""The posterior is over all rows of Z up to this K, over neighbours of the rows beyond."""

_LEAST_RESPONSIBILITY = 1e-3
"""Rows of Z of less responsibility are ignored when hyperparameters are learnt."""

_REMEMBERED = 32
"""States whose log likelihoods are remembered: scores and BIC ask for them again."""

StateKey: TypeAlias = tuple[tuple[Product, ...], bytes, bytes, bytes]
"""Kernels, Z, noise variances and heights of a state."""


class Scores:
    """Scores of states, from the data and the settings of a fit.

    Parameters
    ----------
    observations
        The data.
    settings
        How one structure is learnt.

    Raises
    ------
    ValueError
        If there are too many series for what the settings ask.
    """

    def __init__(self, observations: Observations, settings: FitSettings) -> None:
        self.observations = observations
        self.settings = settings
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
        self._known: dict[StateKey, Floats] = {}

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

    def posterior(self, state: State) -> RowPosterior:
        """The posterior over Z given the hyperparameters."""
        pairs = Pairs.around(state.Z, ENUMERATE_AT_MOST)
        prior = RowPrior(self.settings.alpha, len(state.kernels))
        return RowPosterior.infer(prior, pairs, self._log_densities(state, pairs), state.Z)

    def target(self, state: State, posterior: RowPosterior | None) -> Target:
        """Return what hyperparameters are learnt on, given Z or over the posterior's rows."""
        num_series = len(state.noise_variance)
        if posterior is None:
            pairs, log_weights = Pairs.of_rows(state.Z), np.zeros(num_series)
        else:
            pairs = posterior.active(_LEAST_RESPONSIBILITY)
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
        begin = np.concatenate([begin, log_heights_of(state).ravel()])
        is_used = pairs.by_series(pairs.configurations, 0.0).max(axis=1)
        return Target(layout, ranges, objective, begin, self.settings.priors, is_used)

    # --- densities ---

    def _log_likelihoods(self, state: State) -> Floats:
        """``log p(x_n | z_n)``, [N]; those of the last states are remembered."""
        key = key_of(state)
        if key not in self._known:
            self._remember(state, self._log_densities(state, Pairs.of_rows(state.Z)))
        return self._known[key]

    def _remember(self, state: State, log_likelihoods: Floats) -> None:
        key = key_of(state)
        if len(self._known) >= _REMEMBERED:
            del self._known[next(iter(self._known))]
        self._known[key] = log_likelihoods

    def _log_densities(self, state: State, pairs: Pairs) -> Floats:
        """``log p(x_n | t)`` of all pairs, [P]; minus infinity where there is none."""
        if self._has_heights:
            return pair_evidence(self._evidence(state), pairs, log_heights_of(state))[0]
        return self._at_levels(state.kernels, state.noise_variance[None], pairs)[0]

    def _at_levels(self, kernels: Sequence[Product], noise_levels: Floats, pairs: Pairs) -> Floats:
        """`_log_densities` for each row of noise variances [L, N], [L, P]."""
        log_densities = pair_log_densities(
            components(kernels, self.observations.x), noise_levels, self.observations,
            pairs.series, pairs.configurations, self._degrees,
        )  # fmt: skip
        return np.nan_to_num(log_densities, nan=-np.inf)

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

    def _evidence(self, state: State) -> list[SeriesEvidence]:
        """What rows are worth to each series where heights differ."""
        C = components(state.kernels, self.observations.x)
        return every_series(C, state.noise_variance, self.observations)

    def _log_volumes(self, state: State, pairs: Pairs) -> Floats:
        """What the evidence of each pair has beside its density at the state's heights, [P]."""
        evidence, log_heights = self._evidence(state), log_heights_of(state)
        values, _ = pair_evidence(evidence, pairs, log_heights)
        plain = [
            evidence[n].log_density(row, log_heights[n])
            for n, row in zip(pairs.series, pairs.configurations, strict=True)
        ]
        return values - np.array(plain)


def key_of(state: State) -> StateKey:
    """What tells a state from others."""
    heights = b"" if state.log_heights is None else state.log_heights.tobytes()
    return state.kernels, state.Z.tobytes(), state.noise_variance.tobytes(), heights


def log_heights_of(state: State) -> Floats:
    """Log heights [N, K], zero where none are known yet."""
    return np.zeros_like(state.Z) if state.log_heights is None else state.log_heights

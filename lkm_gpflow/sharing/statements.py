r"""Who has which component of a fit, and how sure its numbers are: shares of draws.

A column of a draw *stands for* a component if it does the same, in whatever form
(`pattern_draws.same`).  A component is *visible* in a series, in a draw, if the functions that
stand for it have at least `VISIBLE` of the variance of the series.  Levels and noise, which draws
have not, are told by the fit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import logit

from ..fit.fits import Fit, FitSettings
from ..gp.types import Booleans, Floats, Integers
from ..kernels.grammar import Kind, Product
from ..runtime.text import numbered
from .matching import period
from .pattern_draws import same
from .posterior import VISIBLE, DrawnFunctions, PosteriorDraws
from .sampler import is_pattern

_CERTAIN = 1e-12
"""Probabilities are taken to be no nearer to zero or one when evidence is measured."""


@dataclass(frozen=True)
class Marginal:
    """The posterior of one hyperparameter of a component: its values in the draws that have it.

    Parameters
    ----------
    name
        Such as "SE lengthscale".
    kind
        What it measures.
    values
        In scaled time, of columns that stand for the component and have its structure, [T].
    """

    name: str
    kind: Kind
    values: Floats

    def quantile(self, p: float) -> float:
        """Return the value, in scaled time, that it is below with probability p; NaN if unknown."""
        return float(np.quantile(self.values, p)) if len(self.values) else float("nan")


@dataclass(frozen=True)
class Statements:
    """What is said of every series and component, [N, K] each.

    Parameters
    ----------
    probabilities
        P(the component is visible in the series); by a fit P(z_nk = 1).
    memberships
        P(z_nk = 1): a series has what stands for the component, however little of it.
    evidence
        Log Bayes factors: how many times likelier a series is with the component than without.
    Z
        Who has what, zeros and ones.
    marginals
        Posteriors of the hyperparameters of each component, [K].
    """

    probabilities: Floats
    memberships: Floats
    evidence: Floats
    Z: Floats
    marginals: tuple[tuple[Marginal, ...], ...] = ()

    def of_series(self, places: Integers) -> Statements:
        """Return the part about some series."""
        return replace(
            self,
            probabilities=self.probabilities[places],
            memberships=self.memberships[places],
            evidence=self.evidence[places],
            Z=self.Z[places],
        )


def by_fit(fit: Fit, settings: FitSettings) -> Statements:
    r"""Let a fit speak: its probabilities and most probable rows.

    Evidence is what the data add to the prior odds under the posterior of pi,

    .. math:: \log \frac{P(z = 1 \mid x_n)}{P(z = 0 \mid x_n)} - \log \frac{P(z = 1)}{P(z = 0)}.
    """
    p = fit.probabilities
    if not fit.kernels:
        return Statements(p, p, p, fit.Z)
    on, off = settings.ibp(len(fit.kernels)).expected_logs(fit.tau)
    return Statements(p, p, logit(np.clip(p, _CERTAIN, 1.0 - _CERTAIN)) - (on - off), fit.Z)


def by_draws(
    posterior: PosteriorDraws,
    functions: DrawnFunctions,
    drawn: Sequence[Floats],
    fit: Fit,
    settings: FitSettings,
) -> Statements:
    """Let draws speak of the components of a fit.

    Parameters
    ----------
    posterior
        The draws.
    functions
        Of the observations with which the draws were made.
    drawn
        What `functions_of` returned.
    fit, settings
        Of these series.
    """
    draws, kernels = posterior.draws, fit.kernels
    T, (N, K) = len(draws), fit.Z.shape
    stands = stand_for([column for draw in draws for column in draw.kernels], kernels, functions.x)
    visible, has = np.zeros((T, N, K), bool), np.zeros((T, N, K), bool)
    values: list[dict[str, list[float]]] = [{} for _ in kernels]
    first = 0
    for t, draw in enumerate(draws):
        own = stands[first : first + len(draw.kernels)]
        first += len(own)
        visible[t] = functions.shares(drawn[t]) @ own >= VISIBLE
        has[t] = draw.Z.astype(int) @ own > 0
        for j, k in np.argwhere(own):
            if draw.kernels[j].structure == kernels[k].structure:
                flat = [v for f in draw.kernels[j].factors for v in f.values]
                for i, name, _ in _learnt(kernels[k]):
                    values[k].setdefault(name, []).append(float(flat[i] or 0.0))
    # What is known of a series before its own data: who else has the component.
    others = has.sum(axis=1, keepdims=True) - has
    prior = ((others + posterior.prior_share) / (N + posterior.prior_share)).mean(axis=0)
    # As if there were one more draw, half of which says so.
    evidence = logit((visible.sum(axis=0) + 0.5) / (T + 1.0)) - logit(prior)
    p, told = visible.mean(axis=0), by_fit(fit, settings)
    is_drawn = np.array([is_pattern(kernel) for kernel in kernels], bool)
    return Statements(
        np.where(is_drawn, p, told.probabilities),
        np.where(is_drawn, has.mean(axis=0), told.memberships),
        np.where(is_drawn, evidence, told.evidence),
        # More likely than not, and not for the others' sake alone.
        np.where(is_drawn, (p > 0.5) & (evidence > 0.0), told.Z),
        tuple(
            tuple(Marginal(name, kind, np.array(own.get(name, []))) for _, name, kind in _learnt(k))
            for k, own in zip(kernels, values, strict=True)
        ),
    )


def stand_for(columns: Sequence[Product], kernels: Sequence[Product], x: Floats) -> Booleans:
    """Which components columns stand for at scaled times x, [J, K]."""
    every = [*columns, *kernels]
    alike = same(every, np.array([period(one) for one in every]), x)
    return alike[: len(columns), len(columns) :]


def _learnt(kernel: Product) -> list[tuple[int, str, Kind]]:
    """Places among the values of all factors, names and kinds of what is learnt."""
    every = [(factor.base, *own) for factor in kernel.factors for own in factor.base.parameters]
    names = numbered([f"{base.name} {name}" for base, name, _ in every])
    return [(i, names[i], kind) for i, (_, _, kind) in enumerate(every) if kind is not Kind.ORIGIN]

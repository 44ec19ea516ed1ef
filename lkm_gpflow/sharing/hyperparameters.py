"""What is known of the periods, lengthscales and locations of the components of a consensus."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq
from scipy.stats import norm

from ..data.observations import Observations
from ..fit.fits import FitSettings
from ..gp.types import Floats
from ..kernels.grammar import Kind, Product
from ..runtime.text import numbered
from .coarsened import coarsened
from .consensus import Consensus

_FAR = 10.0
"""Standard deviations within which all quantiles are looked for."""


@dataclass(frozen=True)
class Marginal:
    r"""The posterior of one hyperparameter of a component, over the fits that have it.

    .. math:: p(\theta \mid X) = \sum_m w_m \, \mathcal{N}(\theta \mid \mu_m, \sigma_m^2)

    with theta the logarithm of a positive hyperparameter.

    Parameters
    ----------
    name
        Such as "SE lengthscale".
    kind
        What it measures.
    weights, mean, sd
        Of the fits, [M], see `coarsened`.
    bounds
        Within which it is learnt, on the scale of theta.
    """

    name: str
    kind: Kind
    weights: Floats
    mean: Floats
    sd: Floats
    bounds: tuple[float, float]

    def quantile(self, p: float) -> float:
        """Return the value, in scaled time, that it is below with probability p, 0 < p < 1."""

        def excess(value: float) -> float:
            return float(self.weights @ norm.cdf((value - self.mean) / self.sd)) - p

        below, above = self.mean - _FAR * self.sd, self.mean + _FAR * self.sd
        value = float(np.clip(brentq(excess, below.min(), above.max()), *self.bounds))
        return float(np.exp(value)) if self.kind.positive else value


def marginals(
    consensus: Consensus, observations: Observations, settings: FitSettings
) -> tuple[tuple[Marginal, ...], ...]:
    """Return the posteriors of all hyperparameters of every consensus component.

    A fit counts, with its weight, where its version of a component has the structure of the
    consensus kernel.

    Parameters
    ----------
    consensus, observations, settings
        Of a discovery.
    """
    told: list[list[tuple[float, Floats, Floats, Floats]]] = [[] for _ in consensus.kernels]
    for fit, weight, places in zip(
        consensus.fits, consensus.weights, consensus.places, strict=True
    ):
        versions = [
            (i, k)
            for i, k in enumerate(places)
            if k >= 0 and fit.kernels[i].structure == consensus.kernels[k].structure
        ]
        if not any(_learnt(consensus.kernels[k]) for _, k in versions):
            continue
        posterior = coarsened(fit, observations, settings)
        bounds = np.stack([posterior.ranges.lower, posterior.ranges.upper])
        counts = [sum(len(factor.values) for factor in kernel.factors) for kernel in fit.kernels]
        first = len(fit.kernels) + np.cumsum([0, *counts])
        for i, k in versions:
            own = slice(first[i], first[i + 1])
            told[k].append((float(weight), posterior.mean[own], posterior.sd[own], bounds[:, own]))
    return tuple(
        tuple(_mixed(kernel, versions)) if _learnt(kernel) else ()
        for kernel, versions in zip(consensus.kernels, told, strict=True)
    )


def _mixed(
    kernel: Product, versions: Sequence[tuple[float, Floats, Floats, Floats]]
) -> Iterator[Marginal]:
    """Yield the mixtures over the versions of a component: weight, means, sds, bounds."""
    weights, means, sds, bounds = (np.array(each) for each in zip(*versions, strict=True))
    for i, name, kind in _learnt(kernel):
        lower, upper = bounds[0, :, i]
        share = weights / weights.sum()
        yield Marginal(name, kind, share, means[:, i], sds[:, i], (float(lower), float(upper)))


def _learnt(kernel: Product) -> list[tuple[int, str, Kind]]:
    """Places among the values of all factors, names and kinds of what is learnt."""
    every = [(factor.base, *own) for factor in kernel.factors for own in factor.base.parameters]
    names = numbered([f"{base.name} {name}" for base, name, _ in every])
    return [(i, names[i], kind) for i, (_, _, kind) in enumerate(every) if kind is not Kind.ORIGIN]

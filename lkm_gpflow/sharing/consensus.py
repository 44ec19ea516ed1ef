"""What the fits of a search agree upon: components matched over fits, and who has them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.special import logit

from ..fit.fits import Fit, FitSettings
from ..forecast.forecasters import Member
from ..forecast.mixture import mixture_moments
from ..forecast.predictors import Predictors
from ..gp.types import Booleans, Floats, Integers
from ..kernels.grammar import Product
from ..runtime.threads import single_threaded
from .matching import ALIKE, groups_of_same, one_to_one, shapes_of, sizes_of, thinned, unit
from .sampler import is_pattern

OTHERS = "others"
"""What all components together are called that are not among the consensus components."""

_SELDOM = 0.1
"""Components that no series has with this probability are not spoken of."""

_CERTAIN = 1e-12
"""Probabilities are taken to be no nearer to zero or one when evidence is measured."""


@dataclass(frozen=True)
class Consensus:
    r"""Components of several weighted fits, matched one to one, and who has them.

    A fit is a point estimate of the structure, and another one explains the data nearly as well.
    With weights w_m over fits and k(m) the component of fit m that is matched to the consensus
    component k, the fits by themselves say

    .. math:: P(z_{nk} = 1) = \sum_m w_m P_m(z_{n, k(m)} = 1),

    where a fit without such a component counts as zero.  They are sure of too much; where draws of
    a posterior were made, these speak instead (`told_by`).

    Parameters
    ----------
    fits
        The fits, those of most weight first.
    weights
        Of the fits, [M]; they add up to one.
    places
        For each fit the number of the consensus component of each of its components, [K_m]; -1
        if it is not among them.  Near duplicates within a fit have one number.
    kernels
        Of each consensus component, that of the heaviest fit that has it with the structure that
        counts most, in scaled units, [K].
    probabilities
        By the fits P(z_nk = 1); by draws P(component k is visible in series n), [N, K].
    evidence
        Log Bayes factors, [N, K]: how many times likelier a series is with the component than
        without, whatever else it has.
    """

    fits: tuple[Fit, ...]
    weights: Floats
    places: tuple[Integers, ...]
    kernels: tuple[Product, ...]
    probabilities: Floats
    evidence: Floats

    @cached_property
    def Z(self) -> Floats:
        """Who has what, zeros and ones, [N, K]; of one fit alone its most probable rows.

        One where that is likely (`is_likely`).
        """
        if len(self.fits) == 1 and np.array_equal(self.probabilities, self.fits[0].probabilities):
            return self.fits[0].Z
        return np.asarray(is_likely(self.probabilities, self.evidence), np.float64)

    def places_of(self, fit: Fit) -> Integers:
        """Return the numbers of the consensus components of a fit's components, [K_m]."""
        (places,) = (p for f, p in zip(self.fits, self.places, strict=True) if f is fit)
        return places

    def sums(self, fit: Fit) -> Floats:
        """Which components of a fit make up each consensus component, [K + 1, K_m], 0 or 1.

        The last row has those that are not among the consensus components.
        """
        K = len(self.kernels)
        number = self.places_of(fit)
        return np.asarray(np.where(number < 0, K, number) == np.arange(K + 1)[:, None], np.float64)

    def of_series(self, places: Integers) -> Consensus:
        """Return the part about some series; the fits stay as they are."""
        return replace(
            self, probabilities=self.probabilities[places], evidence=self.evidence[places]
        )

    def told_by(self, probabilities: Floats, evidence: Floats) -> Consensus:
        """Let draws speak, [N, K]; of levels and noise, which draws have not, the fits."""
        drawn = np.array([is_pattern(kernel) for kernel in self.kernels], bool)
        return replace(
            self,
            probabilities=np.where(drawn, probabilities, self.probabilities),
            evidence=np.where(drawn, evidence, self.evidence),
        )


def is_likely(probability: Floats, evidence: Floats) -> Booleans:
    """Whether that is more likely than not and supported by the series' own data (`evidence`).

    The prior alone, which knows that other series have it, is not enough.
    """
    likely: Booleans = (probability > 0.5) & (evidence > 0.0)
    return likely


def alone(fit: Fit, settings: FitSettings) -> Consensus:
    """Return the consensus of one fit: its components as they are."""
    every = np.arange(len(fit.kernels))
    evidence = np.array([evidence_of(fit, settings, [k], fit.probabilities[:, k]) for k in every])
    return Consensus(
        (fit,),
        np.ones(1),
        (every,),
        fit.kernels,
        fit.probabilities,
        evidence.T.reshape(fit.Z.shape),
    )


@single_threaded()
def agree(members: Sequence[Member], predictors: Predictors) -> Consensus:
    """Match the components of several fits.

    The fits come in the order of their weights.  Near duplicates within a fit are folded; then
    each component is given to the consensus component that it is most like, by the assignment of
    the largest total correlation, and what is not `ALIKE` to any begins a new one.

    Parameters
    ----------
    members
        The fits and their weights, which add up to one.
    predictors
        What the fits say of the data.

    Returns
    -------
    The consensus; components that are more certain and explain more come first.
    """
    observations, settings = predictors.observations, predictors.settings
    members = sorted(members, key=lambda member: -member.weight)
    fits = tuple(member.fit for member in members)
    weights = np.array([member.weight for member in members])
    grid = thinned(observations.x)
    shapes = [shapes_of(fit.kernels, grid) for fit in fits]
    places = _folded(_matched(shapes, weights), shapes, weights)
    K = 1 + max((int(own.max(initial=-1)) for own in places), default=-1)
    shape = len(fits), observations.num_series, K
    by_fit, evidence, has = np.zeros(shape), np.zeros(shape), np.zeros((len(fits), 1, K))
    for m, (fit, own) in enumerate(zip(fits, places, strict=True)):
        for k in np.unique(own):
            group = np.flatnonzero(own == k).tolist()
            by_fit[m, :, k] = _any_of(fit, group, predictors)
            evidence[m, :, k] = evidence_of(fit, settings, group, by_fit[m, :, k])
            has[m, :, k] = 1.0
    probabilities = np.tensordot(weights, by_fit, axes=1)
    support = np.tensordot(weights, has, axes=1)  # [1, K]
    explained = _explained(fits, weights, places, K, predictors)
    kept = np.flatnonzero(probabilities.max(axis=0, initial=0.0) >= _SELDOM)
    kept = kept[np.argsort(-explained[kept], kind="stable")]
    number = np.full(K, -1)
    number[kept] = np.arange(len(kept))
    return Consensus(
        fits,
        weights,
        tuple(number[own] for own in places),
        tuple(_representative(int(k), fits, weights, places, grid) for k in kept),
        np.clip(probabilities[:, kept], 0.0, 1.0),
        (np.tensordot(weights, evidence, axes=1) / support)[:, kept],
    )


def predict_parts(consensus: Consensus, predictors: Predictors, x: Floats) -> tuple[Floats, Floats]:
    """Mean and variance of consensus components at times x, and last of all others together.

    Parameters
    ----------
    consensus, predictors
        Of a discovery.
    x
        Scaled times, [M].

    Returns
    -------
    Moments of the mixture over fits, [K + 1, M, N]; zero in fits without a component.
    """
    predictions = []
    for fit, weight in zip(consensus.fits, consensus.weights, strict=True):
        mean, variance = predictors.of(fit).sums(x, consensus.sums(fit))
        predictions.append((float(weight), mean, variance))
    mean, variance = mixture_moments(predictions)
    return mean.transpose(1, 2, 0), np.maximum(variance, 0.0).transpose(1, 2, 0)


def _matched(shapes: Sequence[Floats], weights: Floats) -> list[Integers]:
    """Give the components of every fit numbers of consensus components."""
    sums = np.zeros((0, shapes[0].shape[1] if shapes else 0))
    places = []
    for own, weight in zip(shapes, weights, strict=True):
        group = groups_of_same(own)
        centres = unit(np.array([own[group == g].sum(axis=0) for g in np.unique(group)]))
        centres = centres.reshape(-1, sums.shape[1])
        number = np.full(len(centres), -1)
        for i, k in one_to_one(centres, unit(sums), ALIKE):
            number[i] = k
        fresh = np.flatnonzero(number == -1)
        number[fresh] = len(sums) + np.arange(len(fresh))
        sums = np.concatenate([sums, np.zeros((len(fresh), sums.shape[1]))])
        sums[number] += weight * centres
        places.append(number[group])
    return places


def _folded(
    places: Sequence[Integers], shapes: Sequence[Floats], weights: Floats
) -> list[Integers]:
    """Fold consensus components that have become near duplicates of each other."""
    K = 1 + max((int(own.max(initial=-1)) for own in places), default=-1)
    sums = np.zeros((K, shapes[0].shape[1] if shapes else 0))
    for own, shape, weight in zip(places, shapes, weights, strict=True):
        np.add.at(sums, own, weight * shape)
    group = groups_of_same(unit(sums))
    return [group[own] for own in places]


def _any_of(fit: Fit, group: Sequence[int], predictors: Predictors) -> Floats:
    """Probability that a series has any component of a group, [N]."""
    if len(group) == 1:
        return fit.probabilities[:, group[0]]
    pairs, weights = predictors.of(fit).posterior
    has = pairs.configurations[:, list(group)].any(axis=1)
    total = np.zeros(len(fit.Z))
    np.add.at(total, pairs.series, weights * has)
    return total


def evidence_of(
    fit: Fit, settings: FitSettings, group: Sequence[int], probability: Floats
) -> Floats:
    r"""Log Bayes factors of having any component of a group, [N].

    .. math:: \log \frac{P(z = 1 \mid x_n)}{P(z = 0 \mid x_n)} - \log \frac{P(z = 1)}{P(z = 0)}

    with the prior odds under the fit's posterior of pi.
    """
    on, off = settings.ibp(len(fit.kernels)).expected_logs(fit.tau)
    log_none = -np.logaddexp(0.0, (on - off)[list(group)]).sum()
    none = np.clip(np.exp(log_none), _CERTAIN, 1.0 - _CERTAIN)
    return logit(np.clip(probability, _CERTAIN, 1.0 - _CERTAIN)) + logit(none)


def _explained(
    fits: Sequence[Fit],
    weights: Floats,
    places: Sequence[Integers],
    K: int,
    predictors: Predictors,
) -> Floats:
    """Variance over time that each component explains, on average over fits and series, [K]."""
    total = np.zeros(K)
    for fit, weight, own in zip(fits, weights, places, strict=True):
        np.add.at(total, own, weight * predictors.of(fit).explained())
    return total


def _representative(
    k: int, fits: Sequence[Fit], weights: Floats, places: Sequence[Integers], grid: Floats
) -> Product:
    """Return the kernel of the structure that counts most, of the heaviest fit that has it.

    A structure counts by the weight of the fits that have it, and within a fit by the variance of
    its components: of near duplicates the larger one gives the name.
    """
    by_structure: dict[Product, float] = {}
    largest: dict[Product, Product] = {}
    for fit, weight, own in zip(fits, weights, places, strict=True):
        kernels = [fit.kernels[i] for i in np.flatnonzero(own == k)]
        sizes = sizes_of(kernels, grid)
        for i in np.argsort(-sizes, kind="stable"):
            structure = kernels[i].structure
            largest.setdefault(structure, kernels[i])
            share = sizes[i] / sizes.sum() if sizes.sum() > 0.0 else 1.0 / len(sizes)
            by_structure[structure] = by_structure.get(structure, 0.0) + float(weight * share)
    return largest[max(by_structure, key=lambda structure: by_structure[structure])]

"""Forecasts from several fits: weights by how well they explain, and moments of a mixture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import softmax

from ..fit.fits import Fit
from ..gp.types import Floats, FloatTensor
from ..search.ledger import different

TEMPERATURE = 3.0
"""Of the weights of fits.

Flatter and sharper weights were compared by what the same searches say of planted tables.  With
T = 8, 32 tables of `experiments.sharing` have 19 components too many, with 3 four, with as many
entries of Z wrong.  Ten searches of one table agree on 96% of Z and more with all up to 3
(`experiments.agreement`; houses), on 76 to 86% with 4 and more.  The calibration error on 60 tables
of `experiments.calibration` is 0.023 to 0.029 with all from 3 to 16, 0.033 with 2 and 0.054 with 1;
on 66 more it is 0.056 with 3 and 0.048 with 8, for which `consensus.softened` makes up.
"""

LITTLE_WEIGHT = 1e-3
"""Fits that weigh less are not asked for a forecast."""


@dataclass(frozen=True)
class Member:
    """A fit that counts in a forecast.

    Parameters
    ----------
    fit
        The fit.
    weight
        Its weight; those of all members add up to one.
    spread
        Factor of its forecast variance: one, except in files of version 0.1, which calibrated
        spreads by held-out windows.
    is_walk
        Whether it is a walk, with or without a season (see `stacking`), rather than found by the
        search.
    exact
        Whether it was learnt with almost no noise (`FitSettings.exact`).
    """

    fit: Fit
    weight: float
    spread: float = 1.0
    is_walk: bool = False
    exact: bool = False


def average(fits: Sequence[Fit], most: int = 10, temperature: float = TEMPERATURE) -> list[Member]:
    r"""Weigh the best fits of a search.

    .. math:: w_m \propto \exp(-\mathrm{BIC}_m / 2 T)

    With T = 1 a single fit would have nearly all of the weight, as if BIC were the evidence: it is
    an approximation, and two searches of one table end several nats apart.  With a larger T fits
    that are so many nats behind still count.

    Parameters
    ----------
    fits
        All fits; of those that found the same optimum one counts.
    most
        How many fits count at most.
    temperature
        T.
    """
    best = different(fits)[:most]
    weights = softmax([-fit.criterion / (2.0 * temperature) for fit in best])
    return [Member(fit, float(w)) for fit, w in zip(best, weights, strict=True)]


def counting(members: Sequence[Member]) -> list[Member]:
    """Return the members without those of almost no weight."""
    kept = [member for member in members if member.weight > LITTLE_WEIGHT]
    total = sum(member.weight for member in kept)
    return [replace(member, weight=member.weight / total) for member in kept]


def mixture_moments(
    members: Sequence[tuple[float | Floats, FloatTensor | Floats, FloatTensor | Floats]],
) -> tuple[Floats, Floats]:
    """Mean and variance of a mixture, from the weight, mean and variance of every member.

    Weights are numbers, or arrays that go with the moments.
    """
    means = np.array([np.asarray(mean) for _, mean, _ in members])
    variances = np.array([np.asarray(variance) for _, _, variance in members])
    weights = np.array([np.broadcast_to(weight, means[0].shape) for weight, _, _ in members])
    mean = np.einsum("m...,m...->...", weights, means)
    deviations = np.subtract(means, mean, out=np.full_like(means, np.inf), where=np.isfinite(mean))
    with np.errstate(over="ignore"):  # of what has grown beyond all numbers
        variance = np.einsum("m...,m...->...", weights, variances + deviations**2)
    return mean, variance

"""Weights of the fits of a search by how well they explain the data."""

from __future__ import annotations

from collections.abc import Sequence

from scipy.special import softmax

from ..fit.fits import Fit
from ..search.ledger import different
from .forecasters import Member

TEMPERATURE = 3.0
"""T of the weights: ten searches of one table agree on Z up to 3, and no longer with 4 and more
(`paper_experiments`: recovery, agreement and calibration)."""


def average_fits(
    fits: Sequence[Fit], most: int = 10, temperature: float = TEMPERATURE
) -> list[Member]:
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

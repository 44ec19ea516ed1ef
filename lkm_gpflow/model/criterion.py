"""The Bayesian information criterion."""

from __future__ import annotations

import math


def bic(log_likelihood: float, num_parameters: int, num_observed: int) -> float:
    r"""Bayesian information criterion; smaller is better (Schwarz 1978).

    .. math:: -2 \log p(X \mid Z) + p \log M

    Parameters
    ----------
    log_likelihood
        log p(X | Z) in nats, summed over the series.
    num_parameters
        p, the number of learnt parameters.
    num_observed
        M, the number of observed values.
    """
    return -2.0 * log_likelihood + num_parameters * math.log(num_observed)

"""The expectations of appendix B in closed form, beside Monte Carlo with standard errors."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
from scipy.stats import beta

from lkm_gpflow.gp.types import Floats
from lkm_gpflow.model.ibp import IBP, FiniteIBP, InfiniteIBP

TERMS = ("E log p(w)", "E log p(Z | w)", "H[q(w)]")
"""Prior of the weights w (pi or the sticks v), assignments given them, entropy of q(w)."""


def closed_form(prior: IBP, tau: Floats, nu: Floats) -> pd.Series[float]:
    """The `TERMS`, as the model has them.

    `tau` [K, 2] are the Beta parameters of q(w), `nu` [N, K] are q(z_nk = 1).
    """
    values = [
        prior.expected_log_weights(tau),
        prior.expected_log_assignments(tau, nu),
        prior.entropy(tau),
    ]
    return pd.Series(np.array([float(value) for value in values]), index=list(TERMS))


def monte_carlo(
    prior: FiniteIBP | InfiniteIBP, tau: Floats, nu: Floats, *, draws: int, seed: int
) -> pd.DataFrame:
    """The `TERMS` as averages over draws of w from q, in plain NumPy.

    Returns
    -------
    DataFrame with index `TERMS` and columns mean and se, the standard error of the mean.
    """
    weights = draw_weights(tau, draws, seed)
    c = prior.concentration
    pi = _probabilities(prior, weights)
    log_prior = (np.log(c) + (c - 1.0) * np.log(weights)).sum(axis=1)
    on, off = nu.sum(axis=0), (1.0 - nu).sum(axis=0)
    log_assignments = (on * np.log(pi) + off * np.log1p(-pi)).sum(axis=1)
    log_q = beta.logpdf(weights, tau[:, 0], tau[:, 1]).sum(axis=1)
    return _mean_and_error(np.column_stack([log_prior, log_assignments, -log_q]), TERMS)


def log_off_monte_carlo(
    prior: FiniteIBP | InfiniteIBP, tau: Floats, *, draws: int, seed: int
) -> pd.DataFrame:
    """E log(1 - pi_k) for every k as averages over draws; index k, columns mean and se."""
    pi = _probabilities(prior, draw_weights(tau, draws, seed))
    return _mean_and_error(np.log1p(-pi), range(1, len(tau) + 1))


def log_off_by_terms(prior: InfiniteIBP, tau: Floats, terms: list[int]) -> pd.DataFrame:
    """The paper's Taylor series of E log(1 - pi_k), cut off; index terms, columns k."""
    rows = [
        np.asarray(replace(prior, bound="taylor", taylor_terms=count).expected_log_off(tau))
        for count in terms
    ]
    return pd.DataFrame(rows, pd.Index(terms, name="terms"), range(1, len(tau) + 1))


def draw_weights(tau: Floats, draws: int, seed: int) -> Floats:
    """Draw w from q, [draws, K]."""
    weights = np.random.default_rng(seed).beta(tau[:, 0], tau[:, 1], size=(draws, len(tau)))
    # Nearest below one: a weight that rounds to one has no logarithm of what is left.
    return np.clip(weights, 1e-300, 1.0 - 1e-16)


def _probabilities(prior: FiniteIBP | InfiniteIBP, weights: Floats) -> Floats:
    """Inclusion probabilities pi of each draw of the weights, [draws, K]."""
    return np.cumprod(weights, axis=1) if isinstance(prior, InfiniteIBP) else weights


def _mean_and_error(samples: Floats, index: object) -> pd.DataFrame:
    error = samples.std(axis=0, ddof=1) / np.sqrt(len(samples))
    return pd.DataFrame({"mean": samples.mean(axis=0), "se": error}, index=list(index))  # type: ignore[call-overload]

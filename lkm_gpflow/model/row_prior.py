"""The finite Indian buffet process prior over few rows, in NumPy.

The formulas are those of `models.ibp.FiniteIBP` (there with their derivation, for TensorFlow);
learning asks for them after every move, on arrays of some dozen numbers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import betaln, digamma

from ..gp.types import Floats


@dataclass(frozen=True)
class RowPrior:
    r"""``pi_k ~ Beta(alpha / K, 1)``, ``z_nk | pi_k ~ Bernoulli(pi_k)``.

    Parameters
    ----------
    alpha
        Concentration, positive.
    num_components
        K, at least 1.
    """

    alpha: float
    num_components: int

    @property
    def share(self) -> float:
        """``alpha / K``."""
        return self.alpha / self.num_components

    def best_tau(self, nu: Floats) -> Floats:
        """Beta parameters [K, 2] that maximise the bound, given q(z_nk = 1) = ``nu`` [N, K]."""
        on = nu.sum(axis=0)
        return np.column_stack([self.share + on, 1.0 + len(nu) - on])

    @staticmethod
    def expected_logs(tau: Floats) -> tuple[Floats, Floats]:
        """``E log pi`` and ``E log(1 - pi)``, [K] each, under Beta(tau)."""
        psi, total = digamma(tau), digamma(tau.sum(axis=1))
        return psi[:, 0] - total, psi[:, 1] - total

    def weights_term(self, tau: Floats) -> float:
        """``E log p(pi) + H[q(pi)]``: what the bound has beside the rows."""
        on, off = self.expected_logs(tau)
        log_prior = math.log(self.share) + (self.share - 1.0) * on
        cross = (tau[:, 0] - 1.0) * on + (tau[:, 1] - 1.0) * off
        return float(np.sum(log_prior + betaln(tau[:, 0], tau[:, 1]) - cross))

    def log_prob(self, Z: Floats) -> float:
        """Log probability of binary rows Z [N, K], weights integrated out."""
        on = Z.sum(axis=0)
        terms = betaln(self.share + on, 1.0 + len(Z) - on) - betaln(self.share, 1.0)
        return float(terms.sum())

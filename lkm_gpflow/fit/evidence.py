r"""The evidence of a structure: hyperparameters integrated out by Laplace's approximation.

.. math:: \log p(X) \approx \mathrm{ELBO}(\hat\theta) + \log p(\hat\theta)
   + \tfrac{P}{2} \log 2\pi - \tfrac12 \log |H|, \qquad
   H = -\nabla^2 \log [p(X \mid \theta)\, p(\theta)]_{\hat\theta}

with theta on the scale on which it is learnt.  Where BIC charges every number alike, this charges
what the data have to say about it; and Z, over which the bound sums, is charged by its prior.
"""

from __future__ import annotations

import numpy as np

from ..gp.types import Floats, Integers
from .target import Target

_STEP = 1e-4
"""Of the finite differences of the gradient, on the scale on which hyperparameters are learnt."""

_AT_BOUND = 1e-6


def curvature(target: Target) -> tuple[Integers, Floats]:
    """Negative Hessian of the log joint density where learning ended, by central differences.

    Returns
    -------
    Places [F] of the hyperparameters that do not stand at a bound, and their matrix [F, F].
    """
    at = target.begin
    free = np.flatnonzero((at > target.lower + _AT_BOUND) & (at < target.upper - _AT_BOUND))
    columns = []
    for i in free:
        step = np.zeros_like(at)
        step[i] = _STEP
        columns.append((target.loss(at + step)[1] - target.loss(at - step)[1]) / (2.0 * _STEP))
    hessian = np.array(columns).reshape(len(free), -1)[:, free]
    return free.astype(np.int32), 0.5 * (hessian + hessian.T)


def log_evidence(target: Target, elbo: float) -> float:
    """Log evidence, up to what hyperparameters at a bound would add.

    Parameters
    ----------
    target
        What was learnt, at where learning ended; with priors.
    elbo
        The bound there.
    """
    free, H = curvature(target)
    is_own = free < target.layout.size
    own, across = free[is_own], H[np.ix_(is_own, ~is_own)]
    # The bound has integrated heights out; what is left of the curvature where they may follow.
    H = H[np.ix_(is_own, is_own)] - across @ np.linalg.solve(H[np.ix_(~is_own, ~is_own)], across.T)
    prior, _ = target.ranges.log_prior(target.begin[: target.layout.size])
    # The two pi of priors and of the integral cancel.
    precision = target.ranges.precision[own]
    values, vectors = np.linalg.eigh(H)
    least = (vectors**2).T @ precision
    volume = float(np.log(precision).sum() - np.log(np.maximum(values, least)).sum())
    return elbo + prior + 0.5 * volume

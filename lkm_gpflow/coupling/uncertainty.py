r"""How sure a coupling is: Laplace's approximation around what was learnt.

.. math:: \theta \mid Y \approx \mathcal{N}(\hat\theta, H^{-1}), \qquad
   \theta = (u, \log a), \qquad H = -\nabla^2 [\log p(Y \mid \theta) + \log p(\theta)]_{\hat\theta}

of the loadings that are free and all amplitudes.  Kernels are held, and which loadings are free.
Amplitudes matter: if variances were known, a correlation r would look surer than it is, by a factor
of :math:`\sqrt{1 + r^2}` on Fisher's scale.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from scipy.linalg import block_diag
from scipy.stats import norm

from ..data.observations import Observations
from ..gp.series import root
from ..gp.types import Booleans, Floats
from .density import CoupledDensity
from .learn_coupling import Coupling, first_step, log_variance_precision
from .loadings import bounded, by_unbounded, covariances, log_prior, unbounded

_STEP = 1e-4  # of finite differences, by u and by log amplitudes

_LEAST_PRECISION = 1.0
"""In directions in which the density is flat, or bent the wrong way because learning stopped."""

_INNER = 0.999999  # correlations are held inside of this, where Fisher's z is finite


@dataclass(frozen=True)
class CouplingPosterior:
    """A normal distribution over the free loadings and the amplitudes of a coupling."""

    coupling: Coupling  # where it is highest
    # Of the free loadings u and, after them, the logarithms of the amplitudes, [P, P].
    covariance: Floats

    def draws(self, count: int, seed: int) -> Iterator[Coupling]:
        """Draw couplings, whose evidence and likelihoods are those of the coupling itself."""
        u, free, log_a, has = _parts(self.coupling)
        A = root(self.covariance)
        P, rng = int(free.sum()), np.random.default_rng(seed)
        for _ in range(count):
            step = A @ rng.standard_normal(len(A))
            moved, a = u.copy(), np.zeros_like(log_a)
            moved[free] += step[:P]
            a[has] = np.exp(log_a[has] + step[P:])
            patterns = replace(self.coupling.patterns, amplitudes=a)
            yield replace(self.coupling, patterns=patterns, loadings=bounded(moved))

    def sd_of_z(self) -> Floats:
        r"""Standard deviations of Fisher's :math:`z = \operatorname{artanh} R`, [K, N, N].

        By the slope of z along each free loading (the delta method).
        """
        u, free, _, _ = _parts(self.coupling)
        places, N = np.argwhere(free), u.shape[1]
        slopes = np.zeros((len(places), len(u), N, N))
        for i, (k, n, r) in enumerate(places):
            for sign in (1.0, -1.0):
                moved = u[k : k + 1].copy()
                moved[0, n, r] += sign * _STEP
                w = bounded(moved)[0]
                slopes[i, k] += sign * fisher_z(w @ w.T) / (2.0 * _STEP)
        own = self.covariance[: len(places), : len(places)]
        variance = np.einsum("iknm,ij,jknm->knm", slopes, own, slopes)
        return np.asarray(np.sqrt(np.maximum(variance, 0.0)))


def fisher_z(R: Floats) -> Floats:
    """Fisher's artanh of correlations, finite for one, too."""
    return np.asarray(np.arctanh(np.clip(R, -_INNER, _INNER)))


def posterior(coupling: Coupling, observations: Observations) -> CouplingPosterior:
    """Approximate the posterior of a coupling, from the scaled data that it was learnt from.

    The curvature is taken by differences of the analytic gradient, of which there are as many as
    free loadings and amplitudes.  Turning the columns of a pattern's loadings into each other
    changes no correlation: along such directions the approximation has no width.
    """
    u, free, log_a, has = _parts(coupling)
    C = coupling.patterns.covariances(observations.x)
    density = CoupledDensity(C, observations.Y, observations.mask)

    def gradient(step: Floats) -> Floats:
        P = int(free.sum())
        moved, a = u.copy(), np.zeros_like(log_a)
        moved[free] += step[:P]
        a[has] = np.exp(log_a[has] + step[P:])
        B = covariances(bounded(moved), a)
        _, G = density.value_and_gradient(B)
        aa = a.T[:, :, None] * a.T[:, None, :] * ~np.eye(len(a), dtype=bool)
        by_u = by_unbounded(G * aa, moved) + log_prior(moved)[1]
        by_log_a = 2.0 * (G * B).sum(axis=2).T
        return np.concatenate([by_u[free], by_log_a[has]])

    size = int(free.sum() + has.sum())
    here = gradient(np.zeros(size))
    H = np.array([(here - gradient(step)) / _STEP for step in _STEP * np.eye(size)])
    # A log variance is two log amplitudes.
    own = [4.0 * log_variance_precision(count) for count in has.sum(axis=1)]
    H[int(free.sum()) :, int(free.sum()) :] += block_diag(*own)
    values, vectors = np.linalg.eigh(0.5 * (H + H.T))
    covariance = (vectors / np.maximum(values, _LEAST_PRECISION)) @ vectors.T
    turns = _turns(u, free, size)
    left = np.eye(size) - turns @ turns.T
    return CouplingPosterior(coupling, left @ covariance @ left)


def _parts(coupling: Coupling) -> tuple[Floats, Booleans, Floats, Booleans]:
    """u, which of it is free; log amplitudes (zero where there are none), and where there are."""
    a = coupling.patterns.amplitudes
    has = a > 0.0
    log_a = np.log(np.where(has, a, 1.0))
    return unbounded(coupling.loadings), coupling.loadings != 0.0, log_a, has


def _turns(u: Floats, free: Booleans, size: int) -> Floats:
    """Orthonormal directions [P, ...] that turn columns of a pattern's loadings into each other."""
    found = []
    for k, own in enumerate(u):
        for r, s in combinations(np.flatnonzero(free[k].any(axis=0)), 2):
            turned = np.zeros_like(u)
            turned[k, :, r], turned[k, :, s] = -own[:, s], own[:, r]
            if not np.any(turned[~free]):
                found.append(np.pad(turned[free], (0, size - int(free.sum()))))
    if not found:
        return np.zeros((size, 0))
    return np.asarray(np.linalg.qr(np.array(found).T)[0])


def intervals(
    known: CouplingPosterior, observations: Observations, level: float = 0.9
) -> tuple[Floats, Floats]:
    """Ends [K, N, N] between which the correlations lie with this probability.

    Those that were taken up, on Fisher's scale; the others as far as the data tell of the two
    series alone, around `coupling.first_step`.  A series and itself have one; series that do not
    both have a pattern have none in it: not a number.
    """
    if not 0.0 < level < 1.0:
        raise ValueError(f"expected a level between 0 and 1, got {level}")
    half = float(norm.ppf(0.5 + 0.5 * level))
    coupling, patterns = known.coupling, known.coupling.patterns
    C = patterns.covariances(observations.x)
    step = first_step(C, patterns.amplitudes, observations)
    R = coupling.correlations
    z, sd = fisher_z(R), known.sd_of_z()
    has = patterns.amplitudes.T > 0.0
    both = has[:, :, None] & has[:, None, :]
    ends = []
    for sign in (-1.0, 1.0):
        alone = np.clip(step.mean + sign * half * step.sd, -1.0, 1.0)
        end = np.where(R != 0.0, np.tanh(z + sign * half * sd), np.where(both, alone, np.nan))
        end[both & np.eye(len(has[0]), dtype=bool)] = 1.0
        ends.append(end)
    return ends[0], ends[1]

"""How sure the hyperparameters of a fit are: Laplace's approximation of their posterior."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..data.observations import Observations
from ..kernels.grammar import Product
from ..numerics.types import Floats
from .fits import Fit, FitSettings, State
from .initialization import Ranges
from .layout import Layout
from .learner import Learner

_STEP = 1e-4
"""Of the finite differences of the gradient, on the scale on which hyperparameters are learnt."""

_AT_BOUND = 1e-6


@dataclass(frozen=True)
class HyperparameterPosterior:
    """A normal distribution over the hyperparameters of a fit, in scaled units.

    Parameters
    ----------
    layout
        Where the hyperparameters stand in the flat vector: logarithms of the positive ones.
    ranges
        Their bounds and priors.
    mean
        The fit's own, [P].
    covariance
        [P, P]; zero for what is not learnt, and for what stands at a bound.
    """

    layout: Layout
    ranges: Ranges
    mean: Floats
    covariance: Floats

    @property
    def sd(self) -> Floats:
        """Standard deviations, [P]: relative errors of positive hyperparameters where small."""
        return np.sqrt(np.diag(self.covariance))

    def draw(self, rng: np.random.Generator) -> tuple[tuple[Product, ...], Floats]:
        """Draw kernels and noise variances."""
        root = np.linalg.cholesky(self.covariance + 1e-12 * np.eye(len(self.mean)))
        flat = self.mean + root @ rng.normal(size=len(self.mean))
        flat = np.where(self.sd > 0.0, flat, self.mean)
        return self.layout.unpack(np.clip(flat, self.ranges.lower, self.ranges.upper))


def laplace(
    fit: Fit, observations: Observations, settings: FitSettings | None = None
) -> HyperparameterPosterior:
    r"""Approximate the posterior of the hyperparameters around a fit.

    .. math:: \theta \mid X \approx \mathcal{N}(\hat\theta, H^{-1}), \quad
       H = -\nabla^2 \log \Big[ p(\theta) \prod_n \sum_{z_n} q(z_n)\, p(x_n \mid z_n, \theta)
       \Big]_{\hat\theta}

    with theta the logarithms of positive hyperparameters and locations themselves, and q(z_n) the
    prior weights of the rows under the fit's posterior of pi.  H is taken by central differences
    of the analytic gradient; directions that the data leave open are given the prior's precision.

    Parameters
    ----------
    fit
        A fit of these observations.
    observations
        The scaled data.
    settings
        With which the fit was learnt.
    """
    learner = Learner(observations, settings or FitSettings(), np.random.default_rng(0))
    log_heights = None if fit.heights is None else np.log(fit.heights)
    state = State(fit.kernels, fit.Z, fit.noise_variance, log_heights=log_heights)
    target = learner.target(state, learner.posterior(state))
    mean = target.begin
    free = np.flatnonzero((mean > target.lower + _AT_BOUND) & (mean < target.upper - _AT_BOUND))
    columns = []
    for i in free:
        step = np.zeros_like(mean)
        step[i] = _STEP
        columns.append((target.loss(mean + step)[1] - target.loss(mean - step)[1]) / (2.0 * _STEP))
    hessian = np.array(columns).reshape(len(free), -1)[:, free]
    values, vectors = np.linalg.eigh(0.5 * (hessian + hessian.T))
    # Flat or (where learning stopped early) bent the wrong way: no less certain than the prior.
    least = (vectors**2).T @ target.ranges.precision[free]
    covariance = np.zeros((len(mean), len(mean)))
    covariance[np.ix_(free, free)] = (vectors / np.maximum(values, least)) @ vectors.T
    return HyperparameterPosterior(target.layout, target.ranges, mean, covariance)

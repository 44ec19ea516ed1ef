"""How sure the hyperparameters of a fit are: Laplace's approximation of their posterior."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..data.observations import Observations
from ..gp.types import Floats
from ..model.amplitudes import HEIGHT_SD
from .evidence import curvature
from .fits import Fit, FitSettings, State, check_is_plain
from .initialization import Ranges
from .layout import Layout
from .learner import Learner


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
        [P]; that of `laplace` is the fit's own.
    covariance
        [P, P]; zero for what is not learnt, and by `laplace` for what stands at a bound.
    """

    layout: Layout
    ranges: Ranges
    mean: Floats
    covariance: Floats

    @property
    def sd(self) -> Floats:
        """Standard deviations, [P]: relative errors of positive hyperparameters where small."""
        return np.sqrt(np.diag(self.covariance))


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

    Raises
    ------
    OtherModelError
        If it is a fit of a subclass of `LKM`, whose covariances may be others.
    """
    check_is_plain(fit, "for the posterior of its hyperparameters")
    learner = Learner(observations, settings or FitSettings(), np.random.default_rng(0))
    log_heights = None if fit.heights is None else np.log(fit.heights)
    state = State(fit.kernels, fit.Z, fit.noise_variance, log_heights=log_heights)
    target = learner.target(state, learner.posterior(state))
    size = target.layout.size
    mean = target.begin[:size]
    free, hessian = curvature(target)
    values, vectors = np.linalg.eigh(hessian)
    # Flat or (where learning stopped early) bent the wrong way: no less certain than the prior.
    of_heights = np.full(len(target.begin) - size, HEIGHT_SD**-2.0)
    precision = np.concatenate([target.ranges.precision, of_heights])
    least = (vectors**2).T @ precision[free]
    covariance = np.zeros((len(target.begin), len(target.begin)))
    covariance[np.ix_(free, free)] = (vectors / np.maximum(values, least)) @ vectors.T
    # Heights, if there are any, are integrated out.
    covariance = covariance[:size, :size]
    return HyperparameterPosterior(target.layout, target.ranges, mean, covariance)

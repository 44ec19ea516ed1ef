"""The part of an LKM that learning needs: data, parameters, densities of the series, bound, BIC."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal

import gpflow
import numpy as np
import tensorflow as tf
from check_shapes import check_shapes, inherit_check_shapes
from gpflow.base import AnyNDArray, RegressionData, TensorType
from gpflow.inducing_variables import InducingVariables
from gpflow.kernels import Kernel
from gpflow.utilities import positive, to_default_float

from ..gp import limits
from ..gp.likelihoods import LikelihoodName, SeriesLikelihood, likelihood_of
from ..gp.tensors import (
    check_positive_definite,
    eigen_log_density,
    gaussian_log_density,
    total_covariance,
)
from ..gp.types import FloatTensor
from . import model_data
from .components import OfComponents
from .criterion import bic
from .ibp import IBP
from .posteriors import Posterior, Seed


class LKMBound(
    OfComponents, gpflow.models.BayesianModel, gpflow.models.InternalDataTrainingLossMixin
):
    """The Latent Kernel Model without its predictions, see `lkm.LKM`."""

    LONGEST: ClassVar[float] = limits.LONGEST
    """Most time points."""

    def __init__(
        self,
        data: RegressionData,
        kernels: Sequence[Kernel],
        alpha: float = 1.0,
        posterior: Literal["relaxed", "enumerated"] | Posterior = "relaxed",
        *,
        noise_variance: float | AnyNDArray = 1.0,
        prior: Literal["finite", "infinite"] | IBP = "finite",
        likelihood: LikelihoodName | SeriesLikelihood = "gaussian",
    ) -> None:
        super().__init__()
        self.likelihood = likelihood_of(likelihood)
        X, Y = model_data.checked_data(data)
        self.data = (to_default_float(X), to_default_float(Y))
        self.observations = model_data.ModelData.from_table(Y)
        model_data.warn_if_long(len(X), self.LONGEST)
        self.kernels = model_data.checked_kernels(kernels, num_inputs=X.shape[1])
        num_series, num_components = Y.shape[1], len(self.kernels)
        self.prior = model_data.checked_prior(prior, alpha, num_components)
        self.tau = model_data.initial_tau(self.prior, num_series)
        self.noise_variance = gpflow.Parameter(
            model_data.checked_noise(noise_variance, num_series),
            transform=positive(lower=model_data.MIN_NOISE_VARIANCE),
        )
        # Last: a posterior that was built belongs to its model for good.
        self.posterior = model_data.checked_posterior(posterior)
        self.posterior.build(num_series, num_components)

    @property
    def num_series(self) -> int:
        """N."""
        return int(self.data[1].shape[1])

    @property
    def num_components(self) -> int:
        """K."""
        return len(self.kernels)

    # --- learning -------------------------------------------------------------------------------

    @inherit_check_shapes
    def maximum_log_likelihood_objective(self, seed: Seed = None) -> FloatTensor:
        """The evidence lower bound, `elbo`."""
        return self.elbo(seed)

    @check_shapes("return: []")
    def training_loss(self, seed: Seed = None) -> FloatTensor:
        """Minus `elbo` and minus the log density of the priors on parameters."""
        # A subclass may have GPflow's own objective, which knows no seed.
        return self._training_loss() if seed is None else self._training_loss(seed)

    @check_shapes("return: []")
    def elbo(self, seed: Seed = None) -> FloatTensor:
        """Evidence lower bound (for a relaxed posterior, its relaxation).

        Parameters
        ----------
        seed
            None for the draws that a relaxed posterior keeps (``posterior.resample()`` changes
            them); an integer or an integer tensor [2] for others.
        """
        return self.posterior.elbo(self, seed)

    def update_tau(self) -> None:
        """Set tau to its optimum given the probabilities of Z.

        Raises
        ------
        NotImplementedError
            If the prior is infinite: tau then has no closed form.
        """
        self.tau.assign(self.prior.best_tau(self.probabilities()))

    @check_shapes("Z: [batch..., N, K]", "return: [batch..., N]")
    def log_likelihood(self, Z: TensorType) -> FloatTensor:
        """``log p(x_n | z_n)`` with f and scales integrated out, exact.

        Parameters
        ----------
        Z
            Assignments, [..., N, K], any real numbers that are not negative.

        Returns
        -------
        Tensor [..., N]; NaN where rounding makes a covariance indefinite.
        """
        C = self.component_covariances(self.data[0])
        V = total_covariance(C, self.noise_variance, to_default_float(Z))
        return gaussian_log_density(V, self.observations.x, self.observations.mask, self.likelihood)

    @check_shapes("configurations: [T, K]", "return: [N, T]")
    def configuration_log_likelihood(self, configurations: TensorType) -> FloatTensor:
        """``log p(x_n | t)`` for all series and configurations, exact.

        One eigendecomposition per configuration serves all series that lack the same points.

        Parameters
        ----------
        configurations
            t, [T, K].

        Returns
        -------
        Tensor [N, T].
        """
        t = to_default_float(configurations)
        C = tf.tensordot(t, self.component_covariances(self.data[0]), axes=1)
        groups = self.observations.groups
        parts = [
            eigen_log_density(
                C,
                tf.gather(self.observations.x, group.series),
                tf.gather(self.noise_variance, group.series),
                group.mask,
                self.likelihood,
            )
            for group in groups
        ]
        order = np.argsort(np.concatenate([group.series for group in groups]))
        return tf.gather(tf.transpose(tf.concat(parts, axis=1)), order)

    # --- what was found -------------------------------------------------------------------------

    @check_shapes("return: [N, K]")
    def probabilities(self) -> FloatTensor:
        """Posterior probabilities that series n has component k, [N, K]."""
        return self.posterior.probabilities(self)

    @check_shapes("return: [N, K]")
    def assignment(self) -> FloatTensor:
        """The most probable Z, zeros and ones, [N, K]."""
        return self.posterior.assignment(self)

    @check_shapes("Z: [N, K]", "return: []")
    def bic(self, Z: TensorType | None = None) -> FloatTensor:
        r"""Bayesian information criterion; smaller is better.

        .. math:: -2 \sum_n \log p(x_n \mid z_n) + p \log(\text{number of observed values})

        p counts the trainable parameters of kernels that at least one series uses, N noises, and
        what a subclass has beside them.  Scales of series are integrated out and cost nothing.

        Parameters
        ----------
        Z
            Assignments [N, K]; None for `assignment`.

        Raises
        ------
        ValueError
            If a covariance is not positive definite.
        """
        Z = self.assignment() if Z is None else to_default_float(Z)
        log_likelihood = self.log_likelihood(Z)
        check_positive_definite(log_likelihood, "the series")
        used = [k for k, on in zip(self.kernels, np.any(Z, axis=0), strict=True) if on]
        otherwise = self._counted_otherwise()
        own = [p for p in self.trainable_parameters if id(p) not in otherwise]
        learnt = [*own, *(p for kernel in used for p in kernel.trainable_parameters)]
        parameters = {id(p): p for p in learnt}
        count = self.num_series + sum(int(tf.size(p)) for p in parameters.values())
        return bic(tf.reduce_sum(log_likelihood), count, self.observations.num_observed)

    def _counted_otherwise(self) -> set[int]:
        """Parameters of kernels, noises, variational ones, places of inducing variables: by id."""
        inducing = (m for m in self.submodules if isinstance(m, InducingVariables))
        owners = (*self.kernels, self.posterior, *inducing)
        known = [self.tau, self.noise_variance, *(p for m in owners for p in m.parameters)]
        return {id(parameter) for parameter in known}

"""A fit as a model of GPflow, and asked by it: for relaxed posteriors."""

from __future__ import annotations

from functools import cached_property

import gpflow
import numpy as np

from ..data.observations import Observations
from ..fit.assignments import Pairs
from ..fit.fits import Fit, FitSettings
from ..fit.relaxed import relaxed_model
from ..gp.types import Floats
from ..kernels.component import to_kernel
from ..model.lkm import LKM
from ..model.posteriors import EnumeratedPosterior
from ..model.subclasses import model_class
from .predictor import Predictor


def to_model(fit: Fit, observations: Observations, settings: FitSettings) -> LKM:
    """Return the latent kernel model of a fit, on scaled data, with the posterior that was learnt.

    Raises
    ------
    ValueError
        If it is a fit of a subclass of `LKM` that is not defined.
    """
    if fit.relaxed is not None:
        return relaxed_model(fit, fit.relaxed, observations, settings)
    model = model_class(settings.model)(
        observations.table,
        kernels=[to_kernel(kernel) for kernel in fit.kernels],
        prior=settings.ibp(len(fit.kernels)),
        posterior=EnumeratedPosterior(),
        noise_variance=fit.noise_variance,
        likelihood=settings.likelihood,
    )
    model.tau.assign(fit.tau)
    gpflow.utilities.multiple_assign(model, dict(fit.parameters))
    return model


class ByModel(Predictor):
    """A fit as a model of TensorFlow."""

    @cached_property
    def _model(self) -> LKM:
        return to_model(self.fit, self.observations, self.settings)

    def sums(
        self, x: Floats, sums: Floats, *, full_cov: bool = False, Z: Floats | None = None
    ) -> tuple[Floats, Floats]:
        """See `Predictor.sums`."""
        mean, variance = self._model.predict_sums(x[:, None], sums, full_cov, Z)
        return np.asarray(mean), np.asarray(variance)

    def noise(self, Z: Floats | None = None) -> Floats:
        """See `Predictor.noise`."""
        return np.asarray(self._model.predict_noise(Z))

    def observed(self, x: Floats) -> tuple[Floats, Floats]:
        """See `Predictor.observed`."""
        models = (to_model(part.fit, part.observations, self.settings) for part in self._in_parts())
        means, variances = zip(*(model.predict_y(x[:, None]) for model in models), strict=True)
        return np.concatenate(means, axis=1), np.concatenate(variances, axis=1)

    def covariances(self, x: Floats) -> Floats:
        """See `Predictor.covariances`."""
        return np.asarray(self._model.component_covariances(x[:, None]))

    @property
    def posterior(self) -> tuple[Pairs, Floats]:
        """See `Predictor.posterior`."""
        rows = self._model.posterior.configurations(self._model)
        series, configurations, weights = (np.asarray(part) for part in rows)
        return Pairs(series, configurations), weights

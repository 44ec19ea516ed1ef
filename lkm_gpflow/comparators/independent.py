"""Each series alone: one Gaussian process with a fixed sum of kernels, or a spectral mixture.

What somebody who knows Gaussian processes would try without searching for structure.  Both
learn by maximum a posteriori from several starts, under the package's weak priors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import gpflow
import numpy as np
import pandas as pd
import tensorflow as tf
import tensorflow_probability as tfp
from gpflow.base import Parameter
from gpflow.utilities import positive

from ..data.observations import Observations
from ..data.tables import Table
from ..fit.initialization import Proposer, typical_step
from ..fit.parameter_priors import add_priors
from ..gp.types import Floats
from ..kernels.component import ComponentKernel, to_kernel
from ..kernels.grammar import parse
from ..model.criterion import bic
from .lbfgs import MultiStart
from .protocol import ScaledForecast
from .spectral import SpectralMixture, Spectrum
from .stacked import NOISE_FLOOR


@dataclass(frozen=True)
class IndependentGP:
    """One Gaussian process per series, its kernel a sum of fixed components."""

    #: The terms of the sum, as expressions without numbers.
    components: tuple[str, ...] = ("SE", "PER", "LIN", "RW", "C")
    restarts: int = 8  #: Starts; only the best continues

    def fit(self, train: pd.DataFrame, *, seed: int) -> ScaledForecast:
        """Learn every series alone, by maximum a posteriori under `initialization`'s priors."""
        table = Table.of(train)
        observations = table.observations
        proposer = Proposer.of(observations)
        rng = np.random.default_rng(seed)
        structures = [parse(component) for component in self.components]

        def draw() -> list[ComponentKernel]:
            return [to_kernel(proposer.propose(product, 1, rng)[0]) for product in structures]

        parts = draw()
        for part in parts:
            add_priors(part, typical_step(observations.x))
        kernel = gpflow.kernels.Sum(parts)

        def start(series: int, number: int) -> None:
            gpflow.utilities.multiple_assign(
                kernel, gpflow.utilities.parameter_dict(gpflow.kernels.Sum(draw()))
            )

        return _forecast(table, fit_each_gp(observations, kernel, start, self.restarts))


@dataclass(frozen=True)
class SpectralMixtureGP:
    """One Gaussian process per series with a spectral mixture kernel (Wilson and Adams 2013)."""

    #: Candidates for Q, the Gaussians in the spectral density; BIC chooses, series by series.
    num_components: tuple[int, ...] = (1, 2, 3)
    restarts: int = 8  #: Starts, drawn from the spectrum of the series; only the best continues

    def fit(self, train: pd.DataFrame, *, seed: int) -> ScaledForecast:
        """Learn every series alone, by maximum likelihood."""
        table = Table.of(train)
        observations = table.observations
        rng = np.random.default_rng(seed)
        spectra = [Spectrum.of(observations, n) for n in range(len(observations.Y))]

        def fit_mixtures(count: int) -> list[gpflow.models.GPR]:
            kernel = SpectralMixture(spectra[0].draw(count, rng))

            def start(series: int, number: int) -> None:
                kernel.assign(spectra[series].draw(count, rng))

            return fit_each_gp(observations, kernel, start, self.restarts)

        candidates = zip(*(fit_mixtures(count) for count in self.num_components), strict=True)
        return _forecast(table, [min(models, key=_bic) for models in candidates])


def fit_each_gp(
    observations: Observations,
    kernel: gpflow.kernels.Kernel,
    start: Callable[[int, int], None],
    restarts: int,
    noise_prior: tfp.distributions.Distribution | None = None,
) -> list[gpflow.models.GPR]:
    """Learn one kernel and a noise variance per series, by functions that are traced once.

    `start` gives the kernel starting values, by the numbers of the series and the start; the best
    of `restarts` continues.  The noise prior is flat if it is None.
    """
    empty = np.empty((0, 1))
    X, Y = (tf.Variable(empty, shape=[None, 1], trainable=False) for _ in range(2))
    noise = Parameter(0.1, transform=positive(lower=NOISE_FLOOR), prior=noise_prior)
    model = gpflow.models.GPR(
        (X, Y), kernel, likelihood=gpflow.likelihoods.Gaussian(variance=noise)
    )
    learner = MultiStart(model)

    def start_series(series: int, number: int) -> None:
        start(series, number)
        noise.assign(0.1)

    fitted = []
    for series, (y, mask) in enumerate(zip(observations.Y, observations.mask, strict=True)):
        observed = mask > 0.0
        X.assign(observations.x[observed][:, None])
        Y.assign(y[observed][:, None])
        learner.best_of([partial(start_series, series, number) for number in range(restarts)])
        fitted.append(gpflow.utilities.deepcopy(model))
    return fitted


def _bic(model: gpflow.models.GPR) -> float:
    num_parameters = sum(int(tf.size(variable)) for variable in model.trainable_variables)
    num_observed = int(tf.shape(model.data[1])[0])
    return bic(float(model.log_marginal_likelihood()), num_parameters, num_observed)


def _forecast(table: Table, models: Sequence[gpflow.models.GPR]) -> ScaledForecast:
    """Forecast every series by its own model."""

    def predict(x: Floats) -> tuple[Floats, Floats]:
        means, variances = zip(*(model.predict_y(x[:, None]) for model in models), strict=True)
        return np.hstack(means), np.hstack(variances)

    return ScaledForecast(table, predict)

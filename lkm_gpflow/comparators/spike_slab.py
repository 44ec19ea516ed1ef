"""The spike and slab multi-task Gaussian process as a comparator: kernels and starts."""

from __future__ import annotations

from dataclasses import dataclass

import gpflow
import numpy as np
import pandas as pd
from gpflow.base import RegressionData

from ..data.tables import Table
from ..fit.initialization import typical_step
from ..gp.types import Floats
from .lbfgs import Learner
from .registry import register
from .scaled import ScaledForecast
from .spike_slab_model import SpikeSlabGP

_FAMILIES: dict[str, type[gpflow.kernels.IsotropicStationary]] = {
    "se": gpflow.kernels.SquaredExponential,
    "matern12": gpflow.kernels.Matern12,
}


@register("spike-slab")
@dataclass(frozen=True)
class SpikeSlab:
    """Forecasts of `SpikeSlabGP`, learnt by EM and L-BFGS from several random starts.

    The latent functions have unit variance and lengthscales that start spread between two steps
    and the span of the data.  Switches prune the ones that a series does not need.

    Parameters
    ----------
    kernels
        A kernel for each latent function: "se" (the paper's squared exponential) or "matern12" (an
        Ornstein-Uhlenbeck process, close to a random walk).
    starts
        How many random starts.
    sweeps
        EM sweeps (`SpikeSlabGP.update_weights` and `update_hyperparameters`) at every start, and
        after the last run of L-BFGS.
    short, keep, max_iterations
        See `Learner.best_of`.

    Raises
    ------
    ValueError
        If there is no kernel, or one of another name.
    """

    kernels: tuple[str, ...] = 6 * ("se",)
    starts: int = 6
    sweeps: int = 10
    short: int = 30
    keep: int = 2
    max_iterations: int = 150

    def __post_init__(self) -> None:
        if not self.kernels or not set(self.kernels) <= set(_FAMILIES):
            raise ValueError(f"expected kernels among {list(_FAMILIES)}, got {self.kernels!r}")

    def fit(self, train: pd.DataFrame, *, seed: int) -> ScaledForecast:
        """Learn from the table; see `Comparator.fit`."""
        table = Table.of(train)
        model = self.learn(table.observations.table, seed=seed)

        def predict(x: Floats) -> tuple[Floats, Floats]:
            mean, variance = model.predict_y(x[:, None])
            return mean.numpy(), variance.numpy()

        return ScaledForecast(table, predict)

    def learn(self, data: RegressionData, *, seed: int) -> SpikeSlabGP:
        """Return the model learnt from scaled data, X [D, 1] and Y [D, N] with NaN for missing."""
        X, Y = data
        kernels = [_FAMILIES[name]() for name in self.kernels]
        for kernel in kernels:
            gpflow.set_trainable(kernel.variance, False)
        model = SpikeSlabGP((X, Y), kernels)
        shortest = 2.0 * typical_step(X[:, 0])
        rng = np.random.default_rng(seed)

        def start() -> None:
            # One lengthscale in each of M equal parts of the logarithmic range.
            places = (np.arange(len(kernels)) + rng.uniform(size=len(kernels))) / len(kernels)
            for kernel, place in zip(kernels, rng.permutation(places), strict=True):
                kernel.lengthscales.assign(shortest ** (1.0 - place))
            model.slab_variance.assign(1.0)
            model.inclusion.assign(0.5)
            model.noise_variance.assign(np.full(model.num_series, 0.1))
            model.draw_weights(rng)
            sweep()

        def sweep() -> None:
            for _ in range(self.sweeps):
                model.update_weights()
                model.update_hyperparameters()

        learner = Learner(model)
        best = learner.best_of(
            [start] * self.starts,
            short=self.short,
            keep=self.keep,
            max_iterations=self.max_iterations,
        )
        # A function that nobody needs may end as zero with free weights, and its switches, as
        # likely as a priori, raise the inclusion of all others.
        for m in range(len(kernels)):
            model.switch_off(m)
            sweep()
            without = learner.run(self.short)
            best = min(best, without, key=lambda optimum: optimum.loss)
            learner.values = best.values
        learner.run(self.max_iterations)
        sweep()
        return model

"""Gaussian process regression networks as a comparator: number of nodes, kernels, starts."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import gpflow
import numpy as np
import pandas as pd
from gpflow.utilities import set_trainable

from ..data.observations import Observations
from ..data.tables import Table
from ..fit.initialization import log_uniform, typical_step
from ..gp.types import Floats
from .gprn_model import GPRN
from .lbfgs import Learner
from .registry import register
from .scaled import ScaledForecast

KERNELS = {
    kernel.__name__: kernel
    for kernel in (
        gpflow.kernels.SquaredExponential,
        gpflow.kernels.Matern52,
        gpflow.kernels.Matern32,
        gpflow.kernels.Matern12,
    )
}
"""Kernels that nodes and weights may have, by name."""


@register("gprn")
@dataclass(frozen=True)
class GPRegressionNetwork:
    """A Gaussian process regression network; how many nodes it has is chosen by the bound.

    Every node has its own lengthscale, variance and noise; all weights share one lengthscale and
    have unit variance.

    Parameters
    ----------
    num_nodes
        Numbers of nodes (latent functions) to choose from, rising.
    node_kernel, weight_kernel
        Names among `KERNELS`; squared exponential in the papers.
    restarts
        Starts for each number of nodes; only the best two continue.
    max_iterations
        Iterations of L-BFGS for each of these two.
    """

    num_nodes: tuple[int, ...] = (1, 2, 3)
    node_kernel: str = "SquaredExponential"
    weight_kernel: str = "SquaredExponential"
    restarts: int = 8
    max_iterations: int = 400

    def __post_init__(self) -> None:
        if not self.num_nodes or sorted({0, *self.num_nodes}) != [0, *self.num_nodes]:
            raise ValueError(f"expected rising numbers of nodes from 1, got {self.num_nodes}")
        for name in (self.node_kernel, self.weight_kernel):
            if name not in KERNELS:
                raise ValueError(f"expected a kernel among {', '.join(KERNELS)}, got {name!r}")
        if self.restarts < 1:
            raise ValueError(f"expected at least 1 start, got {self.restarts}")

    def fit(self, train: pd.DataFrame, *, seed: int) -> ScaledForecast:
        """Climb the bound for every number of nodes and keep the highest.

        Every second start adds a node to the best network of fewer nodes.
        """
        table = Table.of(train)
        observations = table.observations
        rng = np.random.default_rng(seed)
        smaller: GPRN | None = None
        fitted = []
        for num_nodes in self.num_nodes:
            model = self._model(observations, num_nodes)
            starts = [
                partial(_start, model, observations, rng, smaller if i % 2 else None)
                for i in range(self.restarts)
            ]
            optimum = Learner(model).best_of(
                starts, short=40, keep=2, max_iterations=self.max_iterations
            )
            fitted.append((optimum.loss, model))
            smaller = model
        _, best = min(fitted, key=lambda pair: pair[0])

        def predict(x: Floats) -> tuple[Floats, Floats]:
            mean, variance = best.predict_y(x[:, None])
            return mean.numpy(), variance.numpy()

        return ScaledForecast(table, predict)

    def _model(self, observations: Observations, num_nodes: int) -> GPRN:
        nodes = [
            gpflow.kernels.Sum([KERNELS[self.node_kernel](), gpflow.kernels.White()])
            for _ in range(num_nodes)
        ]
        weight = KERNELS[self.weight_kernel]()
        set_trainable(weight.variance, False)
        X, Y = observations.table
        return GPRN((X, Y), nodes, weight)


def _start(
    model: GPRN, observations: Observations, rng: np.random.Generator, smaller: GPRN | None
) -> None:
    """Assign random lengthscales, and nodes that mix the leading principal components.

    Given a network of fewer nodes, its nodes come first, and the new ones are of its residuals.
    Missing cells count as zero here, and only here.
    """
    step = typical_step(observations.x)
    for kernel in model.node_kernels:
        smooth, white = kernel.kernels
        smooth.lengthscales.assign(log_uniform(3.0 * step, 0.5, rng))
        smooth.variance.assign(1.0)
        white.variance.assign(0.01)
    model.weight_kernel.lengthscales.assign(log_uniform(0.1, 2.0, rng))
    model.noise_variance.assign(np.full(observations.num_series, 0.1))
    residual = observations.Y
    if smaller is not None:
        residual = observations.mask * (residual - smaller.predict_f(model.data[0])[0].numpy().T)
    _, _, components = np.linalg.svd(residual, full_matrices=False)
    num_nodes, num_inputs = model.node_mean.shape
    leading = components[: num_nodes + 1]
    node_mean = rng.normal(size=(num_nodes, len(leading))) @ leading
    node_mean /= node_mean.std(axis=1, keepdims=True)
    node_variance = np.full((num_nodes, num_inputs), 0.1)
    weight_mean = np.zeros(model.weight_mean.shape)
    if smaller is not None:
        known = len(smaller.node_kernels)
        for part, source in zip(
            (*model.node_kernels[:known], model.weight_kernel),
            (*smaller.node_kernels, smaller.weight_kernel),
            strict=True,
        ):
            gpflow.utilities.multiple_assign(part, gpflow.utilities.parameter_dict(source))
        model.noise_variance.assign(smaller.noise_variance)
        node_mean[:known] = smaller.node_mean
        node_variance[:known] = smaller.node_variance
        weight_mean[:known] = smaller.weight_mean
    model.node_mean.assign(node_mean)
    model.node_variance.assign(node_variance)
    model.weight_mean.assign(weight_mean)

"""The authors' own structures: their scores by GPflow's own regression."""

from __future__ import annotations

from itertools import compress

import gpflow
import numpy as np
import pandas as pd
import pytest
import tensorflow as tf
from scipy.special import i0e

from lkm_gpflow import datasets
from lkm_gpflow.data.observations import Observations
from lkm_gpflow.data.tables import Table
from lkm_gpflow.evaluation.metrics import score
from lkm_gpflow.gp.types import Floats
from lkm_gpflow.kernels.grammar import Factor, Product, parse
from lkm_gpflow.model.lkm import LKM
from paper_experiments.lab import published


class ZeroMeanPeriodic(gpflow.kernels.Periodic):
    """GPflow's periodic kernel without its mean, as the paper has it."""

    def __init__(self, period: float, lengthscale: float) -> None:
        super().__init__(gpflow.kernels.SquaredExponential(lengthscales=lengthscale / 2.0), period)
        self.mean = i0e(lengthscale**-2.0)

    def K(self, X: tf.Tensor, X2: tf.Tensor | None = None) -> tf.Tensor:
        return (super().K(X, X2) - self.mean) / (1.0 - self.mean)


def of_gpflow(factor: Factor) -> gpflow.kernels.Kernel:
    match factor.base.name:
        case "SE":
            return gpflow.kernels.SquaredExponential(lengthscales=factor.values[0])
        case "PER":
            return ZeroMeanPeriodic(*factor.values)
        case "WN":
            return gpflow.kernels.White()
        case "LIN":
            assert factor.values == (0.0,)
            return gpflow.kernels.Linear()
    raise ValueError(factor)


def regressions(
    observations: Observations, structure: list[Product], model: LKM, Z: Floats
) -> tuple[list[gpflow.models.GPR], list[tf.Variable]]:
    """One `GPR` a series with what was learnt; what the series share, and noises."""
    parts = []
    for kernel, product in zip(model.kernels, structure, strict=True):
        height = gpflow.kernels.Constant(max(float(kernel.variance.numpy()), 1e-30))
        factors = [of_gpflow(factor) for factor in product.factors]
        gpflow.utilities.set_trainable(factors, False)
        parts.append(gpflow.kernels.Product([height, *factors]))
    noise, x = model.noise_variance.numpy(), observations.x[:, None]
    models = [
        gpflow.models.GPR((x, y[:, None]), gpflow.kernels.Sum(list(compress(parts, z))),
                          likelihood=gpflow.likelihoods.Gaussian(variance, variance_lower_bound=0))
        for y, z, variance in zip(observations.Y, Z, noise, strict=True)
    ]  # fmt: skip
    variables = {v.ref(): v for each in models for v in each.trainable_variables}
    return models, list(variables.values())


@pytest.mark.usefixtures("tables")
@pytest.mark.parametrize(
    ("dataset", "known"),
    {"houses": (4.00, 2.76), "currencies": (84.0, 2.17), "stocks": (4.26, 2.45)}.items(),
)
def test_published_structures_by_gpflow(dataset: str, known: tuple[float, float]) -> None:
    """Scores, and that no variance or noise would be better: the gradient is zero."""
    train, test = datasets.load(dataset).split()
    table, (structure, Z) = Table.of(train), published.structure_of(train.columns)
    scaled = [parse(f"1 x {each}").change_units(1 / table.span) for each in structure]
    learnt = published.PublishedStructure().learn(table.observations, scaled, Z)
    models, variables = regressions(table.observations, scaled, learnt, Z)
    with tf.GradientTape() as tape:
        loss = tf.add_n([model.training_loss() for model in models])
    slopes = tape.gradient(loss, variables)
    assert np.max(np.abs(slopes)) < 0.05
    moments = [model.predict_y(table.scaled_times(test.index)[:, None]) for model in models]
    mean, variance = (np.hstack(each) for each in zip(*moments, strict=True))
    told = [
        pd.DataFrame(values, test.index, test.columns)
        for values in (table.location + table.scale * mean, table.scale * np.sqrt(variance))
    ]
    scores = score(test, *told)
    assert (scores.rmse, scores.mnlp) == pytest.approx(known, rel=0.02)
    assert float(loss) == pytest.approx(-float(tf.reduce_sum(learnt.log_likelihood(Z))))

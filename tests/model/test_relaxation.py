"""Annealing of the relaxed posterior."""

from __future__ import annotations

import itertools

import gpflow
import numpy as np
import pytest
import tensorflow as tf

import lkm_gpflow as lkm
from lkm_gpflow.model.annealing import Annealing
from lkm_gpflow.model.relaxation import anneal


def rhythm_or_line() -> lkm.LKM:
    """Two series: a wave, and a line; two components: a periodic and a linear one."""
    x = np.linspace(0.0, 1.0, 40)
    rng = np.random.default_rng(0)
    Y = np.column_stack([np.sin(25.0 * x), 3.0 * (x - 0.5)]) + 0.1 * rng.normal(size=(40, 2))
    kernels = [
        lkm.kernels.to_kernel(lkm.parse(text))
        for text in ("1.0 x PER(period=0.25, lengthscale=1.0)", "5.0 x LIN(location=0.4)")
    ]
    return lkm.LKM((x[:, None], Y), kernels, posterior="relaxed", noise_variance=0.1)


def test_learns_who_has_what() -> None:
    model = rhythm_or_line()
    seen: list[float] = []
    anneal(
        model,
        Annealing(num_steps=120),
        callback=lambda step, m: seen.append(float(m.posterior.temperature.numpy())),
    )
    np.testing.assert_array_equal(model.assignment(), np.eye(2))
    np.testing.assert_allclose(seen, np.geomspace(1.0, 0.1, 120))
    np.testing.assert_allclose(model.tau, model.prior.best_tau(model.probabilities()))


@pytest.mark.parametrize("rates", [(0.2, 1e-9), (1e-9, 0.2)])
def test_logits_and_all_else_settle_at_rates_of_their_own(rates: tuple[float, float]) -> None:
    """After the temperature has fallen what has next to no rate stays."""
    model, seen = rhythm_or_line(), []
    logits = {variable.ref() for variable in model.posterior.trainable_variables}

    def note(step: int, model: lkm.LKM) -> None:
        seen.append({v.ref(): v.numpy() for v in model.trainable_variables})

    annealing = Annealing(num_steps=2, most_blocks=1, block_steps=4, settling_rates=rates)
    anneal(model, annealing, callback=note)
    tau = {variable.ref() for variable in model.tau.trainable_variables}  # in closed form
    for own in seen[0].keys() - tau:
        moved = np.abs(seen[-1][own] - seen[1][own]).max()
        assert (moved > 1e-3) == (rates[own not in logits] > 0.1)


def test_wrong_arguments() -> None:
    for name, bad in [
        ("num_steps", 0), ("num_steps", 2.5), ("most_blocks", -1), ("last_temperature", 0.0),
        ("learning_rate", np.inf), ("logits_rate", 0.0), ("logits_rate", -0.1),
        ("settling_rates", (0.1, -0.1)), ("settling_rates", (0.1,)),
    ]:  # fmt: skip
        with pytest.raises(ValueError, match=f"expected .*{name}.*, got "):
            Annealing(**{name: bad})
    x = np.linspace(0.0, 1.0, 10)[:, None]
    kernels = [lkm.kernels.to_kernel(lkm.parse("1.0 x SE(lengthscale=0.1)"))]
    model = lkm.LKM((x, np.sin(9 * x)), kernels, posterior="enumerated")
    with pytest.raises(ValueError, match="expected a RelaxedPosterior"):
        anneal(model)


def test_a_step_without_a_finite_bound_moves_nothing() -> None:
    """Not even by the momentum of the steps before it."""

    class Breaks(lkm.LKM):
        def __init__(self, *args: object, **options: object) -> None:
            super().__init__(*args, **options)
            self.factor = tf.Variable(1.0, dtype=tf.float64, trainable=False)

        def log_likelihood(self, Z: tf.Tensor) -> tf.Tensor:
            return self.factor * super().log_likelihood(Z)

    x = np.linspace(0.0, 1.0, 10)[:, None]
    model = Breaks((x, np.sin(9 * x)), [gpflow.kernels.SquaredExponential()])
    seen = []

    def note(number: int, model: lkm.LKM) -> None:
        seen.append([v.numpy() for v in model.trainable_variables])
        model.factor.assign(np.nan if number == 2 else 1.0)

    anneal(model, Annealing(num_steps=5), callback=note)
    moved = [
        any(not np.array_equal(a, b) for a, b in zip(one, two, strict=True))
        for one, two in itertools.pairwise(seen)
    ]
    assert moved == [True, True, False, True]

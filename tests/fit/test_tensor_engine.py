"""A subclass of `LKM` through the default learner: its covariances, gradients, and parameters."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gpflow
import numpy as np
import pandas as pd
import pytest
import tensorflow as tf
import tensorflow_probability as tfp

import lkm_gpflow as lkm
from lkm_gpflow.data.observations import Observations
from lkm_gpflow.fit.assignments import Pairs
from lkm_gpflow.fit.engine import Engine
from lkm_gpflow.fit.layout import Layout
from lkm_gpflow.fit.tensor_engine import TensorEngine
from lkm_gpflow.kernels.grammar import parse
from lkm_gpflow.model.subclasses import name_of


class Warped(lkm.LKM):
    """Time is warped by a power that is learnt."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        prior = tfp.distributions.LogNormal(np.float64(0.0), np.float64(1.0))
        positive = gpflow.utilities.positive()
        self.exponent = gpflow.Parameter(1.0, transform=positive, prior=prior)

    def component_covariances(self, X: tf.Tensor, X2: tf.Tensor | None = None) -> tf.Tensor:
        def clock(x: tf.Tensor) -> tf.Tensor:
            return tf.pow(tf.maximum(x, 1e-9), self.exponent)

        return super().component_covariances(clock(X), None if X2 is None else clock(X2))


PRODUCTS = [
    parse("0.8 x PER(period=0.31, lengthscale=0.9) x SE(lengthscale=2)"),
    parse("0.5 x LIN(location=0.3)"),
    parse("1.3 x RW(start=-0.1)"),
]


def observations() -> Observations:
    rng = np.random.default_rng(0)
    mask = np.ones((3, 12))
    mask[1, 4:6] = 0.0
    return Observations(np.linspace(0.0, 1.0, 12), rng.normal(size=(3, 12)) * mask, mask)


def test_an_unbent_clock_is_that_of_the_model_itself() -> None:
    data = observations()
    ours, plain = TensorEngine(data, name_of(Warped)), Engine(data)
    assert ours.parameters == {".exponent": pytest.approx(1.0)}
    x = np.linspace(0.1, 1.4, 7)
    for times in (None, x):
        found = ours.covariances(PRODUCTS, ours.parameters, times)
        expected = plain.covariances(PRODUCTS, {}, times)
        np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-7)
    assert ours.covariances([], ours.parameters).shape == (0, 12, 12)


def test_gradient_is_that_of_finite_differences() -> None:
    data = observations()
    engine = TensorEngine(data, name_of(Warped))
    extras = engine.unconstrained({".exponent": 1.7})
    layout = Layout(PRODUCTS, 3, len(extras))
    pairs = Pairs.around(np.zeros((3, 3)), 3)
    objective = engine.objective(layout, pairs, np.random.default_rng(1).normal(size=24))
    flat, step = layout.pack(np.array([0.05, 0.2, 0.7]), extras), 1e-5
    _, gradient = objective(flat)
    numeric = [
        (objective(flat + step * one)[0] - objective(flat - step * one)[0]) / (2.0 * step)
        for one in np.eye(len(flat))
    ]
    np.testing.assert_allclose(gradient, numeric, rtol=1e-6, atol=1e-7)
    assert np.abs(gradient[layout.extras]).min() > 1e-3


def test_parameters_there_and_back_and_their_prior() -> None:
    engine = TensorEngine(observations(), name_of(Warped))
    extras = engine.unconstrained({".exponent": 1.7})
    assert engine.constrained(extras) == {".exponent": pytest.approx(1.7)}
    _, slope = engine.log_prior(extras)
    up, down = (engine.log_prior(extras + s)[0] for s in (1e-6, -1e-6))
    assert slope[0] == pytest.approx((up - down) / 2e-6, rel=1e-5)


@pytest.fixture(scope="module")
def found() -> lkm.Discovery:
    """Three series that wave on a warped clock, ever faster, and one that only rises."""
    rng, t = np.random.default_rng(3), np.linspace(0.0, 1.0, 50)
    wave = [np.sin(10.0 * np.pi * (t**1.3) + phase) for phase in (0.0, 1.0, 2.5)]
    values = np.column_stack([*wave, 3.0 * t]) + 0.1 * rng.normal(size=(50, 4))
    index = pd.date_range("2021-01-03", periods=50, freq="W")
    frame = pd.DataFrame(values, index=index, columns=list("abcd"))
    return lkm.discover(
        frame, model=Warped, bases=("PER", "LIN"), depth=0, restarts=1, progress=False
    )


def test_a_planted_clock_is_found(found: lkm.Discovery) -> None:
    """With probabilities and a forecast; the model has the exponent that was learnt."""
    best = found.fit
    assert best.parameters[".exponent"] == pytest.approx(1.3, abs=0.05)
    cycles = [k for k, kernel in enumerate(best.kernels) if "PER" in str(kernel)]
    assert best.Z[:, cycles].any(axis=1).tolist() == [True, True, True, False]
    assert np.all((found.probabilities.to_numpy() >= 0.0) & (found.probabilities.to_numpy() <= 1.0))
    assert isinstance(found.model, Warped)
    assert float(found.model.exponent.numpy()) == pytest.approx(best.parameters[".exponent"])
    assert float(found.model.elbo()) == pytest.approx(best.elbo, abs=1e-4)
    assert np.isfinite(found.forecast(4)).all(axis=None)


def test_it_is_saved_and_loaded(found: lkm.Discovery, tmp_path: Path) -> None:
    found.save(tmp_path / "warped.lkm")
    again = lkm.load(tmp_path / "warped.lkm")
    pd.testing.assert_frame_equal(again.forecast(3), found.forecast(3))
    pd.testing.assert_frame_equal(again.probabilities, found.probabilities)


class Raised(lkm.LKM):
    """With a mean function, which learning does not take into account."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, mean_function=gpflow.functions.Constant(1.0), **options)


def test_a_mean_function_is_refused() -> None:
    with pytest.raises(ValueError, match="without a mean function, got Raised"):
        TensorEngine(observations(), name_of(Raised))

"""What hyperparameters are learnt on, and how far an optimiser gets on it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize

from lkm_gpflow.data.observations import Observations
from lkm_gpflow.fit.engine import components
from lkm_gpflow.fit.fits import FitSettings, State
from lkm_gpflow.fit.training import Learner
from lkm_gpflow.gp.likelihoods import ScaledNoise
from lkm_gpflow.kernels.grammar import parse

TRUE = (
    parse("0.8 x PER(period=0.11, lengthscale=1.2)"),
    parse("0.6 x SE(lengthscale=0.2)"),
    parse("0.3 x LIN(location=0.4)"),
)
Z = np.array([[1, 1, 0], [1, 0, 1], [1, 1, 1], [0, 1, 1], [1, 0, 0], [1, 1, 0]], float)
SETTINGS = FitSettings(likelihood=ScaledNoise(), criterion="bic+prior")


def planted(seed: int) -> Observations:
    rng = np.random.default_rng(seed)
    x = np.linspace(0.0, 1.0, 120)
    V = np.tensordot(Z, components(TRUE, x), axes=1) + 0.1 * np.eye(len(x))
    Y = np.array([np.linalg.cholesky(v) @ rng.normal(size=len(x)) for v in V])
    return Observations(x, Y, np.ones_like(Y))


def begun(off: float) -> State:
    """With the period off by a share, and the other hyperparameters by far."""
    kernels = (
        parse(f"2.0 x PER(period={0.11 * (1.0 + off)}, lengthscale=0.5)"),
        parse("0.2 x SE(lengthscale=0.05)"),
        parse("1.0 x LIN(location=0.9)"),
    )
    return State(kernels, Z, np.full(len(Z), 0.5))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("off", [-0.01, 0.02])
def test_learning_ends_at_the_optimum(seed: int, off: float) -> None:
    """From there an optimiser of another kind gains nothing, with as many steps as it likes."""
    learner = Learner(planted(seed), SETTINGS, np.random.default_rng(0))
    target = learner.target(begun(off), None)
    polished, _ = learner.polish(begun(off), 40)
    at = learner.target(polished, None).begin
    reached, _ = target.loss(at)
    best = minimize(
        target.loss, at, jac=True, method="SLSQP",
        bounds=np.column_stack([target.lower, target.upper]),
        options={"maxiter": 1000, "ftol": 1e-10},
    )  # fmt: skip
    assert best.success
    assert reached == pytest.approx(best.fun, abs=0.05)
    assert polished.kernels[0].factors[0].values[0] == pytest.approx(0.11, rel=0.01)


def test_hyperparameters_bend_the_scaled_loss_alike() -> None:
    """By finite differences; as they are learnt, periods bend it a hundred times as much."""
    learner = Learner(planted(0), SETTINGS, np.random.default_rng(0))
    state = replace(begun(0.0), kernels=TRUE, noise_variance=np.full(len(Z), 0.1))
    state, _ = learner.polish(state, 100)
    target = learner.target(state, None)
    at, step = target.begin, 1e-4
    free = np.flatnonzero((at > target.lower + 1e-6) & (at < target.upper - 1e-6))
    second = [
        (target.loss(at + step * one)[1] - target.loss(at - step * one)[1]) @ one / (2.0 * step)
        for one in np.eye(len(at))[free]
    ]
    plain = np.sqrt(second)
    scaled = plain / target.scale[free]
    assert plain.max() / np.median(plain) > 100.0
    assert scaled.max() / np.median(scaled) < 10.0
    assert np.median(scaled) / scaled.min() < 10.0


def test_every_hyperparameter_has_a_scale() -> None:
    """Change points and walks, too: positive numbers, one for each entry."""
    learner = Learner(planted(0), SETTINGS, np.random.default_rng(0))
    kernels = tuple(
        parse(text)
        for text in (
            "0.5 x IOU(lengthscale=0.1, start=-0.3) x PER(period=0.2, lengthscale=1)",
            "0.5 x SE(lengthscale=0.1) x UNTIL(at=0.4, width=0.02)",
            "0.3 x RW(start=-0.3)",
        )
    )
    target = learner.target(State(kernels, Z, np.full(len(Z), 0.5)), None)
    assert target.scale.shape == target.begin.shape
    assert np.all(np.isfinite(target.scale))
    assert np.all(target.scale > 0.0)
    value, gradient = target.scaled_loss(target.begin * target.scale)
    plain, slope = target.loss(target.begin)
    assert value == pytest.approx(plain, rel=1e-12)
    np.testing.assert_allclose(gradient * target.scale, slope, rtol=1e-9, atol=1e-9)

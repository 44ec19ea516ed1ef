"""Relational ABCD: the likelihood of series that share a kernel, its learning, and forecasts."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from walks import accuracy

from lkm_gpflow.comparators import LastValue
from lkm_gpflow.comparators.abcd import KernelFit, Terms, covariance
from lkm_gpflow.comparators.r_abcd import (
    RelationalABCD,
    RelationalFit,
    RelationalForecast,
    RelationalLearner,
    SemiRelational,
    Shares,
)
from lkm_gpflow.data.observations import Observations
from lkm_gpflow.fit.covariances import ProductComponents
from lkm_gpflow.fit.layout import Layout
from lkm_gpflow.gp.lags import LagGrid
from lkm_gpflow.gp.types import Floats
from lkm_gpflow.kernels.grammar import parse

PLANTED = (parse("LIN"), parse("PER x SE"))
KERNEL = (
    parse("1.5 x LIN(location=0.4)"),
    parse("0.7 x PER(period=0.11, lengthscale=1) x SE(lengthscale=0.8)"),
)

SCALES = np.array([0.5, 1.0, 2.0])


def observed(count: int = 20, gaps: bool = True) -> Observations:
    rng = np.random.default_rng(7)
    x = np.sort(np.concatenate([[0.0], rng.uniform(size=count - 2), [1.0]]))
    Y, mask = rng.normal(size=(3, count)), np.ones((3, count))
    if gaps:
        mask[0, [2, 3, 11]] = 0.0
        mask[2, 0] = 0.0
    return Observations(x, Y * mask, mask)


def own_of(num_components: int, seed: int = 0) -> Floats:
    """Scales of geometric mean one, noise and random mixtures of three series."""
    rng = np.random.default_rng(seed)
    mixtures = np.stack(
        [
            rng.uniform(0.05, 0.5, size=(3, num_components)),
            rng.uniform(0.5, 6.0, size=(3, num_components)),
            rng.uniform(0.1, 2.0, size=(3, num_components)),
        ],
        axis=1,
    )
    noise_variance = np.array([0.1, 0.3, 0.02])
    return np.log(np.concatenate([SCALES[:-1], noise_variance, mixtures.ravel()]))


def evaluate(likelihood: SemiRelational, kernel: Terms, values: Floats) -> tuple[float, Floats]:
    grid, layout = LagGrid(likelihood.x), Layout(kernel, num_series=0)
    components = ProductComponents(layout, grid, values[: layout.size])
    K = sum((each.matrix() for each in components.parts), start=np.zeros((len(grid.x),) * 2))
    value, gradients = likelihood(K, values[layout.size :])
    G, by_own = gradients()
    by_lag = grid.collect(G)
    pulled = components.pull_back([by_lag if c.is_stationary else G for c in components.parts])
    return value, np.concatenate([pulled, by_own])


def packed(kernel: Terms, own: Floats) -> Floats:
    return np.concatenate([Layout(kernel, num_series=0).pack(np.empty(0)), own])


def found_of(observations: Observations, kernel: Terms, own: Floats) -> RelationalFit:
    fit = KernelFit(kernel, own, 0.0, 0.0)
    return RelationalFit(observations, (fit,), fit)


# --- the likelihood -------------------------------------------------------------------------------


def own_covariance(mixture: Floats, x: Floats, x2: Floats) -> Floats:
    """A spectral mixture by the sum of its definition, term by term."""
    total = np.zeros((len(x), len(x2)))
    r = x[:, None] - x2[None, :]
    for w, f, s in mixture.T:
        total += w * np.exp(-2.0 * np.pi**2 * s**2 * r**2) * np.cos(2.0 * np.pi * f * r)
    return total


@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize("num_components", [0, 3])
def test_series_are_gpflow_models(gaps: bool, num_components: int) -> None:
    """The public view agrees with the fast likelihood and with the definition."""
    data, own = observed(gaps=gaps), own_of(num_components)
    K = covariance(KERNEL, data.x)
    loss, _ = SemiRelational(data, num_components)(K, own)
    found = found_of(data, KERNEL, own)
    models = [found.model_of(n) for n in range(3)]
    expected = sum(float(model.log_marginal_likelihood()) for model in models)
    assert -loss == pytest.approx(expected, rel=1e-9)
    for n, noise_variance in enumerate((0.1, 0.3, 0.02)):
        assert models[n].likelihood.variance.numpy() == pytest.approx(noise_variance)
        by_hand = SCALES[n] * K + own_covariance(found.shares.mixtures[n], data.x, data.x)
        np.testing.assert_allclose(found.kernel_of(n)(data.x[:, None]), by_hand, atol=1e-10)
        diagonal = found.kernel_of(n)(data.x[:, None], full_cov=False)
        np.testing.assert_allclose(diagonal, np.diag(by_hand), atol=1e-10)


@pytest.mark.parametrize("num_components", [0, 2])
@pytest.mark.parametrize("regular", [False, True])
def test_gradient(num_components: int, regular: bool) -> None:
    data = observed()
    if regular:
        data = replace(data, x=np.linspace(0.0, 1.0, 20))
    likelihood = SemiRelational(data, num_components)
    values = packed(KERNEL, own_of(num_components))
    value, gradient = evaluate(likelihood, KERNEL, values)
    assert len(values) == 6 + 2 + 3 + 9 * num_components
    for i in range(len(values)):
        step = 1e-5 * np.eye(len(values))[i]
        above, below = (evaluate(likelihood, KERNEL, values + s * step)[0] for s in (1, -1))
        assert gradient[i] == pytest.approx((above - below) / 2e-5, rel=1e-5, abs=1e-5)


# --- learning -------------------------------------------------------------------------------------


def learner_of(data: Observations, num_components: int) -> RelationalLearner:
    return RelationalLearner(data, num_components, 0, np.random.default_rng(0))


def test_bic_counts_by_hand() -> None:
    """PER 2, SE 1, LIN 1, two variances; 2 of 3 scales; 3 noises; 3 x 3 x 2 of mixtures."""
    data = observed()
    fit = learner_of(data, 2).run(KERNEL, own_of(2), 5)
    num_parameters = (2 + 1 + 1 + 2) + 2 + 3 + 18
    assert data.num_observed == 56
    log_likelihood = sum(
        float(found_of(data, fit.kernel, fit.own).model_of(n).log_marginal_likelihood())
        for n in range(3)
    )
    expected = -2.0 * log_likelihood + num_parameters * math.log(56)
    assert fit.bic == pytest.approx(expected, rel=1e-9)


def test_mixtures_explain_what_is_left() -> None:
    """A wave that one series has of its own is found where it is, and explained."""
    x = np.linspace(0.0, 1.0, 80)
    rng = np.random.default_rng(1)
    Y = np.sqrt([[1.0], [2.0], [0.7]]) * x + 0.1 * rng.normal(size=(3, 80))
    Y[1] += 0.6 * np.sin(2.0 * np.pi * 11.0 * x)
    data = Observations(x, Y, np.ones_like(Y))
    fit = learner_of(data, 0).run((parse("1 x LIN(location=0)"),), own_of(0), 50)
    joint = learner_of(data, 3).add_mixtures(fit)
    assert joint.log_likelihood > fit.log_likelihood + 50.0
    weight, frequency, _ = Shares.of(joint.own, 3).mixtures[1]
    assert frequency[np.argmax(weight)] == pytest.approx(11.0, abs=0.3)
    assert Shares.of(joint.own, 3).noise_variance[1] == pytest.approx(0.01, rel=0.5)


def planted(seed: int = 0, count: int = 110) -> pd.DataFrame:
    """Four series that share PER x SE + LIN by scale, with little of their own, and noise."""
    rng = np.random.default_rng(seed)
    x = np.arange(count) / 96.0
    K = covariance(KERNEL, x)
    columns = {}
    for name, scale in zip("abcd", (0.3, 1.0, 2.0, 1.5), strict=True):
        own = np.array([[0.01, 0.02], [3.0, 15.0], [0.5, 1.0]])
        V = scale * K + own_covariance(own, x, x) + 0.02 * np.eye(count)
        columns[name] = 10.0 * np.linalg.cholesky(V) @ rng.normal(size=count)
    frame = pd.DataFrame(columns)
    frame.iloc[30:34, 1] = np.nan
    return frame


@pytest.fixture(scope="module")
def found() -> RelationalForecast:
    return RelationalABCD(depth=3, restarts=0).fit(planted().iloc[:96], seed=0)


def test_planted_data_are_forecast(found: RelationalForecast) -> None:
    frame = planted()
    past, future = frame.iloc[:96], frame.iloc[96:]
    rmse, mnlp = accuracy(found, future)
    naive_rmse, naive_mnlp = accuracy(LastValue().fit(past, seed=0), future)
    assert rmse < 0.7 * naive_rmse
    assert mnlp < naive_mnlp - 0.3


def test_planted_structure_is_no_better(found: RelationalForecast) -> None:
    data = found.found.observations
    learner = RelationalLearner(data, 0, 4, np.random.default_rng(1))
    best = learner.compete([PLANTED], learner.noise_alone())
    assert found.found.path[-1].bic <= best.bic + 5.0
    assert "PER" in found.composite

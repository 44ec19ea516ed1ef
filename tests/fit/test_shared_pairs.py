"""Series that share covariances: the same numbers, whatever the route and the blocks."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import logsumexp
from scipy.stats import multivariate_normal

from lkm_gpflow.data.observations import Observations
from lkm_gpflow.fit import engine
from lkm_gpflow.fit import shared_pairs as sharing
from lkm_gpflow.fit.assignments import Pairs
from lkm_gpflow.fit.engine import Engine
from lkm_gpflow.fit.fits import FitSettings, State
from lkm_gpflow.fit.layout import Layout
from lkm_gpflow.fit.shared_pairs import SharedPairs
from lkm_gpflow.fit.training import Learner
from lkm_gpflow.forecast.by_model import to_model
from lkm_gpflow.gp import eigenbasis as basis
from lkm_gpflow.gp.eigenbasis import halves
from lkm_gpflow.gp.likelihoods import ScaledNoise
from lkm_gpflow.kernels.component import to_kernel
from lkm_gpflow.kernels.grammar import parse

Array = NDArray[np.float64]

PRODUCTS = [
    parse("0.5 x SE(lengthscale=0.1)"),
    parse("0.3 x PER(period=0.2, lengthscale=0.9) x SE(lengthscale=0.5)"),
    parse("0.2 x LIN(location=0.3)"),
]
N, D = 8, 12
TIMES = np.sort(np.random.default_rng(1).uniform(size=D))
NOISE = np.random.default_rng(2).uniform(0.05, 0.5, N)
STATE = State(tuple(PRODUCTS), np.zeros((N, 3)), NOISE)


def observations(*, gaps: bool) -> Observations:
    rng = np.random.default_rng(3)
    Y, mask = rng.normal(size=(N, D)), np.ones((N, D))
    if gaps:
        mask[:3, 4:6] = mask[3:5, 0] = 0.0
    return Observations(TIMES, Y * mask, mask)


def some_pairs() -> tuple[Pairs, Array]:
    """Most pairs of a series and a row, at least one a series, and weights."""
    rng = np.random.default_rng(4)
    pairs = Pairs.around(np.zeros((N, 3)), 3)
    keep = rng.uniform(size=len(pairs.series)) < 0.6
    keep[pairs.starts] = True
    return Pairs(pairs.series[keep], pairs.configurations[keep]), rng.normal(size=keep.sum())


def brute_force(data: Observations, noise: Array) -> Array:
    pairs, _ = some_pairs()
    C = np.array([to_kernel(one)(TIMES[:, None]).numpy() for one in PRODUCTS])
    densities = []
    for n, t in zip(pairs.series, pairs.configurations, strict=True):
        seen = data.mask[n] == 1.0
        V = np.tensordot(t, C, axes=1) + noise[n] * np.eye(D)
        densities.append(multivariate_normal(cov=V[np.ix_(seen, seen)]).logpdf(data.Y[n, seen]))
    return np.array(densities)


@pytest.fixture(params=[1, 2, 1000], ids="{} rows a block".format)
def always_shared(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sharing, "_WORTH_THREADS", 0 if request.param == 2 else np.inf)
    monkeypatch.setattr(sharing, "_FEWEST_SERIES", 0)
    monkeypatch.setattr(sharing, "_WORTH_SHARING", 0)
    monkeypatch.setattr(basis, "_BLOCK_BYTES", 8 * D * request.param)
    # Whatever would go the other way fails.
    monkeypatch.setattr(engine, "log_densities", None)
    monkeypatch.setattr(engine, "GaussianSeries", None)


@pytest.mark.usefixtures("always_shared")
@pytest.mark.parametrize("gaps", [False, True])
def test_log_densities_are_scipys(gaps: bool) -> None:
    data = observations(gaps=gaps)
    levels = np.array([NOISE, 3.0 * NOISE])
    found = Engine(data).log_densities(STATE, levels, some_pairs()[0])
    for densities, noise in zip(found, levels, strict=True):
        np.testing.assert_allclose(densities, brute_force(data, noise), rtol=1e-9)


@pytest.mark.usefixtures("always_shared")
@pytest.mark.parametrize("gaps", [False, True])
def test_the_objective_is_scipys_and_its_gradient_that_of_finite_differences(gaps: bool) -> None:
    data, layout = observations(gaps=gaps), Layout(PRODUCTS, N)
    pairs, weights = some_pairs()
    objective = Engine(data).objective(layout, pairs, weights)
    flat, step = layout.pack(NOISE), 1e-5
    value, gradient = objective(flat)
    terms = brute_force(data, NOISE) + weights
    expected = sum(logsumexp(terms[pairs.series == n]) for n in range(N))
    assert value == pytest.approx(expected, rel=1e-9)
    numeric = [
        (objective(flat + step * one)[0] - objective(flat - step * one)[0]) / (2.0 * step)
        for one in np.eye(len(flat))
    ]
    np.testing.assert_allclose(gradient, numeric, rtol=1e-5, atol=1e-6)
    assert np.abs(gradient).min() > 1e-4  # every entry is tested


@pytest.mark.parametrize("gaps", [False, True])
def test_both_routes_agree_on_halves(gaps: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stationary kernels at regular times; some gaps are symmetric, others are not."""
    stationary = [*PRODUCTS[:2], parse("0.2 x SE(lengthscale=0.02)")]
    data, layout = observations(gaps=gaps), Layout(stationary, N)
    if gaps:
        data.mask[5, [0, D - 1]] = 0.0
    data = Observations(np.linspace(0.0, 1.0, D), data.Y * data.mask, data.mask)
    flat = layout.pack(NOISE)
    by_cholesky = Engine(data, ScaledNoise()).objective(layout, *some_pairs())(flat)
    monkeypatch.setattr(sharing, "_FEWEST_SERIES", 0)
    monkeypatch.setattr(sharing, "_WORTH_SHARING", 0)
    asked = []
    monkeypatch.setattr(sharing, "halves", lambda C: asked.append(halves(C)) or asked[-1])
    shared = Engine(data, ScaledNoise()).objective(layout, *some_pairs())(flat)
    assert sorted({len(parts) for parts in asked}) == ([1, 2] if gaps else [2])
    assert shared[0] == pytest.approx(by_cholesky[0], rel=1e-9)
    np.testing.assert_allclose(shared[1], by_cholesky[1], rtol=1e-6, atol=1e-7)


def test_only_many_pairs_of_many_series_are_shared() -> None:
    x = np.linspace(0.0, 1.0, 5)

    def are_many(num_series: int, num_rows: int) -> bool:
        data = Observations(x, np.ones((num_series, 5)), np.ones((num_series, 5)))
        rows = np.arange(num_series) % num_rows
        configurations = (rows[:, None] >> np.arange(4) & 1).astype(np.float64)
        return SharedPairs(data, Pairs.of_rows(configurations)).are_many

    assert are_many(64, 8)
    assert not are_many(64, 9)  # seven pairs a covariance
    assert not are_many(63, 1)


@pytest.mark.parametrize("gaps", [False, True])
def test_the_bound_is_the_models(gaps: bool) -> None:
    """`LKM` with the enumerated posterior, and through it all 2^K configurations."""
    rng = np.random.default_rng(6)
    num_series = 80
    Y, mask = rng.normal(size=(num_series, D)), np.ones((num_series, D))
    if gaps:
        mask[:40, 4:6] = 0.0
    data = Observations(TIMES, Y * mask, mask)
    noise = rng.uniform(0.05, 0.5, num_series)
    state = State(tuple(PRODUCTS), np.zeros((num_series, len(PRODUCTS))), noise)
    found = Learner(data, FitSettings(), rng).finish(state, 0.0, rounds=0)
    model = to_model(found, data, FitSettings())
    assert float(model.elbo()) == pytest.approx(found.elbo, rel=1e-8)
    np.testing.assert_allclose(model.probabilities(), found.probabilities, atol=1e-6)
    assert float(model.bic()) == pytest.approx(found.bic, rel=1e-8)

"""The engine by LAPACK against plain NumPy, SciPy, and the model."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import logsumexp
from scipy.stats import multivariate_normal

from lkm_gpflow.data.observations import Observations
from lkm_gpflow.fit.assignments import Pairs
from lkm_gpflow.fit.engine import Engine, components, variances
from lkm_gpflow.fit.fits import State
from lkm_gpflow.fit.layout import Layout
from lkm_gpflow.kernels.component import to_kernel
from lkm_gpflow.kernels.grammar import Product, parse

Array = NDArray[np.float64]

PRODUCTS = [
    parse("0.8 x PER(period=0.31, lengthscale=0.9) x PER(period=0.11, lengthscale=2)"),
    parse("0.5 x LIN(location=0.3) x LIN(location=-0.2) x SE(lengthscale=0.6)"),
    parse("1.3 x RW(start=-0.1) x SE(lengthscale=0.8)"),
    parse("0.2 x C"),
    parse("0.1 x WN"),
]
NOISE = np.array([0.05, 0.2, 0.7])
TIMES = np.sort(np.random.default_rng(3).uniform(size=9))


@pytest.fixture(params=["irregular", "regular", "with holes"], autouse=True)
def times(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """All tests on each kind of grid; weekdays, say, have more lags than a regular one."""
    own = {
        "irregular": TIMES,
        "regular": np.linspace(0.0, 1.0, 9),
        "with holes": np.array([0.0, 1.0, 2.0, 4.0, 5.0, 6.0, 9.0, 10.0, 11.0]) / 11.0,
    }
    monkeypatch.setitem(globals(), "TIMES", own[request.param])


def observations(*, gaps: bool) -> Observations:
    rng = np.random.default_rng(4)
    Y, mask = rng.normal(size=(3, 9)), np.ones((3, 9))
    if gaps:
        mask[0, 2] = mask[1, [0, 8]] = mask[1, 5] = 0.0
    return Observations(TIMES, Y * mask, mask)


def numpy_components(products: list[Product]) -> Array:
    return np.array([to_kernel(one)(TIMES[:, None]).numpy() for one in products])


def scipy_log_density(data: Observations, n: int, covariance: Array) -> float:
    """Log density of the observed points of series n."""
    seen = data.mask[n] == 1.0
    return float(multivariate_normal.logpdf(data.Y[n, seen], cov=covariance[np.ix_(seen, seen)]))


def some_pairs() -> tuple[Pairs, Array]:
    """Different numbers of rows a series, and weights."""
    rng = np.random.default_rng(5)
    series = np.repeat(np.arange(3, dtype=np.int32), [4, 1, 7])
    configurations = np.array(list(product([0.0, 1.0], repeat=5)))
    return Pairs(series, configurations[rng.permutation(32)[:12]]), rng.normal(size=12)


def brute_force(data: Observations, products: list[Product], noise: Array) -> Array:
    """Log densities of all pairs, [12]."""
    pairs, _ = some_pairs()
    C = numpy_components(products)
    return np.array(
        [
            scipy_log_density(data, n, np.tensordot(t, C, axes=1) + noise[n] * np.eye(9))
            for n, t in zip(pairs.series, pairs.configurations, strict=True)
        ]
    )


# --- components and layouts ----------------------------------------------------------------------


def test_components_are_the_kernels() -> None:
    found = components(PRODUCTS, TIMES)
    np.testing.assert_allclose(found, numpy_components(PRODUCTS), rtol=1e-12, atol=1e-14)


def test_variances_are_diagonals() -> None:
    expected = np.array([np.diag(C) for C in numpy_components(PRODUCTS)])
    np.testing.assert_allclose(variances(PRODUCTS, TIMES), expected, rtol=1e-12)


def test_layout_round_trip() -> None:
    layout = Layout(PRODUCTS, num_series=3)
    flat = layout.pack(NOISE)
    # Factors stand in canonical order: PER PER, LIN LIN SE, RW SE.
    values = [0.11, 2.0, 0.31, 0.9, -0.2, 0.3, 0.6, -0.1, 0.8]
    is_plain = [4, 5, 7]  # locations and the start may be negative
    middle = np.array([v if i in is_plain else np.log(v) for i, v in enumerate(values)])
    expected = np.concatenate([np.log([0.8, 0.5, 1.3, 0.2, 0.1]), middle, np.log(NOISE)])
    np.testing.assert_allclose(flat, expected, rtol=1e-14)
    assert layout.size == len(flat) == 17
    assert np.flatnonzero(layout.is_fixed).tolist() == [5 + 7]

    products, noise = layout.unpack(flat)
    np.testing.assert_allclose(noise, NOISE, rtol=1e-14)
    for found, given in zip(products, PRODUCTS, strict=True):
        assert format(found, ".12g") == format(given, ".12g")
    again = Layout(products, num_series=3)
    np.testing.assert_allclose(again.pack(noise), flat, rtol=1e-13)


def test_layout_wants_all_numbers() -> None:
    with pytest.raises(ValueError, match="expected products with all their numbers"):
        Layout([parse("2 x SE")], 1).pack(np.ones(1))


# --- the objective -------------------------------------------------------------------------------


@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize("far", [0.0, 1e4])
def test_objective_is_scipys(gaps: bool, far: float) -> None:
    """Also where weights are so far apart that their exponentials overflow."""
    data, layout = observations(gaps=gaps), Layout(PRODUCTS, 3)
    pairs, weights = some_pairs()
    weights[[0, -1]] += far, -far
    value, gradient = Engine(data).objective(layout, pairs, weights)(layout.pack(NOISE))
    terms = brute_force(data, PRODUCTS, NOISE) + weights
    expected = sum(logsumexp(terms[pairs.series == n]) for n in range(3))
    assert value == pytest.approx(expected, rel=1e-10)
    assert np.all(np.isfinite(gradient))


@pytest.mark.parametrize("gaps", [False, True])
def test_gradient_is_that_of_finite_differences(gaps: bool) -> None:
    layout = Layout(PRODUCTS, 3)
    objective = Engine(observations(gaps=gaps)).objective(layout, *some_pairs())
    flat, step = layout.pack(NOISE), 1e-5
    _, gradient = objective(flat)
    numeric = [
        (objective(flat + step * one)[0] - objective(flat - step * one)[0]) / (2.0 * step)
        for one in np.eye(len(flat))
    ]
    np.testing.assert_allclose(gradient, numeric, rtol=1e-6, atol=1e-7)
    assert np.abs(gradient).min() > 1e-7  # every entry is tested


def test_an_indefinite_covariance_is_nan() -> None:
    layout = Layout([parse("1e8 x SE(lengthscale=100)")], 3)
    data = observations(gaps=False)
    objective = Engine(data).objective(layout, Pairs.of_rows(np.ones((3, 1))), np.zeros(3))
    value, _ = objective(layout.pack(np.full(3, 1e-30)))
    assert np.isnan(value)


# --- pairs and scans -----------------------------------------------------------------------------


@pytest.mark.parametrize("gaps", [False, True])
def test_pairs_by_brute_force(gaps: bool) -> None:
    data = observations(gaps=gaps)
    pairs, _ = some_pairs()
    levels = np.array([NOISE, 0.3 * NOISE])
    state = State(tuple(PRODUCTS), np.zeros((3, 5)), NOISE)
    found = Engine(data).log_densities(state, levels, pairs)
    for densities, noise in zip(found, levels, strict=True):
        np.testing.assert_allclose(densities, brute_force(data, PRODUCTS, noise), rtol=1e-10)


@pytest.mark.parametrize("gaps", [False, True])
def test_scan_by_brute_force(gaps: bool) -> None:
    data = observations(gaps=gaps)
    noise = np.array([NOISE, 0.3 * NOISE, [0.01, 1.0, 2.0], [0.5, 0.5, 0.5]])
    C = numpy_components(PRODUCTS)
    base = np.array([C[1], C[2] + C[3], np.zeros((9, 9))])
    candidates = PRODUCTS[:2]
    Z = np.array([[0.0, 1, 0, 0, 0], [0, 0, 1, 1, 0], [0, 0, 0, 0, 0]])
    found = Engine(data).entrance(State(tuple(PRODUCTS), Z, NOISE)).scan(candidates, noise)
    expected = [
        [
            [scipy_log_density(data, n, base[n] + C[m] + s[n] * np.eye(9)) for n in range(3)]
            for s in noise
        ]
        for m in range(2)
    ]
    assert found.shape == (2, 4, 3)
    np.testing.assert_allclose(found, expected, rtol=1e-10)

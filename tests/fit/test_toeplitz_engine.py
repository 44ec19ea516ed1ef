"""The engine of long regular tables against the one by LAPACK, which knows nothing of its form."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from lkm_gpflow.data.observations import Observations
from lkm_gpflow.fit.assignments import Pairs
from lkm_gpflow.fit.engine import Engine, components
from lkm_gpflow.fit.fits import FitSettings, State
from lkm_gpflow.fit.initialization import typical_step
from lkm_gpflow.fit.layout import Layout
from lkm_gpflow.fit.toeplitz_engine import ToeplitzEngine
from lkm_gpflow.fit.training import engine_for
from lkm_gpflow.gp import limits, toeplitz
from lkm_gpflow.gp.likelihoods import GAUSSIAN, ScaledNoise
from lkm_gpflow.gp.series import GaussianSeries
from lkm_gpflow.kernels.grammar import Product, parse

Array = NDArray[np.float64]

FACTORS = {
    "C": "C",
    "LIN": "LIN(location={location})",
    "SE": "SE(lengthscale={duration})",
    "PER": "PER(period={period}, lengthscale={ratio})",
    "RW": "RW(start=-0.33)",
    "IOU": "IOU(lengthscale={memory}, start=-0.4)",
    "OU": "OU(lengthscale={memory})",
    "WN": "WN",
    "UNTIL": "UNTIL(at=0.4, width={memory})",
    "FROM": "FROM(at=0.6, width={memory})",
}
STRUCTURES = [
    "C", "LIN", "SE", "PER", "RW", "IOU", "OU", "WN", "LIN x LIN", "SE x PER", "OU x PER",
    "PER x PER", "LIN x PER", "LIN x SE", "RW x PER", "RW x SE", "IOU x PER", "IOU x SE",
    "LIN x SE x PER", "UNTIL", "FROM x PER", "RW x UNTIL", "LIN x OU", "LIN x WN", "RW x OU",
]  # fmt: skip
ENGINES = (Engine, ToeplitzEngine)
WITHOUT_FORM = ("LIN x SE x PER", "RW x UNTIL", "LIN x OU", "LIN x WN", "RW x OU")


def log_uniform(low: float, high: float) -> st.SearchStrategy[float]:
    return st.floats(np.log(low), np.log(high)).map(lambda u: float(np.exp(u)))


@st.composite
def kernels(draw: st.DrawFn) -> Product:
    """A complete product with hyperparameters from all of their ranges."""
    values = {
        "location": st.floats(-1.0, 2.0),
        "duration": log_uniform(0.005, 20.0),
        "period": log_uniform(0.01, 0.6),
        "ratio": log_uniform(0.2, 20.0),
        "memory": log_uniform(0.0005, 20.0),
    }
    factors = [
        FACTORS[name].format(**{key: draw(value) for key, value in values.items()})
        for name in draw(st.sampled_from(STRUCTURES)).split(" x ")
    ]
    return parse(" x ".join([str(draw(log_uniform(0.01, 10.0))), *factors]))


def observations(D: int, N: int, gaps: float, seed: int) -> Observations:
    rng = np.random.default_rng(seed)
    mask = (rng.uniform(size=(N, D)) >= gaps) * 1.0
    Y = np.cumsum(rng.normal(size=(N, D)), axis=1)
    return Observations(np.linspace(0.0, 1.0, D), Y / Y.std() * mask, mask)


@settings(max_examples=60, deadline=None)
@given(
    structure=st.lists(kernels(), min_size=1, max_size=4),
    noise=log_uniform(1e-5, 1.0),
    gaps=st.sampled_from([0.0, 0.05]),
    D=st.sampled_from([150, 301]),
    seed=st.integers(0, 1000),
)
def test_objectives_and_densities_are_lapacks(
    structure: list[Product], noise: float, gaps: float, D: int, seed: int
) -> None:
    """Over random structures, of which some have not got the form."""
    rng = np.random.default_rng(seed)
    data, K = observations(D, 2, gaps, seed), len(structure)
    likelihood = GAUSSIAN if seed % 2 else ScaledNoise()
    dense, fast = Engine(data, likelihood), ToeplitzEngine(data, likelihood)
    layout, levels = Layout(structure, 2), noise * np.array([[1.0, 2.0], [0.5, 3.0]])
    pairs = Pairs(np.array([0, 0, 1], np.int32), rng.integers(0, 2, size=(3, K)).astype(float))
    flat, weights = layout.pack(levels[0]), rng.normal(size=3)
    value, gradient = dense.objective(layout, pairs, weights)(flat)
    found, slopes = fast.objective(layout, pairs, weights)(flat)
    if np.isfinite(value):
        assert found == pytest.approx(value, rel=1e-7, abs=1e-5)
        np.testing.assert_allclose(slopes, gradient, rtol=1e-5, atol=1e-5 * abs(gradient).max())
        state = State(tuple(structure), np.zeros((2, K)), levels[0])
        expected = dense.log_densities(state, levels, pairs)
        found = fast.log_densities(state, levels, pairs)
        np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-5)


@pytest.mark.parametrize("structure", STRUCTURES)
def test_every_structure_is_lapacks(structure: str) -> None:
    """At hyperparameters as they are learnt; all but a few have the form."""
    values = {"location": 0.3, "duration": 0.4, "period": 0.19, "ratio": 1.1, "memory": 0.05}
    factors = [FACTORS[name].format(**values) for name in structure.split(" x ")]
    layout, noise = Layout([parse(" x ".join(["0.7", *factors]))], 2), np.array([0.01, 0.3])
    data, pairs = observations(320, 2, 0.02, 1), Pairs.of_rows(np.ones((2, 1)))
    flat = layout.pack(noise)
    fast = ToeplitzEngine(data)
    has_form = fast.sums(layout.products).serve(np.ones((1, 1)))
    assert has_form == (structure not in WITHOUT_FORM)
    value, gradient = Engine(data).objective(layout, pairs, np.zeros(2))(flat)
    found, slopes = fast.objective(layout, pairs, np.zeros(2))(flat)
    assert found == pytest.approx(value, rel=1e-9)
    np.testing.assert_allclose(slopes, gradient, rtol=1e-6, atol=1e-7 * abs(gradient).max())


def test_entrances_are_lapacks() -> None:
    """Where what a series has or a candidate has not got the form, and where all have it."""
    data, noise = observations(300, 3, 0.03, 2), np.array([[0.1, 0.2, 0.3], [0.02, 0.04, 0.05]])
    held = [parse("1 x RW(start=-0.3)"), parse("1 x RW(start=-0.3) x UNTIL(at=0.4, width=0.03)")]
    Z = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]])
    candidates = [
        parse("1 x SE(lengthscale=0.05)"),
        parse("1 x LIN(location=0.1) x SE(lengthscale=0.002)"),
        parse("2 x LIN(location=0.3)"),
    ]
    dense, fast = (engine(data).entrance(State(tuple(held), Z, noise[0])) for engine in ENGINES)
    for levels in (noise, np.array([noise, 2.0 * noise, 3.0 * noise])):
        expected = dense.scan(candidates, levels)
        np.testing.assert_allclose(fast.scan(candidates, levels), expected, rtol=1e-9)
    pairs = Pairs.of_rows(np.zeros((3, 0)))
    alone = [
        engine(data).log_densities(State((), np.zeros((3, 0)), noise[0]), noise, pairs)
        for engine in ENGINES
    ]
    np.testing.assert_allclose(*alone, rtol=1e-12)
    kept, likely = fast.promising(candidates, noise, 2)
    others, expected = dense.promising(candidates, noise, 2)
    assert kept == others
    np.testing.assert_array_equal(likely, expected)


@pytest.mark.parametrize("gaps", [0.0, 0.05])
def test_predictions_are_lapacks(gaps: float) -> None:
    """At steps that go on, and elsewhere; with a row that has not got the form."""
    data, noise = observations(300, 2, gaps, 7), np.array([0.1, 0.02])
    structure = [
        parse("1 x IOU(lengthscale=0.1, start=-0.3)"),
        parse("1 x PER(period=0.11, lengthscale=1)"),
        parse("1 x LIN(location=0.1) x OU(lengthscale=0.01)"),
    ]
    for Z in (np.array([[1.0, 0.0, 0.0], [1.0, 1.0, 0.0]]), np.ones((2, 3))):
        for x in (1.0 + np.arange(1, 31) / 299.0, np.array([1.1, 1.5])):
            expected, found = (
                engine(data, ScaledNoise()).predict(State(tuple(structure), Z, noise), x)
                for engine in ENGINES
            )
            np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("full_cov", [False, True])
def test_moments_of_sums_are_conditionals(full_cov: bool) -> None:
    """Within the data, beyond them and where nothing was observed, by Gaussian conditioning."""
    data, noise = observations(300, 2, 0.03, 8), np.array([0.1, 0.02])
    structure = [
        parse("1 x RW(start=-0.3) x PER(period=0.4, lengthscale=3)"),
        parse("0.5 x LIN(location=0.2)"),
        parse("1 x SE(lengthscale=0.05)"),
    ]
    x = np.arange(0, 340, 3) / 299.0
    groups = np.array([[1.0, 1.0, 1.0], [0.0, 1.0, 0.0]])
    pairs = Pairs(np.array([0, 1, 1], np.int32), np.array([[1.0, 1, 0], [0, 1, 1], [1, 0, 1]]))
    engine, C = ToeplitzEngine(data, ScaledNoise()), components(structure, np.append(data.x, x))
    state = State(tuple(structure), np.zeros((2, 3)), noise)
    found = list(engine.moments(state, pairs, x, groups, full_cov=full_cov) or ())
    assert sorted((p, g) for p, g, _, _ in found) == [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0)]
    for p, g, mean, variance in found:
        n, row = pairs.series[p], pairs.configurations[p]
        seen, new = np.flatnonzero(data.mask[n]), np.arange(300, 300 + len(x))
        V = np.tensordot(row, C, axes=1)[np.ix_(seen, seen)] + noise[n] * np.eye(len(seen))
        series = GaussianSeries(V, data.Y[n, seen], ScaledNoise())
        own = np.tensordot(groups[g] * row, C, axes=1)
        prior = own[np.ix_(new, new)]
        expected = series.predict(own[np.ix_(seen, new)], prior if full_cov else np.diag(prior))
        np.testing.assert_allclose(mean, expected[0], atol=1e-7)
        np.testing.assert_allclose(variance, expected[1], atol=1e-7)
        scales = engine.scales(state, pairs)
        assert scales[p] == pytest.approx(series.scale)
    assert engine.moments(state, pairs, np.array([0.5001]), groups, full_cov=full_cov) is None


@pytest.mark.parametrize("D", [2, 3, 40, 130, 400])
def test_both_recursions_predict_alike(D: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Levinson's is not public in SciPy: where it is gone, nothing but time is lost."""
    assert toeplitz.levinson is not None
    h = np.arange(D) / D
    smooth = np.exp(-0.5 * np.square(h / np.array([[0.3], [0.02], [5.0]])))
    R = smooth + np.cos(9.0 * h) + 1e-5 * (h == 0.0)
    errors, partial = toeplitz.predictors(R)
    monkeypatch.setattr(toeplitz, "levinson", None)
    others, again = toeplitz.predictors(R)
    np.testing.assert_allclose(others, errors, atol=1e-9 * abs(errors).max())
    np.testing.assert_allclose(abs(again), abs(partial), atol=1e-9)


def test_too_many_columns_are_out_of_reach_on_long_tables() -> None:
    """Learning turns back there, and series without the component do not notice."""
    structure = [
        parse("1 x SE(lengthscale=0.1)"),
        parse("1 x RW(start=-0.3) x SE(lengthscale=0.01)"),
    ]
    data, pairs = observations(601, 2, 0.0, 6), Pairs.of_rows(np.array([[1.0, 0.0], [1.0, 1.0]]))
    engine, layout = ToeplitzEngine(data), Layout(structure, 2)
    noise = np.array([[0.1, 0.2]])
    state = State(tuple(structure), np.zeros((2, 2)), noise[0])
    [[first, second]] = engine.log_densities(state, noise, pairs)
    assert np.isfinite(first)
    assert np.isnan(second)
    assert np.isnan(engine.objective(layout, pairs, np.zeros(2))(layout.pack(noise[0]))[0])


def test_an_indefinite_covariance_is_nan() -> None:
    layout = Layout([parse("1e8 x SE(lengthscale=100)")], 2)
    objective = ToeplitzEngine(observations(300, 2, 0.0, 4)).objective(
        layout, Pairs.of_rows(np.ones((2, 1))), np.zeros(2)
    )
    assert np.isnan(objective(layout.pack(np.full(2, 1e-30)))[0])


def test_only_long_regular_tables_have_this_engine() -> None:
    long, short = observations(limits.LONG, 2, 0.0, 5), observations(limits.LONG - 1, 2, 0.0, 5)
    moved = long.x.copy()
    moved[7] += 0.01 * typical_step(long.x)
    irregular = Observations(moved, long.Y, long.mask)
    engines = [type(engine_for(data, FitSettings())) for data in (long, short, irregular)]
    assert engines == [ToeplitzEngine, Engine, Engine]

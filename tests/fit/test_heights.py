"""Heights that are integrated out, against quadrature; gradients, against differences."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import digamma, logsumexp
from scipy.stats import multivariate_normal, norm

from lkm_gpflow.data.observations import Observations
from lkm_gpflow.fit.assignments import Pairs
from lkm_gpflow.fit.engine import Objective, components, pair_log_densities
from lkm_gpflow.fit.fits import FitSettings, State
from lkm_gpflow.fit.heights import (
    HEIGHT_SD,
    SeriesEvidence,
    every_series,
    pair_evidence,
    would_be,
)
from lkm_gpflow.fit.layout import Layout
from lkm_gpflow.fit.learner import Learner
from lkm_gpflow.fit.scanning import scan
from lkm_gpflow.kernels.grammar import parse
from lkm_gpflow.search.ledger import fit_from_json, fit_to_json

Array = NDArray[np.float64]

PRODUCTS = [parse("0.8 x SE(lengthscale=0.1)"), parse("2 x RW(start=-0.05)"), parse("0.5 x C")]
TIMES = np.linspace(0.0, 1.0, 40)
NOISE = np.array([0.05, 0.2])
HEIGHTS = np.array([[3.0, 0.2, 1.0], [0.5, 2.0, 1.5]])
Z = np.array([[1.0, 1.0, 0.0], [1.0, 0.0, 1.0]])


def observations(*, gaps: bool = False) -> Observations:
    """Two series drawn with `HEIGHTS`."""
    rng = np.random.default_rng(1)
    C = components(PRODUCTS, TIMES)
    Y = np.array(
        [
            np.linalg.cholesky(np.tensordot(z * h, C, axes=1) + s * np.eye(40))
            @ rng.normal(size=40)
            for z, h, s in zip(Z, HEIGHTS, NOISE, strict=True)
        ]
    )
    mask = np.ones_like(Y)
    if gaps:
        mask[0, [3, 17]] = mask[1, 30:34] = 0.0
    return Observations(TIMES, Y * mask, mask)


def by_quadrature(data: Observations, n: int, row: Array) -> float:
    """Log of the integral of the density over heights of one or two components."""
    seen = np.flatnonzero(data.mask[n])
    C = components(PRODUCTS, TIMES)[:, seen][:, :, seen]
    on = np.flatnonzero(row)
    grid = np.linspace(-6.0, 6.0, 61)
    step = grid[1] - grid[0]
    terms = []
    for a in np.array(np.meshgrid(*[grid] * len(on))).reshape(len(on), -1).T:
        V = np.tensordot(np.exp(a), C[on], axes=1) + NOISE[n] * np.eye(len(seen))
        density = multivariate_normal.logpdf(data.Y[n, seen], cov=V)
        terms.append(density + norm(0.0, HEIGHT_SD).logpdf(a).sum() + len(on) * np.log(step))
    return float(logsumexp(terms))


@pytest.mark.parametrize("gaps", [False, True])
def test_the_evidence_is_near_the_integral(gaps: bool) -> None:
    data = observations(gaps=gaps)
    evidence = every_series(components(PRODUCTS, TIMES), NOISE, data)
    for n, row in ((0, Z[0]), (1, Z[1]), (0, np.array([1.0, 0, 0])), (1, np.array([0.0, 1, 0]))):
        found, log_heights = evidence[n].laplace(row, np.zeros(3))
        assert found == pytest.approx(by_quadrature(data, n, row), abs=0.35)
        assert np.all(log_heights[row == 0.0] == 0.0)


def test_no_component_is_noise_alone() -> None:
    data = observations()
    evidence = every_series(components(PRODUCTS, TIMES), NOISE, data)
    found, _ = evidence[0].laplace(np.zeros(3), np.zeros(3))
    expected = multivariate_normal.logpdf(data.Y[0], cov=NOISE[0] * np.eye(40))
    assert found == pytest.approx(expected, rel=1e-10)


def test_the_mode_is_one() -> None:
    """No height near it is better, wherever the search for it began."""
    data = observations()
    own = every_series(components(PRODUCTS, TIMES), NOISE, data)[0]
    values = []
    for start in (np.zeros(3), np.log(HEIGHTS[0]), np.array([2.0, -2.0, 0.0])):
        value, at = own.laplace(Z[0], start)
        values.append(value)
        for k in (0, 1):
            for change in (-0.3, 0.3):
                moved = at.copy()
                moved[k] += change
                assert own.plain(Z[0], moved) < own.plain(Z[0], at)
    np.testing.assert_allclose(values, values[0], atol=0.05)


def test_an_indefinite_covariance_has_no_density() -> None:
    own = SeriesEvidence(-np.ones((1, 3, 3)), np.ones(3), 1e-9)
    assert own.plain(np.ones(1), np.zeros(1)) == -np.inf
    assert own.laplace(np.ones(1), np.zeros(1))[0] == -np.inf


def test_a_component_that_a_series_has_not_is_tried_with_a_few_heights() -> None:
    data = observations()
    evidence = every_series(components(PRODUCTS, TIMES), NOISE, data)
    before = np.zeros((2, 3))
    lacking = np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 1.0]])
    found = would_be(evidence, lacking, before)
    C = components(PRODUCTS, TIMES)
    densities = {}
    for h in (0.2, 1.0, 5.0):
        V = h * C[0] + C[1] + NOISE[0] * np.eye(40)
        prior = norm(0.0, HEIGHT_SD).logpdf(np.log(h))
        densities[h] = multivariate_normal.logpdf(data.Y[0], cov=V) + prior
    assert found[0, 0] == pytest.approx(np.log(max(densities, key=lambda h: densities[h])))
    assert np.all(found[lacking > 0.0] == 0.0)


def test_a_new_component_is_tried_with_a_few_heights_and_their_prior() -> None:
    """The prior that a height of one would have is taken off: it is the same for all candidates."""
    data, settings = observations(), FitSettings(amplitudes="component")
    learner = Learner(data, settings, np.random.default_rng(0))
    C = components(PRODUCTS, TIMES)
    base = np.stack([C[1], np.zeros_like(C[1])])
    found, log_heights = learner._scan(base, PRODUCTS[::2], NOISE[None])
    assert log_heights is not None
    for (m, k), n in itertools.product(enumerate((0, 2)), (0, 1)):
        densities = {}
        for h in (0.2, 1.0, 5.0):
            V = base[n] + h * C[k] + NOISE[n] * np.eye(40)
            prior = norm.logpdf(np.log(h), 0.0, HEIGHT_SD) - norm.logpdf(0.0, 0.0, HEIGHT_SD)
            densities[h] = multivariate_normal.logpdf(data.Y[n], cov=V) + prior
        best = max(densities, key=lambda h: densities[h])
        assert found[m, 0, n] == pytest.approx(densities[best])
        assert log_heights[m, n] == pytest.approx(np.log(best))


def test_rows_that_are_worth_nothing_keep_their_density() -> None:
    data = observations()
    evidence = every_series(components(PRODUCTS, TIMES), NOISE, data)
    pairs = Pairs.around(Z, 10)
    values, log_heights = pair_evidence(evidence, pairs, np.zeros((2, 3)))
    for p, (n, row) in enumerate(zip(pairs.series, pairs.configurations, strict=True)):
        full, at = evidence[n].laplace(row, np.zeros(3))
        if values[p] > values[pairs.series == n].max() - 3.0:
            assert values[p] == pytest.approx(full)
            np.testing.assert_allclose(log_heights[p], at)
        else:
            assert values[p] <= full + 3.0  # its Occam factor at most is missing


@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize("times", ["regular", "irregular"])
def test_gradient_is_that_of_finite_differences(gaps: bool, times: str) -> None:
    data = observations(gaps=gaps)
    if times == "irregular":
        uneven = np.sort(np.random.default_rng(2).uniform(size=40))
        data = replace(data, x=uneven)
    layout = Layout(PRODUCTS, 2)
    series = np.array([0, 0, 1], np.int32)
    rows = np.array([[1.0, 1, 0], [1, 1, 1], [1, 0, 1]])
    objective = Objective(layout, data, series, rows, np.array([0.0, -1.0, 0.0]), heights=True)
    flat = np.concatenate([layout.pack(NOISE), np.log(HEIGHTS).ravel()])
    value, gradient = objective(flat)
    step = 1e-5
    numeric = [
        (objective(flat + step * one)[0] - objective(flat - step * one)[0]) / (2.0 * step)
        for one in np.eye(len(flat))
    ]
    np.testing.assert_allclose(gradient, numeric, rtol=1e-5, atol=1e-6)
    assert gradient[layout.size + 4] == 0.0  # a height that nobody uses
    C = components(PRODUCTS, data.x)
    densities = []
    for n, row in zip(series, rows, strict=True):
        seen = np.flatnonzero(data.mask[n])
        V = (np.tensordot(row * HEIGHTS[n], C, axes=1) + NOISE[n] * np.eye(40))[np.ix_(seen, seen)]
        densities.append(multivariate_normal.logpdf(data.Y[n, seen], cov=V))
    expected = logsumexp([densities[0], densities[1] - 1.0]) + densities[2]
    assert value == pytest.approx(expected, rel=1e-9)


def test_hyperparameters_are_learnt_on_what_rows_are_worth_with_any_heights() -> None:
    """Not with the heights of the state alone: rows of more components have more to choose."""
    data, settings = observations(), FitSettings(amplitudes="component")
    learner = Learner(data, settings, np.random.default_rng(0))
    state = State(tuple(PRODUCTS[:2]), Z[:, :2], NOISE, log_heights=np.log(HEIGHTS[:, :2]))
    posterior = learner.posterior(state)
    target = learner.target(state, posterior)
    value, _ = target.objective(target.begin)
    # E[log pi] and E[log(1 - pi)] of Beta distributions; without a component nothing is likely.
    on, off = (digamma(posterior.tau) - digamma(posterior.tau.sum(axis=1, keepdims=True))).T
    rows = np.array([[1.0, 1, 0], [1, 0, 0], [0, 1, 0]])
    prior = rows[:, :2] @ on + (1.0 - rows[:, :2]) @ off
    evidence = np.array([[by_quadrature(data, n, row) for row in rows] for n in (0, 1)])
    expected = logsumexp(prior + evidence, axis=1).sum()
    assert value == pytest.approx(expected, abs=0.35)


def test_heights_of_a_fit_survive_json_and_selection() -> None:
    data = observations()
    settings = FitSettings(amplitudes="component", num_candidates=4, num_starts=1, num_reseeds=0)
    learner = Learner(data, settings, np.random.default_rng(0))
    start = State(tuple(PRODUCTS[:2]), Z[:, :2], NOISE)
    fit = learner.finish(learner.refine(start, rounds=1), 0.0, rounds=1)
    assert fit.heights is not None
    assert fit.heights.shape == fit.Z.shape
    assert not np.allclose(fit.heights[fit.Z > 0.0], 1.0)
    again = fit_from_json(fit_to_json(fit))
    assert again.heights is not None
    np.testing.assert_array_equal(again.heights, fit.heights)
    np.testing.assert_array_equal(again.loadings, fit.Z * fit.heights)
    np.testing.assert_array_equal(fit.of_series(np.array([1], np.int32)).heights, fit.heights[[1]])


# --- scales of series in the engine --------------------------------------------------------------


@pytest.mark.parametrize("gaps", [False, True])
def test_the_engine_integrates_scales_out(gaps: bool) -> None:
    """Value and gradient; many series, which share eigenbases, beside few, which do not."""
    few = observations(gaps=gaps)
    rows = np.array([[1.0, 1, 0], [0, 1, 1]])

    def log_density(n: int, row: Array, noise: float) -> float:
        seen = np.flatnonzero(few.mask[n])
        C = components(PRODUCTS, TIMES)[:, seen][:, :, seen]
        V = np.tensordot(row, C, axes=1) + noise * np.eye(len(seen))
        log_s = np.linspace(-8.0, 8.0, 1201)
        q, log_det = few.Y[n, seen] @ np.linalg.solve(V, few.Y[n, seen]), np.linalg.slogdet(V)[1]
        # InvGamma(2, 2), written out: 4 exp(-2 / s) / s^3, and ds = s d(log s).
        prior = np.log(4.0) - 2.0 * np.exp(-log_s) - 2.0 * log_s
        gaussian = -0.5 * (q * np.exp(-log_s) + log_det + len(seen) * (log_s + np.log(2 * np.pi)))
        return float(logsumexp(prior + gaussian) + np.log(log_s[1] - log_s[0]))

    expected = [log_density(n, row, NOISE[n]) for n, row in enumerate(rows)]
    C = components(PRODUCTS, TIMES)
    pairs = pair_log_densities(C, NOISE[None], few, np.arange(2, dtype=np.int32), rows, 4.0)
    np.testing.assert_allclose(pairs[0], expected, rtol=1e-8)
    base = np.tensordot(rows, C, axes=1) - C[1]
    scanned = scan(base, [PRODUCTS[1]], NOISE[None], few, 4.0)
    np.testing.assert_allclose(scanned[0, 0], expected, rtol=1e-8)

    layout = Layout(PRODUCTS, 2)
    objective = Objective(layout, few, np.arange(2, dtype=np.int32), rows, np.zeros(2), 4.0)
    flat, step = layout.pack(NOISE), 1e-5
    value, gradient = objective(flat)
    assert value == pytest.approx(sum(expected), rel=1e-8)
    numeric = [
        (objective(flat + step * one)[0] - objective(flat - step * one)[0]) / (2.0 * step)
        for one in np.eye(len(flat))
    ]
    np.testing.assert_allclose(gradient, numeric, rtol=1e-6, atol=1e-6)

    copies = 40
    many = Observations(TIMES, np.tile(few.Y, (copies, 1)), np.tile(few.mask, (copies, 1)))
    layout = Layout(PRODUCTS, 2 * copies)
    shared = Objective(
        layout, many, np.arange(2 * copies, dtype=np.int32), np.tile(rows, (copies, 1)),
        np.zeros(2 * copies), 4.0,
    )  # fmt: skip
    assert shared._shared.are_many
    value, d_many = shared(layout.pack(np.tile(NOISE, copies)))
    assert value == pytest.approx(copies * sum(expected), rel=1e-8)
    np.testing.assert_allclose(d_many[:-80], copies * gradient[:-2], rtol=1e-6, atol=1e-5)
    np.testing.assert_allclose(d_many[-80:], np.tile(gradient[-2:], copies), rtol=1e-6, atol=1e-7)


def test_too_many_series_for_heights_or_evidence_are_refused() -> None:
    many = Observations(TIMES, np.zeros((65, 40)), np.ones((65, 40)))
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match="at most 64 series with 'component'"):
        Learner(many, FitSettings(amplitudes="component"), rng)
    with pytest.raises(ValueError, match="at most 64 series with 'laplace'"):
        Learner(many, FitSettings(criterion="laplace"), rng)
    with pytest.raises(ValueError, match="priors=True"):
        Learner(observations(), FitSettings(criterion="laplace", priors=False), rng)

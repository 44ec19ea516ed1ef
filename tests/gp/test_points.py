"""Likelihoods of values: derivatives by differences, forecasts by draws, and GPflow's own."""

from __future__ import annotations

import gpflow
import numpy as np
import pytest

from lkm_gpflow.gp.likelihoods import (
    Binomial,
    FromGPflow,
    NegativeBinomial,
    PointLikelihood,
    Poisson,
    Share,
    Student,
)

EVERY: list[tuple[PointLikelihood, list[float]]] = [
    (Poisson(), [0.0, 3.0, 17.0]),
    (NegativeBinomial(0.3), [0.0, 3.0, 17.0]),
    (Binomial(), [0.0, 1.0, 1.0]),
    (Binomial(7), [0.0, 3.0, 7.0]),
    (Share(0.0, 100.0, 20.0), [0.0, 40.0, 99.0]),
    (FromGPflow(gpflow.likelihoods.Poisson(), whole=True), [0.0, 3.0, 17.0]),
    (FromGPflow(gpflow.likelihoods.StudentT(scale=0.5)), [0.0, 1.0, 2.0]),
]
MEAN, VARIANCE = np.array([-0.5, 0.4, 1.5]), np.array([0.3, 0.05, 0.7])


@pytest.mark.parametrize(("kind", "values"), [*EVERY, (Student(0.7), [0.0, 1.0, 9.0])])
def test_derivatives_of_expected_log_densities(kind: PointLikelihood, values: list[float]) -> None:
    y, step = np.array(values), 1e-4
    value, by_mean, by_variance = kind.expectations(y, MEAN, VARIANCE)
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    f = MEAN[:, None] + np.sqrt(VARIANCE)[:, None] * nodes
    expected = kind.log_prob(y[:, None], f) @ weights / weights.sum()
    np.testing.assert_allclose(value, expected, atol=2e-2 if "StudentT" in repr(kind) else 1e-4)
    up, down = (kind.expectations(y, MEAN + h, VARIANCE)[0] for h in (step, -step))
    np.testing.assert_allclose(by_mean, (up - down) / (2.0 * step), atol=1e-3)
    up, down = (kind.expectations(y, MEAN, VARIANCE + h)[0] for h in (step, -step))
    np.testing.assert_allclose(by_variance, (up - down) / (2.0 * step), atol=1e-3)


@pytest.mark.parametrize(("kind", "values"), EVERY)
def test_forecasts_are_those_of_draws(kind: PointLikelihood, values: list[float]) -> None:
    rng = np.random.default_rng(0)
    f = MEAN[:, None] + np.sqrt(VARIANCE)[:, None] * rng.normal(size=(3, 50_000))
    y = kind.draw(f, rng)
    mean, variance = kind.predictive_moments(MEAN, VARIANCE)
    np.testing.assert_allclose(mean, y.mean(axis=1), atol=0.02 * y.std())
    np.testing.assert_allclose(variance, y.var(axis=1), rtol=0.12)
    for q in (0.05, 0.5, 0.95):
        found = kind.predictive_quantile(q, MEAN, VARIANCE)
        step = 1.0 if kind.is_whole else 0.0
        for row, value in zip(y, found, strict=True):
            low, high = np.quantile(row, [q - 0.01, q + 0.01])
            assert low - 1e-9 <= value <= high + 1e-9
            assert np.mean(row <= value) >= q - 0.01
            assert np.mean(row <= value - step) <= q + 0.01
        below = np.mean(y <= np.array(values)[:, None], axis=1)
        told = kind.predictive_cdf(np.array(values), MEAN, VARIANCE)
        np.testing.assert_allclose(told, below, atol=0.01)


def test_a_likelihood_of_gpflow_is_as_ours() -> None:
    theirs, ours, y = EVERY[5][0], Poisson(), np.array([0.0, 3.0, 17.0])
    assert theirs.link == "log"
    for a, b in zip(
        theirs.expectations(y, MEAN, VARIANCE), ours.expectations(y, MEAN, VARIANCE), strict=True
    ):
        np.testing.assert_allclose(a, b, rtol=1e-6)
    for q in (0.05, 0.5, 0.95):
        quantiles = (kind.predictive_quantile(q, MEAN, VARIANCE) for kind in (theirs, ours))
        np.testing.assert_array_equal(*quantiles)


def test_values_without_a_density_are_refused() -> None:
    Poisson().check("a", np.array([0.0, np.nan, 3.0]))
    for kind, bad in ((Poisson(), 1.5), (Poisson(), -1.0), (Binomial(3), 4.0), (Share(), 1.2)):
        with pytest.raises(ValueError, match=r"series 'a': expected .* got"):
            kind.check("a", np.array([1.0, bad]))
    with pytest.raises(ValueError, match="trials"):
        Binomial(0)

"""A series given its covariance, against SciPy's densities, differences and plain conditioning."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import multivariate_normal, multivariate_t

from lkm_gpflow.gp.lags import matrix
from lkm_gpflow.gp.likelihoods import GaussianNoise, ScaledNoise, SeriesLikelihood
from lkm_gpflow.gp.series import GaussianSeries, log_densities, log_density

Array = NDArray[np.float64]
LIKELIHOODS = [GaussianNoise(), ScaledNoise(4.0), ScaledNoise(1.5)]


def covariance(D: int) -> Array:
    A = np.random.default_rng(1).normal(size=(D, D))
    V = matrix(D)
    V[...] = A @ A.T + np.eye(D)
    return V


def values(D: int) -> Array:
    return np.random.default_rng(2).normal(size=D)


def by_scipy(V: Array, y: Array, likelihood: SeriesLikelihood) -> float:
    if isinstance(likelihood, ScaledNoise):
        return float(multivariate_t(shape=V, df=likelihood.degrees).logpdf(y))
    return float(multivariate_normal(cov=V).logpdf(y))


@pytest.mark.parametrize("likelihood", LIKELIHOODS)
@pytest.mark.parametrize("D", [1, 7])
def test_log_densities_are_scipys(D: int, likelihood: SeriesLikelihood) -> None:
    y, expected = values(D), by_scipy(covariance(D), values(D), likelihood)
    assert log_density(covariance(D), y, likelihood) == pytest.approx(expected, rel=1e-12)
    V = np.array(covariance(D))
    own = GaussianSeries(V, y, likelihood)
    assert own.log_density == pytest.approx(expected, rel=1e-12)
    np.testing.assert_array_equal(V, covariance(D))  # not overwritten
    np.testing.assert_allclose(own.b, np.linalg.solve(V, y), rtol=1e-10)
    np.testing.assert_allclose(own.whiten(y) @ own.whiten(y), own.q, rtol=1e-10)
    np.testing.assert_allclose(own.L @ own.whiten(V), V, rtol=1e-10)


@pytest.mark.parametrize("likelihood", LIKELIHOODS)
@pytest.mark.parametrize("D", [1, 7])
def test_many_log_densities_are_scipys(D: int, likelihood: SeriesLikelihood) -> None:
    V, levels = [covariance(D), 3.0 * covariance(D)], [[0.1, 2.0], [0.5, 1e-3]]
    found = log_densities(iter(V), levels, values(D), likelihood)
    for C, own, row in zip(V, levels, found, strict=True):
        expected = [by_scipy(C + s * np.eye(D), values(D), likelihood) for s in own]
        np.testing.assert_allclose(row, expected, rtol=1e-12)


@pytest.mark.parametrize("likelihood", LIKELIHOODS)
def test_gradients_are_those_of_finite_differences(likelihood: SeriesLikelihood) -> None:
    """Along symmetric directions; in the memory of V."""
    D, step = 6, 1e-6
    V, y, memory = covariance(D), values(D), covariance(D)
    lower = GaussianSeries(memory, y, likelihood, overwrite=True).lower_gradient()
    assert np.shares_memory(lower, memory)
    assert not np.triu(lower, 1).any()
    rng = np.random.default_rng(3)
    for _ in range(5):
        A = rng.normal(size=(D, D))
        E = A + A.T
        up, down = (by_scipy(V + s * step * E, y, likelihood) for s in (1.0, -1.0))
        slope = (up - down) / (2.0 * step)
        assert -(lower * E).sum() == pytest.approx(slope, rel=1e-6)


def test_an_indefinite_matrix_is_nan() -> None:
    V = np.asfortranarray([[1.0, 2.0], [2.0, 1.0]])
    y = np.array([1.0, 3.0])
    with np.errstate(all="raise"):
        [[indefinite, definite]] = log_densities([V], [[0.0, 2.0]], y)
    assert np.isnan(indefinite)
    assert definite == pytest.approx(multivariate_normal(cov=V + 2.0 * np.eye(2)).logpdf(y))
    own = GaussianSeries(V, y)
    assert np.isnan(own.log_density)
    mean, variance = own.predict(np.ones((2, 3)), np.ones(3))
    assert np.isnan(mean).all()
    assert np.isnan(variance).all()
    assert np.isnan(log_density(V, y))


@pytest.mark.parametrize("likelihood", LIKELIHOODS[:2])
def test_predictions_are_ratios_of_densities(likelihood: SeriesLikelihood) -> None:
    """``p(new | y)`` by mean, variance and degrees is ``p(y, new) / p(y)``."""
    whole, D = covariance(7), 5
    y, new = values(7)[:D], values(7)[D:]
    own = GaussianSeries(whole[:D, :D], y, likelihood)
    mean, V = own.predict(whole[:D, D:], whole[D:, D:])
    _, variance = own.predict(whole[:D, D:], whole.diagonal()[D:])
    np.testing.assert_allclose(variance, V.diagonal(), rtol=1e-12)
    degrees = float(likelihood.predictive_degrees(D))
    if np.isinf(degrees):
        found = multivariate_normal(mean, V).logpdf(new)
    else:
        found = multivariate_t(mean, V * (degrees - 2.0) / degrees, degrees).logpdf(new)
    expected = by_scipy(whole, values(7), likelihood) - by_scipy(whole[:D, :D], y, likelihood)
    assert found == pytest.approx(expected, rel=1e-10)

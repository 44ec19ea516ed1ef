"""LAPACK in place and sums over lags, against SciPy's densities and plain sums."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import multivariate_normal, multivariate_t

from lkm_gpflow.gp import lapack as cholesky
from lkm_gpflow.gp.lags import LagGrid, lag_grid, matrix

GRIDS = {
    "regular": np.linspace(0.0, 1.0, 9),
    "irregular": np.sort(np.random.default_rng(0).uniform(size=9)),
    "with holes": np.array([0.0, 1.0, 2.0, 4.0, 5.0, 6.0, 9.0, 10.0, 11.0]) / 11.0,
    "one point": np.zeros(1),
}


def covariance(D: int) -> np.ndarray:
    A = np.random.default_rng(1).normal(size=(D, D))
    V = matrix(D)
    V[...] = A @ A.T + np.eye(D)
    return V


@pytest.mark.parametrize("D", [1, 7])
def test_log_densities_are_scipys(D: int) -> None:
    y = np.random.default_rng(2).normal(size=D)
    expected = multivariate_normal(cov=covariance(D)).logpdf(y)
    assert cholesky.log_density(covariance(D), y) == pytest.approx(expected, rel=1e-12)
    value, b = cholesky.factorise(covariance(D), y)
    assert value == pytest.approx(expected, rel=1e-12)
    np.testing.assert_allclose(b, np.linalg.solve(covariance(D), y), rtol=1e-10)


@pytest.mark.parametrize("D", [1, 7])
def test_many_log_densities_are_scipys(D: int) -> None:
    """Of a Gaussian, and of a Student-t with four degrees of freedom; levels differ by matrix."""
    y = np.random.default_rng(2).normal(size=D)
    V, levels = [covariance(D), 3.0 * covariance(D)], [[0.1, 2.0], [0.5, 1e-3]]
    whole = [[C + s * np.eye(D) for s in own] for C, own in zip(V, levels, strict=True)]
    found = cholesky.log_densities(V, levels, y)
    expected = [[multivariate_normal(cov=C).logpdf(y) for C in own] for own in whole]
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    found = cholesky.log_densities(iter(V), levels, y, 4.0)
    expected = [[multivariate_t(shape=C, df=4.0).logpdf(y) for C in own] for own in whole]
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_of_many_log_densities_that_of_an_indefinite_matrix_is_nan() -> None:
    V, y = np.array([[1.0, 2.0], [2.0, 1.0]]), np.array([1.0, 3.0])
    with np.errstate(all="raise"):
        [[indefinite, definite]] = cholesky.log_densities([V], [[0.0, 2.0]], y)
    assert np.isnan(indefinite)
    expected = multivariate_normal(cov=V + 2.0 * np.eye(2)).logpdf(y)
    assert definite == pytest.approx(expected, rel=1e-12)


def test_the_gradient_is_that_of_finite_differences() -> None:
    """Along symmetric directions; in the memory of V."""
    D, step = 6, 1e-6
    y, V = np.random.default_rng(2).normal(size=D), covariance(D)
    memory = covariance(D)
    _, b = cholesky.factorise(memory, y)
    G = cholesky.gradient(memory, b)
    assert np.shares_memory(G, memory)
    assert not np.triu(G, 1).any()
    rng = np.random.default_rng(3)
    for _ in range(5):
        A = rng.normal(size=(D, D))
        E = A + A.T
        up, down = (multivariate_normal(cov=V + s * step * E).logpdf(y) for s in (1.0, -1.0))
        assert -(G * E).sum() == pytest.approx((up - down) / (2.0 * step), rel=1e-6)


def test_an_indefinite_matrix_is_nan() -> None:
    V = matrix(2)
    V[...] = [[1.0, 2.0], [2.0, 1.0]]
    assert np.isnan(cholesky.log_density(V.copy(order="F"), np.ones(2)))
    assert np.isnan(cholesky.factorise(V, np.ones(2))[0])


@pytest.mark.parametrize("name", list(GRIDS))
def test_by_lag_and_back(name: str) -> None:
    grid, rng = LagGrid(GRIDS[name]), np.random.default_rng(4)
    D = len(grid.x)
    distance = np.abs(np.subtract.outer(grid.x, grid.x))
    np.testing.assert_allclose(grid.spread(grid.lags), distance, atol=1e-12)
    by_lag = rng.normal(size=len(grid.lags))
    into = np.ones((D, D))
    grid.spread_into(by_lag, into, add=True)
    np.testing.assert_array_equal(into - 1.0, (grid.spread(by_lag) + 1.0) - 1.0)
    grid.spread_into(by_lag, into)
    np.testing.assert_array_equal(into, grid.spread(by_lag))
    lower = matrix(D)
    lower[...] = np.tril(rng.normal(size=(D, D)))
    sums = np.bincount(grid.lag_of_pair, lower.ravel(), len(grid.lags))
    np.testing.assert_allclose(grid.collect(lower), sums, atol=1e-12)
    np.testing.assert_allclose(grid.collect(np.array(lower)), sums, atol=1e-12)  # memory of others
    # The transpose of `spread`.
    assert sums @ by_lag == pytest.approx((lower * grid.spread(by_lag)).sum())


def test_walks_by_hand() -> None:
    grid = LagGrid(GRIDS["irregular"])
    for start in (-0.1, 0.3, 0.5, 0.7, 0.9, -0.1):
        expected = [[max(min(a, b) - start, 0.0) for b in grid.x] for a in grid.x]
        np.testing.assert_allclose(grid.walk(start), expected)


def test_grids_are_remembered() -> None:
    x = np.linspace(0.0, 1.0, 5)
    assert lag_grid(x) is lag_grid(x.copy())

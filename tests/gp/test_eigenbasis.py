"""Series in the eigenbasis of their covariance: against SciPy, whatever the blocks."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.linalg import block_diag
from scipy.stats import multivariate_normal, multivariate_t

from lkm_gpflow.gp import eigenbasis as module
from lkm_gpflow.gp.eigenbasis import Basis, halves
from lkm_gpflow.gp.likelihoods import GAUSSIAN, ScaledNoise

Array = NDArray[np.float64]

N, D = 7, 19
RNG = np.random.default_rng(0)
FACTOR = RNG.normal(size=(D, 12))
C = FACTOR @ FACTOR.T / 12.0  # some eigenvalues are zero
X = RNG.normal(size=(N, D)) * np.geomspace(0.1, 10.0, N)[:, None]
NOISE = np.geomspace(1e-6, 10.0, N)
DEGREES = pytest.mark.parametrize("degrees", [math.inf, 4.0], ids=["Gaussian", "Student-t"])


@pytest.fixture(params=[1, 3, 1000], autouse=True, ids="{} series a block".format)
def series_in_a_block(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_BLOCK_BYTES", 8 * D * request.param)


def basis(degrees: float, *covariances: Array) -> Basis:
    likelihood = GAUSSIAN if math.isinf(degrees) else ScaledNoise(degrees)
    return Basis(covariances or (C,), likelihood)


def by_scipy(degrees: float, noise: Array, covariance: Array = C) -> Array:
    return np.array(
        [
            multivariate_normal(cov=V).logpdf(x)
            if math.isinf(degrees)
            else multivariate_t(shape=V, df=degrees).logpdf(x)
            for x, V in zip(X, covariance + noise[:, None, None] * np.eye(D), strict=True)
        ]
    )


@DEGREES
def test_log_densities_are_scipys(degrees: float) -> None:
    levels = np.array([NOISE, 3.0 * NOISE])
    found = basis(degrees).log_densities(X, np.arange(N), levels)
    expected = np.array([by_scipy(degrees, noise) for noise in levels])
    np.testing.assert_allclose(found, expected, rtol=1e-8)
    some = np.array([5, 0, 3])
    np.testing.assert_allclose(
        basis(degrees).log_densities(X, some, levels[:, some]), expected[:, some], rtol=1e-8
    )


@pytest.mark.parametrize("num_points", [2, 3, 18, 19])
def test_halves_are_the_whole(num_points: int) -> None:
    """Of stationary kernels on a regular grid, of which one half has the middle point."""
    lags = np.abs(np.subtract.outer(np.arange(num_points), np.arange(num_points)))
    own = np.exp(-0.5 * np.square(lags / 3.0)) + 0.3 * np.exp(-lags / 2.0)
    parts = halves(own[None])
    assert [len(rows) for rows in parts] == [(num_points + 1) // 2, num_points // 2]
    Q = np.concatenate(parts)
    np.testing.assert_allclose(Q @ Q.T, np.eye(num_points), atol=1e-14)
    blocks = [rows @ own @ rows.T for rows in parts]
    np.testing.assert_allclose(Q @ own @ Q.T, block_diag(*blocks), atol=1e-14)
    x = X[:, :num_points]
    noise, rows = np.full(N, 0.1), np.arange(N)
    found = basis(4.0, *blocks).log_densities(x @ Q.T, rows, noise[None])
    expected = basis(4.0, own).log_densities(x, rows, noise[None])
    np.testing.assert_allclose(found, expected, rtol=1e-10)
    # The gradient is used on covariances of this kind alone.
    by_half, d_noise = basis(4.0, *blocks).gradients(x @ Q.T, rows, noise, np.ones(N))
    [by_whole], expected = basis(4.0, own).gradients(x, rows, noise, np.ones(N))
    back = sum(part.T @ one @ part for part, one in zip(parts, by_half, strict=True))
    np.testing.assert_allclose(back, 0.5 * (by_whole + by_whole[::-1, ::-1]), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(d_noise, expected, rtol=1e-9)


def test_what_time_has_a_direction_for_stays_whole() -> None:
    walk = np.minimum.outer(np.arange(5.0), np.arange(5.0))
    for own in (np.array([np.eye(5), walk]), np.ones((2, 1, 1))):
        [rows] = halves(own)
        np.testing.assert_array_equal(rows, np.eye(own.shape[-1]))


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_is_not_finite_has_no_density(value: float) -> None:
    broken = Basis([np.full((D, D), value)])
    assert np.isnan(broken.log_densities(X, np.arange(N), NOISE[None])).all()

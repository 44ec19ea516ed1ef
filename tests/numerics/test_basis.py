"""Series in the eigenbasis of their covariance: against SciPy, whatever the blocks."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import multivariate_normal, multivariate_t

from lkm_gpflow.numerics import basis as module
from lkm_gpflow.numerics.basis import Basis

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


def basis(degrees: float, covariance: Array = C) -> Basis:
    values, vectors = np.linalg.eigh(covariance)
    return Basis(np.maximum(values, 0.0), vectors, degrees)


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
    found = basis(degrees).log_densities(X, levels)
    expected = [by_scipy(degrees, noise) for noise in levels]
    np.testing.assert_allclose(found, expected, rtol=1e-8)


@DEGREES
def test_gradients_are_those_of_finite_differences(degrees: float) -> None:
    noise, step = np.geomspace(0.05, 10.0, N), 1e-5
    upstream = RNG.uniform(0.1, 2.0, N)
    d_covariance, d_noise = basis(degrees).gradients(X, noise, upstream)
    np.testing.assert_allclose(d_covariance, d_covariance.T, atol=1e-10)
    change = RNG.normal(size=(D, D))
    change += change.T
    up, down = (upstream @ by_scipy(degrees, noise, C + s * change) for s in (step, -step))
    assert np.sum(d_covariance * change) == pytest.approx((up - down) / (2.0 * step), rel=1e-6)
    up, down = (upstream * by_scipy(degrees, noise + s) for s in (step, -step))
    np.testing.assert_allclose(d_noise, (up - down) / (2.0 * step), rtol=1e-6, atol=1e-7)


def test_what_is_not_finite_has_no_density() -> None:
    broken = Basis(np.full(D, np.nan), np.eye(D))
    assert np.isnan(broken.log_densities(X, NOISE[None])).all()

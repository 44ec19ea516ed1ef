"""Log densities and their analytic gradients, against SciPy and automatic differentiation."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import tensorflow as tf
from numpy.typing import NDArray
from scipy.stats import multivariate_normal

from lkm_gpflow.gp.tensors import (
    check_positive_definite,
    eigen_log_density,
    gaussian_log_density,
    mask_covariance,
)
from lkm_gpflow.kernels.base import ZeroMeanPeriodic

Array = NDArray[np.float64]
D, T, N = 7, 3, 4


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def random_covariances(rng: np.random.Generator, *batch: int) -> Array:
    A = rng.normal(size=(*batch, D, D))
    return A @ np.swapaxes(A, -1, -2) / D + 0.3 * np.eye(D)


def random_mask(rng: np.random.Generator, *batch: int) -> Array:
    mask = (rng.random((*batch, D)) > 0.3).astype(float)
    mask[..., 0], mask[..., 1] = 1.0, 0.0
    return mask


def scipy_log_density(V: Array, x: Array, mask: Array | None) -> float:
    seen = np.arange(D) if mask is None else np.flatnonzero(mask)
    return float(multivariate_normal.logpdf(x[seen], cov=V[np.ix_(seen, seen)]))


def automatic_log_density(V: tf.Tensor, x: tf.Tensor, mask: Array | None) -> tf.Tensor:
    """The same number through `tf.linalg.cholesky`, to be differentiated automatically."""
    seen = np.ones(D) if mask is None else mask
    L = tf.linalg.cholesky(mask_covariance(V, tf.constant(seen)))
    rows = tf.broadcast_to(x * seen, tf.shape(V)[:-1])
    whitened = tf.linalg.triangular_solve(L, rows[..., None])[..., 0]
    log_terms = 2.0 * tf.math.log(tf.linalg.diag_part(L)) + seen * np.log(2.0 * np.pi)
    return -0.5 * tf.reduce_sum(tf.square(whitened) + log_terms, axis=-1)


def gradients(function: Callable[..., tf.Tensor], weights: Array, *at: Array) -> list[Array]:
    """Gradients of a weighted sum; those of matrices made symmetric, as only that part matters."""
    inputs = [tf.constant(value) for value in at]
    with tf.GradientTape() as tape:
        tape.watch(inputs)
        total = tf.reduce_sum(weights * function(*inputs))
    found = [gradient.numpy() for gradient in tape.gradient(total, inputs)]
    found[0] = 0.5 * (found[0] + np.swapaxes(found[0], -1, -2))
    return found


@pytest.mark.parametrize("masked", [False, True])
def test_density_is_scipys_on_the_observed_points(rng: np.random.Generator, masked: bool) -> None:
    V, x = random_covariances(rng, T, N), rng.normal(size=(N, D))
    mask = random_mask(rng, N) if masked else None
    found = gaussian_log_density(V, x, mask)
    for t, n in np.ndindex(T, N):
        expected = scipy_log_density(V[t, n], x[n], None if mask is None else mask[n])
        np.testing.assert_allclose(found[t, n], expected, rtol=1e-12)


@pytest.mark.parametrize("masked", [False, True])
def test_eigen_route_is_scipys_on_the_observed_points(
    rng: np.random.Generator, masked: bool
) -> None:
    C, x = random_covariances(rng, T), rng.normal(size=(N, D))
    noise, mask = rng.uniform(0.1, 2.0, size=N), random_mask(rng) if masked else None
    found = eigen_log_density(C, x, noise, mask)
    for t, n in np.ndindex(T, N):
        expected = scipy_log_density(C[t] + noise[n] * np.eye(D), x[n], mask)
        np.testing.assert_allclose(found[t, n], expected, rtol=1e-12)


@pytest.mark.parametrize("masked", [False, True])
def test_analytic_gradient_is_the_automatic_one(rng: np.random.Generator, masked: bool) -> None:
    V, x = random_covariances(rng, T, N), rng.normal(size=(N, D))
    mask, weights = random_mask(rng, N) if masked else None, rng.normal(size=(T, N))
    found = gradients(lambda V, x: gaussian_log_density(V, x, mask), weights, V, x)
    expected = gradients(lambda V, x: automatic_log_density(V, x, mask), weights, V, x)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-10)


@pytest.mark.parametrize("masked", [False, True])
def test_eigen_gradient_is_the_automatic_one(rng: np.random.Generator, masked: bool) -> None:
    C, x = random_covariances(rng, T), rng.normal(size=(N, D))
    noise, mask = rng.uniform(0.1, 2.0, size=N), random_mask(rng) if masked else None

    def automatic(C: tf.Tensor, x: tf.Tensor, noise: tf.Tensor) -> tf.Tensor:
        V = C[:, None] + noise[:, None, None] * tf.eye(D, dtype=C.dtype)
        return automatic_log_density(V, x, mask)

    weights = rng.normal(size=(T, N))
    found = gradients(lambda *at: eigen_log_density(*at, mask), weights, C, x, noise)
    expected = gradients(automatic, weights, C, x, noise)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-10)


def test_eigen_gradient_is_finite_where_eigenvalues_coincide(rng: np.random.Generator) -> None:
    found = gradients(
        eigen_log_density, np.ones((1, N)), np.eye(D)[None], rng.normal(size=(N, D)), np.ones(N)
    )
    assert all(np.isfinite(gradient).all() for gradient in found)


def test_indefinite_covariance_is_named() -> None:
    check_positive_definite(tf.constant([1.0, 2.0]), "anything")
    with pytest.raises(ValueError, match="covariance of PER is not positive definite"):
        check_positive_definite(tf.constant([1.0, np.nan]), "PER")


def test_eigen_route_on_a_period_of_the_grid() -> None:
    """Weekly patterns in daily data: exact pairs of eigenvalues, where tf.linalg.eigh can fail."""
    x, lengthscales = np.arange(70.0)[:, None], np.linspace(0.3, 3.0, 300)[:, None, None]
    noise, series = np.array([0.1, 0.5]), np.random.default_rng(0).normal(size=(2, 70))
    C = ZeroMeanPeriodic.covariance(x, x.T, tf.constant(np.full((1, 1, 1), 7.0)), lengthscales)
    found = eigen_log_density(C, series, noise).numpy()
    V = C.numpy()[:, None] + noise[:, None, None] * np.eye(70)  # [300, 2, 70, 70]
    rows = np.broadcast_to(series, V.shape[:-1])
    q = (rows * np.linalg.solve(V, rows[..., None])[..., 0]).sum(axis=-1)
    expected = -0.5 * (q + np.linalg.slogdet(V)[1] + 70 * np.log(2.0 * np.pi))
    np.testing.assert_allclose(found, expected, atol=1e-8)


def test_eigenvalues_of_what_is_not_finite_are_not_numbers() -> None:
    """As a Cholesky factor is, and only there: TensorFlow itself raises."""
    C = np.stack([covariance for covariance in np.diag([1.0, 2.0])[None].repeat(3, axis=0)])
    C[1, 0, 1] = C[1, 1, 0] = np.nan
    C[2, 0, 0] = np.inf
    variable = tf.Variable(C)
    with tf.GradientTape() as tape:
        value = eigen_log_density(variable, np.ones((1, 2)), np.array([0.5]))
    expected = -0.5 * (1.0 / 1.5 + 1.0 / 2.5 + np.log(1.5 * 2.5) + 2.0 * np.log(2.0 * np.pi))
    np.testing.assert_allclose(value[:, 0], [expected, np.nan, np.nan], rtol=1e-9)
    gradient = tape.gradient(value, variable).numpy()
    assert np.isfinite(gradient[0]).all()
    assert np.isnan(gradient[1:]).any(axis=(1, 2)).all()

"""Scales that are integrated out, against quadrature over them, Monte Carlo and differences."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
import tensorflow as tf
from numpy.typing import NDArray
from scipy.stats import invgamma, multivariate_normal

from lkm_gpflow.gp import lapack as cholesky
from lkm_gpflow.gp.eigenbasis import Basis
from lkm_gpflow.gp.tensors import (
    eigen_log_density,
    eigenbasis,
    gaussian_log_density,
    gradients_in_basis,
)

Array = NDArray[np.float64]
D, DEGREES = 7, 4.0


@pytest.fixture
def problem() -> tuple[Array, Array]:
    """A covariance without noise, and three series of rather different scales."""
    rng = np.random.default_rng(0)
    A = rng.normal(size=(D, D))
    return A @ A.T / D, rng.normal(size=(3, D)) * np.array([[0.2], [1.0], [6.0]])


def basis_of(C: Array, degrees: float) -> Basis:
    return Basis([C], degrees)


def by_quadrature(V: Array, y: Array, degrees: float) -> float:
    """Log of the integral over s of InvGamma(s; v/2, v/2) N(y; 0, s V)."""
    q, log_det = float(y @ np.linalg.solve(V, y)), float(np.linalg.slogdet(V)[1])
    half = mpmath.mpf(degrees) / 2

    def joint(log_s: mpmath.mpf) -> mpmath.mpf:
        s = mpmath.exp(log_s)
        prior = half**half / mpmath.gamma(half) * s ** (-half - 1) * mpmath.exp(-half / s)
        density = (2 * mpmath.pi * s) ** (-mpmath.mpf(len(y)) / 2) * mpmath.exp(-q / (2 * s))
        return prior * density * s  # ds = s d(log s)

    whole = mpmath.quad(joint, [-12, *np.arange(-4.0, 4.1, 0.5), 12])
    return float(mpmath.log(whole)) - 0.5 * log_det


@pytest.mark.parametrize("degrees", [1.5, DEGREES, 30.0])
def test_all_routes_are_the_integral_over_the_scale(
    problem: tuple[Array, Array], degrees: float
) -> None:
    C, Y = problem
    noise = np.array([0.1, 0.5, 0.3])
    covariances = [C + s * np.eye(D) for s in noise]
    expected = [by_quadrature(V, y, degrees) for V, y in zip(covariances, Y, strict=True)]
    by_lapack = [
        cholesky.log_density(np.asfortranarray(V), y, degrees)
        for V, y in zip(covariances, Y, strict=True)
    ]
    by_cholesky = gaussian_log_density(np.array(covariances), Y, degrees=degrees)
    by_eigen = eigen_log_density(C[None], Y, noise, degrees=degrees)[0]
    in_basis = basis_of(C, degrees).log_densities(Y, np.arange(3), noise[None])[0]
    for found in (by_lapack, by_cholesky, by_eigen, in_basis):
        np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_missing_points_do_not_count(problem: tuple[Array, Array]) -> None:
    C, Y = problem
    seen = np.array([1.0, 1, 0, 1, 0, 1, 1])
    places = np.flatnonzero(seen)
    noise = np.array([0.1, 0.5, 0.3])
    expected = [
        by_quadrature((C + s * np.eye(D))[np.ix_(places, places)], y[places], DEGREES)
        for s, y in zip(noise, Y, strict=True)
    ]
    V = C + noise[:, None, None] * np.eye(D)
    found = gaussian_log_density(V, Y, np.tile(seen, (3, 1)), DEGREES)
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    found = eigen_log_density(C[None], Y, noise, seen, DEGREES)[0]
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_a_monte_carlo_average_over_scales_agrees(problem: tuple[Array, Array]) -> None:
    C, Y = problem
    V = C + 0.5 * np.eye(D)
    scales = invgamma(0.5 * DEGREES, scale=0.5 * DEGREES).rvs(200_000, random_state=1)
    q = Y[1] @ np.linalg.solve(V, Y[1])
    at_one = multivariate_normal.logpdf(Y[1], cov=V) + 0.5 * q
    density = np.exp(at_one - 0.5 * q / scales - 0.5 * D * np.log(scales))
    found = cholesky.log_density(np.asfortranarray(V), Y[1], DEGREES)
    error = density.std() / math.sqrt(len(scales))
    assert math.exp(found) == pytest.approx(density.mean(), abs=4.0 * error)
    assert error < 0.01 * density.mean()


def test_gradients_are_those_of_finite_differences(problem: tuple[Array, Array]) -> None:
    C, Y = problem
    rng = np.random.default_rng(2)
    change = rng.normal(size=(D, D))
    change, step = change + change.T, 1e-6
    noise = np.array([0.1, 0.5, 0.3])

    def total(C: Array, noise: Array) -> float:
        return sum(
            by_quadrature(C + s * np.eye(D), y, DEGREES) for s, y in zip(noise, Y, strict=True)
        )

    by_C = (total(C + step * change, noise) - total(C - step * change, noise)) / (2.0 * step)
    by_noise = [
        (total(C, noise + step * one) - total(C, noise - step * one)) / (2.0 * step)
        for one in np.eye(3)
    ]
    # The engine's.
    d_C, d_noise = np.zeros((D, D)), []
    for y, s in zip(Y, noise, strict=True):
        V = np.asfortranarray(C + s * np.eye(D))
        _, b = cholesky.factorise(V, y, DEGREES)
        lower = -cholesky.gradient(V, b)
        d_C += np.tril(lower)
        d_noise.append(np.trace(lower))
    assert np.sum(d_C * change) == pytest.approx(by_C, rel=1e-5)
    np.testing.assert_allclose(d_noise, by_noise, rtol=1e-5)
    # The models'.
    for V, s in ((tf.constant(C), tf.constant(noise)),):
        with tf.GradientTape(persistent=True) as tape:
            tape.watch([V, s])
            dense = tf.reduce_sum(
                gaussian_log_density(V[None] + s[:, None, None] * np.eye(D), Y, degrees=DEGREES)
            )
            shared = tf.reduce_sum(eigen_log_density(V[None], Y, s, degrees=DEGREES))
        for value in (dense, shared):
            slope = tape.gradient(value, V).numpy()
            assert np.sum(slope * change) == pytest.approx(by_C, rel=1e-5)
            np.testing.assert_allclose(tape.gradient(value, s), by_noise, rtol=1e-5)
    # Minibatches', and many series'.
    basis = eigenbasis(C[None])
    inner, d_noise = gradients_in_basis(basis, Y, noise, np.ones((1, 3)), DEGREES)
    whole = (basis.vectors[0] @ inner[0] @ tf.transpose(basis.vectors[0])).numpy()
    assert np.sum(whole * change) == pytest.approx(by_C, rel=1e-5)
    np.testing.assert_allclose(d_noise, by_noise, rtol=1e-5)
    [found], d_noise = basis_of(C, DEGREES).gradients(Y, np.arange(3), noise, np.ones(3))
    assert np.sum(found * change) == pytest.approx(by_C, rel=1e-5)
    np.testing.assert_allclose(d_noise, by_noise, rtol=1e-5)


def test_infinite_degrees_are_the_gaussian(problem: tuple[Array, Array]) -> None:
    C, Y = problem
    V = C + 0.5 * np.eye(D)
    expected = multivariate_normal.logpdf(Y, cov=V)
    for degrees, tolerance in ((math.inf, 1e-12), (1e7, 1e-4)):
        found = gaussian_log_density(np.tile(V, (3, 1, 1)), Y, degrees=degrees)
        np.testing.assert_allclose(found, expected, rtol=tolerance)

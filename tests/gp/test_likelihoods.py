"""Scales that are integrated out, against quadrature over them, Monte Carlo and differences."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import mpmath
import numpy as np
import pytest
import tensorflow as tf
from numpy.typing import NDArray
from scipy.special import logsumexp, softmax
from scipy.stats import invgamma, kstest, multivariate_normal

from lkm_gpflow.gp.eigenbasis import Basis
from lkm_gpflow.gp.likelihoods import (
    GAUSSIAN,
    GaussianNoise,
    ScaledNoise,
    SeriesLikelihood,
    likelihood_of,
)
from lkm_gpflow.gp.series import GaussianSeries
from lkm_gpflow.gp.tensors import eigen_log_density, gaussian_log_density

Array = NDArray[np.float64]
D, SCALED = 7, ScaledNoise(4.0)


@pytest.fixture
def problem() -> tuple[Array, Array]:
    """A covariance without noise, and three series of rather different scales."""
    rng = np.random.default_rng(0)
    A = rng.normal(size=(D, D))
    return A @ A.T / D, rng.normal(size=(3, D)) * np.array([[0.2], [1.0], [6.0]])


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


@pytest.mark.parametrize("degrees", [1.5, 4.0, 30.0])
def test_all_routes_are_the_integral_over_the_scale(
    problem: tuple[Array, Array], degrees: float
) -> None:
    C, Y = problem
    noise = np.array([0.1, 0.5, 0.3])
    covariances = [C + s * np.eye(D) for s in noise]
    expected = [by_quadrature(V, y, degrees) for V, y in zip(covariances, Y, strict=True)]
    own = ScaledNoise(degrees)
    by_lapack = [GaussianSeries(V, y, own).log_density for V, y in zip(covariances, Y, strict=True)]
    by_cholesky = gaussian_log_density(np.array(covariances), Y, likelihood=own)
    by_eigen = eigen_log_density(C[None], Y, noise, likelihood=own)[0]
    in_basis = Basis([C], own).log_densities(Y, np.arange(3), noise[None])[0]
    for found in (by_lapack, by_cholesky, by_eigen, in_basis):
        np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_missing_points_do_not_count(problem: tuple[Array, Array]) -> None:
    C, Y = problem
    seen = np.array([1.0, 1, 0, 1, 0, 1, 1])
    places = np.flatnonzero(seen)
    noise = np.array([0.1, 0.5, 0.3])
    expected = [
        by_quadrature((C + s * np.eye(D))[np.ix_(places, places)], y[places], SCALED.degrees)
        for s, y in zip(noise, Y, strict=True)
    ]
    V = C + noise[:, None, None] * np.eye(D)
    found = gaussian_log_density(V, Y, np.tile(seen, (3, 1)), SCALED)
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    found = eigen_log_density(C[None], Y, noise, seen, SCALED)[0]
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_gradients_are_those_of_finite_differences(problem: tuple[Array, Array]) -> None:
    C, Y = problem
    rng = np.random.default_rng(2)
    change = rng.normal(size=(D, D))
    change, step = change + change.T, 1e-6
    noise = np.array([0.1, 0.5, 0.3])

    def total(C: Array, noise: Array) -> float:
        return sum(
            by_quadrature(C + s * np.eye(D), y, SCALED.degrees)
            for s, y in zip(noise, Y, strict=True)
        )

    by_C = (total(C + step * change, noise) - total(C - step * change, noise)) / (2.0 * step)
    by_noise = [
        (total(C, noise + step * one) - total(C, noise - step * one)) / (2.0 * step)
        for one in np.eye(3)
    ]
    # The engine's.
    d_C, d_noise = np.zeros((D, D)), []
    for y, s in zip(Y, noise, strict=True):
        lower = -GaussianSeries(C + s * np.eye(D), y, SCALED).lower_gradient()
        d_C += np.tril(lower)
        d_noise.append(np.trace(lower))
    assert np.sum(d_C * change) == pytest.approx(by_C, rel=1e-5)
    np.testing.assert_allclose(d_noise, by_noise, rtol=1e-5)
    # The models'.
    for V, s in ((tf.constant(C), tf.constant(noise)),):
        with tf.GradientTape(persistent=True) as tape:
            tape.watch([V, s])
            dense = tf.reduce_sum(
                gaussian_log_density(V[None] + s[:, None, None] * np.eye(D), Y, likelihood=SCALED)
            )
            shared = tf.reduce_sum(eigen_log_density(V[None], Y, s, likelihood=SCALED))
        for value in (dense, shared):
            slope = tape.gradient(value, V).numpy()
            assert np.sum(slope * change) == pytest.approx(by_C, rel=1e-5)
            np.testing.assert_allclose(tape.gradient(value, s), by_noise, rtol=1e-5)
    # Many series'.
    [found], d_noise = Basis([C], SCALED).gradients(Y, np.arange(3), noise, np.ones(3))
    assert np.sum(found * change) == pytest.approx(by_C, rel=1e-5)
    np.testing.assert_allclose(d_noise, by_noise, rtol=1e-5)


@dataclass(frozen=True)
class TwoScales(SeriesLikelihood):
    """A user's: a series has a scale of one or nine, as likely; written with NumPy alone."""

    def _log_joint(self, q: Array, num_observed: Array) -> Array:
        parts = [np.log(0.5) - 0.5 * (num_observed * np.log(s) + q / s) for s in (1.0, 9.0)]
        return np.stack(np.broadcast_arrays(*parts))

    def _mean(self, of_scale: Callable[[float], float], q: Array, num_observed: Array) -> Array:
        shares = softmax(self._log_joint(q, num_observed), axis=0)
        return of_scale(1.0) * shares[0] + of_scale(9.0) * shares[1]

    def gain(self, q: Array, num_observed: Array) -> Array:
        return logsumexp(self._log_joint(q, num_observed), axis=0) + 0.5 * q

    def weight(self, q: Array, num_observed: Array) -> Array:
        return self._mean(lambda s: 1.0 / s, q, num_observed)

    def predictive_scale(self, q: Array, num_observed: Array) -> Array:
        return self._mean(lambda s: s, q, num_observed)

    def predictive_degrees(self, num_observed: Array) -> Array:
        return np.inf + 0.0 * num_observed


def test_a_likelihood_of_ones_own(problem: tuple[Array, Array]) -> None:
    """A mixture of two Gaussians, in NumPy, eagerly, and in a graph; gradients by differences."""
    C, Y = problem
    own, noise = TwoScales(), np.array([0.1, 0.5, 0.3])
    V = C + noise[:, None, None] * np.eye(D)
    expected = [
        logsumexp([multivariate_normal.logpdf(y, cov=s * v) for s in (1.0, 9.0)]) - np.log(2.0)
        for y, v in zip(Y, V, strict=True)
    ]
    by_lapack = [GaussianSeries(v, y, own).log_density for v, y in zip(V, Y, strict=True)]
    np.testing.assert_allclose(by_lapack, expected, rtol=1e-10)

    def value_and_slope(V: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        with tf.GradientTape() as tape:
            tape.watch(V)
            value = gaussian_log_density(V, tf.constant(Y), likelihood=own)
        return value, tape.gradient(value, V)

    lower = [GaussianSeries(v, y, own).lower_gradient() for v, y in zip(V, Y, strict=True)]
    slopes = [-0.5 * (G + G.T) for G in lower]
    for run in (value_and_slope, tf.function(value_and_slope, autograph=False)):
        value, slope = run(tf.constant(V))
        np.testing.assert_allclose(value, expected, rtol=1e-10)
        np.testing.assert_allclose(slope, slopes, rtol=1e-8)


@pytest.mark.parametrize("own", [GaussianNoise(), SCALED, TwoScales()])
def test_the_weight_is_the_slope_of_the_gain(own: SeriesLikelihood) -> None:
    q, step = np.array([0.1, 4.0, 30.0]), 1e-5
    slope = (np.subtract(own.gain(q + step, 5), own.gain(q - step, 5))) / (2.0 * step)
    np.testing.assert_allclose(own.weight(q, 5), 1.0 - 2.0 * slope, rtol=1e-6)


def test_scales_are_drawn_from_their_posterior() -> None:
    """Inverse gamma with (v + D) / 2 and (v + q) / 2."""
    drawn = SCALED.draw_scales(3.0, 6, 50_000, np.random.default_rng(0))
    posterior = invgamma(0.5 * (4.0 + 6), scale=0.5 * (4.0 + 3.0))
    assert kstest(drawn, posterior.cdf).pvalue > 0.01
    assert np.all(GAUSSIAN.draw_scales(3.0, 6, 5, np.random.default_rng(0)) == 1.0)


def test_names_and_what_is_refused() -> None:
    assert likelihood_of("gaussian") == GaussianNoise()
    assert likelihood_of("scaled") == ScaledNoise() == ScaledNoise(4.0)
    assert likelihood_of(SCALED) is SCALED
    with pytest.raises(ValueError, match=r"likelihood: expected one of .*, got 'tall'"):
        likelihood_of("tall")
    with pytest.raises(ValueError, match="degrees: expected a positive finite number, got inf"):
        ScaledNoise(math.inf)

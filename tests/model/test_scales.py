"""A scale of each series in the model, against quadrature over them."""

from __future__ import annotations

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from numpy.typing import NDArray
from scipy.special import logsumexp
from scipy.stats import invgamma

from lkm_gpflow.model.lkm import LKM

Array = NDArray[np.float64]
DEGREES = 4.0
X = np.linspace(0.0, 1.0, 9)[:, None]
X_NEW = np.array([[1.1], [1.4]])
NOISE = np.array([0.1, 0.3])
Z = np.array([[1.0, 1.0], [0.0, 1.0]])


def kernels() -> list[gpflow.kernels.Kernel]:
    return [
        gpflow.kernels.SquaredExponential(variance=0.8, lengthscales=0.3),
        gpflow.kernels.Linear(variance=1.5),
    ]


def table() -> Array:
    rng = np.random.default_rng(3)
    Y = rng.normal(size=(9, 2)) * [0.4, 3.0]
    Y[4, 0] = Y[7, 1] = np.nan
    return Y


def model(likelihood: str, posterior: str = "enumerated") -> LKM:
    return LKM(
        (X, table()), kernels(), posterior=posterior, noise_variance=NOISE, likelihood=likelihood
    )


def whole_covariance(n: int, z: Array) -> Array:
    """Of the observed and the new values of a series whose scale is one, noise included."""
    every = np.concatenate([X, X_NEW])
    C = np.array([kernel(every).numpy() for kernel in kernels()])
    return np.tensordot(z, C, axes=1) + NOISE[n] * np.eye(len(every))


def over_scales(n: int, z: Array, extra: Array | None = None) -> tuple[Array, Array]:
    """A grid of scales, and the log of prior times density of a series at each."""
    y = table()[:, n]
    V = whole_covariance(n, z)
    places = np.flatnonzero(~np.isnan(y))
    values = y[places]
    if extra is not None:
        places = np.concatenate([places, [len(X)]])
        values = np.concatenate([values, extra])
    V = V[np.ix_(places, places)]
    log_s = np.linspace(-9.0, 9.0, 4001)
    prior = invgamma(0.5 * DEGREES, scale=0.5 * DEGREES).logpdf(np.exp(log_s)) + log_s
    q, D = values @ np.linalg.solve(V, values), len(values)
    log_determinant = np.linalg.slogdet(2.0 * np.pi * V)[1] + D * log_s
    density = -0.5 * (log_determinant + q / np.exp(log_s))
    return np.exp(log_s), prior + density + np.log(log_s[1] - log_s[0])


def test_the_likelihood_is_the_integral_over_scales() -> None:
    expected = [logsumexp(over_scales(n, Z[n])[1]) for n in range(2)]
    own = model("scaled")
    np.testing.assert_allclose(own.log_likelihood(Z), expected, rtol=1e-8)
    rows = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    by_row = own.configuration_log_likelihood(rows).numpy()
    for n in range(2):
        for t, row in enumerate(rows):
            assert by_row[n, t] == pytest.approx(logsumexp(over_scales(n, row)[1]), rel=1e-8)


def test_predictions_are_averages_over_scales() -> None:
    own = model("scaled")
    mean, variance = own.predict_y(X_NEW, Z=Z)
    f_mean, f_variance = own.predict_f(X_NEW, Z=Z)
    parts_mean, parts_variance = own.predict_components(X_NEW, Z=Z)
    np.testing.assert_allclose(tf.reduce_sum(parts_mean, axis=0), mean, rtol=1e-9)
    for n in range(2):
        scales, log_joint = over_scales(n, Z[n])
        expected_scale = np.exp(log_joint - logsumexp(log_joint)) @ scales
        seen = np.flatnonzero(~np.isnan(table()[:, n]))
        V = whole_covariance(n, Z[n])
        gain = V[9:, seen] @ np.linalg.inv(V[np.ix_(seen, seen)])
        conditional = V[9:, 9:] - gain @ V[seen, 9:]
        np.testing.assert_allclose(mean[:, n], gain @ table()[seen, n], rtol=1e-8)
        np.testing.assert_allclose(variance[:, n], expected_scale * np.diag(conditional), rtol=1e-6)
        without_noise = expected_scale * (np.diag(conditional) - NOISE[n])
        np.testing.assert_allclose(f_variance[:, n], without_noise, rtol=1e-6)
        assert float(own.predict_noise(Z)[n]) == pytest.approx(expected_scale * NOISE[n], rel=1e-6)
        line = np.array([0.0, 1.0])
        C = np.array([kernel(np.concatenate([X, X_NEW])).numpy() for kernel in kernels()])
        part = np.tensordot(line * Z[n], C, axes=1)
        known = part[9:, seen] @ np.linalg.solve(V[np.ix_(seen, seen)], part[seen, 9:])
        expected = expected_scale * np.diag(part[9:, 9:] - known)
        np.testing.assert_allclose(parts_variance[1, :, n], expected, rtol=1e-6)


def test_the_predictive_density_is_a_ratio_of_integrals() -> None:
    """Of the joint density of past and future to that of the past."""
    own = model("scaled")
    new = np.array([[0.7, -9.0], [0.0, 0.0]])
    found = own.predict_log_density((X_NEW, new), Z=Z)
    for n in range(2):
        joint = logsumexp(over_scales(n, Z[n], new[:1, n])[1])
        past = logsumexp(over_scales(n, Z[n])[1])
        assert float(found[0, n]) == pytest.approx(joint - past, rel=1e-7)


def test_scaling_a_series_moves_its_scale_and_nothing_else() -> None:
    """Beyond the reach of the prior: probabilities of Z do not know the unit of a series."""
    large = LKM(
        (X, 1e4 * table()), kernels(), posterior="enumerated", noise_variance=NOISE,
        likelihood="scaled",
    )  # fmt: skip
    larger = LKM(
        (X, 1e5 * table()), kernels(), posterior="enumerated", noise_variance=NOISE,
        likelihood="scaled",
    )  # fmt: skip
    np.testing.assert_allclose(large.probabilities(), larger.probabilities(), atol=1e-3)
    ratio = larger.predict_y(X_NEW)[1] / large.predict_y(X_NEW)[1]
    np.testing.assert_allclose(ratio, 100.0, rtol=1e-4)

"""Noise that is known of each value: densities, gradients, scans, sampling and prediction."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import multivariate_normal

from lkm_gpflow.data.observations import Observations
from lkm_gpflow.fit.assignments import Pairs
from lkm_gpflow.fit.engine import Engine, components
from lkm_gpflow.fit.fits import FitSettings, State
from lkm_gpflow.fit.layout import Layout
from lkm_gpflow.fit.training import fit
from lkm_gpflow.forecast.by_arrays import ByArrays
from lkm_gpflow.gp.likelihoods import GAUSSIAN
from lkm_gpflow.kernels.grammar import parse
from lkm_gpflow.sharing.states import SeriesDensity

Array = NDArray[np.float64]

D, N = 9, 3
TIMES = np.linspace(0.0, 1.0, D)
PRODUCTS = [parse("0.8 x SE(lengthscale=0.3)"), parse("0.5 x RW(start=-0.2)"), parse("0.2 x C")]
NOISE = np.array([0.05, 0.2, 0.7])
ROWS = Pairs(
    np.array([0, 0, 1, 2], np.int32), np.array([[1, 0, 1], [1, 1, 0], [0, 1, 0], [1, 1, 1.0]])
)


def data() -> Observations:
    rng = np.random.default_rng(4)
    mask = np.ones((N, D))
    mask[0, 2] = mask[1, [0, 8]] = 0.0
    return Observations(TIMES, rng.normal(size=(N, D)) * mask, mask, rng.gamma(0.5, size=(N, D)))


def density(own: Observations, n: int, V: Array) -> float:
    assert own.known is not None
    seen = own.mask[n] > 0.0
    V = V + np.diag(NOISE[n] + own.known[n])
    return float(multivariate_normal.logpdf(own.Y[n, seen], cov=V[np.ix_(seen, seen)]))


def test_densities_scans_and_gradients() -> None:
    own = data()
    engine, C = Engine(own), components(PRODUCTS, TIMES)
    state = State(tuple(PRODUCTS), ROWS.configurations[[0, 2, 3]], NOISE)
    V = np.tensordot(ROWS.configurations, C, axes=1)
    expected = np.array([density(own, n, v) for n, v in zip(ROWS.series, V, strict=True)])
    [found] = engine.log_densities(state, NOISE[None], ROWS)
    np.testing.assert_allclose(found, expected, rtol=1e-10)
    scanned = engine.entrance(state).scan(PRODUCTS[:1], NOISE[None])
    added = [density(own, n, v + C[0]) for n, v in enumerate(V[[0, 2, 3]])]
    np.testing.assert_allclose(scanned[0, 0], added, rtol=1e-10)
    layout, weights = Layout(PRODUCTS, N), np.array([-0.3, -0.9, 0.0, 0.0])
    objective = engine.objective(layout, ROWS, weights)
    flat = layout.pack(NOISE)
    value, gradient = objective(flat)
    joint = expected + weights
    assert value == pytest.approx(np.logaddexp(joint[0], joint[1]) + joint[2:].sum())
    for i, place in enumerate(np.eye(layout.size)):
        if not layout.is_fixed[i]:
            up, down = (objective(flat + h * place)[0] for h in (1e-5, -1e-5))
            assert gradient[i] == pytest.approx((up - down) / 2e-5, abs=1e-5)


def test_the_sampler_adds_it_to_the_learnt_noise() -> None:
    own, V = data(), np.tensordot(np.ones(3), components(PRODUCTS, TIMES), axes=1)
    assert own.known is not None
    told = SeriesDensity(own, GAUSSIAN)(np.array([V] * N), np.log(NOISE), np.arange(N))
    whole = np.array([V + np.diag(k + noise) for k, noise in zip(own.known, NOISE, strict=True)])
    other = SeriesDensity(replace(own, known=None), GAUSSIAN)
    expected = other(whole - 1e-9 * np.eye(D), np.full(N, np.log(1e-9)), np.arange(N))
    np.testing.assert_allclose(told, expected, rtol=1e-8)


def test_predictions_trust_values_of_little_noise() -> None:
    own = data()
    found = fit(own, PRODUCTS[:1], seed=0, settings=FitSettings(prune=False))
    Z = np.ones((N, 1))
    mean, variance = ByArrays(found, own, FitSettings()).sums(TIMES, np.ones((1, 1)), Z=Z)
    C = components(found.kernels, TIMES)[0]
    assert own.known is not None
    for n in range(N):
        seen = own.mask[n] > 0.0
        V = C + np.diag(found.noise_variance[n] + own.known[n])
        gain = np.linalg.solve(V[np.ix_(seen, seen)], C[seen]).T
        np.testing.assert_allclose(mean[n, 0], gain @ own.Y[n, seen], atol=1e-9)
        np.testing.assert_allclose(variance[n, 0], np.diag(C - gain @ C[seen]), atol=1e-9)


def test_no_noise_is_as_none() -> None:
    """To the last digit, all through a fit."""
    with_zeros = replace(data(), known=np.zeros((N, D)))
    plain = replace(with_zeros, known=None)
    a, b = (fit(each, PRODUCTS, seed=0) for each in (plain, with_zeros))
    assert a.kernels == b.kernels
    np.testing.assert_array_equal(a.noise_variance, b.noise_variance)


def test_who_treats_values_alike_refuses() -> None:
    with pytest.raises(ValueError, match="expected series with Gaussian noise"):
        _ = data().table

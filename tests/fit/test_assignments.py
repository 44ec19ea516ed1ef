"""Rows of Z against enumeration: neighbourhoods, the posterior over rows, the best rows."""

from __future__ import annotations

from itertools import product
from typing import ClassVar

import numpy as np
import pytest
import tensorflow as tf
from gpflow.kernels import Linear, Matern32, SquaredExponential
from numpy.typing import NDArray
from scipy.stats import multivariate_normal

from lkm_gpflow.fit.assignments import Pairs, RowPosterior, best_rows
from lkm_gpflow.model.ibp import FiniteIBP
from lkm_gpflow.model.lkm import LKM

Array = NDArray[np.float64]
SEEDS = range(3)


def all_rows(num_components: int) -> Array:
    return np.array(list(product([0.0, 1.0], repeat=num_components)))


def random_Z(num_series: int, num_components: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).integers(0, 2, (num_series, num_components)).astype(float)


# --- pairs ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("num_components", "up_to"), [(1, 1), (3, 3), (3, 10), (4, 4)])
def test_all_configurations_of_few_components(num_components: int, up_to: int) -> None:
    pairs = Pairs.around(random_Z(3, num_components), up_to)
    assert np.all(np.diff(pairs.series) >= 0)
    for n in range(3):
        own = pairs.configurations[pairs.series == n]
        assert sorted(map(tuple, own)) == sorted(map(tuple, all_rows(num_components)))


@pytest.mark.parametrize("num_components", [1, 2, 3, 6])
def test_neighbours_are_at_most_two_entries_away(num_components: int) -> None:
    Z = random_Z(4, num_components)
    pairs = Pairs.around(Z, enumerate_up_to=0)
    assert np.all(np.diff(pairs.series) >= 0)
    for n in range(4):
        own = pairs.configurations[pairs.series == n]
        near = [t for t in all_rows(num_components) if np.sum(t != Z[n]) <= 2]
        assert sorted(map(tuple, own)) == sorted(map(tuple, near))


# --- the posterior over rows ---------------------------------------------------------------------


def fixture(seed: int) -> tuple[LKM, Pairs, Array]:
    """A model of four series and three components, and SciPy's log densities of all pairs."""
    rng = np.random.default_rng(seed)
    X = np.sort(rng.uniform(0.0, 6.0, size=(10, 1)), axis=0)
    Y = np.sin(X + rng.uniform(0.0, 6.0, 4)) + rng.normal(scale=0.4, size=(10, 4))
    kernels = [SquaredExponential(1.2, 1.5), Linear(0.1), Matern32(0.4, 0.8)]
    noise = np.array([0.2, 0.3, 0.1, 0.5])
    model = LKM((X, Y), kernels, alpha=1.3, posterior="enumerated", noise_variance=noise)
    pairs = Pairs.around(np.zeros((4, 3)), 3)
    C = np.array([kernel(X).numpy() for kernel in kernels])
    log_densities = [
        multivariate_normal.logpdf(Y[:, n], cov=np.tensordot(t, C, axes=1) + noise[n] * np.eye(10))
        for n, t in zip(pairs.series, pairs.configurations, strict=True)
    ]
    return model, pairs, np.array(log_densities)


class Recorded(RowPosterior):
    """Remembers the bound of every step."""

    elbos: ClassVar[list[float]] = []

    def __init__(self, pairs: Pairs, log_joint: Array, tau: Array, elbo: float) -> None:
        super().__init__(pairs, log_joint, tau, elbo)
        self.elbos.append(elbo)


@pytest.mark.parametrize("seed", SEEDS)
def test_inference_is_the_models(seed: int) -> None:
    model, pairs, log_densities = fixture(seed)
    Z = random_Z(4, 3, seed)
    Recorded.elbos.clear()
    found = Recorded.infer(FiniteIBP(model.prior.alpha, 3), pairs, log_densities, Z)

    model.tau.assign(model.prior.best_tau(Z))
    step = tf.function(model.update_tau)
    for _ in range(100):
        step()
    assert found.elbo == pytest.approx(float(model.elbo()), rel=1e-7)
    np.testing.assert_allclose(found.marginals, model.probabilities(), atol=1e-3)
    np.testing.assert_allclose(found.tau, model.tau, rtol=1e-2)
    np.testing.assert_array_equal(found.most_probable, model.assignment())

    steps = np.diff(Recorded.elbos)
    assert len(steps) >= 2
    assert steps.min() >= -1e-10
    assert found.elbo == Recorded.elbos[-1]


def test_posterior_by_hand() -> None:
    """Unequal numbers of pairs; everything from the joint, term by term."""
    series = np.array([0, 0, 0, 1, 2, 2], np.int32)
    configurations = np.array([[0, 0], [1, 0], [1, 1], [0, 1], [1, 0], [0, 1]], np.float64)
    log_joint = np.log([0.2, 0.5, 0.3, 7.0, 2.0, 6.0]) - 800.0  # exp of it is zero
    posterior = RowPosterior(Pairs(series, configurations), log_joint, np.ones((2, 2)), 0.0)
    expected = [0.2, 0.5, 0.3, 1.0, 0.25, 0.75]
    np.testing.assert_allclose(posterior.responsibilities, expected, rtol=1e-12)
    np.testing.assert_allclose(posterior.marginals, [[0.8, 0.3], [0.0, 1.0], [0.25, 0.75]])
    np.testing.assert_array_equal(posterior.most_probable, [[1, 0], [0, 1], [0, 1]])
    active = posterior.active(0.29)
    assert active.series.tolist() == [0, 0, 1, 2]
    np.testing.assert_array_equal(active.configurations, configurations[[1, 2, 3, 5]])


# --- the best rows -------------------------------------------------------------------------------


@pytest.mark.parametrize("alpha", [0.2, 1.0, 6.0])
@pytest.mark.parametrize("seed", SEEDS)
def test_best_rows_by_brute_force(seed: int, alpha: float) -> None:
    rng = np.random.default_rng(seed)
    N, K = 5, 3
    prior, pairs = FiniteIBP(alpha, K), Pairs.around(np.zeros((N, K)), K)
    # Differences of the likelihood of the order of those of the prior: both matter.
    log_densities = rng.normal(scale=1.5, size=len(pairs.series))
    start = random_Z(N, K, seed)

    def log_joint(Z: Array) -> float:
        own = [
            log_densities[(pairs.series == n) & (pairs.configurations == Z[n]).all(axis=1)].item()
            for n in range(N)
        ]
        return sum(own) + float(prior.log_prob(Z))

    expected = start.copy()
    for n in range(N):
        tried = []
        for t in all_rows(K):
            expected[n] = t
            tried.append(log_joint(expected))
        expected[n] = all_rows(K)[int(np.argmax(tried))]

    before = start.copy()
    found = pairs.configurations[best_rows(start, prior, pairs, log_densities)]
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(start, before)
    assert log_joint(found) >= log_joint(start)


def test_best_rows_stay_within_the_pairs() -> None:
    Z = random_Z(4, 3)
    assert best_rows(Z, FiniteIBP(1.0, 3), Pairs.of_rows(Z), np.zeros(4)).tolist() == [0, 1, 2, 3]

"""How sure couplings are: curvature by brute force, draws, and planted correlations."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import multivariate_normal
from small import made_by_hand, small_table

import lkm_gpflow as lkm
from lkm_gpflow.coupling.learn_coupling import Coupling, coupling_of, first_step, independent
from lkm_gpflow.coupling.loadings import unbounded
from lkm_gpflow.coupling.uncertainty import CouplingPosterior, intervals, posterior


@pytest.fixture(scope="module")
def small() -> tuple[Coupling, lkm.Discovery]:
    """Three series of two patterns and noise; two series go together in the walk."""
    kernels = ["0.6 x RW(start=-1)", "0.4 x SE(lengthscale=60)"]
    found = made_by_hand(small_table(num_times=12), kernels, [[1, 0], [1, 1], [1, 1]])
    alone = independent(found.fit, found.table.observations)
    w = np.zeros_like(alone.loadings)
    walk = [str(kernel.structure) for kernel in alone.patterns.kernels].index("RW")
    w[walk, :, 0], w[walk, :2, 1] = [0.5, -0.6, 0.2], [0.3, 0.4]
    return replace(alone, loadings=w), found


def brute_force(coupling: Coupling, found: lkm.Discovery, flat: np.ndarray) -> float:
    """Log posterior of free loadings and log amplitudes, by a matrix of Kronecker products."""
    observations, patterns = found.table.observations, coupling.patterns
    free, has = coupling.loadings != 0.0, patterns.amplitudes > 0.0
    u = unbounded(coupling.loadings)
    u[free] = flat[: free.sum()]
    a = np.zeros_like(patterns.amplitudes)
    a[has] = np.exp(flat[free.sum() :])
    w = u / np.sqrt(1.0 + np.square(u).sum(axis=2, keepdims=True))
    V = 0.0
    for k, C in enumerate(patterns.covariances(observations.x)):
        R = w[k] @ w[k].T
        np.fill_diagonal(R, 1.0)
        V = V + np.kron(R * np.outer(a[:, k], a[:, k]), C)
    seen = np.flatnonzero(observations.mask.ravel())
    y = observations.Y.ravel()[seen]
    value = multivariate_normal(np.zeros(len(y)), V[np.ix_(seen, seen)]).logpdf(y)
    for own, before, there in zip(a, patterns.amplitudes, has, strict=True):
        h = 2.0 * np.log(own[there] / before[there])
        value += multivariate_normal(np.zeros(len(h)), 0.3**2 * np.eye(len(h)) + 1.5**2).logpdf(h)
    return float(value + np.log(1.0 - np.square(w).sum(axis=2)).sum())


def test_curvature_by_brute_force(small: tuple[Coupling, lkm.Discovery]) -> None:
    coupling, found = small
    free, a = coupling.loadings != 0.0, coupling.patterns.amplitudes
    at = np.concatenate([unbounded(coupling.loadings)[free], np.log(a[a > 0.0])])
    size, h = len(at), 1e-3
    eye = h * np.eye(size)

    def f(step: np.ndarray) -> float:
        return brute_force(coupling, found, at + step)

    H = -np.array([
        [f(p + q) - f(p - q) - f(q - p) + f(-p - q) for p in eye] for q in eye
    ]) / (4.0 * h * h)  # fmt: skip
    values, vectors = np.linalg.eigh(H)
    expected = (vectors / np.maximum(values, 1.0)) @ vectors.T
    told = posterior(coupling, found.table.observations).covariance
    np.testing.assert_allclose(told, expected, atol=0.01 * np.abs(expected).max())


def test_draws_have_the_covariance(small: tuple[Coupling, lkm.Discovery]) -> None:
    coupling, found = small
    known = posterior(coupling, found.table.observations)
    known = CouplingPosterior(coupling, 1e-4 * known.covariance)
    draws = list(known.draws(4000, seed=3))
    free, has = coupling.loadings != 0.0, coupling.patterns.amplitudes > 0.0
    flat = np.array([
        np.concatenate([unbounded(d.loadings)[free], np.log(d.patterns.amplitudes[has])])
        for d in draws
    ])  # fmt: skip
    scale = np.sqrt(known.covariance.diagonal())
    error = (np.cov(flat.T) - known.covariance) / np.outer(scale, scale)
    assert np.abs(error).max() < 0.1
    assert all(np.all(np.square(d.loadings).sum(axis=2) < 1.0) for d in draws)
    # Little uncertainty: the slope of Fisher's z tells its width.
    z = np.arctanh([d.correlations[0, 0, 1] for d in draws])
    assert known.sd_of_z()[0, 0, 1] == pytest.approx(z.std(), rel=0.06)


def test_intervals_of_a_sample_correlation() -> None:
    """Of values without memory an interval is that of their sample correlation (Fisher 1915)."""
    rng = np.random.default_rng(2)
    values = rng.normal(size=(400, 2)) @ np.array([[1.0, 0.8], [0.0, 0.6]])
    frame = pd.DataFrame(values, columns=["a", "b"])
    found = made_by_hand(frame, ["1 x SE(lengthscale=0.1)"], [[1], [1]], noise=2e-6)
    observations = found.table.observations
    alone = independent(found.fit, observations)
    w = np.zeros_like(alone.loadings)
    r = np.corrcoef(values.T)[0, 1]
    w[0, :, 0] = np.sqrt(r)
    known = posterior(replace(alone, loadings=w), observations)
    lower, upper = intervals(known, observations, 0.9)
    expected = np.tanh(np.arctanh(r) + 1.6449 / np.sqrt(400) * np.array([-1.0, 1.0]))
    np.testing.assert_allclose([lower[0, 0, 1], upper[0, 0, 1]], expected, atol=0.004)
    assert lower[0, 0, 0] == upper[0, 0, 0] == 1.0


def test_what_was_not_taken_up_is_open(small: tuple[Coupling, lkm.Discovery]) -> None:
    coupling, found = small
    observations, patterns = found.table.observations, coupling.patterns
    lower, upper = intervals(posterior(coupling, observations), observations, 0.9)
    step = first_step(patterns.covariances(observations.x), patterns.amplitudes, observations)
    apart = (2, 1, 2)  # the noise of the last two
    assert upper[apart] == pytest.approx(min(1.0, step.mean[apart] + 1.6449 * step.sd[apart]))
    smooth = [str(kernel.structure) for kernel in patterns.kernels].index("SE")
    assert np.isnan(lower[smooth, 0, 1])  # the first series has none of it
    with pytest.raises(ValueError, match=r"a level between 0 and 1, got 1\.0"):
        intervals(posterior(coupling, observations), observations, 1.0)


def planted(seed: int) -> tuple[np.ndarray, pd.DataFrame]:
    """Six walks whose steps have one factor, or of which two or none go together."""
    rng = np.random.default_rng((91, seed))
    w = rng.uniform(0.3, 0.95, 6) * rng.choice([-1.0, 1.0], 6)
    w[[6, 2, 0][seed % 3] :] = 0.0
    R = np.outer(w, w)
    np.fill_diagonal(R, 1.0)
    steps = rng.normal(size=(80, 6)) @ np.linalg.cholesky(R).T * np.exp(rng.normal(0.0, 0.5, 6))
    return R, pd.DataFrame(np.cumsum(steps, axis=0), columns=list("abcdef"))


@pytest.mark.slow
def test_intervals_hold_what_was_planted() -> None:
    inside = []
    for seed in range(9):
        R, frame = planted(seed)
        found = lkm.learn(frame, ["C", "RW"], restarts=1, progress=False)
        observations = found.table.observations
        coupling = coupling_of(found.fit, observations)
        walk = [str(kernel.structure) for kernel in coupling.patterns.kernels].index("RW")
        lower, upper = intervals(posterior(coupling, observations), observations, 0.9)
        pairs = np.triu_indices(6, 1)
        inside += list(((lower[walk] <= R) & (upper[walk] >= R))[pairs])
    assert 0.83 <= np.mean(inside) <= 0.97

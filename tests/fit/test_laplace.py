"""The Laplace approximation against second differences of GPflow's own likelihood."""

from __future__ import annotations

from dataclasses import replace

import gpflow
import numpy as np
import pandas as pd
import pytest

from lkm_gpflow.data.tables import Table
from lkm_gpflow.fit.evidence import curvature
from lkm_gpflow.fit.fits import FitSettings, State
from lkm_gpflow.fit.initialization import Ranges
from lkm_gpflow.fit.laplace import laplace
from lkm_gpflow.fit.layout import Layout
from lkm_gpflow.fit.learner import Learner
from lkm_gpflow.fit.training import fit
from lkm_gpflow.kernels.grammar import parse

SETTINGS = FitSettings(num_candidates=8, num_starts=1, num_reseeds=1)


def wave(seed: int = 0) -> pd.DataFrame:
    t = np.linspace(0.0, 1.0, 50)
    noise = np.random.default_rng(seed).normal(size=50)
    return pd.DataFrame({"a": np.sin(9.0 * t) + 0.3 * noise})


def test_covariance_is_the_inverse_curvature_of_gpflows_likelihood() -> None:
    observations = Table.of(wave()).observations
    found = fit(observations, [parse("SE")], seed=0, settings=SETTINGS)
    posterior = laplace(found, observations, SETTINGS)
    layout = Layout(found.kernels, 1)
    ranges = Ranges.of(layout, float(observations.x[1]))
    X, Y = observations.table

    def log_joint(flat: np.ndarray) -> float:
        variance, lengthscale, noise = np.exp(flat)
        kernel = gpflow.kernels.SquaredExponential(variance, lengthscale)
        model = gpflow.models.GPR((X, Y), kernel, noise_variance=noise)
        return float(model.log_marginal_likelihood()) + ranges.log_prior(flat)[0]

    h, P = 1e-3, len(posterior.mean)
    hessian = np.empty((P, P))
    for i in range(P):
        for j in range(P):
            a, b = h * np.eye(P)[i], h * np.eye(P)[j]
            up, down = log_joint(posterior.mean + a + b), log_joint(posterior.mean - a - b)
            mixed = log_joint(posterior.mean + a - b) + log_joint(posterior.mean - a + b)
            hessian[i, j] = (up + down - mixed) / (4.0 * h * h)
    np.testing.assert_allclose(posterior.covariance, np.linalg.inv(-hessian), rtol=0.02)


def test_what_is_not_learnt_or_at_a_bound_is_certain() -> None:
    walk = pd.DataFrame({"a": np.random.default_rng(0).normal(size=90).cumsum()})
    observations = Table.of(walk).observations
    found = fit(observations, [parse("RW")], seed=0, settings=SETTINGS)
    assert [str(kernel.structure) for kernel in found.kernels] == ["RW"]
    posterior = laplace(found, observations, SETTINGS)
    assert posterior.sd[1] == 0.0  # the start
    stuck = replace(found, noise_variance=np.array([1e-5]))
    assert laplace(stuck, observations, SETTINGS).sd[2] == 0.0


def test_an_open_direction_is_as_wide_as_its_prior() -> None:
    """A component of next to no variance says nothing of its lengthscale."""
    observations = Table.of(wave(3)).observations
    found = fit(observations, [parse("SE")], seed=0, settings=SETTINGS)
    faint = replace(
        found,
        kernels=(*found.kernels, parse("0.0001 x SE(lengthscale=0.2)")),
        Z=np.ones((1, 2)), probabilities=np.ones((1, 2)), tau=np.ones((2, 2)),
    )  # fmt: skip
    posterior = laplace(faint, observations, SETTINGS)
    assert posterior.sd[3] == pytest.approx(1.5, rel=0.1)
    assert posterior.sd[2] < 0.5


def test_where_learning_stopped_early_nothing_is_less_certain_than_before_the_data() -> None:
    """A component that ought to grow bends the log density upwards in its log variance."""
    observations = Table.of(wave(3)).observations
    found = fit(observations, [parse("SE")], seed=0, settings=SETTINGS)
    early = replace(
        found, kernels=(parse("0.01 x SE(lengthscale=0.2)"),), noise_variance=np.array([1.0])
    )
    learner = Learner(observations, SETTINGS, np.random.default_rng(0))
    state = State(early.kernels, early.Z, early.noise_variance)
    _, hessian = curvature(learner.target(state, learner.posterior(state)))
    assert np.linalg.eigvalsh(hessian).min() < 0.0
    posterior = laplace(early, observations, SETTINGS)
    assert np.all(posterior.sd > 0.0)
    assert np.all(posterior.sd**2 <= 1.001 / posterior.ranges.precision)

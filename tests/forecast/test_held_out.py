"""Held-out windows: where they lie, and their scores by another route."""

from __future__ import annotations

from dataclasses import replace

import gpflow
import numpy as np
import pandas as pd
import pytest
from scipy.special import softmax
from scipy.stats import t

import lkm_gpflow as lkm
from lkm_gpflow.data.observations import Observations
from lkm_gpflow.data.tables import Table
from lkm_gpflow.fit.engine import Engine, components
from lkm_gpflow.fit.fits import FitSettings, State
from lkm_gpflow.fit.training import fit
from lkm_gpflow.forecast.held_out import Window, held_out_score, windows
from lkm_gpflow.gp.likelihoods import ScaledNoise
from lkm_gpflow.kernels.grammar import parse

QUICK = FitSettings(num_candidates=8, num_starts=1, num_reseeds=1)


def test_windows_lie_in_the_second_half_and_end_with_the_data() -> None:
    found = windows(90)
    assert [w.end - w.begin for w in found] == [10] * 5
    assert found[0] == Window(80, 90) or found[-1] == Window(80, 90)
    assert min(w.begin for w in found) == 45


def one_walk(seed: int = 0, num_times: int = 60) -> pd.DataFrame:
    steps = np.random.default_rng(seed).normal(size=(num_times, 2))
    return pd.DataFrame(steps.cumsum(axis=0), columns=["a", "b"])


def test_score_is_the_density_of_a_forecast_from_the_past_alone() -> None:
    """A Student-t about what GPflow learns again from a table that ends where the window begins."""
    frame = one_walk().iloc[:, :1]
    whole = Table.of(frame)
    found = fit(whole.observations, [parse("RW")], seed=0, settings=replace(QUICK, priors=False))
    window = Window(45, 52)
    score = held_out_score(found, whole.observations, window, replace(QUICK, priors=False))
    past = Table.of(frame.iloc[:45])
    X, Y = past.observations.table
    kernel = lkm.kernels.to_kernel(parse(f"1 x RW(start={-59 / 3 / 44})"))
    model = gpflow.models.GPR((X, Y), kernel, noise_variance=0.01)
    gpflow.optimizers.Scipy().minimize(model.training_loss, model.trainable_variables)
    mean, variance = model.predict_y(past.scaled_times(frame.index[45:52])[:, None])
    y = frame.iloc[45:52].to_numpy()
    density = t.logpdf(
        y, 4.0, np.asarray(mean) * past.scale + past.location, np.sqrt(variance) * past.scale
    )
    assert score == pytest.approx(density.mean() + np.log(whole.scale[0]), abs=0.01)


def test_what_comes_after_a_window_does_not_matter() -> None:
    """But for the numbers that learning begins at, which are the same here."""
    frame = one_walk(1)
    observations = Table.of(frame).observations
    found = fit(observations, [parse("RW")], seed=0, settings=QUICK)
    changed = replace(observations, Y=observations.Y.copy())
    changed.Y[:, 50:] = 7.0
    window = Window(40, 50)
    one = held_out_score(found, observations, window, QUICK)
    assert held_out_score(found, changed, window, QUICK) == pytest.approx(one, abs=1e-9)


def test_a_series_that_is_constant_before_a_window_is_left_out() -> None:
    """The score is that of the others: by a standard deviation of zero nothing can be scaled."""
    frame, window = one_walk(2), Window(45, 52)
    frame.iloc[:45, 1] = 5.0
    observations = Table.of(frame).observations
    found = fit(observations, [parse("RW"), parse("C")], seed=0, settings=QUICK)
    first = np.array([0], np.int32)
    alone = held_out_score(found.of_series(first), observations.of_series(first), window, QUICK)
    assert np.isfinite(alone)
    assert held_out_score(found, observations, window, QUICK) == pytest.approx(alone)


def test_where_scales_are_not_known_the_past_tells_them() -> None:
    """The variance is that of a known scale times its mean given the past, summed up on a grid."""
    rng, x, size = np.random.default_rng(0), np.linspace(0.0, 1.2, 24), 20
    kernel, log_s = parse("0.7 x SE(lengthscale=0.2)"), np.linspace(-6.0, 8.0, 4001)
    V = components([kernel], x)[0] + 0.1 * np.eye(24)
    Y = 2.5 * np.linalg.cholesky(V[:size, :size]) @ rng.normal(size=size)
    past = Observations(x[:size], Y[None], np.ones((1, size)))
    state = State((kernel,), np.ones((1, 1)), np.array([0.1]))
    mean, variance = Engine(past, ScaledNoise(4.0)).predict(state, x[size:])
    A = np.linalg.solve(V[:size, :size], V[:size, size:])
    np.testing.assert_allclose(mean[0], A.T @ Y)
    # InvGamma(2, 2) times ds = s d(log s), and the density of the past.
    q = Y @ np.linalg.solve(V[:size, :size], Y)
    weights = softmax(-2.0 * log_s - 2.0 / np.exp(log_s) - 0.5 * (q / np.exp(log_s) + size * log_s))
    known = np.diag(V[size:, size:] - V[size:, :size] @ A)
    np.testing.assert_allclose(variance[0], weights @ np.exp(log_s) * known, rtol=1e-6)

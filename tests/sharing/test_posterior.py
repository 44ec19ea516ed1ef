"""Draws of a posterior: functions given data, how chains agree, files."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from small import agreed, small_table

import lkm_gpflow as lkm
from lkm_gpflow.data.observations import Observations
from lkm_gpflow.fit.engine import components
from lkm_gpflow.fit.fits import FitSettings
from lkm_gpflow.gp.likelihoods import GAUSSIAN, ScaledNoise
from lkm_gpflow.kernels.grammar import parse
from lkm_gpflow.sharing.posterior import (
    DrawnFunctions,
    PosteriorDraws,
    times_looked_at,
)
from lkm_gpflow.sharing.states import Draw

X = np.linspace(0.0, 1.0, 12)
KERNELS = tuple(map(parse, ("0.6 x SE(lengthscale=0.2)", "0.8 x LIN(location=0.4)")))


def observed(seed: int = 0) -> Observations:
    """Two series, one of them with gaps."""
    mask = np.ones((2, len(X)))
    mask[1, [3, 4]] = 0.0
    return Observations(X, np.random.default_rng(seed).normal(size=mask.shape) * mask, mask)


def drawn(Z: list[list[int]], log_likelihood: float = 0.0) -> Draw:
    return Draw(KERNELS, np.array(Z, bool), 0.3 * np.array(Z), np.log([0.1, 0.2]), log_likelihood)


def test_functions_are_those_of_the_posterior_with_a_free_level() -> None:
    """Their mean and covariance, by conditioning with a level of a huge variance."""
    data, draw, rng = observed(), drawn([[1, 1], [1, 1]]), np.random.default_rng(1)
    functions = DrawnFunctions(data, GAUSSIAN)
    D, seen = len(X), np.flatnonzero(data.mask[1])
    told = np.array([functions.drawn(draw, 1, np.arange(2), rng) for _ in range(6000)])
    H = np.eye(D) - 1.0 / D
    C = np.exp(0.3) * H @ components(KERNELS, X) @ H
    V = C.sum(axis=0) + 0.2 * np.eye(D) + 1e6
    gain = C[:, :, seen] @ np.linalg.inv(V[np.ix_(seen, seen)])
    mean = gain @ data.Y[1, seen]
    variance = np.array([np.diag(C[k] - gain[k] @ C[k][seen]) for k in range(2)])
    error = np.sqrt(variance / len(told))
    assert np.abs((told.mean(axis=0) - mean) / (error + 1e-6)).max() < 4.5
    np.testing.assert_allclose(told.var(axis=0), variance, rtol=0.12, atol=2e-4)


def test_chains_that_differ_have_a_large_r_hat() -> None:
    rng = np.random.default_rng(0)
    values = rng.normal(size=(2, 200))

    def r_hat(shift: float) -> float:
        chains = tuple(
            tuple(drawn([[1, 0], [0, 1]], value) for value in own + shift * c)
            for c, own in enumerate(values)
        )
        return PosteriorDraws(chains, np.arange(len(X)), 0.125).split_r_hat

    assert r_hat(0.0) == pytest.approx(1.0, abs=0.02)
    assert r_hat(3.0) > 1.5


def test_draws_are_kept_in_json() -> None:
    chains = ((drawn([[1, 0], [0, 1]], -3.0),), (replace(drawn([[0, 0], [0, 0]]), kernels=()),))
    empty = replace(chains[1][0], Z=np.zeros((2, 0), bool), log_heights=np.zeros((2, 0)))
    kept = PosteriorDraws((chains[0], (empty,)), np.arange(5), 0.125)
    again = PosteriorDraws.from_json(json.loads(json.dumps(kept.to_json())))
    assert again.to_json() == kept.to_json()
    assert again.draws[0].kernels == KERNELS
    assert again.draws[1].Z.shape == (2, 0)


@pytest.mark.parametrize(("N", "D", "seen"), [(6, 100, 100), (6, 5000, 141), (64, 5000, 60)])
def test_of_many_times_some_are_looked_at(N: int, D: int, seen: int) -> None:
    data = Observations(np.linspace(0, 1, D), np.zeros((N, D)), np.ones((N, D)))
    times = times_looked_at(data)
    np.testing.assert_array_equal(times, times_looked_at(data))
    assert len(times) == len(np.unique(times)) == seen
    assert (times[0], times[-1]) == (0, D - 1)


@pytest.mark.usefixtures("whole_chains")
def test_what_the_small_table_has_is_visible(tmp_path: Path) -> None:
    """Series a and b wave as sin(20 t), b and c rise; a fit that gives all both is put right."""
    wave, line = "0.5 x PER(period=85,lengthscale=1)", "2e-5 x LIN(location=130)"
    found = agreed(small_table(), [(1.0, [wave, line], [[1, 1]] * 3)])
    found = replace(
        found, settings=replace(found.settings, fit=FitSettings(likelihood=ScaledNoise()))
    )
    p = found.probabilities
    assert (p.loc[["b", "c"], "LIN"] > 0.9).all()
    assert p.loc["a", "LIN"] < 0.3
    assert p.loc["c", "PER"] < 0.3
    assert (p.loc[["a", "b"], "PER"] > 0.9).all()
    lower, upper = found.hyperparameters().loc[("PER", "PER period"), ["lower", "upper"]]
    assert lower < 273.0 * 2.0 * np.pi / 20.0 < upper < lower + 10.0
    assert (found.evidence.loc[["b", "c"], "LIN"] > 0.0).all()
    assert (found.memberships >= p).all().all()
    told = found.patterns()
    rising = told[told["kind"] == "trend"].xs("c", level="series").iloc[0]
    assert rising["verdict"] == "has"
    assert rising["share"] > 0.8
    assert rising["slope_lower"] > 0.0
    found.save(tmp_path / "small.lkm")
    assert lkm.load(tmp_path / "small.lkm").posterior.to_json() == found.posterior.to_json()
    some = found.select(["c", "a"])
    assert some.probabilities.equals(p.loc[["c", "a"]])
    pd.testing.assert_series_equal(some.patterns()["share"], told["share"][some.patterns().index])

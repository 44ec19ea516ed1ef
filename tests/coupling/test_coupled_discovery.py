"""Discoveries that are coupled, and what the same asks of those that are not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from small import made_by_hand, small_table

import lkm_gpflow as lkm
from lkm_gpflow.coupling.coupled_discovery import CoupledDiscovery, step_correlation
from lkm_gpflow.coupling.learn_coupling import Coupling
from lkm_gpflow.coupling.patterns import Patterns
from lkm_gpflow.forecast.forecasters import Member

KERNELS = ["0.6 x SE(lengthscale=60)", "0.4 x RW(start=-7)"]


def by_hand() -> lkm.Discovery:
    return made_by_hand(small_table(), KERNELS, [[1, 1], [1, 1], [1, 1]])


def coupled_by_hand(found: lkm.Discovery, correlation: float = 0.0) -> CoupledDiscovery:
    """A coupling that nobody learnt: the walks of all series have this correlation."""
    patterns = Patterns.of(found.fit, found.table.observations.x)
    w = np.zeros((3, 3, 1))
    walk = [str(kernel.structure) for kernel in patterns.kernels].index("RW")
    w[walk] = np.sqrt(correlation)
    coupling = Coupling(patterns, w, np.zeros(3), 0.0, 0.0, np.zeros(3, np.int32))
    return CoupledDiscovery(found.table, (Member(found.fit, 1.0),), (coupling,))


def test_without_correlations_forecasts_are_todays() -> None:
    found = by_hand()
    coupled = coupled_by_hand(found)
    for told, expected in [
        (coupled.forecast(5, 0.8), found.forecast(5, 0.8)),
        (coupled.fill(), found.fill()),
        (coupled.aggregate(5, {"a": 1, "c": -2}), found.aggregate(5, {"a": 1, "c": -2})),
        (coupled.quantiles(4), found.quantiles(4)),
    ]:
        assert list(told.index) == list(expected.index)
        np.testing.assert_allclose(told, expected, rtol=1e-7, atol=1e-9)
    assert "no strong evidence that knowing one series helps" in repr(coupled)
    assert coupled.pairs.empty
    told = coupled.narrowing(4)
    assert (told[["past", "now"]] == 1.0).all(axis=None)


def test_gaps_are_filled_from_the_other_series() -> None:
    alone, together = (coupled_by_hand(by_hand(), correlation) for correlation in (0.0, 0.98))
    assert (together.fill()["sd"] < 0.99 * alone.fill()["sd"]).all()
    assert together.pairs["correlation"].between(0.0, 0.98, inclusive="neither").all()


def test_what_if() -> None:
    coupled = coupled_by_hand(by_hand(), 0.9)
    plain = coupled.forecast(4)
    high = plain.loc["b", "mean"].iloc[-1] + 5.0
    told = coupled.forecast(4, given={"b": high})
    assert told.loc["b", "mean"].iloc[-1] == pytest.approx(high)
    assert told.loc["b", "sd"].iloc[-1] == 0.0
    assert (told.loc["a", "mean"] > plain.loc["a", "mean"]).all()
    assert told.loc["a", "sd"].iloc[-1] < plain.loc["a", "sd"].iloc[-1]
    draws = coupled.samples(4, 4000, seed=0, given={"b": high})
    error = draws.mean(axis=1) - told["mean"]
    assert (error.abs() <= 5.0 * told["sd"] / np.sqrt(4000) + 1e-6).all()
    sums = coupled.aggregate(4, {"a": 1.0, "b": -1.0}, given={"b": high})
    assert sums["mean"].iloc[-1] == pytest.approx(told.loc["a", "mean"].iloc[-1] - high)
    with pytest.raises(ValueError, match="one of the series 'a', 'b' and 'c', got 'oil'"):
        coupled.forecast(4, given={"oil": 1.0})
    with pytest.raises(ValueError, match="a horizon of 1 to 1000000 steps, got 0"):
        coupled.forecast(0)


def test_draws_go_together_as_they_should() -> None:
    coupled = coupled_by_hand(by_hand(), 0.9)
    (part,) = coupled.ahead(3).parts
    covariance = part.covariance
    draws = coupled.samples(3, 100_000, seed=2)
    sd = np.sqrt(covariance.diagonal())
    np.testing.assert_allclose(
        np.corrcoef(draws), covariance / np.outer(sd, sd), atol=5.0 / np.sqrt(100_000)
    )


def test_correlation_of_steps_by_draws() -> None:
    found = by_hand()
    coupled = coupled_by_hand(found, 0.8)
    x = found.table.observations.x
    patterns = coupled.couplings[0].patterns
    rng = np.random.default_rng(0)
    C = patterns.covariances(x)
    R, a = coupled.couplings[0].correlations, patterns.amplitudes.T
    steps = np.zeros((4000, 3, len(x) - 1))
    for k in range(3):
        roots = np.linalg.cholesky(C[k] + 1e-9 * np.eye(len(x)))
        paths = rng.normal(size=(4000, 3, len(x))) @ roots.T
        together = np.einsum("nm,smd->snd", np.linalg.cholesky(R[k]), paths)
        steps += np.diff(together * a[k][:, None], axis=2)
    expected = np.corrcoef(steps.transpose(1, 0, 2).reshape(3, -1))
    np.testing.assert_allclose(step_correlation(coupled.couplings[0], x), expected, atol=0.01)


@pytest.fixture(scope="module")
def learnt() -> tuple[pd.DataFrame, lkm.CoupledDiscovery]:
    """Two walks that go together and one that does not; the first is broken for a while."""
    rng = np.random.default_rng(5)
    steps = rng.normal(size=(100, 3))
    steps[:, 1] = 0.95 * steps[:, 0] + 0.3 * steps[:, 1]
    frame = pd.DataFrame(np.cumsum(steps, axis=0), columns=["gauge", "next", "other"])
    broken = frame.copy()
    broken.iloc[40:60, 0] = np.nan
    found = lkm.learn(broken, ["C", "RW"], restarts=1, progress=False)
    return frame, found.couple()


def test_learnt_coupling_fills_a_broken_gauge(
    learnt: tuple[pd.DataFrame, lkm.CoupledDiscovery],
) -> None:
    frame, coupled = learnt
    told = coupled.fill().loc["gauge"]
    truth = frame["gauge"].iloc[40:60]
    straight = np.interp(np.arange(40, 60), [39, 60], frame["gauge"].iloc[[39, 60]])
    assert np.square(told["mean"] - truth).mean() < 0.5 * np.square(straight - truth).mean()
    # The errors of one gap are one path, so their mean square is far from one as often as not.
    assert np.square((told["mean"] - truth) / told["sd"]).mean() < 6.0
    (pair,) = coupled.pairs.index
    assert set(pair) == {"gauge", "next"}
    assert "(correlation +0.9" in repr(coupled)


def test_a_fit_of_nothing_but_noise_forecasts_noise() -> None:
    frame = small_table()
    frame[:] = np.where(frame.isna(), np.nan, np.random.default_rng(0).normal(size=frame.shape))
    found = made_by_hand(frame, KERNELS, [[0, 0], [0, 0], [0, 0]], noise=1.0)
    coupled = found.couple(progress=False)
    told = coupled.forecast(1).droplevel("time")
    np.testing.assert_allclose(told["mean"], frame.mean(), rtol=1e-6)
    np.testing.assert_allclose(told["sd"], frame.std(ddof=0), rtol=0.05)
    assert list(coupled.fill().index) == list(found.fill().index)


def test_wrong_questions_are_refused() -> None:
    coupled = coupled_by_hand(by_hand())
    cells = pd.MultiIndex.from_product([["a", "d"], coupled.table.after(2)])
    with pytest.raises(ValueError, match=r"one of the series 'a', 'b' and 'c', got 'd'"):
        coupled.joint(cells)
    for weights, message in [
        ({"a": np.nan}, "a finite weight of 'a', got nan"),
        ({"a": 1.0, "b": np.inf}, "a finite weight of 'b', got inf"),
        ({}, "the weight of at least one series, got none"),
    ]:
        with pytest.raises(ValueError, match=message):
            coupled.aggregate(3, weights)


def test_saved_and_loaded(
    learnt: tuple[pd.DataFrame, lkm.CoupledDiscovery], tmp_path: Path
) -> None:
    coupled, path = learnt[1], tmp_path / "gauges.lkm"
    coupled.save(path)
    back = lkm.CoupledDiscovery.load(path)
    for told, expected in [
        (back.fill(), coupled.fill()),
        (back.forecast(3, given={"next": 1.0}), coupled.forecast(3, given={"next": 1.0})),
        (back.narrowing(), coupled.narrowing()),
    ]:
        pd.testing.assert_frame_equal(told, expected, check_index_type=False)
    assert repr(back) == repr(coupled)
    with pytest.raises(FileExistsError, match="force"):
        coupled.save(path)
    coupled.save(path, force=True)
    with pytest.raises(ValueError, match=r"expected a Discovery in .*, got a CoupledDiscovery"):
        lkm.load(path)
    by_hand().save(path, force=True)
    with pytest.raises(ValueError, match=r"expected a CoupledDiscovery in .*, got a Discovery"):
        lkm.CoupledDiscovery.load(path)

"""What knowing other series is worth: by closed forms, and where series are planted."""

from __future__ import annotations

import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from small import made_by_hand

import lkm_gpflow as lkm
from lkm_gpflow.coupling.coupled_discovery import ALL_OTHERS
from lkm_gpflow.coupling.delays import aligned, best_delays, later
from lkm_gpflow.coupling.learn_coupling import independent
from lkm_gpflow.data.observations import Observations
from lkm_gpflow.forecast.forecasters import Member

W = np.array([0.9, -0.6, 0.3])  # loadings: correlations are their products
R = np.outer(W, W) * ~np.eye(3, dtype=bool) + np.eye(3)


def by_hand(delays: tuple[int, ...] = (0, 0, 0)) -> lkm.CoupledDiscovery:
    """Three series without noise that forget, and whose innovations have the correlations R."""
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(40, 3)), columns=list("abc"))
    found = made_by_hand(frame, ["1 x OU(lengthscale=4)"], [[1], [1], [1]], noise=1e-6)
    alone = independent(found.fit, found.table.observations)
    amplitudes = np.array([[1.0, 1e-6]] * 3)
    w = np.zeros_like(alone.loadings)
    w[0, :, 0] = W
    coupling = replace(
        alone,
        patterns=replace(alone.patterns, amplitudes=amplitudes),
        loadings=w,
        delays=np.array(delays, np.int32),
    )
    return lkm.CoupledDiscovery(found.table, (Member(found.fit, 1.0),), (coupling,))


@pytest.mark.parametrize("horizon", [1, 3])
def test_narrowing_in_closed_form(horizon: int) -> None:
    """Given one series sqrt(1 - r^2) of a width is left, given all sqrt(1 / (R^-1)_nn)."""
    told = by_hand().narrowing(horizon)
    assert told["past"].to_numpy() == pytest.approx(1.0, abs=1e-4)
    for n, m in [(0, 1), (1, 0), (0, 2), (2, 1)]:
        pair = told.loc[("abc"[n], "abc"[m])]
        assert pair["now"] == pytest.approx(np.sqrt(1.0 - R[n, m] ** 2), abs=1e-4)
        assert pair["correlation"] == pytest.approx(R[n, m], abs=1e-4)
        assert pair["delay"] == 0.0
        rest = told.loc[("abc"[n], ALL_OTHERS), "now"]
        assert rest == pytest.approx(np.linalg.inv(R)[n, n] ** -0.5, abs=1e-4)


def test_narrowing_by_the_past_of_a_series_that_leads() -> None:
    """Series b follows by two rows: what a does later says nothing about two steps of it."""
    told = by_hand((0, 2, 0)).narrowing(2)
    follower, leader = told.loc[("b", "a")], told.loc[("a", "b")]
    left = np.sqrt(1.0 - R[0, 1] ** 2)
    assert list(follower[["past", "now"]]) == pytest.approx([left, left], abs=1e-4)
    assert list(leader[["past", "now"]]) == pytest.approx([1.0, 1.0], abs=1e-4)
    assert (follower["delay"], leader["delay"]) == (2.0, -2.0)
    (third,) = by_hand((0, 2, 0)).narrowing(3).loc[[("b", "a")], "past"]
    assert left < third < 1.0


def test_a_shock_moves_others_as_their_correlations_say() -> None:
    coupled = by_hand()
    plain = coupled.forecast(1).droplevel("time")
    for shock in (-4.0, 1.0):
        told = coupled.forecast(1, given={"a": plain["mean"]["a"] + shock * plain["sd"]["a"]})
        moved = (told["mean"].droplevel("time") - plain["mean"]) / plain["sd"]
        np.testing.assert_allclose(moved, shock * R[0], atol=1e-3)
    said = coupled.what_follows(1, {"a": plain["mean"]["a"] + plain["sd"]["a"]})
    assert said.endswith("at the last time b (-0.5 sd) and c (+0.3 sd).")


def test_rows_are_moved_and_times_with_them() -> None:
    x = np.array([0.0, 0.1, 0.3, 0.6])  # rows need not be evenly spaced
    Y = np.arange(1.0, 9.0).reshape(2, 4)
    moved = aligned(Observations(x, Y, np.ones((2, 4))), np.array([2, 0]), np.array([0.7, 0.9]))
    assert moved.Y.tolist() == [[1, 2, 3, 4, 0, 0], [0, 0, 5, 6, 7, 8]]
    assert moved.mask.sum(axis=1).tolist() == [4, 4]
    grid = moved.x
    assert later(x, np.array(2), grid).tolist() == [0.3, 0.6, 0.7, 0.9]
    assert later(np.array([0.2, 0.9]), np.array(1), grid) == pytest.approx([0.45, 0.9 + 0.18])


def test_delays_follow_the_pairs_that_promise_most() -> None:
    """b follows a by 2 and c follows b by 1; d promises something with nobody."""
    gains = np.full((9, 4, 4), 1.0)
    for n, m, rows in [(0, 1, 2), (1, 2, 1)]:
        gains[4 + rows, n, m] = gains[4 - rows, m, n] = 30.0
    gains[4, 0, 2] = gains[4, 2, 0] = 8.0  # at once, but less than by way of b
    assert best_delays(gains, 5.0).tolist() == [0, 2, 3, 0]
    assert not best_delays(gains, 40.0).any()
    assert best_delays(np.zeros((1, 2, 2)), 1.0).tolist() == [0, 0]


def test_a_table_too_short_for_delays_is_coupled() -> None:
    frame = pd.DataFrame(np.random.default_rng(1).normal(size=(7, 2)), columns=["a", "b"])
    found = made_by_hand(frame, ["1 x SE(lengthscale=2)"], [[1], [1]])
    assert not found.couple(progress=False).couplings[0].delays.any()


def late(seed: int, sign: float) -> pd.DataFrame:
    """A series that forgets, another that does the same three days later, and one of its own."""
    rng = np.random.default_rng((54, seed))
    steps, f = rng.normal(size=(173, 2)), np.zeros((173, 2))
    for d in range(1, 173):
        f[d] = 0.8 * f[d - 1] + steps[d]
    values = np.column_stack([f[13:, 0], sign * f[10:-3, 0], f[13:, 1]])
    values += 0.2 * rng.normal(size=values.shape)
    days = pd.date_range("2024-01-01", periods=160, freq="D")
    return pd.DataFrame(values, days, ["leader", "follower", "other"])


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_gap_is_filled_from_a_series_that_leads(sign: float) -> None:
    frame = late(0, sign)
    gap = frame.index[60:90]
    broken = frame.copy()
    broken.loc[gap, "follower"] = np.nan
    found = lkm.learn(broken, ["RW", "SE"], restarts=1, progress=False)
    with ThreadPoolExecutor(1) as executor:
        coupled = found.couple(executor=executor, progress=False)
    assert coupled.couplings[0].delays.tolist() == [0, 3, 0]

    def error(told: pd.DataFrame) -> float:
        off = told.loc["follower", "mean"] - frame.loc[gap, "follower"]
        return float(np.square(off).mean())

    assert error(coupled.fill()) < 0.15 * error(found.fill())
    told = coupled.narrowing()
    assert told.loc[("follower", "leader"), "past"] < 0.5
    assert told.loc[("leader", "follower"), "now"] > 0.97
    assert told.loc[("other", ALL_OTHERS), "now"] == pytest.approx(1.0, abs=0.02)
    assert np.sign(told.loc[("follower", "leader"), "correlation"]) == sign
    way = "with" if sign > 0.0 else "against"
    assert f"follower moves {way} leader, 3 rows later" in repr(coupled)


@pytest.fixture(scope="module")
def walks() -> lkm.CoupledDiscovery:
    """Steps of b go with those of a, those of c against them, d is on its own."""
    rng = np.random.default_rng(3)
    steps = rng.normal(size=(150, 4))
    steps[:, 1] = 0.7 * steps[:, 0] + np.sqrt(0.51) * steps[:, 1]
    steps[:, 2] = -0.7 * steps[:, 0] + np.sqrt(0.51) * steps[:, 2]
    frame = pd.DataFrame(np.cumsum(steps, axis=0), columns=list("abcd"))
    return lkm.learn(frame, ["C", "RW"], restarts=1, progress=False).couple(progress=False)


def test_a_shock_follows_the_innovations_of_the_data(walks: lkm.CoupledDiscovery) -> None:
    sample = walks.table.frame.diff().corr()
    plain = walks.forecast(1).droplevel("time")

    def moved(name: str) -> pd.Series:
        given = {name: plain["mean"][name] + 2.0 * plain["sd"][name]}
        told = walks.forecast(1, given=given).droplevel("time")
        return (told["mean"] - plain["mean"]) / (2.0 * plain["sd"])

    # What the fit takes for noise is thought to be each series' own.
    np.testing.assert_allclose(moved("a")[["b", "c"]], sample["a"][["b", "c"]], atol=0.2)
    assert abs(moved("a")["d"]) < 0.1
    with pytest.warns(UserWarning, match="Nothing follows from d for the other series"):
        assert not np.any(np.delete(moved("d").to_numpy(), 3).round(2))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        moved("b")
    assert "Nothing follows for d." in walks.what_follows(2, {"a": 3.0})

"""Columns of draws sorted into patterns, and what patterns do: on functions that are known."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.signal import lfilter

from lkm_gpflow.data.observations import Observations
from lkm_gpflow.gp.types import Floats
from lkm_gpflow.kernels.grammar import parse
from lkm_gpflow.sharing.behaviour import Interval, behaviours, circular, lag_of, together
from lkm_gpflow.sharing.pattern_draws import (
    PatternDraws,
    forms_of_wandering,
    in_company,
    patterns_of,
    plain_form,
)
from lkm_gpflow.sharing.states import Draw

X = np.linspace(0.0, 1.0, 120)
RNG = np.random.default_rng(0)


def told_of(
    kernels: list[str], functions: Floats, noise: float = 0.05, day: float = 0.0
) -> PatternDraws:
    """Twenty draws of the same columns with functions [N, J, D], slightly jittered."""
    rng = np.random.default_rng(1)
    columns, (N, J, D) = tuple(map(parse, kernels)), functions.shape
    draw = Draw(columns, np.ones((N, J), bool), np.zeros((N, J)), np.zeros(N), 0.0)
    drawn = [functions + 0.01 * rng.normal(size=functions.shape) for _ in range(20)]
    Y = functions.sum(axis=1) + noise * rng.normal(size=(N, D))
    return patterns_of(
        [draw] * 20, drawn, np.repeat([0, 1], 10), Observations(X, Y, np.ones_like(Y)), day
    )


def wave(period: float, phase: float = 0.0) -> Floats:
    return np.asarray(np.cos(2.0 * np.pi * (X / period - phase)))


def measured(told: PatternDraws, p: int = 0, n: int = 0):
    P = len(told.patterns)
    return behaviours(told, 0.9, np.zeros(P), np.full(P, np.nan))[p][n]


def test_forms_of_one_pattern_are_one_and_others_are_not() -> None:
    kernels = [
        "1 x PER(period=0.2, lengthscale=1)",
        "1 x PER(period=0.2, lengthscale=0.5) x LIN(location=0)",
        "1 x PER(period=0.125, lengthscale=1)", "1 x LIN(location=0.5)", "1 x SE(lengthscale=2)",
        "1 x SE(lengthscale=0.2)", "1 x RW(start=-0.3)", "1 x SE(lengthscale=0.03)",
    ]  # fmt: skip
    f = np.array([wave(0.2), X * wave(0.2), wave(0.125), X, X**2, *RNG.normal(size=(3, 120))])
    told = told_of(kernels, f[None])
    by_kind = sorted((p.kind, round(p.period, 3)) for p in told.patterns)
    sure = [each for each in by_kind if each[0] in ("cycle", "trend")]
    assert sure == [("cycle", 0.125), ("cycle", 0.2), ("trend", 0.0)]
    wanders = [p for p, pattern in enumerate(told.patterns) if pattern.kind in ("walk", "changes")]
    assert (told.functions[:, 0, wanders].any(axis=2).sum(axis=1) <= 1).all()  # in one way a draw
    np.testing.assert_allclose(told.functions.sum(axis=2).mean(axis=0)[0], f.sum(axis=0), atol=0.05)


def test_a_period_is_that_of_what_repeats() -> None:
    """A kernel of twice the period whose functions repeat twice has the shorter period."""
    told = told_of(["1 x PER(period=0.4, lengthscale=1)"], wave(0.2)[None, None])
    assert told.patterns[0].period == pytest.approx(0.2)
    other = told_of(["1 x PER(period=0.4, lengthscale=1)"], (wave(0.2) + wave(0.4))[None, None])
    assert other.patterns[0].period == pytest.approx(0.4)


def test_what_repeats_daily_in_a_weekly_cycle_is_a_daily_cycle() -> None:
    day, both = 1.0 / 14.0, wave(1.0 / 14.0) + 0.5 * wave(0.5)
    told = told_of(["1 x PER(period=0.5, lengthscale=0.2)"], both[None, None], day=day)
    assert [round(p.period / day) for p in told.patterns] == [1, 7]
    daily, weekly = told.functions[:, 0].mean(axis=0)
    np.testing.assert_allclose(daily, wave(day), atol=0.08)
    np.testing.assert_allclose(weekly, 0.5 * wave(0.5), atol=0.08)


def test_jumps_and_moments_are_told_from_lines_walks_and_cycles() -> None:
    noise = 0.05 * RNG.normal(size=120)
    step, spike = 1.0 * (X > 0.4) + noise, np.where(np.abs(X - 60 / 119) < 0.004, 4.0, 0.0) + noise
    during, kind = plain_form(X, step)
    assert (kind, X[during][0]) == ("shift", pytest.approx(0.4, abs=0.01))
    during, kind = plain_form(X, spike)
    assert (kind, X[during].tolist()) == ("event", pytest.approx([60 / 119]))
    assert plain_form(X, X + noise) == (None, "trend")
    for other in (np.cumsum(RNG.normal(size=120)), wave(0.3) + noise, noise):
        assert plain_form(X, other) == (None, "none")


@pytest.mark.slow
def test_noise_seldom_jumps_or_rises_and_walks_never_do() -> None:
    """Of 400 series each; the noise has an autocorrelation of 0.3."""
    rng = np.random.default_rng(0)
    e = rng.normal(size=(400, 121))
    noise = e[:, 1:] + 0.34 * e[:, :-1]
    found = {
        name: np.mean([plain_form(X, y)[1] != "none" for y in rows])
        for name, rows in {"noise": noise, "walks": np.cumsum(e, axis=1)[:, 1:]}.items()
    }
    assert found["noise"] < 0.03
    assert found["walks"] < 0.01
    steps = 1.5 * (X > 0.3) + 0.5 * noise / noise.std()
    assert np.mean([plain_form(X, y)[1] == "shift" for y in steps]) > 0.9
    lines = 1.5 * X + 0.5 * noise / noise.std()
    assert np.mean([plain_form(X, y)[1] == "trend" for y in lines]) > 0.9


def wandered(form: str, rng: np.random.Generator) -> Floats:
    """A series that wanders in a form, its numbers drawn, and white noise."""
    if form == "SE":
        length = np.exp(rng.uniform(np.log(0.05), np.log(0.5)))
        C = np.exp(-0.5 * np.square(np.subtract.outer(X, X) / length)) + 1e-8 * np.eye(120)
        f = np.linalg.cholesky(C) @ rng.normal(size=120)
    else:
        memory = 1.0 if form == "RW" else rng.uniform(0.2, 0.9)
        f = lfilter([1.0], [1.0, -memory], rng.normal(size=320))[200:]
    return np.asarray(f / f.std() + rng.choice([0.03, 0.3, 0.6]) * rng.normal(size=120))


def test_how_likely_a_form_of_wandering_is() -> None:
    """Among 210 series of three forms: what is said with some probability is as often true."""
    rng = np.random.default_rng(0)
    said = [
        (chance, str(kernel.structure) == form)
        for form in ("RW", "OU", "SE") for _ in range(70)
        for kernel, chance in forms_of_wandering(X, wandered(form, rng))
    ]  # fmt: skip
    chance, true = np.array(said).T
    assert len(said) == 3 * 210
    for low, high in ((0.0, 0.1), (0.1, 0.5), (0.5, 0.9), (0.9, 1.01)):
        own = (chance >= low) & (chance < high)
        assert true[own].mean() == pytest.approx(chance[own].mean(), abs=0.12)
    assert true[chance >= 0.9].mean() >= 0.95


def test_series_of_one_table_wander_alike() -> None:
    """One that could do either does what the others do; alone, or among all sorts, it stays."""
    doubtful, other = [0.5, 0.1, 0.4], [0.02, 0.03, 0.95]
    first = in_company(np.array([doubtful, other, other, other]))[0]
    assert first[2] > 0.7
    for unmoved in ([doubtful], [doubtful, [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]):
        np.testing.assert_allclose(in_company(np.array(unmoved))[0], doubtful, atol=1e-9)


def test_a_sure_drift_stays_beside_what_is_soon_forgotten() -> None:
    f = np.array([2.0 * wave(0.8), lfilter([1.0], [1.0, -0.5], RNG.normal(size=120))])
    told = told_of(["1 x SE(lengthscale=0.25)", "1 x SE(lengthscale=0.02)"], f[None])
    p = dict(zip([q.kind for q in told.patterns], told.visible.mean(axis=(0, 1)), strict=True))
    assert p["drift"] == 1.0
    assert p["changes"] > 0.8


def test_a_step_that_a_line_and_a_walk_explain_is_a_shift() -> None:
    step = 3.0 * (X > 0.4)
    f = np.array([1.5 * X, step - 1.5 * X])
    told = told_of(["1 x LIN(location=0)", "1 x RW(start=-0.3)"], f[None])
    (shift,) = told.patterns
    assert shift.kind == "shift"
    assert shift.date == pytest.approx(0.4, abs=0.01)
    size = measured(told).size
    assert size.lower < 3.0 < size.upper
    assert size.upper - size.lower < 0.2


@pytest.mark.parametrize("phase", [0.0, 0.3, 0.95])
def test_peaks_and_lags_are_those_planted(phase: float) -> None:
    f = np.array([[wave(0.25, 0.1)], [0.5 * wave(0.25, 0.1 + phase)]])
    told = told_of(["1 x PER(period=0.25, lengthscale=1)"], f)
    first, second = measured(told), measured(told, n=1)
    assert first.peak.median == pytest.approx(0.025, abs=0.003)
    assert first.trough.median == pytest.approx(0.15, abs=0.003)
    assert first.size.median == pytest.approx(1.0, abs=0.03)
    lags = [own.lag.median for own in (first, second) if own.lag is not None]
    assert len(lags) == 1
    expected = (phase + 0.5) % 1.0 - 0.5
    assert abs(lags[0]) == pytest.approx(abs(0.25 * expected), abs=0.003)
    assert first.growth.lower == pytest.approx(1.0, abs=0.05)


def test_a_cycle_that_fades_and_a_line_that_rises() -> None:
    told = told_of(
        ["1 x PER(period=0.1, lengthscale=1)"], ((1.0 - 0.9 * X) * wave(0.1))[None, None]
    )
    assert measured(told).growth.upper < 0.5
    told = told_of(["1 x LIN(location=0)"], (2.0 * X)[None, None])
    own = measured(told)
    assert own.slope.median == pytest.approx(2.0, abs=0.05)
    assert own.slope.sign == 1
    assert own.turn is None
    told = told_of(["1 x SE(lengthscale=2)"], (-np.square(X - 0.6))[None, None], noise=0.0)
    at, side = measured(told).turn
    assert side == 1
    assert at.median == pytest.approx(0.6, abs=0.15)


def test_circular_intervals_cross_the_end_of_a_period() -> None:
    around = circular(np.array([0.98, 0.99, 0.0, 0.01, 0.02]), 0.9)
    assert around.median % 1.0 == pytest.approx(0.0, abs=1e-9)
    assert around.upper - around.lower < 0.05
    assert circular(np.linspace(0.0, 1.0, 50), 0.9) is None
    shape = np.cos(2.0 * np.pi * np.arange(360) / 360)[None].repeat(9, axis=0)
    assert lag_of(shape, np.roll(shape, 90, axis=1), 0.9).median == pytest.approx(0.25)
    assert lag_of(shape, np.roll(shape, -90, axis=1), 0.9).median == pytest.approx(-0.25)


def test_series_move_together_as_their_patterns_do() -> None:
    f = np.array([[wave(0.3)], [-wave(0.3)], [wave(0.3, 0.25)], [0.0 * X]])
    told = told_of(["1 x PER(period=0.3, lengthscale=1)"], f, noise=1.0)
    r = together(told, 0.9)
    assert r[0, 1, 0] == pytest.approx(-1.0, abs=0.01)
    assert abs(r[0, 2, 0]) < 0.2
    assert np.isnan(r[0, 3]).all()
    assert (r[0, 1, 1] <= r[0, 1, 0]) & (r[0, 1, 0] <= r[0, 1, 2])


def test_signs_of_intervals() -> None:
    assert [Interval(0.0, *ends).sign for ends in ((0.1, 0.2), (-0.2, -0.1), (-0.1, 0.1))] == [
        1, -1, 0,
    ]  # fmt: skip

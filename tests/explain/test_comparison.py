"""Likeness and correlation of series."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from small import made_by_hand

from lkm_gpflow.explain.comparison import Correlation, clustered, correlation_in, likeness
from lkm_gpflow.fit.engine import components
from lkm_gpflow.kernels.grammar import parse
from lkm_gpflow.sharing.pattern_draws import Pattern, PatternDraws


def showing(shares: list[list[list[float]]]) -> PatternDraws:
    """Draws in which patterns have these shares, [T, N, P]."""
    values = np.array(shares)
    (T, N, P), wave = values.shape, np.array([1.0, -1.0, 1.0, -1.0])
    patterns = tuple(Pattern("changes", parse("1 x SE(lengthscale=0.1)")) for _ in range(P))
    return PatternDraws(
        patterns, np.sqrt(values)[..., None] * wave, np.full((T, P), np.nan), np.arange(4.0),
        np.zeros((N, 4)), np.ones(N), np.ones(N, bool), np.zeros(T, int),
    )  # fmt: skip


def test_likeness_is_the_variance_of_what_both_show() -> None:
    """What has less than 2% of a series makes it like no other; half the draws have nothing."""
    shares = [[0.6, 0.3], [0.5, 0.01], [0.0, 0.8]]
    expected = np.array([[0.9, 0.55, 0.55], [0.55, 0.5, 0.0], [0.55, 0.0, 0.8]])
    np.testing.assert_allclose(likeness(showing([shares])), expected)
    nothing = [[0.0, 0.0]] * 3
    np.testing.assert_allclose(likeness(showing([shares, nothing])), 0.5 * expected)


def test_like_series_stand_together() -> None:
    order = clustered(likeness(showing([[[0.9, 0.0], [0.0, 0.9], [0.8, 0.0], [0.0, 0.8]]])))
    assert {frozenset(order[:2]), frozenset(order[2:])} == {frozenset({0, 2}), frozenset({1, 3})}
    assert clustered(np.eye(2)) == [0, 1]


def correlated(frame: pd.DataFrame, kernel: str, b: int = 1) -> Correlation | None:
    """The first pattern of the first series and another, both of which have this kernel."""
    found = made_by_hand(frame, [kernel], [[1]] * frame.shape[1], noise=0.01)
    return correlation_in(found.pattern_draws, 0, 0, b, 0.9)


def way(told: Correlation | None) -> int:
    """1 if they clearly go together, -1 if against each other, else 0."""
    is_clear = told is not None and told.is_strong and not told.may_be_chance
    return int(np.sign(told.typical)) if told is not None and is_clear else 0


def test_correlation_has_the_sign_of_the_planted_one() -> None:
    t = np.arange(60.0)
    waves = pd.DataFrame({"a": np.sin(t / 6), "b": -np.sin(t / 6), "c": np.cos(t / 6)}, t)
    frame = waves + 0.05 * np.random.default_rng(0).normal(size=(60, 3))
    against, across = (correlated(frame, "1 x SE(lengthscale=6)", b) for b in (1, 2))
    assert against is not None
    assert across is not None
    assert against.upper < -0.9
    assert abs(across.typical) < 0.2
    assert across.lower <= across.typical <= across.upper


def test_what_one_series_alone_shows_is_not_correlated() -> None:
    told = showing([[[0.6, 0.3], [0.0, 0.3]]] * 20)
    assert correlation_in(told, 0, 0, 1, 0.9) is None
    assert correlation_in(told, 1, 0, 1, 0.9) is not None


@pytest.mark.parametrize(
    ("truth", "model"),
    [
        ("1 x SE(lengthscale=2)", "1 x SE(lengthscale=2)"),
        ("1 x SE(lengthscale=15)", "1 x SE(lengthscale=15)"),
        ("1 x RW(start=-1)", "0.05 x RW(start=-1)"),
        ("1 x RW(start=-1)", "1 x SE(lengthscale=4)"),
        ("1 x PER(period=8,lengthscale=1) x SE(lengthscale=20)",) * 2,
    ],
)  # fmt: skip
def test_independent_functions_are_seldom_given_a_direction(truth: str, model: str) -> None:
    """In at most 5% of 20 pairs; most random walks look correlated."""
    t = np.arange(40.0)
    (C,) = components([parse(truth)], t)
    root = np.linalg.cholesky(C + 1e-9 * np.eye(len(t)))
    ways = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        drawn = root @ rng.normal(size=(len(t), 2))
        drawn = drawn / drawn.std(axis=0) + 0.1 * rng.normal(size=drawn.shape)
        ways.append(way(correlated(pd.DataFrame(drawn, t), model)))
    assert np.abs(ways).mean() <= 0.05


@pytest.mark.parametrize("sign", [1, -1])
def test_what_estimates_carry_is_given_a_direction(sign: int) -> None:
    """Smooth functions of many bends that are one, cycles and lines."""
    rng, t = np.random.default_rng(0), np.arange(80.0)
    for kernel, values in (
        ("1 x SE(lengthscale=3)", np.convolve(rng.normal(size=100), np.hanning(21), "valid")),
        ("1 x PER(period=10,lengthscale=2)", np.sin(2.0 * np.pi * t / 10.0)),
        ("1 x PER(period=10,lengthscale=2) x SE(lengthscale=200)", np.sin(2.0 * np.pi * t / 10.0)),
        ("0.002 x LIN(location=40)", t),
    ):
        one = values / values.std()
        frame = pd.DataFrame({"a": one, "b": sign * one}, t) + 0.1 * rng.normal(size=(80, 2))
        assert way(correlated(frame, kernel)) == sign

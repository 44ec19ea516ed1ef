"""Likeness and correlation of series."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from small import agreed, made_by_hand

from lkm_gpflow.explain.comparison import clustered, component_correlations, likeness
from lkm_gpflow.explain.decomposition import Decomposition
from lkm_gpflow.fit.engine import components
from lkm_gpflow.kernels.grammar import parse


def parts(variance: list[list[float]], has: list[list[int]] | None = None) -> Decomposition:
    """Only variances matter here, and who has what: by default what varies."""
    nothing, values = np.zeros(0), np.array(variance)
    Z = np.array(values[:, :-1] > 0.0 if has is None else has, np.float64)
    return Decomposition(nothing, nothing, nothing, values, Z, np.zeros(len(values)))


def test_likeness_is_the_variance_of_what_both_have() -> None:
    # Two components and noise: shares (.6, .3, .1), (.5, 0, .5), (0, .8, .2).
    got = likeness(parts([[6.0, 3.0, 1.0], [1.0, 0.0, 1.0], [0.0, 4.0, 1.0]]))
    expected = [[0.9, 0.55, 0.55], [0.55, 0.5, 0.0], [0.55, 0.0, 0.8]]
    np.testing.assert_allclose(got, expected)


def test_what_few_fits_see_in_a_series_makes_it_like_no_other() -> None:
    """The second component varies in the first series, which probably does not have it."""
    got = likeness(parts([[6.0, 3.0, 1.0], [5.0, 3.0, 2.0]], has=[[1, 0], [1, 1]]))
    np.testing.assert_allclose(got, [[0.6, 0.55], [0.55, 0.8]])


def test_like_series_stand_together() -> None:
    variance = [[1.0, 0.0, 0.1], [0.0, 1.0, 0.1], [1.0, 0.0, 0.2], [0.0, 1.0, 0.2]]
    order = clustered(likeness(parts(variance)))
    assert {frozenset(order[:2]), frozenset(order[2:])} == {frozenset({0, 2}), frozenset({1, 3})}
    assert clustered(np.eye(2)) == [0, 1]


def test_correlation_has_the_sign_of_the_planted_one() -> None:
    t = np.arange(60.0)
    rng = np.random.default_rng(0)
    wave = np.sin(t / 6)
    frame = pd.DataFrame({"a": wave, "b": -wave, "c": np.cos(t / 6)}, index=t) + 0.05 * rng.normal(
        size=(60, 3)
    )
    found = made_by_hand(frame, ["1 x SE(lengthscale=6)"], [[1], [1], [1]], noise=0.01)
    against, across = component_correlations(found, 0, 1)[0], component_correlations(found, 0, 2)[0]
    assert against.of_means == pytest.approx(-1.0, abs=0.02)
    assert against.upper < -0.9
    assert abs(across.of_means) < 0.2
    assert across.lower <= across.of_means <= across.upper


def test_fits_count_by_their_weights() -> None:
    """Waves against each other by a fit that knows of the line; in step with it by another."""
    t = np.arange(40.0)
    wave, line = np.sin(t / 3.0), 0.1 * t
    frame = pd.DataFrame({"a": line + wave, "b": line - wave})
    waves, lines = ["0.5 x SE(lengthscale=3)", "0.003 x LIN(location=20)"], [[1, 1], [1, 1]]
    Y = ((frame - frame.mean()) / frame.std(ddof=0)).to_numpy()
    smooth = 0.5 * np.exp(-0.5 * ((t[:, None] - t) / 3.0) ** 2)
    V = smooth + 0.05 * np.eye(40)
    straight = 0.003 * np.outer(t - 20.0, t - 20.0)
    knowing, other = (smooth @ np.linalg.solve(each, Y) for each in (V + straight, V))
    for weight in (0.97, 0.03):
        rest = 1.0 - weight
        found = agreed(frame, [(weight, waves, lines), (rest, waves[:1], [[1], [1]])])
        c = component_correlations(found, 0, 1)[found.names.index("SE")]
        expected = np.corrcoef((weight * knowing + rest * other).T)[0, 1]
        assert c.of_means == pytest.approx(expected, abs=1e-6)
        # Of the draws 97% come from the heavy fit: more than the interval leaves out.
        assert (c.upper < 0.0) if weight > 0.5 else (c.lower > 0.0)


def test_only_shared_components_that_vary_are_correlated() -> None:
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(30, 2)))
    kernels = ["1 x C", "1 x SE(lengthscale=5)"]
    assert component_correlations(made_by_hand(frame, kernels, [[1, 1], [1, 0]]), 0, 1) == {}
    assert component_correlations(made_by_hand(frame, kernels[1:], [[0], [1]]), 0, 1) == {}


def ways(truth: str, model: str, pairs: int = 40) -> list[int]:
    """What is said of independent pairs drawn from one kernel and estimated with another."""
    t = np.arange(40.0)
    (C,) = components([parse(truth)], t)
    root = np.linalg.cholesky(C + 1e-9 * np.eye(len(t)))
    said = []
    for seed in range(pairs):
        rng = np.random.default_rng(seed)
        drawn = root @ rng.normal(size=(len(t), 2))
        drawn = drawn / drawn.std(axis=0) + 0.1 * rng.normal(size=drawn.shape)
        found = made_by_hand(pd.DataFrame(drawn, t), [model], [[1], [1]], noise=0.01)
        said.append(component_correlations(found, 0, 1)[0].way)
    return said


@pytest.mark.parametrize(
    ("truth", "model"),
    [
        ("1 x SE(lengthscale=2)", "1 x SE(lengthscale=2)"),
        ("1 x SE(lengthscale=6)", "1 x SE(lengthscale=6)"),
        ("1 x SE(lengthscale=20)", "1 x SE(lengthscale=20)"),
        ("1 x RW(start=-1)", "0.05 x RW(start=-1)"),
        ("1 x RW(start=-1)", "1 x SE(lengthscale=4)"),
        ("1 x RW(start=-1)", "0.05 x IOU(lengthscale=2,start=-1)"),
        ("1 x PER(period=8,lengthscale=1) x SE(lengthscale=20)",) * 2,
    ],
)  # fmt: skip
def test_independent_functions_are_seldom_given_a_direction(truth: str, model: str) -> None:
    """In at most 5% of all pairs; most random walks look correlated."""
    assert np.abs(ways(truth, model)).mean() <= 0.05


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
        found = made_by_hand(frame, [kernel], [[1], [1]], noise=0.01)
        assert component_correlations(found, 0, 1)[0].way == sign

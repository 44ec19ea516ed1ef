"""Starting values: periods found in data, draws within their ranges, weak priors."""

from __future__ import annotations

import numpy as np
import pytest

from lkm_gpflow.data.observations import Observations
from lkm_gpflow.fit.initialization import (
    Proposer,
    Ranges,
    hyperparameter_range,
    likely_periods,
    typical_step,
    walks_begin,
)
from lkm_gpflow.fit.layout import Layout
from lkm_gpflow.kernels.component import to_kernel
from lkm_gpflow.kernels.grammar import Kind, parse


def waves(
    periods: list[float],
    *,
    num_points: int = 120,
    missing: float = 0.0,
    slope: float = 0.0,
    uneven: bool = False,
    seed: int = 0,
) -> Observations:
    """Four series, z-scored: waves of random phases in noise, on a line."""
    rng = np.random.default_rng(seed)
    x = np.linspace(0.0, 1.0, num_points)
    if uneven:
        x[1:-1] = np.sort(rng.uniform(size=num_points - 2))
    Y = 0.5 * rng.normal(size=(4, num_points))
    for period in periods:
        Y += np.sin(2.0 * np.pi * (x / period + rng.uniform(size=(4, 1))))
    Y += slope * rng.choice([-1.0, 1.0], size=(4, 1)) * x
    mask = (rng.random(Y.shape) >= missing).astype(float)
    Y -= Y.mean(axis=1, keepdims=True)
    return Observations(x, Y / Y.std(axis=1, keepdims=True) * mask, mask)


# --- periods -------------------------------------------------------------------------------------


@pytest.mark.parametrize("period", [0.05, 0.13, 0.31, 0.45])
@pytest.mark.parametrize(
    "options",
    [{}, {"missing": 0.4}, {"slope": 15.0}, {"uneven": True}, {"missing": 0.3, "slope": -15.0}],
    ids=str,
)
def test_a_planted_period_comes_first(period: float, options: dict[str, float]) -> None:
    found = likely_periods(waves([period], **options))
    # A wave of n turns is known to about a quarter of a turn.
    assert found[0] == pytest.approx(period, rel=0.25 * period)


@pytest.mark.parametrize("num_points", [3, 4, 5, 8, 120])
def test_periods_lie_between_two_steps_and_half_the_span(num_points: int) -> None:
    for seed in range(5):
        found = likely_periods(waves([], num_points=num_points, seed=seed), count=4)
        assert len(found) <= 4
        assert np.all(np.isfinite(found))
        assert np.all(found <= 0.5)
        assert np.all(found >= 2.0 / (num_points - 1))
        assert len(found) > 0 or num_points <= 5


# --- proposals -----------------------------------------------------------------------------------


def within(value: float, kind: Kind, step: float) -> bool:
    bounds = hyperparameter_range(kind, step)
    place = np.log(value) if kind.positive else value
    return bool(bounds.lower - 1e-9 <= place <= bounds.upper + 1e-9)


@pytest.mark.parametrize("num_points", [4, 10, 120])
@pytest.mark.parametrize(
    "text", ["SE", "C", "WN", "LIN", "RW", "PER", "PER x SE", "LIN x LIN x PER", "RW x SE"]
)
def test_proposals_lie_within_their_ranges(text: str, num_points: int) -> None:
    data, structure = waves([0.2], num_points=num_points), parse(text)
    step = typical_step(data.x)
    proposals = Proposer.of(data).propose(structure, 30, np.random.default_rng(0))
    assert len(proposals) == 30
    sizes = [to_kernel(one)(data.x[:, None], full_cov=False).numpy().mean() for one in proposals]
    assert min(sizes) >= 0.03 * (1 - 1e-9)
    assert max(sizes) <= 3.0 * (1 + 1e-9)
    assert max(sizes) > 8.0 * min(sizes)
    for one in proposals:
        assert one.is_complete
        assert one.structure == structure
        for factor in one.factors:
            for value, (_, kind) in zip(factor.values, factor.base.parameters, strict=True):
                assert within(value, kind, step), (kind, value)


def test_most_proposed_periods_are_likely_ones() -> None:
    data = waves([0.13])
    proposals = Proposer.of(data).propose(parse("PER"), 400, np.random.default_rng(0))
    periods = np.array([one.factors[0].values[0] for one in proposals])
    assert np.mean(np.abs(periods / 0.13 - 1.0) < 0.1) > 0.2
    assert np.ptp(np.log(periods)) > 2.0  # and others too


def test_a_walk_begins_where_it_varies_as_much_as_any_walk_about_its_average() -> None:
    """At the first time; by simulation."""
    x = np.linspace(2.0, 5.0, 101)
    walks = np.cumsum(np.random.default_rng(0).normal(0.0, 0.03**0.5, (20_000, 101)), axis=1)
    about_average = walks - walks.mean(axis=1, keepdims=True)
    assert x[0] - walks_begin(x) == pytest.approx(about_average[:, 0].var(), rel=0.05)
    assert x[0] - walks_begin(x) == pytest.approx(about_average[:, -1].var(), rel=0.05)


# --- priors --------------------------------------------------------------------------------------


def test_log_prior() -> None:
    products = [
        parse("0.8 x PER(period=0.31, lengthscale=0.9) x SE(lengthscale=0.2)"),
        parse("0.5 x LIN(location=0.3)"),
        parse("1.3 x RW(start=-0.1)"),
    ]
    layout = Layout(products, num_series=2)
    ranges, flat = Ranges.of(layout, step=0.01), layout.pack(np.array([0.1, 0.4]))
    value, gradient = ranges.log_prior(flat)

    # Normal densities by name; the start of the walk has none.
    normals = [(np.log(v), np.log(0.5), 2.0) for v in (0.8, 0.5, 1.3)]
    normals += [(np.log(0.31), np.log(0.2), 1.5), (np.log(0.9), 0.0, 1.0)]
    normals += [(np.log(0.2), np.log(0.2), 1.5), (0.3, 0.5, 1.0)]
    normals += [(np.log(v), np.log(0.03), 2.0) for v in (0.1, 0.4)]
    assert value == pytest.approx(sum(-0.5 * ((x - m) / s) ** 2 for x, m, s in normals))
    numeric = [
        (ranges.log_prior(flat + h)[0] - ranges.log_prior(flat - h)[0]) / 2e-5
        for h in 1e-5 * np.eye(layout.size)
    ]
    np.testing.assert_allclose(gradient, numeric, rtol=1e-7, atol=1e-8)
    assert gradient[layout.is_fixed].tolist() == [0.0]
    assert np.all(ranges.lower < ranges.upper)
    assert np.all((ranges.lower <= flat) & (flat <= ranges.upper))


@pytest.mark.parametrize(("step", "widest"), [(0.005, 0.05), (0.1, 0.2)])
def test_a_change_takes_a_fifth_of_the_time_at_most(step: float, widest: float) -> None:
    """A sigmoid goes from 12% to 88% within four widths; of few times these are a few steps."""
    x = np.arange(0.0, 1.0 + 0.5 * step, step)
    assert np.exp(hyperparameter_range(Kind.WIDTH, step).upper) == pytest.approx(widest)
    drawn = Proposer(x, np.empty(0)).propose(parse("SE x FROM"), 50, np.random.default_rng(0))
    widths = [f.values[1] for one in drawn for f in one.factors if str(f.base.name) == "FROM"]
    assert len(widths) == 50
    assert max(widths) <= widest

"""Many series: what the exact bound costs as their number grows, and in which memory."""

from __future__ import annotations

import resource
from collections.abc import Callable

import numpy as np
import psutil
from pytest_benchmark.fixture import BenchmarkFixture
from test_speed import Figure, median_ratio

from lkm_gpflow.data.observations import Observations
from lkm_gpflow.fit.assignments import Pairs
from lkm_gpflow.fit.engine import Objective
from lkm_gpflow.fit.layout import Layout
from lkm_gpflow.kernels.grammar import parse

KERNELS = [
    parse("0.5 x SE(lengthscale=0.2)"),
    parse("0.2 x SE(lengthscale=0.02)"),
    parse("0.3 x PER(period=0.3, lengthscale=1)"),
    parse("0.2 x PER(period=0.05, lengthscale=0.6)"),
    parse("0.3 x PER(period=0.1, lengthscale=1) x SE(lengthscale=0.3)"),
    parse("0.3 x PER(period=0.2, lengthscale=1) x SE(lengthscale=0.1)"),
]
"""As for the EEG: K = 6, 64 configurations."""


def bound(num_series: int, rows_each: int) -> Callable[[], object]:
    """The bound with gradient, over so many of the 64 rows for each series; D = 178."""
    rng = np.random.default_rng(0)
    x = np.linspace(0.0, 1.0, 178)
    data = Observations(x, rng.normal(size=(num_series, 178)), np.ones((num_series, 178)))
    every = Pairs.around(np.zeros((num_series, 6)), 6)
    keep = (np.argsort(rng.uniform(size=(num_series, 64)), axis=1) < rows_each).ravel()
    layout = Layout(KERNELS, num_series)
    flat = layout.pack(np.full(num_series, 0.1))
    objective = Objective(
        layout, data, every.series[keep], every.configurations[keep], np.zeros(keep.sum())
    )
    return lambda: objective(flat)


def test_the_cost_of_a_series_falls_with_their_number(
    benchmark: BenchmarkFixture, figure: Figure
) -> None:
    """Ten rows a series, as on the EEG: eigendecompositions are shared by more of them."""
    many, few = bound(4000, 10), bound(1000, 10)
    ratio = median_ratio(many, few, rounds=3) / 4.0
    benchmark.pedantic(many, rounds=1)
    figure("bound with gradient, seconds a series, N = 4000 / N = 1000", ratio, 1.1)


def test_sharing_is_worth_it(figure: Figure) -> None:
    """A pair in a table of many series, beside one in a table of few (one Cholesky factor each)."""
    many, few = bound(1000, 10), bound(50, 10)
    ratio = median_ratio(many, few, rounds=3) / 20.0
    figure("bound with gradient, seconds a series, N = 1000 / N = 50", ratio, 0.1)


def test_memory_does_not_grow_with_the_pairs(figure: Figure) -> None:
    """All 64 rows of 11,500 series: every array over pairs and points would take 1 GB."""
    run = bound(11_500, 64)
    before = psutil.Process().memory_info().rss
    run()
    # The largest that this process has been: at least the peak of this run.
    peak = 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    figure("memory that one bound of 11,500 series needs, GB", (peak - before) / 1e9, 1.0)

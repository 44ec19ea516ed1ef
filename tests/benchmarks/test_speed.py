"""How fast and how large: ratios of the same run where that is possible.

Run alone on a quiet machine: ``pytest tests/benchmarks --benchmark-json=benchmarks.json``.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import psutil
import pytest
import tensorflow as tf
from pytest_benchmark.fixture import BenchmarkFixture
from scipy.linalg.lapack import dpotrf, dpotri, dpotrs
from threadpoolctl import threadpool_limits

import lkm_gpflow as lkm
from lkm_gpflow.data.observations import Observations
from lkm_gpflow.data.tables import Table
from lkm_gpflow.fit.engine import Objective
from lkm_gpflow.fit.fits import FitSettings
from lkm_gpflow.fit.layout import Layout
from lkm_gpflow.fit.training import fit
from lkm_gpflow.kernels.component import to_kernel

Figure = Callable[[str, float, float], None]


def seconds(run: Callable[[], object]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def median_ratio(one: Callable[[], object], other: Callable[[], object], rounds: int) -> float:
    """Median of the ratios of pairs that run one after the other."""
    for _ in range(3):
        one(), other()
    return float(np.median([seconds(one) / seconds(other) for _ in range(rounds)]))


def six_kernels() -> list[lkm.kernels.ComponentKernel]:
    texts = [
        "1.0 x SE(lengthscale=0.2)",
        "0.5 x SE(lengthscale=0.02)",
        "1.0 x PER(period=0.3, lengthscale=1.0)",
        "0.5 x PER(period=0.05, lengthscale=0.6)",
        "1.0 x LIN(location=0.5)",
        "1.0 x RW(start=-0.01)",
    ]
    return [to_kernel(lkm.parse(text)) for text in texts]


def model_of(num_times: int, num_series: int, posterior: object) -> lkm.LKM:
    X = np.linspace(0.0, 1.0, num_times)[:, None]
    Y = np.random.default_rng(0).normal(size=(num_times, num_series))
    return lkm.LKM((X, Y), six_kernels(), posterior=posterior, noise_variance=0.1)  # type: ignore[arg-type]


def value_and_gradient(model: lkm.LKM) -> Callable[[], object]:
    variables = model.trainable_variables

    @tf.function
    def run() -> object:
        with tf.GradientTape() as tape:
            value = model.elbo()
        return value, tape.gradient(value, variables)

    return run


def test_relaxed_bound_costs_little_more_than_lapack(
    benchmark: BenchmarkFixture, figure: Figure
) -> None:
    """Value and gradient, S = 10, N = 9, D = 116, K = 6, beside dpotrf + dpotri of 90 matrices."""
    S, N, D = 10, 9, 116
    run = value_and_gradient(model_of(D, N, lkm.RelaxedPosterior(num_samples=S)))
    A = np.random.default_rng(1).normal(size=(S * N, D, D))
    matrices = A @ A.transpose(0, 2, 1) + D * np.eye(D)

    def lapack() -> None:
        for matrix in matrices:
            factor, _ = dpotrf(matrix, lower=1)
            dpotri(factor, lower=1)

    # The reference as fast as it can be: on matrices of this size BLAS threads only get in the way.
    with threadpool_limits(1, "blas"):
        ratio = median_ratio(run, lapack, rounds=60)
    benchmark(run)
    figure("relaxed bound / LAPACK", ratio, 1.35)


LEARNT = {
    "stationary": [
        "0.5 x SE(lengthscale=0.2)",
        "0.2 x PER(period=0.3, lengthscale=1) x SE(lengthscale=0.5)",
        "0.2 x SE(lengthscale=0.02)",
        "0.3 x PER(period=0.11, lengthscale=1)",
    ],
    "half of them walks and lines": [
        "0.5 x SE(lengthscale=0.2)",
        "0.2 x PER(period=0.3, lengthscale=1) x SE(lengthscale=0.5)",
        "0.3 x RW(start=-0.01)",
        "0.2 x LIN(location=0.3)",
    ],
}


@pytest.mark.parametrize("kernels", list(LEARNT))
@pytest.mark.parametrize("gaps", [False, True])
def test_what_a_search_evaluates_costs_little_more_than_lapack(
    kernels: str, gaps: bool, figure: Figure
) -> None:
    """Value and gradient, N = 4, D = 141, K = 4, beside dpotrf, dpotrs and dpotri of 4 matrices."""
    N, D = 4, 141
    x, rng = np.linspace(0.0, 1.0, D), np.random.default_rng(0)
    mask = np.ones((N, D))
    if gaps:
        mask[0, 20:23] = mask[2, 50] = 0.0
    data = Observations(x, rng.normal(size=(N, D)) * mask, mask)
    products = [lkm.parse(text) for text in LEARNT[kernels]]
    layout = Layout(products, N)
    Z = np.array([[1, 0, 1, 0], [1, 1, 0, 0], [0, 0, 1, 1], [1, 0, 0, 1]], np.float64)
    objective = Objective(layout, data, np.arange(N, dtype=np.int32), Z, np.zeros(N))
    flat = layout.pack(np.full(N, 0.05))
    C = np.array([to_kernel(product)(x[:, None]).numpy() for product in products])
    matrices = [np.asfortranarray(np.tensordot(z, C, axes=1) + 0.05 * np.eye(D)) for z in Z]

    def lapack() -> None:
        for matrix, y in zip(matrices, data.Y, strict=True):
            factor, _ = dpotrf(matrix, lower=1)
            dpotrs(factor, y, lower=1)
            dpotri(factor, lower=1, overwrite_c=1)

    with threadpool_limits(1, "blas"):
        ratio = median_ratio(lambda: objective(flat), lapack, rounds=200)
    what = f"objective / LAPACK, {kernels}{', gaps' if gaps else ''}"
    figure(what, ratio, 2.3)


def test_the_first_structure_comes_soon(figure: Figure) -> None:
    """Processor seconds until there is a forecast, without what importing takes."""
    frame = lkm.datasets.load("demo").frame
    began = time.process_time()
    steps = lkm.discover_steps(frame, progress=False)
    next(steps).forecast(12)
    figure("first forecast of demo, processor seconds", time.process_time() - began, 15.0)
    steps.close()


def test_enumerated_bound_grows_slowly_with_the_number_of_series(
    benchmark: BenchmarkFixture, figure: Figure
) -> None:
    """K = 6, D = 178: the cubic work does not depend on N."""
    many = value_and_gradient(model_of(178, 2000, "enumerated"))
    few = value_and_gradient(model_of(178, 50, "enumerated"))
    ratio = median_ratio(many, few, rounds=7)
    benchmark.pedantic(many, rounds=3)
    figure("enumerated bound, N = 2000 / N = 50", ratio, 8.0)


def test_memory_of_the_parent_stays_flat(figure: Figure) -> None:
    """500 different structures, one after the other, in this process."""
    names = ["SE", "PER", "LIN", "RW", "C", "LIN x SE", "PER x SE", "LIN x PER", "RW x SE"]
    rng = np.random.default_rng(0)
    observations = Table.of(lkm.datasets.load("demo").frame.iloc[:60, :3]).observations
    quick = FitSettings(num_candidates=8, num_starts=1, num_reseeds=0)
    process = psutil.Process()

    def learn(count: int) -> None:
        for _ in range(count):
            chosen = rng.choice(names, size=rng.integers(1, 6), replace=False)
            fit(observations, [lkm.parse(name) for name in chosen], seed=0, settings=quick)
        gc.collect()

    learn(3)
    before = process.memory_info().rss
    for count in (100, 500):
        learn(100 if count == 100 else 400)
        growth = (process.memory_info().rss - before) / 1e6
        figure(f"memory after {count} structures, MB more", growth, 200.0)


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_time_budget_is_kept_to_within_a_fit(jobs: int, figure: Figure, tmp_path: Path) -> None:
    """Time past the budget, as a share of the longest fit of the search; at four moments."""
    frame = lkm.datasets.load("demo").frame.iloc[:60, :3]
    ledger = tmp_path / "ledger.jsonl"
    options = {"depth": 1, "restarts": 24, "progress": False, "ledger": ledger}
    past, longest = [], 0.0
    with lkm.process_pool(jobs) as pool:
        executor = pool if jobs > 1 else None
        lkm.discover(frame, executor=executor, time_budget=0.01, **options)  # traces
        for budget in (2.0, 5.0, 9.0, 14.0):
            ledger.unlink()
            began = time.perf_counter()
            found = lkm.discover(frame, executor=executor, time_budget=budget, **options)
            past.append(time.perf_counter() - began - budget)
            longest = max(longest, *(entry.fit.seconds for entry in found.entries))
            assert found.stopped
    figure(f"past a time budget, share of a fit, {jobs} jobs", max(past) / longest, 1.2)

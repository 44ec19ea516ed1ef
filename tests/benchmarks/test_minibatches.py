"""A step on a minibatch of series: what it costs, and that it does not know how many there are."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from minibatch_cost import six_kernels
from pytest_benchmark.fixture import BenchmarkFixture

import lkm_gpflow as lkm

Figure = Callable[[str, float, float], None]
B, D = 64, 100


def seconds_per_step(num_series: int, folder: Path) -> float:
    """Median of 20 steps, drawing from a memory map on disk included; processor time."""
    path, times = folder / f"{num_series}.npy", []
    rows = np.lib.format.open_memmap(path, "w+", shape=(num_series, D))
    rows[:] = np.random.default_rng(0).normal(size=(1000, D)).repeat(num_series // 1000, axis=0)
    rows.flush()
    lkm.learn_by_minibatches(
        lkm.MinibatchLKM(six_kernels(), num_series),
        (np.linspace(0.0, 1.0, D)[:, None], np.load(path, mmap_mode="r").T),
        lkm.MinibatchSettings(batch_size=B, num_steps=21),
        callback=lambda number, model: times.append(time.process_time()),
    )
    return float(np.median(np.diff(times)))


def test_a_step_does_not_know_how_many_series_there_are(
    benchmark: BenchmarkFixture, figure: Figure, tmp_path: Path
) -> None:
    few = seconds_per_step(1_000, tmp_path)
    many = benchmark.pedantic(lambda: seconds_per_step(100_000, tmp_path), rounds=1)
    figure(f"minibatch step, N = 100000 / N = 1000 (B = {B}, D = {D}, K = 6)", many / few, 1.5)

"""How long a search is expected to take, against what searches took."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from lkm_gpflow.gp import limits
from lkm_gpflow.search.settings import SearchSettings, expected_seconds
from paper_experiments.lab import benchmark


def test_nine_of_ten_searches_of_the_benchmark_are_within_what_was_expected(tables: Path) -> None:
    (journal,) = benchmark.records(methods=["lkm"]).values()
    held = []
    for record in journal:
        size = benchmark.window(record["table"], record["origin"]).train.shape
        lower, upper = expected_seconds(*size, SearchSettings())
        held.append(lower < record["processor_seconds"] < upper)
    assert len(held) == 72
    assert np.mean(held) >= 0.9


def test_what_makes_a_search_longer() -> None:
    def middle(num_times: int = 100, parallel: int = 1, **settings: int) -> float:
        return sum(expected_seconds(num_times, 4, SearchSettings(**settings), parallel)) / 2.0

    assert middle(restarts=6) == pytest.approx(2.0 * middle(restarts=3))
    assert middle(parallel=2) == pytest.approx(0.5 * middle())
    assert middle(parallel=99) == middle(parallel=3)
    assert middle(depth=0) < middle(depth=1) < middle(depth=2)
    assert middle(280) / middle(210) == pytest.approx((4.0 / 3.0) ** 2.7)
    assert middle(1600) / middle(800) == pytest.approx(2.0)
    assert middle(limits.LONG) < middle(limits.LONG - 1)

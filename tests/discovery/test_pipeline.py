"""Search and averaging, one after the other and, where workers are idle, side by side."""

from __future__ import annotations

import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from small import small_table

import lkm_gpflow.forecast.stacking
import lkm_gpflow.search.structure_search
from lkm_gpflow.data.tables import Table
from lkm_gpflow.discovery.pipeline import Learnt, learn_in_steps
from lkm_gpflow.fit.fits import Fit, FitSettings
from lkm_gpflow.forecast.autoregression import Calendar
from lkm_gpflow.runtime.budget import Guard
from lkm_gpflow.search.ledger import Ledger
from lkm_gpflow.search.settings import SearchSettings

QUICK = FitSettings(num_candidates=8, num_starts=1, num_reseeds=1)

SETTINGS = SearchSettings(bases=("C", "LIN", "RW"), depth=1, restarts=1, fit=QUICK)


def learn(executor: ThreadPoolExecutor | None) -> Learnt:
    table = Table.of(small_table(num_times=40))
    *_, last = learn_in_steps(
        table.observations, SETTINGS, Ledger({}), Guard(None, None),
        subset=None, stacks=True, calendar=Calendar.of(table), executor=executor, progress=False,
    )  # fmt: skip
    return last


def test_idle_workers_learn_walks_while_the_search_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    alone = learn(None)
    searches, walks = lkm_gpflow.search.structure_search.fit, lkm_gpflow.forecast.stacking.fit
    begun, count = threading.Event(), Counter[tuple[int, ...]]()

    def walk(*arguments: Any, seed: tuple[int, ...], **options: Any) -> Fit:
        begun.set()
        count[seed] += 1
        return walks(*arguments, seed=seed, **options)

    def found(*arguments: Any, **options: Any) -> Fit:
        # Were walks to wait for the end of the search, this would wait in vain.
        assert begun.wait(60.0)
        return searches(*arguments, **options)

    monkeypatch.setattr(lkm_gpflow.forecast.stacking, "fit", walk)
    monkeypatch.setattr(lkm_gpflow.search.structure_search, "fit", found)
    with ThreadPoolExecutor(2) as pool:
        beside = learn(pool)
    assert [m.weight for m in beside.stack.members] == [m.weight for m in alone.stack.members]
    assert [str(m.fit.kernels) for m in beside.stack.members] == [
        str(m.fit.kernels) for m in alone.stack.members
    ]
    assert beside.stack.autoregression == alone.stack.autoregression > 0.0
    assert len(count) > 1
    assert set(count.values()) == {1}

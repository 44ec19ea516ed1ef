"""Results while a search goes on: each better than the one before, the last that of `discover`."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest
from small import small_table, without_seconds

import lkm_gpflow as lkm
import lkm_gpflow.search.structure_search as searching

OPTIONS: dict[str, Any] = {"bases": ("LIN", "SE", "RW"), "depth": 1, "restarts": 2,
                           "progress": False}  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def in_a_hurry(quick_fits: None) -> None:
    """Let all fits of this module be quick."""


@pytest.fixture(scope="module")
def steps() -> list[lkm.Discovery]:
    return list(lkm.discover_steps(small_table(), **OPTIONS))


def test_each_is_better_and_the_last_is_the_whole(steps: list[lkm.Discovery]) -> None:
    whole = lkm.discover(small_table(), **OPTIONS)
    assert len(steps) >= 2
    bics = [found.bic for found in steps]
    assert all(later < sooner for sooner, later in itertools.pairwise(bics[:-1]))
    assert bics[-1] == min(bics) == whole.bic
    assert [without_seconds(e) for e in steps[-1].entries] == [
        without_seconds(e) for e in whole.entries
    ]
    assert steps[-1].forecast(3).equals(whole.forecast(3))


def test_the_first_is_of_one_fit_and_has_all_that_a_result_has(steps: list[lkm.Discovery]) -> None:
    first = steps[0]
    assert len(first.entries) == 1
    assert first.forecast(4).notna().all(axis=None)
    assert first.probabilities.shape == (3, len(first.kernels))
    assert first.stopped == ""
    assert len(first.ledger) == 1


def test_whoever_leaves_goes_on_from_the_ledger(steps: list[lkm.Discovery], tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    going = lkm.discover_steps(small_table(), ledger=path, **OPTIONS)
    first = next(going)
    going.close()  # as leaving the loop does
    assert without_seconds(first.entries[0])[:-1] == without_seconds(steps[0].entries[0])[:-1]
    (known, *_, last) = lkm.discover_steps(small_table(), ledger=path, **OPTIONS)
    assert known.bic == first.bic
    assert [without_seconds(e) for e in last.entries] == [
        without_seconds(e) for e in steps[-1].entries
    ]


def test_an_interrupted_search_leaves_the_last_result(
    monkeypatch: pytest.MonkeyPatch, steps: list[lkm.Discovery], tmp_path: Path
) -> None:
    """Ctrl-C within the third fit."""
    learn, left = searching.fit, iter(range(2))

    def interrupted(*args: Any, **options: Any) -> object:
        if next(left, None) is None:
            raise KeyboardInterrupt
        return learn(*args, **options)

    monkeypatch.setattr(searching, "fit", interrupted)
    found, path = list[lkm.Discovery](), tmp_path / "ledger.jsonl"
    with pytest.raises(KeyboardInterrupt):
        found += lkm.discover_steps(small_table(), ledger=path, **OPTIONS)
    assert found[-1].bic == min(entry.fit.bic for entry in steps[-1].entries[:2])
    monkeypatch.setattr(searching, "fit", learn)
    assert lkm.discover(small_table(), ledger=path, **OPTIONS).bic == steps[-1].bic


def test_a_wrong_setting_is_refused_at_once() -> None:
    with pytest.raises(ValueError, match="expected depth as a whole number of 0 or more"):
        lkm.discover_steps(small_table(), depth=-1)


def test_a_spent_budget_is_said_by_the_last() -> None:
    *_, last = lkm.discover_steps(small_table(), time_budget=0.001, **OPTIONS)
    assert last.stopped.startswith("The time budget of 0.001s ended the search after the first fit")

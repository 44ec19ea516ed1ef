"""Budgets: how they are read, where they end a search, what is kept, and that it goes on."""

from __future__ import annotations

import gc
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from small import QUICK_SEARCH, assert_same, two_series, without_seconds

import lkm_gpflow as lkm
from lkm_gpflow.discovery import discover as discovering
from lkm_gpflow.fit.fits import Fit
from lkm_gpflow.forecast import stacking
from lkm_gpflow.forecast.forecasters import Member
from lkm_gpflow.runtime.budget import Guard, num_bytes, resident_memory, seconds
from lkm_gpflow.search import structure_search

pytestmark = pytest.mark.usefixtures("quick_fits")


@pytest.mark.parametrize(
    ("read", "text", "value"),
    [
        (seconds, "90s", 90), (seconds, "1h30m", 5400), (seconds, "1.5 H", 5400),
        (seconds, "1d 1s", 86401), (seconds, 2.5, 2.5), (seconds, "90", 90),
        (num_bytes, "500MB", 5e8), (num_bytes, "4 gb", 4e9), (num_bytes, "2.5GiB", 2.5 * 2**30),
        (num_bytes, 1e9, 1e9), (num_bytes, "5000", 5e3),
    ],
)  # fmt: skip
def test_times_and_sizes(
    read: Callable[[str | float], float], text: str | float, value: float
) -> None:
    assert read(text) == value


@pytest.mark.parametrize(
    "wrong",
    [
        "10 minutes", "1h30", "5x", "m", "", "-1s", "1h-2m", "nan", np.nan, True, np.inf,
        pd.Timedelta("10min"), [90],
    ],
)  # fmt: skip
def test_budgets_that_cannot_be_read_are_refused(wrong: object) -> None:
    with pytest.raises(
        ValueError, match=r"a time budget in seconds, .*\(s, m, h, d\).* 90s.*, got"
    ):
        seconds(wrong)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"a memory budget in bytes, .*\(KB, .* 500MB.*, got"):
        num_bytes(wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("wrong", ["0", 0, -3.0])
def test_budgets_of_nothing_are_refused(wrong: float | str) -> None:
    with pytest.raises(ValueError, match=f"a time budget above zero, got {wrong!r}"):
        seconds(wrong)
    with pytest.raises(ValueError, match=f"a memory budget above zero, got {wrong!r}"):
        num_bytes(wrong)


def test_a_guard_watches_its_clock_and_its_memory() -> None:
    now, used = [0.0], [1e9]
    guard = Guard("10m", "2GB", clock=lambda: now[0], memory=lambda: used[0])
    now[0] = 449.0
    assert guard.spent(0.75) == guard.spent() == ""
    now[0] = 451.0
    assert (guard.spent(0.75), guard.spent()) == ("the time budget of 10m", "")
    used[0] = 2e9
    assert guard.spent() == "the memory budget of 2GB"
    used[0] = 1e9  # what is freed is not to be taken again
    assert guard.spent() == "the memory budget of 2GB"
    with pytest.raises(ValueError, match=r"memory budget above the 1GB that .*, got 500MB"):
        Guard(None, "500MB", memory=lambda: 1e9)


def test_memory_is_that_of_this_process() -> None:
    gc.collect()
    before = resident_memory()
    held = np.ones(50_000_000)  # other memory may be given back meanwhile
    assert 300e6 < resident_memory() - before < 500e6
    del held


# --- a search ---


class Watched:
    """A clock that moves by one for every fit, walk and weighed candidate; counts them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        self._learn, self._score = structure_search.fit, Member.held_out_scores
        monkeypatch.setattr(structure_search, "fit", self._fit)
        monkeypatch.setattr(stacking, "fit", self._fit)

        def held_out_scores(member: Member, *arguments: Any) -> list[float]:
            self.count += 1
            return self._score(member, *arguments)

        monkeypatch.setattr(Member, "held_out_scores", held_out_scores)
        own = partial(Guard, clock=lambda: float(self.count), memory=lambda: self.count + 1.0)
        monkeypatch.setattr(discovering, "Guard", own)

    def _fit(self, *arguments: object, **options: object) -> Fit:
        self.count += 1
        return self._learn(*arguments, **options)  # type: ignore[arg-type]


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> Watched:
    return Watched(monkeypatch)


@pytest.fixture(scope="module")
def whole(quick_fits: None) -> lkm.Discovery:
    """The discovery that nothing stopped."""
    return lkm.discover(two_series(), **QUICK_SEARCH)


def test_a_search_ends_in_time_and_goes_on_later(
    whole: lkm.Discovery, watched: Watched, tmp_path: Path
) -> None:
    """Four fits or windows a call, each going on from the last: the same as without a stop."""
    ledger, done = tmp_path / "ledger.jsonl", 0
    sentences = []
    for _ in range(20):
        found = lkm.discover(two_series(), ledger=ledger, time_budget=4, **QUICK_SEARCH)
        assert watched.count <= 4, "a fit was begun after the budget was spent"
        assert len(found.entries) >= done
        done, watched.count = len(found.entries), 0
        assert found.forecast(3).notna().all(axis=None)
        if not found.stopped:
            break
        sentences.append(found.stopped)
        undecided = found.ledger["decision"].str.startswith("none: the search was stopped")
        assert undecided.sum() <= QUICK_SEARCH["restarts"]
        assert found.bic == found.ledger["bic"].min()
    assert sentences[0].startswith("The time budget of 4s ended the search after 3 fits (depth 1, ")
    assert sentences[0].endswith("the averaging before a fit was weighed by held-out windows: BIC "
                                 "weighs them.")  # fmt: skip
    assert sentences[-1].startswith("The time budget of 4s ended the averaging when")
    assert_same(found, whole)


def test_the_first_fit_is_finished_whatever_the_budget(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    learn = structure_search.fit

    def slow(*arguments: object, **options: object) -> Fit:
        watched.count += 1000
        return learn(*arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(structure_search, "fit", slow)
    found = lkm.discover(two_series(), time_budget="2s", **QUICK_SEARCH)
    assert len(found.entries) == 1
    assert found.stopped == (
        "The time budget of 2s ended the search after the first fit (start), and the time budget "
        "of 2s ended the averaging before a fit was weighed by held-out windows: BIC weighs them."
    )
    assert [member.weight for member in found.members] == [1.0]


def test_memory_ends_a_search_too(watched: Watched, whole: lkm.Discovery) -> None:
    found = lkm.discover(two_series(), memory_budget=4.0, **QUICK_SEARCH)
    assert found.stopped.startswith("The memory budget of 4e-06MB ended the search after 3 fits")
    expected = [without_seconds(entry)[7:] for entry in whole.entries[:3]]
    assert [without_seconds(entry)[7:] for entry in found.entries] == expected


def test_a_stopped_discovery_is_saved_and_says_so(watched: Watched, tmp_path: Path) -> None:
    found = lkm.discover(two_series(), time_budget=4, **QUICK_SEARCH)
    found.save(tmp_path / "one.lkm")
    assert lkm.load(tmp_path / "one.lkm").stopped == found.stopped
    assert found.stopped in repr(found)
    assert found.stopped in found._repr_html_()
    assert ("stopped", found.stopped) in found.report().about

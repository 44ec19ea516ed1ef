"""The search: what it tries and keeps, that it can be stopped, and that it is deterministic."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small import small_table, without_seconds

import lkm_gpflow.search.structure_search
from lkm_gpflow import process_pool
from lkm_gpflow.data.observations import Observations
from lkm_gpflow.data.tables import Table
from lkm_gpflow.fit.fits import Fit, FitSettings, LearnerName, State
from lkm_gpflow.gp import limits
from lkm_gpflow.kernels import grammar as expressions
from lkm_gpflow.kernels.grammar import Product, parse, with_values
from lkm_gpflow.search.ledger import Ledger
from lkm_gpflow.search.settings import SearchSettings
from lkm_gpflow.search.structure_search import search_steps

QUICK = SearchSettings(
    bases=("LIN", "SE"),
    depth=1,
    restarts=2,
    fit=FitSettings(num_candidates=8, num_starts=1, num_reseeds=1),
)


def search(
    observations: Observations, settings: SearchSettings, ledger: Ledger, **options: Any
) -> Fit:
    """Run a search to its end; its best fit."""
    for _ in search_steps(observations, settings, ledger, **options):
        pass
    return [entry.fit for entry in ledger.rows if entry.decision == "accepted"][-1]


def numbered(structure: str) -> Product:
    """A product of this structure with some numbers."""
    product = parse(structure)
    count = sum(len(factor.values) for factor in product.factors)
    return with_values(product, 1.0, [0.5] * count)


@pytest.fixture(scope="module")
def observations() -> Observations:
    return Table.of(small_table()).observations


@pytest.fixture(scope="module")
def done(observations: Observations) -> Ledger:
    ledger = Ledger({})
    search(observations, QUICK, ledger, progress=False)
    return ledger


def test_result_is_the_best_accepted_fit(observations: Observations, done: Ledger) -> None:
    found = search(observations, QUICK, done, progress=False)
    accepted = [entry.fit for entry in done.rows if entry.decision == "accepted"]
    assert found is accepted[-1]
    assert [f.bic for f in accepted] == sorted((f.bic for f in accepted), reverse=True)


def test_every_fit_has_a_decision_and_a_known_parent(done: Ledger) -> None:
    steps = {entry.step for entry in done.rows}
    for entry in done.rows:
        assert entry.decision
        assert entry.parent in steps | {-1}
    assert {entry.expanded for entry in done.rows if entry.depth == 0} == {"start"}


def test_partial_expansion_tries_what_the_grammar_derives(done: Ledger) -> None:
    first = next(e for e in done.rows if e.step == 0 and e.decision == "accepted")
    entry = next(e for e in done.rows if e.step == 1)
    members = {str(kernel.structure): kernel for kernel in first.fit.kernels}
    derived = [str(p.structure) for p in expressions.expand(members[entry.expanded], QUICK.bases)]
    rest = [str(kernel.structure) for kernel in first.fit.kernels]
    rest.remove(entry.expanded)
    assert sorted(entry.structure) == sorted(rest + derived)


def pretend(set_attribute: Callable[[object, str, object], object], *sets: str) -> None:
    """Let the first fits have these members, each a better BIC than those before; others none."""
    left, bics = iter(sets), itertools.count(100.0, -10.0)

    def learn(*args: object, **options: object) -> Fit:
        members = next(left, None)
        kernels = tuple(map(numbered, (members or sets[-1]).split(" + ")))
        Z = np.ones((3, len(kernels)))
        bic = 200.0 if members is None else next(bics)
        return Fit(kernels, Z, Z, np.ones((len(kernels), 2)), np.ones(3), 0.0, bic, 0.0, 0.0)

    set_attribute(lkm_gpflow.search.structure_search, "fit", learn)


def test_no_question_is_asked_twice(
    observations: Observations, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A member is not expanded again while everything is as it was."""
    pretend(monkeypatch.setattr, "LIN + SE", "LIN x SE + SE")
    ledger = Ledger({})
    search(observations, replace(QUICK, depth=3, restarts=1), ledger, progress=False)
    asked = [(e.depth, e.expanded) for e in ledger.rows if e.expanded != "pairs and products"]
    assert asked == [(0, "start"), (1, "LIN"), (1, "SE"), (2, "LIN x SE")]


def test_full_expansion_tries_all_members_at_once(observations: Observations) -> None:
    ledger = Ledger({})
    settings = SearchSettings(
        bases=QUICK.bases, depth=1, restarts=1, strategy="full", fit=QUICK.fit
    )
    search(observations, settings, ledger, progress=False)
    assert [(e.step, e.expanded) for e in ledger.rows] == [(0, "start"), (1, "every member")]


def test_partial_expansion_ends_with_regrouping(
    observations: Observations, done: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Again and again, while that is better: only the sum is multiplied, only the product split."""
    criteria = {("LIN", "SE"): 10.0, ("LIN x SE",): 7.0}
    asked = []

    def learn(_: object, members: tuple[Any, ...], *, start: State | None, **options: Any) -> Fit:
        kept = () if start is None else start.kernels
        names = tuple(sorted(str(product.structure) for product in (*kept, *members)))
        asked.append(names)
        template = done.entries[0, 0].fit
        known = names if names in criteria else ("LIN", "SE")
        kernels = tuple(numbered(name) for name in known)
        Z = np.ones((3, len(kernels)))
        return replace(
            template, kernels=kernels, Z=Z, probabilities=Z, tau=np.ones((len(kernels), 2)),
            bic=criteria.get(names, 11.0),
        )  # fmt: skip

    monkeypatch.setattr(lkm_gpflow.search.structure_search, "fit", learn)
    ledger = Ledger({})
    found = search(observations, QUICK, ledger, progress=False)
    assert [str(kernel.structure) for kernel in found.kernels] == ["LIN x SE"]
    first, second = [e for e in ledger.rows if e.expanded == "pairs and products"]
    assert (first.structure, first.decision) == (("LIN x SE",), "accepted")
    assert (second.structure, second.parent) == (("LIN", "SE"), first.step)
    assert second.decision == "rolled back: BIC changes by +3.0"
    assert asked[-2:] == [("LIN x SE",), ("LIN", "SE")]
    others = [{"strategy": "full"}, {"depth": 0}]
    others += [{"fit": replace(QUICK.fit, learner="relaxed")}]
    for changes in others:
        ledger = Ledger({})
        search(observations, replace(QUICK, **changes), ledger, progress=False)
        assert "pairs and products" not in {e.expanded for e in ledger.rows}


@pytest.mark.parametrize("learner", ["scan", "relaxed"])
def test_restarts_begin_at_the_parent_where_the_learner_is_random_itself(
    observations: Observations, done: Ledger, learner: LearnerName, monkeypatch: pytest.MonkeyPatch
) -> None:
    starts, counts = [], []

    def learn(*args: Any, start: State | None, settings: FitSettings, **options: Any) -> Fit:
        starts.append(start)
        counts.append(settings.num_starts)
        return done.entries[0, 0].fit

    monkeypatch.setattr(lkm_gpflow.search.structure_search, "fit", learn)
    own = replace(QUICK.fit, learner=learner, num_starts=2)
    search(observations, replace(QUICK, restarts=3, fit=own), Ledger({}), progress=False)
    assert starts[:3] == [None, None, None]
    assert len(starts) > 3
    for restart in (1, 2):
        again = starts[3 + restart :: 3]
        assert all((start is None) == (learner == "scan") for start in again)
    assert all(start is not None for start in starts[3::3])
    # Of later steps: there the next restart is another start from nothing.
    from_nothing = [start is None and number > 2 for number, start in enumerate(starts)]
    assert counts == [1 if is_bare else 2 for is_bare in from_nothing]


def test_of_a_long_table_what_expands_a_member_is_tried_beside_it_and_in_its_place(
    observations: Observations, done: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[State | None, list[str]]] = []

    def learn(_: Observations, members: Sequence[Product], start: State | None, **__: Any) -> Fit:
        asked.append((start, [str(member.structure) for member in members]))
        return done.entries[0, 0].fit

    monkeypatch.setattr(lkm_gpflow.search.structure_search, "fit", learn)
    monkeypatch.setattr(limits, "LONG", len(observations.x))
    search(observations, replace(QUICK, restarts=3), Ledger({}), progress=False)
    assert [start for start, _ in asked[:3]] == [None] * 3
    expansions = [one for one in asked[3:] if len(one[1]) > 1]
    assert len(expansions) >= 2
    for (rest, beside), (same, instead) in zip(expansions[::2], expansions[1::2], strict=True):
        assert rest is not None
        assert same is rest
        assert instead == [name for name in beside if name != beside[0]]


def test_process_pools_of_any_size_give_the_same(observations: Observations, done: Ledger) -> None:
    for jobs in (1, 2):
        ledger = Ledger({})
        with process_pool(jobs) as pool:
            search(observations, QUICK, ledger, executor=pool, progress=False)
        assert [without_seconds(e) for e in ledger.rows] == [without_seconds(e) for e in done.rows]


def test_a_stopped_search_goes_on(
    observations: Observations, done: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stopped by Ctrl-C after every number of fits, with half a line written: same result."""
    learn, header = lkm_gpflow.search.structure_search.fit, {"of": "this test"}
    for stop_after in range(1, len(done.rows), 2):
        path = tmp_path / f"{stop_after}.jsonl"
        left = iter(range(stop_after))

        def interrupted(*args: Any, left: Iterator[int] = left, **options: Any) -> Fit:
            if next(left, None) is None:
                raise KeyboardInterrupt
            return learn(*args, **options)

        monkeypatch.setattr(lkm_gpflow.search.structure_search, "fit", interrupted)
        with pytest.raises(KeyboardInterrupt):
            search(observations, QUICK, Ledger(header, path), progress=False)
        with path.open("a") as file:
            file.write('{"fit": {"step": 9')
        monkeypatch.setattr(lkm_gpflow.search.structure_search, "fit", learn)
        again = Ledger(header, path)
        assert len(again.entries) == stop_after
        search(observations, QUICK, again, progress=False)
        assert [without_seconds(e) for e in again.rows] == [without_seconds(e) for e in done.rows]


def test_ledger_round_trip(done: Ledger, tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    ledger = Ledger({"seed": 1}, path)
    for entry in done.rows:
        ledger.add(entry)
        ledger.decide(entry.step, entry.restart, entry.decision)
    back = Ledger({"seed": 1}, path).rows
    assert [without_seconds(e) for e in back] == [without_seconds(e) for e in done.rows]
    for line in path.read_text().splitlines():
        json.loads(line)


def test_ledger_of_another_search_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    Ledger({"seed": 1, "data": "x"}, path)
    with pytest.raises(ValueError, match=r"other settings or data, it differs in seed"):
        Ledger({"seed": 2, "data": "x"}, path)
    path.write_text("date,a,b\n1,2,3\n")
    with pytest.raises(ValueError, match="expected a ledger"):
        Ledger({"seed": 1, "data": "x"}, path)


@pytest.mark.parametrize(
    "record",
    [
        {"fit": 3},
        {"fit": {"structure": [], "fit": {"noise_variance": [1.0], "tau": 2.0, "kernels": []}}},
        {"fit": {"structure": []}},
        {"note": ["windows"]},
        {"note": 1},
        {"decision": [0, 0]},
        {},
    ],
    ids=str,
)
def test_the_line_of_a_damaged_record_is_named(record: dict[str, object], tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    Ledger({"seed": 1}, path).decide(0, 0, "accepted")
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(record) + "\n")
    shown = re.escape(json.dumps(record)[:40])
    expected = rf"^{path}, line 3: expected a ledger of the format .*, cannot read '{shown}'$"
    with pytest.raises(ValueError, match=expected):
        Ledger({"seed": 1}, path)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"bases": ()}, "expected base kernels"),
        ({"bases": ("SE", "XYZ")}, "'XYZ'"),
        ({"depth": -1}, "depth as a whole number of 0 or more, got -1"),
        ({"restarts": 0}, "restarts as a whole number of 1 or more, got 0"),
        ({"strategy": "greedy"}, "'partial' or 'full', got 'greedy'"),
    ],
)
def test_wrong_settings(wrong: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SearchSettings(**wrong)  # type: ignore[arg-type]

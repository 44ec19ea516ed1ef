"""`discover(learner="relaxed")`: the paper's method and nothing else, its files, its subclasses."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from small import numbers, small_table, without_seconds

import lkm_gpflow as lkm
from lkm_gpflow.discovery.result import Discovery
from lkm_gpflow.fit import assignments, engine, training
from lkm_gpflow.kernels.grammar import expand
from lkm_gpflow.model.posteriors import EnumeratedPosterior
from lkm_gpflow.runtime import archive

SHORT = lkm.Annealing(num_steps=60, logits_rate=0.15, last_temperature=0.3, most_blocks=1)
OPTIONS: dict[str, Any] = {
    "learner": "relaxed", "bases": ("LIN", "SE", "PER"), "depth": 1, "restarts": 2,
    "annealing": SHORT, "progress": False,
}  # fmt: skip


class BentLKM(lkm.LKM):
    """Components live on a clock that a parameter bends: x + bend x^2."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.bend = gpflow.Parameter(0.2)

    def component_covariances(self, X: tf.Tensor, X2: tf.Tensor | None = None) -> tf.Tensor:
        def clock(x: tf.Tensor) -> tf.Tensor:
            return x + self.bend * tf.square(x)

        return super().component_covariances(clock(X), None if X2 is None else clock(X2))


@pytest.fixture(scope="module")
def found() -> Discovery:
    return lkm.discover(small_table(), **OPTIONS)


def test_no_code_of_the_other_learner_runs(
    found: Discovery, monkeypatch: pytest.MonkeyPatch
) -> None:
    def forbidden(*args: Any, **options: Any) -> None:
        raise AssertionError("the paper's method has no such step")

    monkeypatch.setattr(training.Learner, "__init__", forbidden)
    for owner, names in (
        (engine.Engine, ("entrance", "log_densities")),
        (engine, ("pair_log_densities", "Objective")),
        (training, ("best_rows", "minimize")),
        (assignments, ("best_rows",)),
    ):
        for name in names:
            monkeypatch.setattr(owner, name, forbidden)
    monkeypatch.setattr(assignments.RowPosterior, "infer", forbidden)
    monkeypatch.setattr(assignments.Pairs, "around", forbidden)
    monkeypatch.setattr(EnumeratedPosterior, "build", forbidden)
    again = lkm.discover(small_table(), **OPTIONS)
    assert [without_seconds(e) for e in again.entries] == [
        without_seconds(e) for e in found.entries
    ]
    assert np.isfinite(again.forecast(3)).all(axis=None)


def test_the_posterior_is_the_one_that_was_learnt(found: Discovery) -> None:
    assert isinstance(found.model.posterior, lkm.RelaxedPosterior)
    np.testing.assert_allclose(found.probabilities, found.model.probabilities(), rtol=1e-12)
    np.testing.assert_array_equal(found.structure, found.probabilities > 0.5)
    assert found.averaging == "none"


def test_the_search_is_algorithm_1(found: Discovery) -> None:
    """Of the starts the bound chooses one; it is kept if its BIC is lower, else all rolls back."""
    steps: dict[int, list[Any]] = {}
    for entry in found.entries:
        steps.setdefault(entry.step, []).append(entry)
    best = None
    for step, entries in steps.items():
        chosen = max(entries, key=lambda e: e.fit.elbo)
        others = [e for e in entries if e is not chosen]
        assert all("another restart is better by" in e.decision for e in others)
        if best is None or chosen.fit.bic < best.fit.bic - 0.1:
            assert chosen.decision == "accepted"
            best = chosen
        else:
            assert "rolled back" in chosen.decision
        if step:
            parent = next(e for e in steps[chosen.parent] if e.decision == "accepted")
            member = next(k for k in parent.fit.kernels if str(k.structure) == chosen.expanded)
            rest = [str(k.structure) for k in parent.fit.kernels if k is not member]
            derived = [str(k.structure) for k in expand(member, OPTIONS["bases"])]
            assert sorted(chosen.structure) == sorted(rest + derived)
    assert len(steps) > 2
    assert found.bic == best.fit.bic


def test_files_bring_the_posterior_back(found: Discovery, tmp_path: Path) -> None:
    found.save(tmp_path / "found.lkm")
    again = lkm.load(tmp_path / "found.lkm")
    assert again.settings == found.settings
    assert isinstance(again.model.posterior, lkm.RelaxedPosterior)
    assert float(again.model.elbo(seed=0)) == float(found.model.elbo(seed=0))
    np.testing.assert_array_equal(again.probabilities, found.probabilities)
    assert again.forecast(4).equals(found.forecast(4))


def test_a_ledger_is_gone_on_with(found: Discovery, tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    first = lkm.discover(small_table(), ledger=path, **OPTIONS)
    lines = path.read_text().splitlines()
    path.write_text("\n".join(lines[: len(lines) // 2]) + "\n")
    again = lkm.discover(small_table(), ledger=path, **OPTIONS)
    assert numbers(again.fit) == numbers(first.fit) == numbers(found.fit)
    other = {**OPTIONS, "annealing": replace(SHORT, num_steps=61)}
    with pytest.raises(ValueError, match="of other settings or data, it differs in settings"):
        lkm.discover(small_table(), ledger=path, **other)


def test_a_subclass_is_searched_with_reported_and_saved(tmp_path: Path) -> None:
    bent = lkm.discover(small_table(), model=BentLKM, **{**OPTIONS, "depth": 0})
    assert type(bent.model) is BentLKM
    learnt = float(bent.model.bend.numpy())
    assert learnt != 0.2
    report = bent.report()
    assert "share" in str(report)
    assert report.hold_out.probabilities.notna().all(axis=None)  # learnt again by its own model
    bent.save(tmp_path / "bent.lkm")
    again = lkm.load(tmp_path / "bent.lkm")
    assert type(again.model) is BentLKM
    assert float(again.model.bend.numpy()) == learnt
    assert again.forecast(3).equals(bent.forecast(3))
    assert not again.forecast(3).equals(
        lkm.discover(small_table(), **{**OPTIONS, "depth": 0}).forecast(3)
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"learner": "published"}, "expected learner among"),
        ({"learner": "relaxed", "averaging": "stacked"}, "averaging 'none' or 'tempered'"),
        ({"learner": "relaxed", "subset": 2}, "no subset with the learner 'relaxed'"),
        ({"prior": "infinite"}, "expected 'finite' or a FiniteIBP with the learner 'scan'"),
        ({"annealing": SHORT}, "no annealing without the learner 'relaxed'"),
    ],
)
def test_what_does_not_go_together(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        lkm.discover(small_table(), **options)


def test_a_file_does_not_say_what_is_imported(found: Discovery, tmp_path: Path) -> None:
    path = tmp_path / "foreign.lkm"
    found.save(path)
    frame, document = archive.read_archive(path, "Discovery")
    document["settings"]["fit"]["model"] = "antigravity:LKM"
    archive.write_archive(path, "Discovery", frame, document, force=True)
    with pytest.raises(ValueError, match=r"foreign.lkm: .*'antigravity:LKM'.*import its module"):
        lkm.load(path)
    assert "antigravity" not in sys.modules

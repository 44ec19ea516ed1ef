"""Results on disk: whole or not at all, and of the run that they are asked for."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from lkm_gpflow.experiments import provenance
from lkm_gpflow.experiments.claims import claim
from lkm_gpflow.experiments.profiles import Experiment, Plan, Run
from lkm_gpflow.experiments.scores import reported_scores
from lkm_gpflow.experiments.store import (
    Record,
    Store,
    checksum,
    damaged,
    read_record,
    write_atomically,
)

RUN = Run("square", "square.ipynb", {"x": 3})


def record_of(run: Run, error: str = "", **scores: float) -> Record:
    return Record(
        run.id, run.configuration, run.hash, {"toy": "abc"}, scores or {"square": 9}, 1.5, error,
        {"python": "3.11"}, "2 x cpu", "0123", "2024-01-01T00:00:00+00:00",
    )  # fmt: skip


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "results")


@pytest.fixture
def kept(store: Store) -> Path:
    """The file of a finished run."""
    store.keep(record_of(RUN))
    return store.result_path(RUN.id)


def test_what_is_kept_is_read(store: Store, kept: Path) -> None:
    assert store.finished(RUN) == record_of(RUN)
    assert store.records("square") == [record_of(RUN)]
    assert store.finished(replace(RUN, parameters={"x": 4})) is None
    same_name = replace(RUN, notebook="cube.ipynb")
    assert same_name.id == RUN.id
    assert store.finished(same_name) is None
    assert Store(store.folder / "elsewhere").finished(RUN) is None
    document = json.loads(kept.read_text(encoding="utf-8"))
    needed = "configuration hash data scores seconds versions processor commit"
    assert set(needed.split()) < set(document)


def test_a_file_that_was_cut_off_anywhere_is_no_result(store: Store, kept: Path) -> None:
    whole = kept.read_bytes()
    for length in range(len(whole) - 2):  # the last two are a brace and the end of the line
        kept.write_bytes(whole[:length])
        assert store.finished(RUN) is None, length
        assert store.records("square") == []
    assert damaged(store, [RUN.id]) == [kept]
    kept.write_bytes(whole)
    assert store.finished(RUN) is not None
    assert damaged(store, [RUN.id, "other"]) == []


@pytest.mark.parametrize(
    "change",
    [
        {"scores": {"square": 8}},
        {"configuration": {**RUN.configuration, "parameters": {"x": 4}}},
        {"hash": "0" * 64},
        {"format": "lkm_gpflow run 2"},
        {"checksum": "0" * 64},
        {"extra": 1},
    ],
)
def test_a_changed_file_is_no_result(store: Store, kept: Path, change: dict[str, object]) -> None:
    document = json.loads(kept.read_text(encoding="utf-8"))
    kept.write_text(json.dumps({**document, **change}), encoding="utf-8")
    assert read_record(kept) is None
    assert store.finished(RUN) is None


def test_a_hash_of_another_configuration_is_no_result(store: Store, kept: Path) -> None:
    """Even where the checksum is right: a result of x = 4 under the name and hash of x = 3."""
    document = json.loads(kept.read_text(encoding="utf-8"))
    del document["format"], document["checksum"]
    document["configuration"]["parameters"]["x"] = 4
    whole = {"format": "lkm_gpflow run 1", **document, "checksum": checksum(document)}
    kept.write_text(json.dumps(whole), encoding="utf-8")
    assert read_record(kept) is None


@pytest.mark.parametrize("text", ["[]", "3", "null", '"a"', "{}", "\x00"])
def test_other_files_are_no_results(store: Store, kept: Path, text: str) -> None:
    kept.write_text(text, encoding="utf-8")
    assert store.finished(RUN) is None


def test_a_failure_is_kept_apart_until_the_run_succeeds(store: Store) -> None:
    store.keep(record_of(RUN, error="Traceback\nValueError: no"))
    failed = store.failed(RUN)
    assert failed is not None
    assert failed.error.endswith("no")
    assert store.finished(RUN) is None
    assert store.records("square") == []
    store.keep(record_of(RUN))
    assert store.finished(RUN) is not None
    assert store.failed(RUN) is None
    assert not store.failure_path(RUN.id).exists()


def test_a_failure_wins_over_an_older_result(store: Store) -> None:
    """A finished run that was forced, and failed; one of another configuration says nothing."""
    store.keep(record_of(RUN))
    later = {"finished": "2024-01-02T00:00:00+00:00"}
    other = record_of(replace(RUN, notebook="cube.ipynb"), error="later")
    store.keep(replace(other, **later))
    assert store.finished(RUN) is not None
    failure = record_of(RUN, error="later")
    store.keep(replace(failure, **later))
    assert store.finished(RUN) is None
    assert store.failed(RUN) is not None
    assert store.records("square") == []
    store.keep(replace(failure, finished="2023-01-01T00:00:00+00:00"))
    assert store.finished(RUN) is not None
    assert store.failed(RUN) is None


def plan_of(*runs: Run) -> Plan:
    names = dict.fromkeys(run.experiment for run in runs)
    experiments = (
        Experiment(n, n, f"{n}.ipynb", {"quick": tuple(r for r in runs if r.experiment == n)})
        for n in names
    )
    return Plan(tuple(experiments), Path())


def test_a_new_result_makes_what_aggregates_it_new(store: Store) -> None:
    table = Run("table", "table.ipynb", {}, reads=("square",))
    four, five = (replace(RUN, parameters={"x": x}) for x in (4, 5))
    plan = plan_of(RUN, four, five, table)
    before = store.resolved(table, plan)
    store.keep(record_of(RUN))
    after = store.resolved(table, plan)
    assert before.hash != after.hash == store.resolved(table, plan).hash
    store.keep(record_of(four, square=16))
    assert store.resolved(table, plan).hash != after.hash
    assert store.resolved(table, plan).aggregated == ("square/x-3", "square/x-4")
    assert store.resolved(RUN, plan) is RUN
    of_three = replace(table, parameters={"x": 3})
    before = store.resolved(of_three, plan)
    store.keep(record_of(five, square=25))
    assert store.resolved(of_three, plan).hash == before.hash
    store.keep(record_of(RUN, square=10))
    assert store.resolved(of_three, plan).hash != before.hash


def test_results_of_former_plans_are_not_aggregated(store: Store) -> None:
    """Of runs that are gone, of other configurations, and of aggregates of other results."""
    four = replace(RUN, parameters={"x": 4})
    table = Run("table", "table.ipynb", {}, reads=("square",))
    top = Run("top", "top.ipynb", {}, reads=("table",))
    plan, smaller = plan_of(RUN, four, table, top), plan_of(RUN, table, top)
    for run in (RUN, four):
        store.keep(record_of(run))
    store.keep(record_of(store.resolved(table, plan)))
    assert store.resolved(top, plan).aggregated == ("table",)
    assert store.resolved(table, smaller).aggregated == (RUN.id,)
    assert store.resolved(top, smaller).aggregated == ()
    cubes = plan_of(replace(RUN, notebook="cube.ipynb"), four, table)
    assert store.resolved(table, cubes).aggregated == (four.id,)


def test_writing_fails_without_a_trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target, work = tmp_path / "a.json", tmp_path / "work"
    write_atomically(target, "old", work)

    def no_space(*_: object) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(os, "fsync", no_space)
    with pytest.raises(OSError, match="no space"):
        write_atomically(target, "new", work)
    assert target.read_text(encoding="utf-8") == "old"
    assert list(work.iterdir()) == []


# --- claims ---


def test_one_claim_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "work" / "run.lock"
    with claim(path) as first:
        assert first is not None
        with claim(path) as second:
            assert second is None
        with claim(path.with_name("other.lock")) as other:
            assert other is not None
        assert path.exists()
    assert not path.exists()
    with claim(path) as again:
        assert again is not None


def test_a_claim_ends_with_its_owner_however_it_dies(tmp_path: Path) -> None:
    path = tmp_path / "run.lock"
    claims = Path(provenance.__file__).with_name("claims.py")
    code = (
        f"import runpy, time; claim = runpy.run_path({str(claims)!r})['claim']\n"
        "import pathlib\n"
        f"with claim(pathlib.Path({str(path)!r})) as mine:\n"
        "    print(mine, flush=True); time.sleep(60)\n"
    )
    owner = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    try:
        assert owner.stdout is not None
        assert int(owner.stdout.readline()) > 0
        with claim(path) as mine:
            assert mine is None
    finally:
        owner.kill()
        owner.communicate()
    assert path.exists()  # what it left behind is no obstacle
    with claim(path) as mine:
        assert mine is not None
    assert not path.exists()


# --- scores and provenance ---


def test_scores_go_through_an_output(capsys: pytest.CaptureFixture[str]) -> None:
    import numpy as np
    from IPython.core.interactiveshell import InteractiveShell
    from IPython.utils.capture import capture_output

    from lkm_gpflow.experiments import report_scores

    InteractiveShell.instance()
    with capture_output() as captured:
        report_scores({"rmse": np.float64(0.5 + 1e-9), "holds": np.bool_(False), "name": "a"})
        report_scores({"holds": np.bool_(True)})
    outputs = [{"data": each.data} for each in captured.outputs]
    scores = reported_scores({"cells": [{"outputs": outputs}, {"cell_type": "markdown"}]})
    assert scores == {"rmse": 0.5, "holds": True, "name": "a"}
    assert json.loads(json.dumps(scores)) == scores
    with pytest.raises(ValueError, match="a to be finite"):
        report_scores({"a": float("nan")})
    with pytest.raises(ValueError, match="a to be a number"):
        report_scores({"a": [1]})


def test_data_checksums_know_every_digit() -> None:
    import lkm_gpflow as lkm

    frame = lkm.datasets.load("toy").frame
    changed = frame.copy()
    changed.iloc[5, 1] *= 1 + 1e-15
    checksums = {
        provenance.table_checksum(frame),
        provenance.table_checksum(changed),
        provenance.table_checksum(frame.rename(columns=str.upper)),
        provenance.table_checksum(frame.iloc[1:]),
    }
    assert len(checksums) == 4
    assert provenance.data_checksum("toy") == provenance.table_checksum(frame)


def test_commit_says_whether_code_was_changed(tmp_path: Path) -> None:
    def git(*arguments: str) -> str:
        identity = ("-c", "user.name=a", "-c", "user.email=a@example.org")
        command = ["git", "-C", str(tmp_path), *identity, *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    assert provenance.commit(tmp_path) == ""
    provenance.commit.cache_clear()
    git("init")
    (tmp_path / "a.py").write_text("1", encoding="utf-8")
    git("add", ".")
    git("commit", "-m", "a")
    head = git("rev-parse", "HEAD")
    assert provenance.commit(tmp_path) == head
    provenance.commit.cache_clear()
    (tmp_path / "a.py").write_text("2", encoding="utf-8")
    assert provenance.commit(tmp_path) == f"{head} changed"
    assert "python" in provenance.versions()
    assert provenance.processor().startswith(f"{os.cpu_count()} x ")

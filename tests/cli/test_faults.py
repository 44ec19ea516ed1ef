"""Faults: full disks, files that cannot be written, processes that end while they write."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from small import command, made_by_hand, small_table

import lkm_gpflow as lkm
from lkm_gpflow.cli import output
from lkm_gpflow.cli.folder import OutputFolder
from lkm_gpflow.runtime.journal import Journal
from lkm_gpflow.runtime.replacing import UNFINISHED, replacing

pytestmark = pytest.mark.usefixtures("quick_fits", "one_picture")
HEADER = {"seed": 1, "data": "x"}
QUICK = ("--restarts", "2", "--depth", "0", "--bases", "C,RW", "--jobs", "1", "--horizon", "2")
FULL = r"\(No space left on device\)"


# --- a full disk ---


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[tuple[Path, Callable[[], None]]]:
    """A file system of 24 kB of its own, and a function that makes it larger."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=24k", "tmpfs", str(folder)]
    if sys.platform != "linux" or subprocess.run(mount, capture_output=True).returncode != 0:
        pytest.skip("needs root, who may mount a small disk")
    more = ["mount", "-o", "remount,size=50m", str(folder)]
    yield folder, lambda: subprocess.run(more, check=True) and None
    subprocess.run(["umount", str(folder)], check=True)


def test_a_journal_on_a_full_disk_keeps_what_it_holds(
    small_disk: tuple[Path, Callable[[], None]],
) -> None:
    folder, make_room = small_disk
    path = folder / "ledger.jsonl"
    journal = Journal(path, "ledger", HEADER)
    record, written = {"fit": "x" * 2000}, list[int]()

    def fill() -> None:
        for number in range(100):
            journal.append(record)
            written.append(number)

    with pytest.raises(OSError, match=rf"cannot write to the ledger {path} {FULL}.* kept.*space"):
        fill()
    count = len(written)
    assert 6 < count < 13
    make_room()
    rest = Journal(path, "ledger", HEADER)
    assert len(rest.records) == count
    rest.append(record)
    assert len(Journal(path, "ledger", HEADER).records) == count + 1


def test_results_on_a_full_disk_are_written_later(
    small_disk: tuple[Path, Callable[[], None]], csv: Path
) -> None:
    folder, make_room = small_disk
    out = folder / "out"
    code, said = command("discover", csv, "--out", out, *QUICK)
    assert code == 2
    assert "cannot write the results" in said
    assert (
        f"(No space left on device); 2 fits are kept in {out / 'ledger.jsonl'}: free some space"
        in said
    )
    assert not (out / "report.html").exists()
    assert not list(out.glob(f"{UNFINISHED}*"))
    make_room()
    code, said = command("discover", csv, "--out", out, *QUICK)
    assert (code, "going on from 2 fits" in said) == (0, True)
    assert lkm.load(out / "model.lkm").table.names == ["a", "b"]


# --- a ledger that cannot be written ---


def test_a_ledger_that_cannot_be_written_is_refused_before_the_first_fit(
    csv: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lkm_gpflow.search.structure_search.fit", None)  # it must not be called
    for path, why in (
        (tmp_path, "Is a directory"),
        (csv / "ledger.jsonl", "Not a directory"),
        (tmp_path / "absent" / "ledger.jsonl", "No such file or directory"),
    ):
        expected = rf"ledger that can be read and written, got {path} \({why}\): choose another"
        with pytest.raises(OSError, match=expected):
            lkm.discover(small_table(), ledger=path, progress=False)
        with pytest.raises(OSError, match="expected a backtest that can be read and written"):
            lkm.backtest(small_table(), "last-value", 3, journal=path, progress=False)
    (tmp_path / "out" / "ledger.jsonl").mkdir(parents=True)
    code, said = command("discover", csv, "--out", tmp_path / "out", *QUICK)
    assert (code, "expected a ledger that can be read and written" in said) == (2, True)


def test_a_read_only_disk_is_refused(
    small_disk: tuple[Path, Callable[[], None]], csv: Path
) -> None:
    """An existing ledger, which could be read, but not gone on with."""
    folder, _ = small_disk
    ledger = folder / "out" / "ledger.jsonl"
    ledger.parent.mkdir()
    Journal(ledger, "ledger", HEADER)
    subprocess.run(["mount", "-o", "remount,ro", str(folder)], check=True)
    with pytest.raises(OSError, match=r"read and written, got .* \(Read-only file system\)"):
        Journal(ledger, "ledger", HEADER)
    code, said = command("discover", csv, "--out", ledger.parent, *QUICK)
    assert (code, "expected an output folder that can be written to" in said) == (2, True)


# --- a reader that has seen enough ---


@pytest.mark.parametrize("both", [False, True], ids=["output", "output and errors"])
@pytest.mark.parametrize(
    "arguments",
    [
        ["data"], ["discover", "demo"], ["--help"],
    ],
    ids=str,
)  # fmt: skip
def test_a_closed_pipe_ends_a_command_quietly(
    arguments: list[str], both: bool, tmp_path: Path
) -> None:
    """As in ``lkm-gpflow data | head -1``, with the exit status of other tools."""
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "lkm_gpflow.cli", *arguments],
            stdout=writing, stderr=writing if both else subprocess.PIPE, text=True, cwd=tmp_path,
            check=False,
        )  # fmt: skip
    finally:
        os.close(writing)
    assert (done.returncode, done.stderr or "") == (128 + signal.SIGPIPE, "")


def test_a_closed_pipe_is_no_fault_of_the_folder(tmp_path: Path) -> None:
    found = made_by_hand(small_table(), ["1.0 x SE(lengthscale=30.0)"], [[1], [1], [0]])

    def say(line: str) -> None:
        raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))

    with pytest.raises(BrokenPipeError):
        output.write(OutputFolder(tmp_path), found, 2, 0.9, {}, say)


# --- half a file ---


def test_a_journal_whose_first_line_is_torn_begins_anew(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    Journal(path, "ledger", HEADER)
    whole = path.read_bytes()
    for length in (0, 1, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:length])
        assert Journal(path, "ledger", HEADER).records == []
        assert path.read_bytes() == whole
    path.write_bytes(b"x" + whole[1:9])  # somebody else's
    with pytest.raises(ValueError, match="expected a ledger"):
        Journal(path, "ledger", HEADER)
    assert path.read_bytes() == b"x" + whole[1:9]


def end_within(path: Path) -> None:
    path.write_text("ne")
    raise KeyboardInterrupt


def test_a_file_is_replaced_as_a_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "one.csv"
    path.write_text("old")
    with pytest.raises(KeyboardInterrupt), replacing(path) as unfinished:
        end_within(unfinished)
    assert [(p.name, p.read_text()) for p in tmp_path.iterdir()] == [("one.csv", "old")]
    with replacing(path) as unfinished:
        unfinished.write_text("new")
        assert path.read_text() == "old"
    assert [(p.name, p.read_text()) for p in tmp_path.iterdir()] == [("one.csv", "new")]


@pytest.mark.parametrize("name", ["forecast.csv", "search.png", "report.html", "model.lkm"])
def test_a_result_is_complete_or_has_no_report(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Writing over an old result ends at each of the files in turn."""
    found = made_by_hand(small_table(), ["1.0 x SE(lengthscale=30.0)"], [[1], [1], [0]])
    folder = OutputFolder(tmp_path)
    for old in (folder.model, folder.report):
        old.write_text("of another result")
    (tmp_path / "ledger.jsonl").touch()

    real = Path.replace

    def replace(self: Path, target: Path) -> Path:
        if target.name == name:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(self, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", replace)
        with pytest.raises(OSError, match="cannot write the results"):
            output.write(folder, found, 2, 0.9, {}, lambda line: None)
    assert not folder.report.exists()
    assert folder.model.exists() == (name != "model.lkm")
    folder.claim(2, 0.9, found.table.checksum, force=False)  # it may be gone on with
    assert not list(tmp_path.rglob(f"{UNFINISHED}*"))
    (tmp_path / f"{UNFINISHED}of-one-who-was-killed.csv").touch()
    output.write(folder, found, 2, 0.9, {}, lambda line: None)
    assert lkm.load(tmp_path / "model.lkm").bic == found.bic
    with pytest.raises(ValueError, match="holds a finished result already"):
        folder.claim(2, 0.9, found.table.checksum, force=False)
    assert not list(tmp_path.rglob(f"{UNFINISHED}*"))


# --- budgets and the folder of results ---


def test_a_result_that_a_budget_stopped_may_be_gone_on_with(csv: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    code, said = command("discover", csv, "--out", out, *QUICK, "--time-budget", "0.001s")
    assert code == 0
    assert "The time budget of 0.001s ended the search after the first fit (start)" in said
    assert f"the same command continues from {out / 'ledger.jsonl'}" in said
    assert "The time budget of 0.001s" in (out / "report.html").read_text("utf-8")
    refused = command("discover", csv, "--out", out, *QUICK, "--seed", "1", "--time-budget", "1h")
    assert (refused[0], "other settings or data" in refused[1]) == (2, True)
    assert lkm.load(out / "model.lkm").stopped  # it is still there
    code, said = command(
        "discover", csv, "--out", out, *QUICK, "--time-budget", "1h", "--memory-budget", "1TB"
    )
    assert (code, "going on from 1 fit in" in said) == (0, True)
    assert lkm.load(out / "model.lkm").stopped == ""
    code, said = command("discover", csv, "--out", out, *QUICK)
    assert (code, "holds a finished result already" in said) == (2, True)


# --- processes that are ended ---


@pytest.mark.slow
@pytest.mark.usefixtures("whole_chains")  # as the processes have them
@pytest.mark.skipif(sys.platform != "linux", reason="/proc of Linux")
def test_ended_while_it_writes_and_started_again_it_finds_the_same(
    csv: Path, tmp_path: Path
) -> None:
    """In the first line of the ledger, in a fit, in a table, in the report, in the model."""
    kill, term = int(signal.SIGKILL), int(signal.SIGTERM)
    moments = [
        (kill, "ledger.jsonl", 1),
        (kill, "ledger.jsonl", 2),
        (term, "ledger.jsonl", 2),
        (kill, ".csv", 2),
        (term, ".html", 1),
        (kill, ".lkm", 1),
    ]
    out, whole = tmp_path / "parts", tmp_path / "whole"
    script = Path(__file__).parents[1] / "killed.py"
    ended = subprocess.run(
        [sys.executable, script, csv, "--out", out, *QUICK, json.dumps(moments)],
        capture_output=True, text=True, timeout=900, check=True,
    )  # fmt: skip
    expected = [-kill if number == kill else 128 + term for number, _, _ in moments]
    assert [int(code) for code in ended.stdout.split()] == [*expected, 0], ended.stderr
    assert command("discover", csv, "--out", whole, *QUICK)[0] == 0
    for name in ("forecast.csv", "components.csv", "probabilities.csv", "kernels.csv"):
        assert (out / name).read_bytes() == (whole / name).read_bytes()
    assert {p.name for p in out.iterdir()} == {p.name for p in whole.iterdir()}
    assert lkm.load(out / "model.lkm").bic == lkm.load(whole / "model.lkm").bic
    for line in (out / "ledger.jsonl").read_text().splitlines():
        json.loads(line)

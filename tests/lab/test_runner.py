"""The runner on notebooks of a second: what it keeps, resumes, retries and stops."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import nbformat
import numpy as np
import papermill
import psutil
import pytest
from click.testing import CliRunner
from jobs import wait_until

from lkm_gpflow import cli
from paper_experiments.lab import RESULTS, runner
from paper_experiments.lab.runner import MIME_TYPE, Run, read_plan, read_records, state

ROOT = Path(__file__).parents[2]
SQUARE = f"""\
import os, pathlib, time
from IPython.display import display

# A file for each start: two processes that append to one may lose a line.
pathlib.Path(f"{{time.time_ns()}}-{{x}}-{{os.getpid()}}.started").touch()
time.sleep(PAUSE)
display({{"text/plain": "", {MIME_TYPE!r}: {{"square": x * x, "holds": x < 3}}}}, raw=True)
"""
TROUBLE = SQUARE + (
    "if x == 2:\n    raise ValueError('two is too many')\nif x == 3:\n    os.kill(os.getpid(), 9)\n"
)
TABLE = """\
import json, pathlib
from IPython.display import display

lines = (pathlib.Path(results) / "runs.jsonl").read_text().splitlines()[1:]
records = {r["id"]: r for r in map(json.loads, lines) if r["experiment"] == "square"}
total = sum(r["scores"]["square"] for r in records.values())
display({"text/plain": "", MIME: {"total": total}}, raw=True)
"""


def write_notebook(path: Path, code: str, parameters: str = "x = 0") -> None:
    notebook = nbformat.v4.new_notebook()
    notebook.metadata["kernelspec"] = {"display_name": "Python 3", "name": "python3"}
    first = nbformat.v4.new_code_cell(parameters)
    first.metadata["tags"] = ["parameters"]
    title = nbformat.v4.new_markdown_cell("# A square")
    notebook.cells = [title, first, nbformat.v4.new_code_cell(code)]
    nbformat.write(notebook, path)


def write_squares(
    folder: Path, numbers: Sequence[int], code: str = SQUARE, pause: float = 0.0
) -> list[Run]:
    """Write an experiment with one run a number, and one that adds their results."""
    (folder / "lab").mkdir(parents=True, exist_ok=True)
    write_notebook(folder / "square.ipynb", code.replace("PAUSE", str(pause)))
    write_notebook(folder / "table.ipynb", TABLE.replace("MIME", repr(MIME_TYPE)), "results = ''")
    plan = folder / "lab" / "experiments.yml"
    plan.write_text(
        "- {id: table, artefact: All squares, notebook: table.ipynb, reads: [square],"
        " runs: {smoke: [{minutes: 0.1}]}}\n"
        "- {id: square, artefact: Squares, notebook: square.ipynb,"
        f" runs: {{smoke: [{{minutes: 0.1, grid: {{x: {list(numbers)}}}}}]}}}}\n",
        encoding="utf-8",
    )
    return read_plan("smoke", file=plan)


def started(folder: Path) -> list[int]:
    """Numbers whose notebook was started, in order."""
    return [x for x, _ in _log(folder)]


def kernels(folder: Path) -> list[int]:
    """Process ids of the notebooks that were started."""
    return [pid for _, pid in _log(folder)]


def _log(folder: Path) -> list[tuple[int, int]]:
    starts = [path.stem.split("-") for path in sorted(folder.glob("*.started"))]
    return [(int(x), int(pid)) for _, x, pid in starts]


def reproduced(folder: Path, runs: Sequence[Run], jobs: int = 2, **options: bool) -> dict[str, str]:
    with ThreadPoolExecutor(jobs) as pool:  # each notebook is a process of its own
        return runner.reproduce(runs, folder / "results", pool, folder=folder, **options)


def squares(folder: Path) -> dict[int, int]:
    records = read_records(folder / "results").values()
    kept = [r for r in records if r["experiment"] == "square" and not r["error"]]
    return {r["parameters"]["x"]: r["scores"]["square"] for r in kept}


def test_the_committed_results_are_all_of_the_plan() -> None:
    records = read_records(RESULTS)
    for profile in ("paper", "quick"):
        assert {state(run, records) for run in read_plan(profile)} == {"done"}
    assert len(read_plan("smoke")) == len({run.id for run in read_plan("smoke")})
    for run in read_plan("paper") + read_plan("smoke"):
        notebook = json.loads((runner.FOLDER / run.notebook).read_text(encoding="utf-8"))
        assert set(run.parameters) <= set(runner.parameters_of(notebook)), run.id


def test_the_lock_is_of_the_environment_of_the_results() -> None:
    text = (ROOT / "constraints.txt").read_text(encoding="utf-8")
    pins = dict(line.split("==") for line in text.splitlines() if "==" in line)
    pins["python"] = re.findall(r"Python (\d\S+)\.", text)[0]
    recorded = {pair for r in read_records(RESULTS).values() for pair in r["versions"].items()}
    for package, version in sorted(recorded):
        assert package == "lkm_gpflow" or pins[package] == version, package
    named = re.split(r"[\s,.#]+", text.partition("a test compares): ")[2].partition(".  ")[0])
    assert {package for package, _ in recorded} - {"lkm_gpflow", "python"} <= set(named)


def test_runs_are_chosen_by_ids_and_patterns() -> None:
    assert [run.id for run in read_plan("paper", ["table1"])] == ["table1/paper"]
    chosen = read_plan("quick", ["extrapolation/gonu_a*", "fig5_seizure"])
    assert len(chosen) == 4 + 1
    assert chosen[0].id == "extrapolation/gonu_auto-arima_seed-0_paper"
    with pytest.raises(ValueError, match="'cube'"):
        read_plan("smoke", ["cube"])
    with pytest.raises(ValueError, match="'fast'"):
        read_plan("fast")


def test_failures_are_kept_stop_nothing_and_are_tried_again(tmp_path: Path) -> None:
    runs = write_squares(tmp_path, [1, 2, 3], TROUBLE)
    first = reproduced(tmp_path, runs[1:])
    assert first == {"square/x-1": "done", "square/x-2": "failed", "square/x-3": "failed"}
    assert squares(tmp_path) == {1: 1}
    records = read_records(tmp_path / "results")
    raised, died = (records[f"square/x-{x}"]["error"] for x in (2, 3))
    assert "two is too many" in runner.last_line(raised)
    assert "\x1b" not in raised
    assert "died" in died
    table = runner.overview(runs, records, "smoke").loc["square"]
    assert table[["done", "failed", "stale", "missing"]].tolist() == [1, 2, 0, 0]
    assert table["minutes left"] == pytest.approx(0.2)
    assert table["paper's claim"] == "failed"
    page = runner.write_page(runs, tmp_path / "results", "smoke").read_text(encoding="utf-8")
    assert "two is too many" in page

    before = started(tmp_path)  # a kernel may have died before its first cell
    mended = write_squares(tmp_path, [1, 2, 3])
    runs = [replace(run, same=(runs[1].code,)) for run in mended]  # as far as it came
    second = reproduced(tmp_path, runs[1:])
    assert second == {"square/x-1": "there", "square/x-2": "done", "square/x-3": "done"}
    assert sorted(started(tmp_path)[len(before) :]) == [2, 3]
    assert squares(tmp_path) == {1: 1, 2: 4, 3: 9}
    table = runner.overview(runs[1:], read_records(tmp_path / "results"), "smoke").loc["square"]
    assert table["paper's claim"] == "does not hold in 1 of 3 runs"  # three is too many, it says


def test_threads_keep_their_folder_while_notebooks_run_in_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One process has one working directory: whoever moves it moves the other threads' kernels."""
    here, moved = os.getcwd(), []
    chdir = os.chdir
    monkeypatch.setattr(os, "chdir", lambda path: (moved.append(str(path)), chdir(path)))
    runs = write_squares(tmp_path, [1, 2])
    assert set(reproduced(tmp_path, runs).values()) == {"done"}
    assert sorted(started(tmp_path)) == [1, 2]
    assert set(moved) <= {here}
    assert os.getcwd() == here


def test_what_reads_results_runs_after_them_and_again_when_they_are_new(tmp_path: Path) -> None:
    for numbers, total, now in (([1], 1, "done"), ([2, 1], 5, "done"), ([2, 1], 5, "there")):
        runs = write_squares(tmp_path, numbers)
        assert reproduced(tmp_path, runs, 1)["table"] == now
        assert read_records(tmp_path / "results")["table"]["scores"] == {"total": total}
    assert sorted(started(tmp_path)) == [1, 2]
    table = runner.overview(runs, read_records(tmp_path / "results"), "smoke")
    page = runner.with_results(f"# Page\n{runner.BEGIN}\nyesterday\n{runner.END}\nend", table)
    assert page.startswith("# Page\n")
    assert page.endswith("\nend")
    assert "yesterday" not in page
    assert "[table.ipynb](table.ipynb)" in page
    executed = tmp_path / "results" / "executed" / "table.ipynb"
    executed.write_text('{"cells": [', encoding="utf-8")
    html = runner.write_page(runs, tmp_path / "results", "smoke")
    assert "Its executed notebook is not here" in html.read_text(encoding="utf-8")


def test_a_run_is_stale_once_the_code_of_its_notebook_is_another(tmp_path: Path) -> None:
    """Prose and outputs are no code; the version of the plan stands for the code behind."""
    runs = write_squares(tmp_path, [1])
    reproduced(tmp_path, runs)
    plan, notebook = tmp_path / "lab" / "experiments.yml", tmp_path / "square.ipynb"

    def now() -> str:
        return state(read_plan("smoke", file=plan)[1], read_records(tmp_path / "results"))

    written = nbformat.read(notebook, as_version=4)
    written.cells[0].source = "# The square of a number"
    written.cells[1].outputs = [nbformat.v4.new_output("stream", text="once")]
    nbformat.write(written, notebook)
    assert now() == "done"
    written.cells[1].source = "x = 1"
    nbformat.write(written, notebook)
    assert now() == "stale"
    runs = read_plan("smoke", file=plan)
    table = runner.overview(runs, read_records(tmp_path / "results"), "smoke").loc["square"]
    assert table[["done", "stale"]].tolist() == [0, 1]
    assert table["paper's claim"] == "stale"
    assert reproduced(tmp_path, runs)["square/x-1"] == "done"
    assert now() == "done"
    written_plan = plan.read_text(encoding="utf-8")
    plan.write_text(written_plan.replace("id: square", "id: square, version: 2"), encoding="utf-8")
    assert now() == "stale"
    code = runs[1].code
    same = f"id: square, version: 2, same: ['{code}']"
    plan.write_text(written_plan.replace("id: square", same), encoding="utf-8")
    assert now() == "done"


def test_a_record_says_on_what_it_was_made(tmp_path: Path) -> None:
    reproduced(tmp_path, write_squares(tmp_path, [1]))
    record = read_records(tmp_path / "results")["square/x-1"]
    assert record["versions"]["numpy"] == np.__version__
    assert all(re.fullmatch(r"\S+ [\d.]+\S* \S+", each) for each in record["blas"])
    assert record["blas"]
    assert re.fullmatch(r"\d+ x .+", record["processor"])


# --- the commands, on a clone of squares ---


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A folder that is like a clone, whose experiments take a second each."""
    lab = tmp_path / "paper_experiments" / "lab"
    write_squares(lab.parent, [1, 2, 3])
    for name in ("__init__.py", "runner.py", "commands.py"):
        (lab / name).write_bytes((ROOT / "paper_experiments" / "lab" / name).read_bytes())
    (lab.parent / "__init__.py").touch()
    return tmp_path


@pytest.fixture
def begin(clone: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Start a command in the clone in a process of its own; it is killed at the end."""
    processes = []

    def start(*arguments: object) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-m", "lkm_gpflow.cli", *map(str, arguments)],
            cwd=clone, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        processes.append(process)
        return process

    yield start
    for process in processes:
        if process.poll() is None:
            process.kill()
            process.communicate()


def said_by(process: subprocess.Popen[str], code: int) -> str:
    said, _ = process.communicate(timeout=240)
    assert process.returncode == code, said
    assert "Traceback" not in said
    return said


def test_the_commands_say_what_is_done_failed_and_missing(
    clone: Path, begin: Callable[..., subprocess.Popen[str]]
) -> None:
    write_squares(clone / "paper_experiments", [1, 2], TROUBLE)
    said = said_by(begin("status", "--runs"), 0)
    assert "missing: square/x-2 (about 0.1 min)" in said
    said = said_by(begin("reproduce", "--jobs", 1, "--only", "square"), 1)
    assert "1 runs done, 0 were finished before, 1 failed" in said
    assert "[1/2] square/x-1 done: " in said
    assert "failed: square/x-2: ValueError: two is too many" in said
    assert not (clone / "paper_experiments" / "results").exists()
    results = clone / "paper-lkm"
    assert (results / "results.html").stat().st_size > 1000
    assert (results / "executed" / "square" / "x-2.ipynb").exists()
    said = said_by(begin("reproduce", "--only", "square/x-1"), 0)
    assert "name another folder" in said
    page = clone / "README.md"
    page.write_text(f"{runner.BEGIN}\n{runner.END}\n", encoding="utf-8")
    said = said_by(begin("status", "--runs", "--page", page), 0)
    assert "failed: square/x-2: ValueError: two is too many" in said
    assert "done: square/x-1" in said
    assert "--only square" in page.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "piece"),
    [
        (("--only", "cube"), "'cube'"),
        (("table1",), "--only table1"),
        (("--jobs", "2", "--scheduler", "tcp://localhost:1"), "got both"),
        (("--jobs", "0"), "--jobs"),
        (("--profile", "fast"), "'smoke', 'quick', 'paper'"),
    ],
)
def test_wrong_options_are_refused(arguments: Sequence[str], piece: str) -> None:
    result = CliRunner().invoke(cli.main, ["reproduce", *arguments])
    assert result.exit_code == 2
    assert piece in result.output


def test_elsewhere_the_commands_say_that_they_need_a_clone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("lkm_gpflow.cli.__file__", str(tmp_path / "a" / "b" / "c.py"))
    for command in ("reproduce", "status"):
        result = CliRunner().invoke(cli.main, [command])
        assert result.exit_code == 2
        assert "expected the working folder to be a clone" in result.output


def are_gone(pids: Sequence[int]) -> bool:
    return not any(
        psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
        for pid in pids
    )


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_notebooks_too(
    number: signal.Signals, clone: Path, begin: Callable[..., subprocess.Popen[str]]
) -> None:
    folder = clone / "paper_experiments"
    write_squares(folder, [1, 2, 3], pause=300.0)
    process = begin("reproduce", "--jobs", 2, "--results", folder / "results")
    wait_until(lambda: len(kernels(folder)) == 2)
    process.send_signal(number)
    assert "the same command continues" in said_by(process, 130)
    wait_until(lambda: are_gone(kernels(folder)), 20.0)
    assert len(started(folder)) == 2
    assert read_records(folder / "results") == {}  # being stopped is no failure


def test_killed_and_started_again_it_ends_with_the_same_results(
    clone: Path, begin: Callable[..., subprocess.Popen[str]]
) -> None:
    folder = clone / "paper_experiments"
    write_squares(folder, range(3), pause=0.3)
    process = begin("reproduce", "--jobs", 2, "--results", folder / "results")
    wait_until(lambda: started(folder) or process.poll() is not None)
    time.sleep(1.0)
    process.kill()
    process.communicate()
    wait_until(lambda: are_gone(kernels(folder)), 20.0)
    finished, before = set(squares(folder)), len(started(folder))
    said_by(begin("reproduce", "--jobs", 2, "--results", folder / "results"), 0)
    assert not set(started(folder)[before:]) & finished, "what was finished is repeated"
    assert squares(folder) == {x: x * x for x in range(3)}


def test_a_notebook_runs_in_any_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By papermill alone: nothing is looked for in the folder, nothing left there."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    output = tmp_path / "out.ipynb"
    papermill.execute_notebook(
        str(runner.FOLDER / "search_space.ipynb"), str(output), cwd=str(tmp_path),
        kernel_name="python3", language="python", progress_bar=False,
    )  # fmt: skip
    assert runner._reported(json.loads(output.read_text(encoding="utf-8")))["holds"]
    assert [path.name for path in tmp_path.iterdir()] == ["out.ipynb"]

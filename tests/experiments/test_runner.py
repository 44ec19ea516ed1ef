"""The runner on notebooks of a second: what it keeps, resumes, retries and stops."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import psutil
import pytest
from click.testing import CliRunner
from tiny_notebooks import SQUARE, kernels, started, write_notebook, write_squares

from lkm_gpflow import cli
from lkm_gpflow.experiments import execution
from lkm_gpflow.experiments.claims import claim
from lkm_gpflow.experiments.execution import Outcome
from lkm_gpflow.experiments.overview import BEGIN, END, progress_of, with_results
from lkm_gpflow.experiments.profiles import Plan, Run
from lkm_gpflow.experiments.results_page import results_html
from lkm_gpflow.experiments.runner import dask_workers, local_workers, reproduce
from lkm_gpflow.experiments.store import Store
from lkm_gpflow.runtime.executors import WorkersLost

pytestmark = pytest.mark.skipif(os.name == "nt", reason="processes of POSIX")

TROUBLE = SQUARE + (
    "if x == 2:\n    raise ValueError('two is too many')\nif x == 3:\n    os.kill(os.getpid(), 9)\n"
)
TABLE = """\
- id: table
  artefact: All squares
  notebook: table.ipynb
  reads: [square]
  runs: {smoke: [{minutes: 0.1}]}
"""


def reproduced(plan: Plan, store: Store, jobs: int = 2) -> dict[str, Outcome]:
    with local_workers(jobs) as workers:
        outcomes = reproduce(plan.runs("smoke"), plan, store, workers)
    found = {outcome.run.id: outcome for outcome in outcomes}
    assert len(found) == len(outcomes) == len(plan.runs("smoke"))
    return found


def squares(store: Store) -> dict[int, int]:
    return {r.configuration["parameters"]["x"]: r.scores["square"] for r in store.records("square")}


def wait_until(condition: Callable[[], object], seconds: float = 120.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)


# --- in this process ---


def test_failures_are_kept_stop_nothing_and_are_tried_again(tmp_path: Path) -> None:
    plan = write_squares(tmp_path, [1, 2, 3], TROUBLE)
    store = Store(tmp_path / "results")
    first = reproduced(plan, store)
    states = [first[f"square/x-{x}"].state for x in (1, 2, 3)]
    assert states == ["done", "failed", "failed"]
    assert squares(store) == {1: 1}
    assert "two is too many" in first["square/x-2"].message
    raised, died = (store.failed(run) for run in plan.runs("smoke")[1:3])
    assert raised is not None
    assert died is not None
    assert "----> " in raised.error  # the line of the notebook
    assert "\x1b" not in raised.error
    assert "died" in died.error
    assert list((store.folder / "work").iterdir()) == []

    progress = progress_of(plan, "smoke", store)[0]
    assert [len(progress.done), len(progress.failed), len(progress.missing)] == [1, 2, 0]
    assert progress.minutes_left == pytest.approx(0.2)
    assert progress.verdict == "failed"
    html = results_html([progress], "smoke", store)
    assert "two is too many" in html

    write_squares(tmp_path, [1, 2, 3])  # it is mended
    second = reproduced(plan, store)
    states = [second[f"square/x-{x}"].state for x in (1, 2, 3)]
    assert states == ["there", "done", "done"]
    assert sorted(started(tmp_path)) == [1, 2, 2, 3, 3]
    assert squares(store) == {1: 1, 2: 4, 3: 9}
    progress = progress_of(plan, "smoke", store)[0]
    assert progress.verdict == "does not hold in 1 of 3 runs"  # three is too many, it says
    assert not list((store.folder / "failures").rglob("*.json"))


@pytest.mark.parametrize(("dies", "state"), [(2, "done"), (3, "failed")])
def test_a_kernel_that_dies_before_it_has_started_is_started_again(
    dies: int, state: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel = tmp_path / "jupyter" / "kernels" / "python3"
    kernel.mkdir(parents=True)
    starts = tmp_path / "starts"
    (kernel / "start.py").write_text(
        f"import os, sys\nwith open({str(starts)!r}, 'a') as file: file.write('.')\n"
        f"if os.path.getsize({str(starts)!r}) <= {dies}: sys.exit(1)\n"
        "os.execv(sys.executable, [sys.executable, '-m', 'ipykernel_launcher', *sys.argv[1:]])\n"
    )
    argv = [sys.executable, str(kernel / "start.py"), "-f", "{connection_file}"]
    spec = {"argv": argv, "display_name": "Dies at first", "language": "python"}
    (kernel / "kernel.json").write_text(json.dumps(spec))
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path / "jupyter"))
    plan = write_squares(tmp_path, [2])
    outcome = reproduced(plan, Store(tmp_path / "results"))["square/x-2"]
    assert outcome.state == state
    assert len(starts.read_text()) == 3
    assert started(tmp_path) == ([2] if state == "done" else [])
    assert state == "done" or "Kernel died before" in outcome.message


def test_a_run_that_somebody_is_at_is_waited_for(tmp_path: Path) -> None:
    plan = write_squares(tmp_path, [1, 2])
    store = Store(tmp_path / "results")
    path = store.work_path("square/x-1")
    claimed, released = threading.Event(), threading.Event()

    def somebody() -> None:
        with claim(path.with_name(f"{path.name}.lock")) as mine:
            assert mine is not None
            claimed.set()
            wait_until(lambda: 2 in squares(store))
            assert 1 not in started(tmp_path)
            released.set()

    other = threading.Thread(target=somebody)
    other.start()
    assert claimed.wait(10.0)
    outcomes = reproduced(plan, store)
    other.join()
    assert released.is_set()
    assert {o.state for o in outcomes.values()} == {"done"}
    assert started(tmp_path) == [2, 1]


def test_what_is_wrong_before_the_notebook_is_a_failure_too(tmp_path: Path) -> None:
    plan = write_squares(tmp_path, [1])
    write_notebook(tmp_path / "square.ipynb", "pass", "y = 0")
    store = Store(tmp_path / "results")
    (outcome,) = reproduced(plan, store).values()
    assert outcome.state == "failed"
    assert "expected parameters among ['y']" in outcome.message
    (tmp_path / "square.ipynb").unlink()
    (outcome,) = reproduced(plan, store).values()
    assert "there is no" in outcome.message


def test_a_worker_that_is_lost_is_a_failure_of_its_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lost(run: object, *_: object) -> Outcome:
        raise RuntimeError("the worker died")

    monkeypatch.setattr(execution, "execute", lost)
    plan = write_squares(tmp_path, [1])
    store = Store(tmp_path / "results")
    (outcome,) = reproduced(plan, store).values()
    assert (outcome.state, outcome.message) == ("failed", "RuntimeError: the worker died")
    assert store.failed(plan.runs("smoke")[0]) is not None


def test_what_aggregates_runs_last_and_again_when_results_are_new(tmp_path: Path) -> None:
    code = (
        "import json, os, pathlib\nfrom IPython.display import display\n"
        "runs = pathlib.Path(os.environ['LKM_GPFLOW_RESULTS']).glob('runs/square/*.json')\n"
        "total = sum(json.loads(r.read_text())['scores']['square'] for r in runs)\n"
        "display({'text/plain': '', 'application/vnd.lkm-gpflow.scores+json': {'total': total}},"
        " raw=True)\n"
    )
    store = Store(tmp_path / "results")
    for numbers, total, state in (
        ([1], 1, "done"),
        ([1], 1, "there"),
        ([2, 1], 5, "done"),
        ([2], 4, "done"),  # what is no longer of the plan does not count, though it is there
    ):
        plan = write_squares(tmp_path, numbers, more=TABLE)
        write_notebook(tmp_path / "table.ipynb", code)
        outcomes = reproduced(plan, store)
        assert outcomes["table"].state == state
        (record,) = store.records("table")
        assert record.scores == {"total": total}
    assert squares(store) == {1: 1, 2: 4}
    assert sorted(started(tmp_path)) == [1, 2]
    html = results_html(progress_of(plan, "smoke", store), "smoke", store)
    assert "All squares" in html
    page = with_results(
        f"# Page\n{BEGIN}\nof yesterday\n{END}\nend", progress_of(plan, "smoke", store), "smoke"
    )
    assert "of yesterday" not in page
    assert page.startswith("# Page\n")
    assert page.endswith("\nend")
    assert "[table.ipynb](table.ipynb)" in page
    with pytest.raises(ValueError, match="expected a page with"):
        with_results("# Page", [], "smoke")


def test_what_aggregates_aggregates_runs_after_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the order of the file; each is resolved when what it reads is there."""
    top = TABLE.replace("table", "top").replace("square", "table")
    plan = write_squares(tmp_path, [1, 2], more=top + TABLE)
    store = Store(tmp_path / "results")
    ran = []

    def execute(run: Run, notebooks: Path, store: Store, *_: object) -> Outcome:
        ran.append((run.id, *run.aggregated))
        return execution.keep(run, notebooks, store, {}, 0.0, "")

    monkeypatch.setattr(execution, "execute", execute)
    reproduced(plan, store, jobs=1)
    assert ran == [
        ("square/x-1",), ("square/x-2",), ("table", "square/x-1", "square/x-2"), ("top", "table"),
    ]  # fmt: skip
    (progress,) = (p for p in progress_of(plan, "smoke", store) if p.experiment.id == "top")
    assert len(progress.done) == 1


# --- the commands ---


def run(*arguments: object) -> tuple[int, str]:
    result = CliRunner().invoke(cli.main, [str(a) for a in arguments])
    assert "Traceback" not in result.output, result.output
    return result.exit_code, result.output


def test_the_commands_say_what_is_done_failed_and_missing(tmp_path: Path) -> None:
    write_squares(tmp_path, [1, 2], TROUBLE)
    where = ("--experiments", tmp_path / "experiments.yml", "--results", tmp_path / "out")
    code, said = run("status", *where, "--runs")
    assert code == 0
    assert "missing: square/x-2 (about 0.1 min)" in said
    code, said = run("reproduce", *where, "--jobs", 1, "--only", "square/x-1", "square/x-2")
    assert code == 1
    assert "1 runs done, 0 were finished before, 1 failed" in said
    assert "[1/2] square/x-1 done in" in said
    assert "two is too many" in said
    assert (tmp_path / "out" / "results.html").stat().st_size > 1000
    assert said.index("traceback: ") < said.index("tables and figures: ")
    executed = Store(tmp_path / "out").executed_path("square/x-1")
    for damage in ('{"cells": [', "", "[]", '{"cells": 3, "nbformat": 4}'):
        executed.write_text(damage, encoding="utf-8")
        code, said = run("reproduce", *where, "--only", "square/x-1")
        assert (code, started(tmp_path)) == (0, [1, 2])
        assert "is not here or cannot be read" in (tmp_path / "out" / "results.html").read_text()
    assert "name another folder" in said
    page = tmp_path / "README.md"
    page.write_text(f"{BEGIN}\n{END}\n", encoding="utf-8")
    Store(tmp_path / "out").result_path("square/x-1").write_text("{", encoding="utf-8")
    code, said = run("status", *where, "--runs", "--page", page)
    assert "failed: square/x-2: " in said
    assert "missing: square/x-1" in said
    assert "is damaged" in said
    assert "--only square" in page.read_text(encoding="utf-8")
    code, said = run("reproduce", *where, "--force", "--only", "square/x-1")
    assert (code, started(tmp_path)) == (0, [1, 2, 1])
    (tmp_path / "square.ipynb").unlink()
    assert run("reproduce", *where, "--force", "--only", "square/x-1")[0] == 1
    _, said = run("status", *where, "--runs", "--only", "square/x-1")
    assert "failed: square/x-1: " in said


@pytest.mark.parametrize(
    ("arguments", "piece"),
    [
        (("--only", "cube"), "'cube'"),
        (("square",), "--only square"),
        (("--jobs", 2, "--scheduler", "tcp://localhost:1"), "got both"),
        (("--jobs", 0), "--jobs"),
        (("--profile", "fast"), "'smoke', 'quick', 'paper'"),
    ],
)
def test_wrong_options_are_refused(arguments: Sequence[object], piece: str, tmp_path: Path) -> None:
    write_squares(tmp_path, [1])
    code, said = run("reproduce", "--experiments", tmp_path / "experiments.yml", *arguments)
    assert code == 2
    assert piece in said
    assert not (tmp_path / "results").exists()


def test_help_names_the_options() -> None:
    for command, option in (("reproduce", "--scheduler ADDRESS"), ("status", "--page")):
        code, said = run(command, "--help")
        assert code == 0
        assert option in said


# --- real processes ---


@pytest.fixture
def begin(tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Start ``reproduce`` on the folder in a process of its own; it is killed at the end."""
    processes = []

    def start(*arguments: object) -> subprocess.Popen[str]:
        command = ["reproduce", "--experiments", tmp_path / "experiments.yml", *arguments]
        process = subprocess.Popen(
            [sys.executable, "-m", "lkm_gpflow.cli", *map(str, command)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        processes.append(process)
        return process

    yield start
    for process in processes:
        if process.poll() is None:
            process.kill()
            process.communicate()


def are_gone(pids: Sequence[int]) -> bool:
    return not any(
        psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
        for pid in pids
    )


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_notebooks_too(
    number: signal.Signals, tmp_path: Path, begin: Callable[..., subprocess.Popen[str]]
) -> None:
    write_squares(tmp_path, [1, 2, 3], pause=300.0)
    process = begin("--jobs", 2)
    wait_until(lambda: len(kernels(tmp_path)) == 2)
    process.send_signal(number)
    said, _ = process.communicate(timeout=60)
    assert process.returncode == 128 + number, said
    assert "the same command continues" in said
    assert "Traceback" not in said
    assert are_gone(kernels(tmp_path))
    assert len(started(tmp_path)) == 2
    store = Store(tmp_path / "results")
    assert not list(store.folder.rglob("*.json"))  # being stopped is no failure


def has_begun(folder: Path, before: int, process: subprocess.Popen[str]) -> bool:
    return len(started(folder)) > before or process.poll() is not None


def kill_and_restart(
    folder: Path, begin: Callable[..., subprocess.Popen[str]], waits: Sequence[float]
) -> None:
    """Kill a runner after each of these seconds from its first notebook, then let it end."""
    store = Store(folder / "results")
    finished: set[int] = set()
    for seconds in (*waits, None):
        before = len(started(folder))
        process = begin("--jobs", 2)
        if seconds is None:
            said, _ = process.communicate(timeout=240)
            assert process.returncode == 0, said
        else:
            wait_until(partial(has_begun, folder, before, process))
            time.sleep(seconds)
            process.kill()
            process.communicate()
            wait_until(lambda: are_gone(kernels(folder)), 20.0)
        again = set(started(folder)[before:]) & finished
        assert not again, "what was finished is repeated"
        for path in (store.folder / "runs").rglob("*"):
            assert path.is_dir() or json.loads(path.read_text(encoding="utf-8"))["scores"]
        finished = set(squares(store))


def test_killed_and_started_again_it_ends_with_the_same_results(
    tmp_path: Path, begin: Callable[..., subprocess.Popen[str]]
) -> None:
    numbers = list(range(3))
    write_squares(tmp_path, numbers, pause=0.3)
    kill_and_restart(tmp_path, begin, [1.0])
    assert squares(Store(tmp_path / "results")) == {x: x * x for x in numbers}


@pytest.mark.slow
def test_killed_ten_times_at_random(
    tmp_path: Path, begin: Callable[..., subprocess.Popen[str]]
) -> None:
    rng = random.Random(0)
    numbers = list(range(14))
    write_squares(tmp_path, numbers, pause=0.5)
    kill_and_restart(tmp_path, begin, [rng.uniform(0.0, 4.0) for _ in range(10)])
    assert squares(Store(tmp_path / "results")) == {x: x * x for x in numbers}


@pytest.mark.slow
def test_two_runners_share_the_work(
    tmp_path: Path, begin: Callable[..., subprocess.Popen[str]]
) -> None:
    numbers = list(range(6))
    write_squares(tmp_path, numbers, pause=0.5)
    processes = [begin("--jobs", 1) for _ in range(2)]
    for process in processes:
        said, _ = process.communicate(timeout=240)
        assert process.returncode == 0, said
    assert sorted(started(tmp_path)) == numbers
    assert squares(Store(tmp_path / "results")) == {x: x * x for x in numbers}


@pytest.mark.slow
def test_a_cluster_that_loses_a_worker_loses_no_run(tmp_path: Path) -> None:
    distributed = pytest.importorskip("distributed")
    numbers = list(range(6))
    plan = write_squares(tmp_path, numbers, pause=2.0)
    store = Store(tmp_path / "results")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
    ) as cluster:

        def kill_a_worker() -> None:
            wait_until(lambda: len(squares(store)) >= 1 and len(started(tmp_path)) >= 3)
            newest = psutil.Process(kernels(tmp_path)[-1])
            os.kill(newest.parent().ppid(), signal.SIGKILL)  # notebook, child, worker

        killer = threading.Thread(target=kill_a_worker)
        killer.start()
        with dask_workers(cluster.scheduler_address) as workers:
            outcomes = reproduce(plan.runs("smoke"), plan, store, workers)
        killer.join()
    assert {outcome.state for outcome in outcomes} <= {"done", "there"}
    assert squares(store) == {x: x * x for x in numbers}
    assert are_gone(kernels(tmp_path))
    starts = started(tmp_path)
    assert len(starts) == len(numbers) + 1, "the run of the lost worker, and no other, ran twice"


@pytest.mark.slow
def test_a_signal_stops_notebooks_on_a_cluster_too(
    tmp_path: Path, begin: Callable[..., subprocess.Popen[str]]
) -> None:
    distributed = pytest.importorskip("distributed")
    write_squares(tmp_path, [1, 2, 3], pause=300.0)
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
    ) as cluster:
        process = begin("--scheduler", cluster.scheduler_address)
        wait_until(lambda: len(kernels(tmp_path)) == 2, 300.0)
        process.send_signal(signal.SIGINT)
        said, _ = process.communicate(timeout=120)
        assert process.returncode == 128 + signal.SIGINT, said
        assert "the same command continues" in said
        assert "Traceback" not in said
        wait_until(lambda: are_gone(kernels(tmp_path)), 60.0)
        assert len(started(tmp_path)) == 2
        assert len(cluster.scheduler_info["workers"]) == 2, "the cluster is not ours to stop"
    assert not list((tmp_path / "results").rglob("*.json"))  # being stopped is no failure


@pytest.mark.slow
def test_a_scheduler_that_goes_away_is_no_failure_of_runs(tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    plan = write_squares(tmp_path, [1, 2, 3], pause=1.0)
    store = Store(tmp_path / "results")
    file = tmp_path / "scheduler.json"
    command = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    scheduler = subprocess.Popen(
        [*command, "--port", "0", "--no-dashboard", "--scheduler-file", str(file)], **quiet
    )
    wait_until(lambda: file.exists() and file.stat().st_size > 0)
    address = json.loads(file.read_text())["address"]
    worker = subprocess.Popen(
        [sys.executable, "-m", "distributed.cli.dask_worker", address, "--nthreads", "1",
         "--no-nanny", "--no-dashboard", "--death-timeout", "60"], **quiet,
    )  # fmt: skip

    def kill_the_scheduler() -> None:
        wait_until(lambda: len(squares(store)) >= 1, 300.0)
        scheduler.kill()

    killer = threading.Thread(target=kill_the_scheduler)
    killer.start()
    try:
        with (
            pytest.raises(WorkersLost, match=rf"scheduler.*kept in {store.folder}.*continues"),
            dask_workers(address) as workers,
        ):
            reproduce(plan.runs("smoke"), plan, store, workers)
        killer.join()
        worker.wait(60)
        wait_until(lambda: are_gone(kernels(tmp_path)), 30.0)
        assert not list((store.folder / "failures").rglob("*.json"))
        assert reproduced(plan, store)["square/x-1"].state == "there"
        assert squares(store) == {1: 1, 2: 4, 3: 9}
    finally:
        for process in (worker, scheduler):
            process.kill()
            process.wait()


def test_a_scheduler_that_does_not_answer_is_refused_and_left_alone() -> None:
    distributed, dask = pytest.importorskip("distributed"), pytest.importorskip("dask")
    with (
        pytest.raises(ValueError, match="address of a Dask scheduler"),
        dask_workers("nonsense://x"),
    ):
        pass
    with pytest.raises(ValueError, match="No global client"):
        distributed.get_client()
    assert "scheduler" not in dask.config.config  # what xarray writes files with

"""Executors: results that do not depend on them, workers that die, schedulers that go away."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import jobs
import psutil
import pytest
from small import QUICK_SEARCH, assert_same, two_series
from threadpoolctl import threadpool_info, threadpool_limits

import lkm_gpflow as lkm
from lkm_gpflow.runtime import executors
from lkm_gpflow.runtime.budget import OutOfBudget
from lkm_gpflow.runtime.executors import WorkersLost, run_all
from lkm_gpflow.runtime.threads import single_threaded

pytestmark = pytest.mark.usefixtures("quick_fits")
SQUARES = {x: x * x for x in range(4)}


@pytest.fixture(scope="module")
def serial(quick_fits: None) -> lkm.Discovery:
    return lkm.discover(two_series(), **QUICK_SEARCH)


# --- threads and processes ---


def collect(todo: Any, executor: Executor | None, done: dict[Any, Any], enough: int) -> None:
    for key, result in run_all(todo, executor, lambda: "enough" * (len(done) >= enough)):
        done[key] = result


def test_a_budget_stops_jobs_here_before_the_next() -> None:
    done: dict[int, int] = {}
    todo = {x: partial(jobs.square, x) for x in SQUARES}
    with pytest.raises(OutOfBudget, match="enough"):
        collect(todo, None, done, enough=2)
    assert done == {0: 0, 1: 1}


def test_a_budget_does_not_wait_for_busy_workers(tmp_path: Path) -> None:
    """One job is done, one is under way, one has not begun."""
    end, done = tmp_path / "end", dict[str, object]()
    todo: dict[str, Callable[[], object]] = {
        "quick": partial(jobs.square, 2),
        "busy": partial(jobs.wait_for, end),
        "waiting": partial(jobs.wait_for, end),
    }
    with ThreadPoolExecutor(1) as pool:
        began = time.monotonic()
        with pytest.raises(OutOfBudget):
            collect(todo, pool, done, enough=1)
        assert time.monotonic() - began < 20.0
        end.touch()
    assert done == {"quick": 4}


def test_threads_give_what_one_process_does(serial: lkm.Discovery) -> None:
    """The functions that TensorFlow traces once are shared by them."""
    with ThreadPoolExecutor(3) as pool:
        assert_same(lkm.discover(two_series(), executor=pool, **QUICK_SEARCH), serial)


def limits() -> list[int]:
    return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]


def test_the_caller_limits_the_threads_of_a_thread_pool(monkeypatch: pytest.MonkeyPatch) -> None:
    """A limit that a worker thread sets may not hold in it."""
    one = type(single_threaded())()
    monkeypatch.setattr(executors, "single_threaded", lambda: one)
    with threadpool_limits(2, "blas"), ThreadPoolExecutor(2) as pool:
        seen = dict(run_all(dict.fromkeys("abc", limits), pool))
        assert [set(each) for each in seen.values()] == [{1}] * 3


def test_jobs_of_a_killed_worker_are_done_again(tmp_path: Path) -> None:
    with lkm.process_pool(2) as pool:
        todo = {x: partial(jobs.square_but_die_at_first, x, tmp_path) for x in (2, 3)}
        todo |= {x: partial(jobs.square, x) for x in (0, 1)}
        assert dict(run_all(todo, pool)) == SQUARES


def test_jobs_that_kill_their_workers_again_and_again_are_an_error() -> None:
    with (
        lkm.process_pool(1) as pool,
        pytest.raises(WorkersLost, match=r"died or went away 3 times in a row.*memory"),
    ):
        list(run_all({"deadly": jobs.die}, pool))


def test_a_pool_that_takes_no_jobs_after_a_death_is_an_error(tmp_path: Path) -> None:
    with (
        ProcessPoolExecutor(1) as pool,
        pytest.raises(WorkersLost, match="the executor takes no more jobs: BrokenProcessPool"),
    ):
        list(run_all({0: jobs.die}, pool))
    closed = ThreadPoolExecutor(1)
    closed.shutdown()
    journal, ledger = tmp_path / "journal.jsonl", tmp_path / "ledger.jsonl"
    with pytest.raises(WorkersLost, match=rf"takes no more jobs.*kept in {journal}.*continues"):
        lkm.backtest(
            two_series(), "last-value", 3, executor=closed, journal=journal, progress=False
        )
    with pytest.raises(WorkersLost, match=rf"takes no more jobs.*kept in {ledger}.*continues"):
        lkm.discover(two_series(), executor=closed, ledger=ledger, **QUICK_SEARCH)
    with pytest.raises(WorkersLost, match="nothing is kept, because no ledger was given"):
        lkm.discover(two_series(), executor=closed, **QUICK_SEARCH)


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_workers_end_with_a_parent_that_was_killed() -> None:
    code = (
        "import os, jobs, lkm_gpflow, signal\n"
        "if __name__ == '__main__':\n"
        "    pool = lkm_gpflow.process_pool(2)\n"
        "    pids = {pool.submit(jobs.process_id, 1.0) for _ in range(2)}\n"
        "    print(*(pid.result() for pid in pids), flush=True)\n"
        "    pool.submit(jobs.process_id, 100.0)\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, env=environment
    ) as parent:
        assert parent.stdout is not None
        pids = [int(pid) for pid in parent.stdout.readline().split()]
    assert len(pids) == 2
    jobs.wait_until(lambda: not any(map(psutil.pid_exists, pids)), 20.0)


# --- a Dask cluster ---


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Two worker processes, one thread each."""
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
    ) as cluster:
        yield cluster


def workers_of(cluster: Any) -> list[int]:
    return [nanny.pid for nanny in cluster.workers.values()]


@pytest.mark.slow
def test_a_cluster_that_loses_a_worker_finds_the_same(
    cluster: Any, serial: lkm.Discovery, tmp_path: Path
) -> None:
    """A worker is killed when two fits are done and others are under way."""
    ledger, killed = tmp_path / "ledger.jsonl", []

    def kill_a_worker() -> None:
        jobs.wait_until(lambda: ledger.exists() and ledger.read_text().count('{"fit"') >= 2)
        killed.append(workers_of(cluster)[0])
        os.kill(killed[0], signal.SIGKILL)

    killer = threading.Thread(target=kill_a_worker)
    killer.start()
    with cluster.get_client() as client:
        executor = client.get_executor(pure=False)
        found = lkm.discover(two_series(), ledger=ledger, executor=executor, **QUICK_SEARCH)
    killer.join()
    assert_same(found, serial)
    assert found.stopped == ""
    jobs.wait_until(lambda: len(workers_of(cluster)) == 2 and killed[0] not in workers_of(cluster))


@pytest.fixture
def lonely(tmp_path: Path) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """Address and process of a scheduler, with one worker: both processes of their own."""
    pytest.importorskip("distributed")
    file = tmp_path / "scheduler.json"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    start = partial(
        subprocess.Popen, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment
    )
    command = [sys.executable, "-m"]
    scheduler = start(
        [*command, "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0",
         "--no-dashboard", "--scheduler-file", str(file)]
    )  # fmt: skip
    worker = start(
        [*command, "distributed.cli.dask_worker", "--scheduler-file", str(file), "--nthreads", "1",
         "--no-dashboard", "--no-nanny", "--death-timeout", "60"]
    )  # fmt: skip
    try:
        jobs.wait_until(lambda: file.exists() and file.stat().st_size > 0)
        yield str(file), scheduler
    finally:
        for process in (worker, scheduler):
            process.kill()
            process.wait()


@pytest.mark.slow
def test_a_search_goes_on_after_its_scheduler_went_away(
    lonely: tuple[str, subprocess.Popen[bytes]], serial: lkm.Discovery, tmp_path: Path
) -> None:
    from distributed import Client

    file, scheduler = lonely
    ledger = tmp_path / "ledger.jsonl"

    def kill_the_scheduler() -> None:
        jobs.wait_until(lambda: ledger.exists() and ledger.read_text().count('{"fit"') >= 3)
        scheduler.kill()

    killer = threading.Thread(target=kill_the_scheduler)
    killer.start()
    with Client(scheduler_file=file, timeout="10s") as client:
        executor = client.get_executor(pure=False)
        with pytest.raises(WorkersLost, match=rf"scheduler.*is kept in {ledger}.*continues"):
            lkm.discover(two_series(), ledger=ledger, executor=executor, **QUICK_SEARCH)
    killer.join()
    kept = ledger.read_text()
    assert kept.count('{"fit"') >= 3
    assert_same(lkm.discover(two_series(), ledger=ledger, **QUICK_SEARCH), serial)
    assert ledger.read_text().startswith(kept), "what was kept is not done again"


def _threads_of_tensorflow() -> int:
    import tensorflow as tf

    tf.linalg.matmul(tf.ones([300, 300]), tf.ones([300, 300]))
    return len(os.listdir("/proc/self/task"))


@pytest.mark.tensorflow
@pytest.mark.skipif(
    not Path("/proc/self/task").is_dir(), reason="Linux says what threads there are"
)
def test_tensorflow_of_a_worker_has_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if more are asked for where the parent was started."""
    monkeypatch.setenv("TF_NUM_INTRAOP_THREADS", "40")
    monkeypatch.setenv("TF_NUM_INTEROP_THREADS", "40")
    with lkm.process_pool(1) as pool:
        assert pool.submit(_threads_of_tensorflow).result() < 30

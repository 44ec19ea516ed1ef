"""Independent jobs, here or by an executor; processes and threads that suit the work."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    Executor,
    Future,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
    wait,
)
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import ParamSpec, TypeVar

from threadpoolctl import threadpool_limits

from .budget import OutOfBudget, Spent
from .loading import loading
from .news import Hear, Newsroom, heard_by
from .text import whole_number
from .threads import single_threaded

_Key = TypeVar("_Key")
_Result = TypeVar("_Result")
_Arguments = ParamSpec("_Arguments")

_MOST_LOSSES = 3  # so often in a row, with no job finished between, workers may be lost
_MANY = 1000  # workers of an executor that does not say how many it has: a cluster

_ONE_THREAD_EACH = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "TF_NUM_INTEROP_THREADS": "1",
    "TF_NUM_INTRAOP_THREADS": "1",
}
"""What tells libraries that a worker loads later how many threads to start."""

_POLL = 0.5
"""Seconds after which budgets and the connection are looked at again while workers are busy."""


class WorkersLost(RuntimeError):
    """The workers of an executor are gone; the text says what was lost, kept, and what to do."""


def check_executor(executor: object) -> None:
    """Refuse what is neither None nor a `concurrent.futures.Executor`."""
    if executor is not None and not isinstance(executor, Executor):
        hint = (
            "client.get_executor() makes one of a Dask client"
            if hasattr(executor, "get_executor")
            else "lkm_gpflow.process_pool(4) is one of four processes"
        )
        raise ValueError(
            "expected an executor (concurrent.futures.Executor) or None, "
            f"got {type(executor).__name__} {executor!r}: {hint}"
        )


def num_workers(executor: Executor | None) -> int:
    """Return how many jobs an executor runs at a time; many if it does not say."""
    if executor is None:
        return 1
    return int(getattr(executor, "_max_workers", None) or _MANY)


def run_all(
    jobs: Mapping[_Key, Callable[[], _Result]],
    executor: Executor | None,
    spent: Spent | None = None,
    hear: Hear | None = None,
) -> Iterator[tuple[_Key, _Result]]:
    """Run jobs and yield their keys and results as they finish.

    A job whose worker died is done again: Dask sees to that itself, `process_pool` takes it a
    second time, a plain `ProcessPoolExecutor` does not and is an error.  Without an executor jobs
    run one by one in this process.  What has not begun when the caller stops is cancelled.

    `spent` is asked before every job of this process, and twice a second while an executor works;
    the OutOfBudget that follows does not wait for its jobs.  `hear` takes the news that jobs tell,
    see `news`.  WorkersLost says that the executor takes no jobs any more, loses its workers again
    and again, or lost its scheduler.
    """
    if executor is None:
        for key, job in jobs.items():
            _stop_if(spent)
            with heard_by(hear):
                result = job()
            yield key, result
        return
    if isinstance(executor, ThreadPoolExecutor):
        # Limits that a thread sets may not hold in it: they are set here, for all of them.
        with single_threaded():
            yield from _run_on(executor, jobs, spent, hear)
    else:
        yield from _run_on(executor, jobs, spent, hear)


def _run_on(
    executor: Executor,
    jobs: Mapping[_Key, Callable[[], _Result]],
    spent: Spent | None,
    hear: Hear | None,
) -> Iterator[tuple[_Key, _Result]]:
    """Run jobs by an executor, see `run_all`; all that are left anew when a worker is lost."""
    left, losses = dict(jobs), 0
    while left:
        futures: dict[Future[_Result], _Key] = {}
        with Newsroom(hear) as newsroom:
            try:
                for key, job in left.items():
                    futures[_submitted(executor, newsroom.reporting(job))] = key
                for future in as_finished(futures, executor, spent, newsroom.look):
                    result = future.result()
                    del left[futures[future]]
                    losses = 0
                    yield futures[future], result
            except BrokenExecutor as error:
                losses += 1
                if losses == _MOST_LOSSES:
                    raise WorkersLost(
                        f"workers died or went away {losses} times in a row, none finished its job "
                        f"(are they short of memory?): {_said(error)}"
                    ) from error
            finally:
                for future in futures:
                    future.cancel()


def as_finished(
    futures: Iterable[Future[_Result]],
    executor: Executor,
    spent: Spent | None = None,
    look: Callable[[], None] | None = None,
) -> Iterator[Future[_Result]]:
    """Yield futures of an executor as they finish, also one whose scheduler may go away.

    It raises what `run_all` raises, but futures whose worker died are yielded.
    """
    waiting = set(futures)
    while waiting:
        done, waiting = wait(waiting, _POLL, FIRST_COMPLETED)
        # Results first: when a pool breaks, some may have finished before.
        for future in sorted(
            done, key=lambda each: each.cancelled() or isinstance(each.exception(), BrokenExecutor)
        ):
            if future.cancelled():
                raise WorkersLost("the jobs were cancelled: did the scheduler go away?")
            yield future
        if waiting:
            if look is not None:
                look()
            _stop_if(spent)
            if not done and _is_closed(executor):
                raise WorkersLost("the connection to the scheduler is closed")


def _submitted(executor: Executor, job: Callable[[], _Result]) -> Future[_Result]:
    try:
        return executor.submit(job)
    except Exception as error:
        raise WorkersLost(f"the executor takes no more jobs: {_said(error)}") from error


def _is_closed(executor: Executor) -> bool:
    """Whether a Dask client has given up: what it was given then would be waited for for ever."""
    client = getattr(executor, "_client", None)
    return client is not None and getattr(client, "status", "") in ("closing", "closed")


def _stop_if(spent: Spent | None) -> None:
    if spent is not None and (which := spent()):
        raise OutOfBudget(which)


def _said(error: BaseException) -> str:
    return f"{type(error).__name__}{f': {error}' if str(error) else ''}"


@contextmanager
def kept_in(path: str | Path | None, parameter: str) -> Iterator[None]:
    """Say of lost workers, and after Ctrl-C, where the results are and how to go on.

    `path` is the file that keeps results, if there is one, and `parameter` the caller's name for
    it.
    """
    kept = f"finished work is kept in {path}"
    if path is None:
        kept = f"nothing is kept, because no {parameter} was given"
    try:
        yield
    except WorkersLost as error:
        way_on = ": the same call with a working executor, or without one, continues from there"
        raise WorkersLost(f"{error}; {kept}{way_on if path else ''}") from error
    except KeyboardInterrupt:
        way_on = ", and the same call continues from there"
        if path is None:
            way_on = f"; with {parameter}='FILE' the same call continues after a stop"
        # Not from the old one: where it was stopped is of no interest to whoever stopped it.
        raise KeyboardInterrupt(f"stopped: {kept}{way_on}") from None


class _RenewedPool(Executor):
    """A pool of processes that is replaced by a fresh one when a worker dies."""

    def __init__(self, jobs: int | None) -> None:
        self._max_workers = jobs or os.cpu_count() or 1  # called as in the standard library
        self._lock = threading.Lock()
        self._pool = self._fresh()

    def _fresh(self) -> ProcessPoolExecutor:
        context = multiprocessing.get_context("spawn")
        return ProcessPoolExecutor(self._max_workers, context, _prepare_worker)

    def submit(
        self, fn: Callable[_Arguments, _Result], /, *args: _Arguments.args,
        **kwargs: _Arguments.kwargs,
    ) -> Future[_Result]:  # fmt: skip
        """Submit a job, to a fresh pool if the workers have died."""
        with self._lock:
            try:
                return self._pool.submit(fn, *args, **kwargs)
            except BrokenExecutor:
                self._pool.shutdown(wait=False)
                self._pool = self._fresh()
                return self._pool.submit(fn, *args, **kwargs)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """End the workers; after Ctrl-C at once, without waiting for their jobs."""
        if kind is KeyboardInterrupt:
            for worker in dict(getattr(self._pool, "_processes", None) or {}).values():
                worker.terminate()
        self.shutdown(wait=kind is not KeyboardInterrupt, cancel_futures=True)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End the workers, by default when their jobs are done."""
        self._pool.shutdown(wait, cancel_futures=cancel_futures)


def process_pool(jobs: int | None = None) -> Executor:
    """Return a pool of so many worker processes (by default one a processor) that suits TensorFlow.

    Workers are started afresh (a forked TensorFlow hangs) and use one thread each.  The parent
    handles Ctrl-C, and workers end with it.  If a worker dies, the pool starts new ones and keeps
    taking jobs.  A ValueError says if `jobs` is no whole number of at least one.
    """
    return _RenewedPool(None if jobs is None else whole_number(jobs, "processes", 1))


def start_workers(executor: Executor, module: str) -> None:
    """Let workers start and import a module, while this process has something else to do.

    Otherwise they start when the first jobs are there.
    """
    for _ in range(num_workers(executor)):
        executor.submit(_import, module)


def _import(module: str) -> None:
    with loading():
        import_module(module)


def in_threads(jobs: Sequence[Callable[[], _Result]]) -> list[_Result]:
    """Run jobs that leave the interpreter's lock alone, one thread a processor; their results.

    Each does its linear algebra in one thread.
    """
    with single_threaded(), ThreadPoolExecutor(os.cpu_count() or 1) as threads:
        return list(threads.map(lambda job: job(), jobs))


def _prepare_worker() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    os.environ.update(_ONE_THREAD_EACH)
    threadpool_limits(limits=1)  # of what is loaded by now


def _end_with_parent() -> None:
    """End when the parent was killed: a worker would wait for its next job for ever."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)

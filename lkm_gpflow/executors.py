"""Independent jobs, here or by an executor; processes and threads that suit the work."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Executor, ProcessPoolExecutor, as_completed
from contextlib import AbstractContextManager
from typing import TypeVar

from threadpoolctl import threadpool_limits

_Key = TypeVar("_Key")
_Result = TypeVar("_Result")


def run_all(
    jobs: Mapping[_Key, Callable[[], _Result]], executor: Executor | None
) -> Iterator[tuple[_Key, _Result]]:
    """Run jobs and yield their keys and results as they finish.

    Parameters
    ----------
    jobs
        What to run, by key; for a pool of processes they must be picklable.
    executor
        Where; None: one by one in this process.  What has not begun when the caller stops is
        cancelled.
    """
    if executor is None:
        for key, job in jobs.items():
            yield key, job()
        return
    futures = {executor.submit(job): key for key, job in jobs.items()}
    try:
        for future in as_completed(futures):
            yield futures[future], future.result()
    finally:
        for future in futures:
            future.cancel()


def process_pool(jobs: int | None = None) -> ProcessPoolExecutor:
    """Return a pool of worker processes that suits TensorFlow.

    Workers are started afresh (a forked TensorFlow hangs) and use one thread each.  Ctrl-C is left
    to the parent.

    Parameters
    ----------
    jobs
        Number of processes; by default the number of processors.
    """
    context = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(jobs or os.cpu_count(), context, initializer=_prepare_worker)


def single_threaded() -> AbstractContextManager[object]:
    """Return a context in which NumPy's and SciPy's linear algebra uses one thread.

    Its threads wait in busy loops: matrices of some hundred rows cost several times the processor
    time with two of them, and many times where all processors are taken.
    """
    return threadpool_limits(limits=1, user_api="blas")


def _prepare_worker() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threadpool_limits(limits=1)
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    import tensorflow as tf

    tf.config.threading.set_inter_op_parallelism_threads(1)
    tf.config.threading.set_intra_op_parallelism_threads(1)

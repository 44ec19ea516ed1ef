"""Worker processes for independent fits."""

from __future__ import annotations

import multiprocessing
import os
import signal
from concurrent.futures import ProcessPoolExecutor


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


def _prepare_worker() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    import tensorflow as tf

    tf.config.threading.set_inter_op_parallelism_threads(1)
    tf.config.threading.set_intra_op_parallelism_threads(1)

"""How many threads linear algebra may use."""

from __future__ import annotations

import threading
from contextlib import AbstractContextManager, ContextDecorator, nullcontext

from threadpoolctl import threadpool_limits

FEW_ROWS = 1500  # matrices of more gain by several threads on idle processors


def single_threaded() -> _OneThread:
    """Return a context, or decorator, in which NumPy's and SciPy's linear algebra uses one thread.

    Its threads wait in busy loops: matrices of some hundred rows cost several times the processor
    time with two of them, and many times where all processors are taken.
    """
    return _ONE_THREAD


def threads_for(num_rows: int) -> AbstractContextManager[object]:
    """Return `single_threaded` for matrices of few rows; for others nothing is changed."""
    return single_threaded() if num_rows <= FEW_ROWS else nullcontext()


class _OneThread(ContextDecorator):
    """The limit, from the first thread that enters to the last that leaves.

    It belongs to the whole process: a thread of its own limit would restore that of another.
    """

    def __init__(self) -> None:
        self._lock, self._inside = threading.Lock(), 0
        self._limit: threadpool_limits | None = None

    def __enter__(self) -> None:
        with self._lock:
            self._inside += 1
            if self._limit is None:
                self._limit = threadpool_limits(limits=1, user_api="blas")

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0 and self._limit is not None:
                self._limit.restore_original_limits()
                self._limit = None


_ONE_THREAD = _OneThread()

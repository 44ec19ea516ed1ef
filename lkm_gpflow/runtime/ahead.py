"""Jobs that idle workers begin before it is known whether their results are wanted."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from concurrent.futures import Executor, Future
from typing import Generic, TypeVar

_Key = TypeVar("_Key", bound=Hashable)
_Result = TypeVar("_Result")


class Ahead(Generic[_Key, _Result]):
    """Jobs that may come next, of which some have begun.

    Parameters
    ----------
    executor
        Where they run; None: in this process, which begins nothing ahead.
    num_workers
        How many jobs it runs at a time.
    """

    def __init__(self, executor: Executor | None, num_workers: int) -> None:
        self._executor = executor
        self._num_workers = num_workers
        self._possible: Mapping[_Key, Callable[[], _Result]] = {}
        self._begun: dict[_Key, Future[_Result]] = {}

    def expect(self, jobs: Mapping[_Key, Callable[[], _Result]]) -> None:
        """Say which jobs may come next."""
        self._possible = jobs

    def begin(self, busy: int) -> None:
        """Begin what workers have time for, of which so many are busy with other jobs."""
        if self._executor is None:
            return
        busy += sum(not future.done() for future in self._begun.values())
        for key, job in self._possible.items():
            if busy >= self._num_workers:
                return
            if key not in self._begun:
                try:
                    self._begun[key] = self._executor.submit(job)
                except Exception:  # whoever submits a job that is wanted will complain
                    return
                busy += 1

    def take(self, key: _Key) -> Future[_Result] | None:
        """Hand over a job that is wanted now, if it has begun."""
        return self._begun.pop(key, None)

    def drop(self) -> None:
        """Forget all jobs: something else comes next.  Those under way are not waited for."""
        for future in self._begun.values():
            future.cancel()
        self._possible, self._begun = {}, {}

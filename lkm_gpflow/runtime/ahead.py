"""Jobs that idle workers begin before anybody waits for their results."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from concurrent.futures import Executor, Future
from typing import Any, TypeAlias

_Jobs: TypeAlias = Mapping[Any, Callable[[], Any]]


class Ahead:
    """Jobs that come later, or that may come next, of which some have begun.

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
        self._certain: dict[Hashable, Callable[[], Any]] = {}
        self._possible: _Jobs = {}
        self._begun: dict[Hashable, Future[Any]] = {}

    def want(self, jobs: _Jobs) -> None:
        """Say which jobs are wanted later in any case; they begin before what may come next."""
        self._certain.update(jobs)

    def expect(self, jobs: _Jobs) -> None:
        """Say which jobs may come next."""
        self._possible = jobs

    def begin(self, busy: int) -> None:
        """Begin what workers have time for, of which so many are busy with other jobs."""
        if self._executor is None:
            return
        busy += sum(not future.done() for future in self._begun.values())
        for key, job in (*self._certain.items(), *self._possible.items()):
            if busy >= self._num_workers:
                return
            if key not in self._begun:
                try:
                    self._begun[key] = self._executor.submit(job)
                except Exception:  # whoever submits a job that is wanted will complain
                    return
                busy += 1

    def take(self, key: Hashable) -> Future[Any] | None:
        """Hand over a job whose result is waited for now, if it has begun."""
        self._certain.pop(key, None)
        return self._begun.pop(key, None)

    def drop(self) -> None:
        """Forget what may have come next: something else does.

        Jobs under way are not waited for.
        """
        for key in [key for key in self._begun if key not in self._certain]:
            self._begun.pop(key).cancel()
        self._possible = {}

    def close(self) -> None:
        """Forget all jobs."""
        self._certain = {}
        self.drop()

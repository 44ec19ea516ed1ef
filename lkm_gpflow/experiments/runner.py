"""Run what is missing of a profile: here on several processors, or on a Dask cluster."""

from __future__ import annotations

import sys
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Any

from tqdm import tqdm

from ..runtime.executors import as_finished, kept_in
from . import execution
from .execution import Outcome
from .profiles import Plan, Run
from .store import Store

_PAUSE = 2.0
"""Seconds before a run that somebody else is at is asked for again."""


@dataclass(frozen=True)
class Workers:
    """Where runs are executed.

    Parameters
    ----------
    executor
        Its workers see the folders of notebooks and results, and import this package.
    stop
        Stops what the workers are running for an owner.
    """

    executor: Executor
    stop: Callable[[str], None]


@contextmanager
def local_workers(jobs: int) -> Iterator[Workers]:
    """Execute so many runs at a time on this machine, each in processes of its own."""
    executor = ThreadPoolExecutor(jobs)
    try:
        yield Workers(executor, execution.stop)
    finally:
        executor.shutdown(cancel_futures=True)


@contextmanager
def dask_workers(address: str) -> Iterator[Workers]:
    """Execute runs on a Dask cluster, as many at a time as its workers have threads.

    Its workers must see the same folders under the same names.

    Raises
    ------
    ValueError
        If Dask is not installed, or no scheduler answers at the address.
    """
    try:
        from distributed import Client
    except ImportError as error:
        raise ValueError(
            "--scheduler needs Dask: pip install '.[scale]' in a clone of lkm_gpflow, or run "
            "without it"
        ) from error
    try:
        # As the default, even a client that got no answer would serve the whole process.
        client: Any = Client(address, timeout="10s", set_as_default=False)
    except (OSError, ValueError) as error:
        raise ValueError(
            f"expected the address of a Dask scheduler such as tcp://host:8786, got {address!r} "
            f"({error})"
        ) from error

    def stop(owner: str) -> None:
        # Workers whose scheduler went away end by themselves, and their notebooks with them.
        if client.status == "running":
            client.run(execution.stop, owner)

    try:
        yield Workers(client.get_executor(pure=False), stop)
    finally:
        client.close()


def reproduce(
    runs: Sequence[Run],
    plan: Plan,
    store: Store,
    workers: Workers,
    *,
    force: bool = False,
    say: Callable[[str], None] = lambda line: None,
) -> list[Outcome]:
    """Execute runs that are not finished, those that aggregate results after what they read.

    What fails is kept and does not stop the others.  A run that somebody else is at is waited for.

    Parameters
    ----------
    runs
        See `Plan.runs`.
    plan
        What they are runs of, and where the notebooks are.
    store
        The folder of results.
    workers
        Where to execute.
    force
        Whether to run what is finished too.
    say
        Is given a line for each run that ends, where no progress bar is shown.

    Returns
    -------
    What became of each run, in the order in which they ended.

    Raises
    ------
    WorkersLost
        If a scheduler goes away; what is finished is kept.
    """
    session = _Session(plan.folder.resolve(), Store(store.folder.resolve()), workers, force)
    there = {run.id for run in runs if not (force or run.reads) and store.finished(run)}
    outcomes = [Outcome(run, "there") for run in runs if run.id in there]
    todo = [run for run in runs if run.id not in there]
    with _Progress(todo, say) as progress, kept_in(store.folder, "results"):
        try:
            for stage in _stages(todo):
                for outcome in session.execute([store.resolved(run, plan) for run in stage]):
                    progress.ended(outcome)
                    outcomes.append(outcome)
        except BaseException:
            session.stop()
            raise
    return outcomes


def _stages(runs: Sequence[Run]) -> Iterator[list[Run]]:
    """Yield runs in an order in which results are there before they are aggregated."""
    order = TopologicalSorter({run.experiment: run.reads for run in runs})
    order.prepare()
    while ready := order.get_ready():
        yield [run for run in runs if run.experiment in ready]
        order.done(*ready)


class _Session:
    """One call of `reproduce`."""

    def __init__(self, notebooks: Path, store: Store, workers: Workers, force: bool) -> None:
        self._notebooks, self._store, self._workers, self._force = notebooks, store, workers, force
        self._owner = str(uuid.uuid4())

    def execute(self, runs: Iterable[Run]) -> Iterator[Outcome]:
        """Yield what becomes of the runs, as they end."""
        waiting = list(runs)
        while waiting:
            busy = []
            for outcome in self._once(waiting):
                if outcome.state == "busy":
                    busy.append(outcome.run)
                else:
                    yield outcome
            if len(busy) == len(waiting):
                time.sleep(_PAUSE)
            waiting = busy

    def stop(self) -> None:
        """Stop what is under way."""
        self._workers.stop(self._owner)

    def _once(self, runs: Sequence[Run]) -> Iterator[Outcome]:
        where = (self._notebooks, self._store)
        futures = {
            self._workers.executor.submit(
                execution.execute, run, *where, self._owner, self._force
            ): run
            for run in runs
        }
        try:
            for future in as_finished(futures, self._workers.executor):
                try:
                    yield future.result()
                except Exception as error:
                    # The worker died, several times: `execute` itself does not raise.
                    said = f"{type(error).__name__}: {error}"
                    yield execution.keep(futures[future], *where, {}, 0.0, said)
        finally:
            for future in futures:
                future.cancel()


class _Progress:
    """A bar that moves by the minutes expected, so that its time left means something."""

    def __init__(self, runs: Sequence[Run], say: Callable[[str], None]) -> None:
        self._count = len(runs)
        self._left = sum(run.minutes for run in runs)
        self._ended = self._failed = 0
        self._say = say
        self._began = time.monotonic()
        self._done = 0.0
        self._bar: Any = tqdm(
            total=self._left,
            disable=not sys.stderr.isatty() or not runs,
            bar_format="{desc} {percentage:3.0f}%|{bar}| {elapsed}, left {remaining}{postfix}",
            desc=f"0 of {self._count} runs",
            smoothing=0.0,
        )

    def __enter__(self) -> _Progress:
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.close()

    def ended(self, outcome: Outcome) -> None:
        self._ended += 1
        self._failed += outcome.state == "failed"
        self._done += outcome.run.minutes
        failed = f", {self._failed} failed" if self._failed else ""
        self._bar.set_description_str(f"{self._ended} of {self._count} runs{failed}")
        self._bar.update(outcome.run.minutes)
        if self._bar.disable:
            elapsed = time.monotonic() - self._began
            left = elapsed * max(self._left - self._done, 0.0) / max(self._done, 1e-9) / 60.0
            what = {"there": "was finished"}.get(outcome.state, outcome.state)
            tail = f": {outcome.message}" if outcome.message else f" in {outcome.seconds:.0f} s"
            self._say(
                f"[{self._ended}/{self._count}] {outcome.run.id} {what}{tail}; "
                f"about {left:.0f} min left"
            )
        elif outcome.state == "failed":
            self._bar.write(f"failed: {outcome.run.id}: {outcome.message}", file=sys.stderr)

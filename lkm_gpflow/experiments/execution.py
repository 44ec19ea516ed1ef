"""Execute one run: claim it, run its notebook in a process of its own, keep what came out.

`execute` is what an executor is given, in a thread of this process or on a worker of a cluster.  It
may be killed at any time; so may the process that it starts.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Literal

from . import provenance
from .claims import claim
from .folders import RESULTS_VARIABLE
from .notebooks import check_parameters
from .profiles import Run, Scalar
from .scores import reported_scores
from .store import Record, Store

State = Literal["done", "there", "failed", "busy", "stopped"]

_PATIENCE = 15.0
"""Seconds in which a child that is asked to stop must have stopped; `child` wants fewer."""

_ONE_THREAD = {
    name: "1"
    for name in (
        "OMP_NUM_THREADS",
        "OPENBLAS_NUM_THREADS",
        "MKL_NUM_THREADS",
        "TF_NUM_INTRAOP_THREADS",
        "TF_NUM_INTEROP_THREADS",
    )
}
"""Runs share the processors among them; and sums are the same however many run at a time."""


@dataclass(frozen=True)
class Outcome:
    """What became of a run.

    Parameters
    ----------
    run
        The run.
    state
        "done", "failed", "there" (it was finished before), "busy" (somebody else is at it) or
        "stopped".
    seconds
        How long it took.
    message
        The last line of the error of one that failed.
    """

    run: Run
    state: State
    seconds: float = 0.0
    message: str = ""


class _Stopped(Exception):
    """The runner wants no more."""


class _Failed(Exception):
    """The notebook failed; its text is the traceback."""


class _Children:
    """The processes that were started here, by the runner they belong to."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: dict[subprocess.Popen[bytes], str] = {}
        self._stopped: set[str] = set()

    def start(self, owner: str, command: list[str], **options: object) -> subprocess.Popen[bytes]:
        with self._lock:
            if owner in self._stopped:
                raise _Stopped
            child = subprocess.Popen(command, stdin=subprocess.PIPE, **options)  # type: ignore[call-overload]
            self._running[child] = owner
            return child

    def ended(self, child: subprocess.Popen[bytes]) -> None:
        with self._lock:
            del self._running[child]

    def is_stopped(self, owner: str) -> bool:
        return owner in self._stopped

    def stop(self, owner: str) -> None:
        with self._lock:
            self._stopped.add(owner)
            for child, whose in self._running.items():
                if whose == owner:
                    child.terminate()


_children = _Children()


def stop(owner: str) -> None:
    """Stop the notebooks that this process runs for a runner, and start no more for it."""
    _children.stop(owner)


def execute(run: Run, notebooks: Path, store: Store, owner: str, force: bool = False) -> Outcome:
    """Execute a run unless it is finished or somebody is at it, and keep its result.

    Parameters
    ----------
    run
        What to run.
    notebooks
        The folder of the notebooks.
    store
        Where results are kept.
    owner
        The runner that wants it; see `stop`.
    force
        Whether to run it even if it is finished.
    """
    work = store.work_path(run.id)
    with claim(work.with_name(f"{work.name}.lock")) as claimed:
        if claimed is None:
            return Outcome(run, "busy")
        if not force and store.finished(run):
            return Outcome(run, "there")
        began = time.perf_counter()
        scores: dict[str, Scalar] = {}
        error = ""
        shutil.rmtree(work, ignore_errors=True)  # of one who was killed
        try:
            try:
                scores = _run_notebook(run, notebooks, store, owner, claimed)
            except _Stopped:
                return Outcome(run, "stopped")
            except _Failed as failure:
                error = str(failure)
            except Exception:
                error = traceback.format_exc()
            return keep(run, notebooks, store, scores, time.perf_counter() - began, error)
        finally:
            shutil.rmtree(work, ignore_errors=True)


def keep(
    run: Run,
    notebooks: Path,
    store: Store,
    scores: Mapping[str, Scalar],
    seconds: float,
    error: str,
) -> Outcome:
    """Keep what came out of a run."""
    data: dict[str, str] = {}
    try:
        data = {name: provenance.data_checksum(name) for name in run.data}
    except Exception:
        error = error or traceback.format_exc()
    store.keep(
        Record(
            id=run.id,
            configuration=run.configuration,
            hash=run.hash,
            data=data,
            scores={} if error else scores,
            seconds=round(seconds, 3),
            error=error,
            versions=provenance.versions(),
            processor=provenance.processor(),
            commit=provenance.commit(notebooks),
            finished=datetime.now(timezone.utc).isoformat(timespec="seconds"),
        )
    )
    message = error.strip().splitlines()[-1] if error else ""
    return Outcome(run, "failed" if error else "done", seconds, message)


def _run_notebook(
    run: Run, notebooks: Path, store: Store, owner: str, claimed: int
) -> dict[str, Scalar]:
    """Run the notebook in a child process and return what it reported."""
    check_parameters(notebooks / run.notebook, run.parameters)
    work = store.work_path(run.id)
    work.mkdir(parents=True)
    output, log, job = (work / name for name in ("output.ipynb", "log.txt", "job.json"))
    results = store.folder
    if run.reads:
        # It sees what its hash says that it aggregates, and no results of former plans.
        results = work / "results"
        store.copy(run.aggregated, results)
    what = {
        "notebook": str(notebooks / run.notebook),
        "output": str(output),
        "folder": str(notebooks),
        "parameters": dict(run.parameters),
    }
    job.write_text(json.dumps(what), encoding="utf-8")
    environment = {
        **os.environ,
        **_ONE_THREAD,
        RESULTS_VARIABLE: str(results.resolve()),
        "JUPYTER_RUNTIME_DIR": str((work / "runtime").resolve()),
    }
    environment.pop("MPLBACKEND", None)  # or pictures are not shown in the notebook
    command = [sys.executable, str(Path(__file__).with_name("child.py")), str(job)]
    with log.open("wb") as file:
        child = _children.start(
            owner,
            command,
            stdout=file,
            stderr=file,
            env=environment,
            start_new_session=True,  # Ctrl-C in a terminal is the runner's to handle
            pass_fds=(claimed,) if os.name == "posix" else (),
        )
        try:
            code = _wait(child, owner)
        finally:
            _children.ended(child)
            if child.stdin is not None:
                child.stdin.close()
    if code != 0:
        if _children.is_stopped(owner):
            raise _Stopped
        said = log.read_text(encoding="utf-8", errors="replace")
        raise _Failed(
            _plain(said) + f"\nthe notebook's process ended with code {code}: {_last(said)}"
        )
    notebook = json.loads(output.read_text(encoding="utf-8"))
    executed = store.executed_path(run.id)
    executed.parent.mkdir(parents=True, exist_ok=True)
    output.replace(executed)
    return reported_scores(notebook)


def _wait(child: subprocess.Popen[bytes], owner: str) -> int:
    """Wait for a child; one that is asked to stop and does not is killed."""
    patience = _PATIENCE
    while True:
        try:
            return child.wait(timeout=0.5)
        except subprocess.TimeoutExpired:
            if _children.is_stopped(owner):
                patience -= 0.5
                if patience <= 0.0:
                    child.kill()


def _plain(text: str) -> str:
    """Without the colours of a terminal."""
    return re.sub(r"\x1b\[[0-9;]*m", "", text).strip()


def _last(text: str) -> str:
    lines = _plain(text).splitlines()
    return lines[-1].strip() if lines else "it said nothing"

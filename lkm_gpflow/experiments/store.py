"""Results on disk: one small JSON a finished run, written so that half a file is never a result.

::

    results/runs/EXPERIMENT/RUN.json        what is finished
    results/failures/EXPERIMENT/RUN.json    what failed, with its traceback, until it succeeds;
                                            it makes an older result count as missing
    results/executed/EXPERIMENT/RUN.ipynb   the notebooks as they were run
    results/work/                           what is under way

A record carries the hash of its configuration and a checksum of all it says.  One that cannot be
read, or is of another configuration than its run, counts as missing.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from ..runtime.files import replacing
from .profiles import Plan, Run, Scalar, configuration_hash

_FORMAT = "lkm_gpflow run 1"


@dataclass(frozen=True)
class Record:
    """What is kept of a run.

    Parameters
    ----------
    id, configuration, hash
        Of the `Run`.
    data
        Checksum of each data set it used.
    scores
        What the notebook reported.
    seconds
        How long the notebook took.
    error
        Why it failed, with a traceback; empty if it did not.
    versions, processor, commit, finished
        Of packages, of the machine, of the repository; and when, in UTC.
    """

    id: str
    configuration: Mapping[str, Any]
    hash: str
    data: Mapping[str, str]
    scores: Mapping[str, Scalar]
    seconds: float
    error: str
    versions: Mapping[str, str]
    processor: str
    commit: str
    finished: str


class Store:
    """The results in a folder; it need not exist yet."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)

    # --- where things are ---

    def result_path(self, run_id: str) -> Path:
        """Where a finished run is kept."""
        return self.folder / "runs" / f"{run_id}.json"

    def failure_path(self, run_id: str) -> Path:
        """Where a failed run is kept."""
        return self.folder / "failures" / f"{run_id}.json"

    def executed_path(self, run_id: str) -> Path:
        """Where the executed notebook is kept."""
        return self.folder / "executed" / f"{run_id}.ipynb"

    def work_path(self, run_id: str) -> Path:
        """The folder of what a run needs while it is under way, and nothing after it."""
        return self.folder / "work" / run_id.replace("/", "__")

    # --- reading ---

    def finished(self, run: Run) -> Record | None:
        """What is kept of a run if it was finished when it was last tried."""
        return _of(run, self._result(self.result_path(run.id)))

    def failed(self, run: Run) -> Record | None:
        """What is kept of a run if it failed when it was last tried."""
        return None if self.finished(run) else _of(run, read_record(self.failure_path(run.id)))

    def _result(self, path: Path) -> Record | None:
        """Read a result, unless its run was tried again and failed (`reproduce --force`)."""
        record = read_record(path)
        if record is None:
            return None
        failure = _of(record, read_record(self.failure_path(record.id)))
        return record if failure is None or failure.finished < record.finished else None

    def records(self, experiment: str) -> list[Record]:
        """All finished runs of an experiment, by id, whatever the profile."""
        folder = self.folder / "runs"
        paths = [folder / f"{experiment}.json", *sorted((folder / experiment).glob("*.json"))]
        found = (self._result(path) for path in paths)
        return [record for record in found if record is not None]

    def resolved(self, run: Run, plan: Plan) -> Run:
        """The run with a checksum of what it aggregates, so that new results make it new.

        It aggregates the results of the plan's runs, in any profile, that agree with it in the
        parameters that both have.
        """
        if not run.reads:
            return run
        found = [
            record
            for name in run.reads
            for record in self._of_plan(name, plan)
            if _agree(record.configuration["parameters"], run.parameters)
        ]
        hashes = "".join(checksum(asdict(record)) for record in found)
        return replace(
            run,
            inputs=hashlib.sha256(hashes.encode()).hexdigest(),
            aggregated=tuple(record.id for record in found),
        )

    def _of_plan(self, experiment: str, plan: Plan) -> list[Record]:
        """Those of `records` that are of runs of the plan as it is now."""
        hashes = {self.resolved(run, plan).hash for run in plan.runs_of(experiment)}
        return [record for record in self.records(experiment) if record.hash in hashes]

    # --- writing ---

    def keep(self, record: Record) -> None:
        """Keep a finished or failed run."""
        if record.error:
            self._write(self.failure_path(record.id), record)
        else:
            self._write(self.result_path(record.id), record)
            self.failure_path(record.id).unlink(missing_ok=True)

    def copy(self, run_ids: Iterable[str], folder: Path) -> None:
        """Copy the results of runs into a folder of results, which then has these alone."""
        for run_id in run_ids:
            target = Store(folder).result_path(run_id)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(self.result_path(run_id), target)

    def _write(self, path: Path, record: Record) -> None:
        content = asdict(record)
        document = {"format": _FORMAT, **content, "checksum": checksum(content)}
        text = json.dumps(document, indent=1, ensure_ascii=False) + "\n"
        write_atomically(path, text, self.work_path(record.id))


def write_atomically(path: Path, text: str, work: Path) -> None:
    """Write a file that is there as a whole or not at all, even if the machine stops.

    Parameters
    ----------
    path, text
        The file and what it shall hold.
    work
        A folder of the same file system for the unfinished file, where it is in nobody's way.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    work.mkdir(parents=True, exist_ok=True)
    with replacing(path, work) as unfinished:
        unfinished.write_text(text, encoding="utf-8", newline="\n")


def read_record(path: Path) -> Record | None:
    """Read a record; None if there is none, or one that is torn, changed or of another kind."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        if document.pop("format") != _FORMAT:
            return None
        written = document.pop("checksum")
        record = Record(**document)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    whole = written == checksum(document)
    return record if whole and record.hash == configuration_hash(record.configuration) else None


def checksum(content: Mapping[str, Any]) -> str:
    """SHA-256 of what a record says."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def damaged(store: Store, run_ids: Iterable[str]) -> list[Path]:
    """Files of results that cannot be taken for results."""
    paths = map(store.result_path, run_ids)
    return [path for path in paths if path.exists() and read_record(path) is None]


def _of(run: Run | Record, record: Record | None) -> Record | None:
    return record if record is not None and record.hash == run.hash else None


def _agree(one: Mapping[str, Scalar], other: Mapping[str, Scalar]) -> bool:
    return all(one[name] == other[name] for name in one.keys() & other.keys())

"""Journals of long experiments: a run that was stopped goes on from what is kept."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from pathlib import Path
from typing import Any

from lkm_gpflow.runtime.executors import run_all
from lkm_gpflow.runtime.journal import Journal
from lkm_gpflow.runtime.progress import part_of

from . import RESULTS

Record = dict[str, Any]


def opened(results: Path | str | None, name: str, header: Mapping[str, Any]) -> Journal:
    """Open the journal of an experiment, or begin it; ``""`` stands for the committed results."""
    folder = Path(results or RESULTS)
    folder.mkdir(parents=True, exist_ok=True)
    return Journal(folder / f"{name}.jsonl", name, header)


def fill(
    journal: Journal,
    jobs: Mapping[Any, Callable[[], Record]],
    executor: Executor | None,
    unit: str,
) -> list[Record]:
    """Run jobs, append their records as they come, and return all that the journal then has."""
    records = list(journal.records)
    with part_of(True, unit, len(jobs)) as bar:
        for _, record in run_all(jobs, executor):
            journal.append(record)
            records.append(record)
            bar.update()
    return records

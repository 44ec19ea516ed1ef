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


def kept_results(results: Path | str, *files: str, by: str = "") -> str:
    """Say in Markdown which kept results a page shows, and what makes them anew: else the page."""
    folder = Path(results or RESULTS)
    told = []
    for name in files:
        lines = folder.joinpath(name).read_bytes().count(b"\n") if (folder / name).exists() else 1
        told.append(f"{lines - 1:,} records of `{name}`")
    whose = "committed, so that no run of this page made them" if folder == RESULTS else "yours"
    again = f"`{by}`" if by else "With the parameter `results`, an empty folder, this notebook"
    return (
        f"**Kept results.** This page shows {' and '.join(told)} ({whose}). {again} makes them "
        "anew, in hours."
    )


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

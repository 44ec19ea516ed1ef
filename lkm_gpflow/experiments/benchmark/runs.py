"""Run methods on windows; every forecast is kept in a journal as it comes."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import Executor
from functools import partial
from pathlib import Path
from typing import Any

from ...comparators import Comparator
from ...datasets.benchmark import benchmark_tables
from ...evaluation.predictive import Predictive, matrices
from ...runtime.executors import run_all
from ...runtime.journal import Journal
from ...runtime.progress import Progress
from .methods import METHODS
from .windows import ORIGINS, Window, window

_DIGITS = 5
"""Significant digits of forecasts in the journals, as z-scores of the training rows."""

_FAILED = (ValueError, ArithmeticError, RuntimeError, LookupError, TypeError)
"""What methods and their libraries raise where a table is too much for them, or `matrices` where
their forecast is none; LinAlgError is a ValueError."""


def journal(folder: Path, method: str, seed: int = 0) -> Journal:
    """Open the journal of a method; those of several tables are one file."""
    folder.mkdir(parents=True, exist_ok=True)
    header = {"method": METHODS[method].comparator, "seed": seed}
    return Journal(folder / f"{method}.jsonl", "benchmark", header)


def run(
    methods: Sequence[str],
    tables: Sequence[str],
    folder: Path,
    *,
    origins: Sequence[int] = ORIGINS,
    seed: int = 0,
    executor: Executor | None = None,
    progress: bool = True,
) -> None:
    """Forecast the windows that the journals do not have, of the tables as they are now.

    A method that failed is not tried again: delete its line from the journal to do so.

    Parameters
    ----------
    methods
        Among `METHODS`.
    tables
        Names, without ``bench/``.
    folder
        Where the journals are.
    origins
        Among `windows.ORIGINS`.
    seed
        Everything random follows from it.
    executor
        Runs the windows; None: this process.
    progress
        Whether to show a progress bar.

    Raises
    ------
    ValueError
        If there is no such method or table.
    """
    for method in methods:
        if method not in METHODS:
            raise ValueError(f"expected methods among {', '.join(METHODS)}, got {method!r}")
    for method in methods:
        kept = journal(folder, method, seed)
        done = _current(kept.records)
        jobs = {
            (table, origin): partial(forecast_window, method, table, origin, seed)
            for table in tables
            for origin in origins
            if (table, origin) not in done
        }
        with Progress(method, len(jobs), shown=progress) as bar:
            for _, record in run_all(jobs, executor):
                kept.append(record)
                bar.update()


def forecast_window(method: str, table: str, origin: int, seed: int = 0) -> dict[str, Any]:
    """Forecast one window, in JSON's types; see `forecast`."""
    cut = window(table, origin)
    return forecast(METHODS[method].with_season(cut.season), cut, seed)


def forecast(method: Comparator, cut: Window, seed: int = 0) -> dict[str, Any]:
    """Forecast a window.

    Returns
    -------
    ``mean`` and ``sd``, [N, M] each, as z-scores of the training rows; of lognormal forecasts also
    ``log_mean`` and ``log_sd``, of values divided by the scale, of Student-t ones ``degrees`` of
    freedom; ``seconds`` and ``processor_seconds``, those of processes that the method starts
    included; the ``data`` it was given (the table's SHA-256).  A method that fails, or whose
    forecast `matrices` refuses, has ``error`` instead of a forecast.
    """
    record: dict[str, Any] = {
        "table": cut.table,
        "origin": cut.origin,
        "data": _checksum(cut.table),
    }
    began, processor_began = time.perf_counter(), _processor()
    try:
        moments = method.fit(cut.train, seed=seed).forecast(cut.test.index)
        told = matrices(moments, cut.test.index, cut.test.columns)
    except _FAILED as error:
        return {**record, "error": f"{type(error).__name__}: {error}"[:200]}
    record["seconds"] = round(time.perf_counter() - began, 2)
    record["processor_seconds"] = round(_processor() - processor_began, 2)
    scaled = Predictive.of(told).divided_by(cut.scale.to_numpy())
    columns = {**vars(scaled), "mean": scaled.mean - (cut.location / cut.scale).to_numpy()}
    for name in told:
        record[name] = [[float(f"{x:.{_DIGITS}g}") for x in row] for row in columns[name].T]
    return record


def records(folder: Path, methods: Iterable[str], seed: int = 0) -> dict[str, list[dict[str, Any]]]:
    """What the journals of methods hold, by method; a method without a journal is left out.

    Of a window that is there several times it is the last record.  Records of other data than
    those of today's tables are left out.
    """
    return {
        method: list(_current(journal(folder, method, seed).records).values())
        for method in methods
        if (folder / f"{method}.jsonl").exists()
    }


def _current(kept: Iterable[dict[str, Any]]) -> dict[tuple[str, int], dict[str, Any]]:
    """Return the last record of every window that is of today's tables."""
    return {
        (record["table"], record["origin"]): record
        for record in kept
        if record["data"] == _checksum(record["table"])
    }


def _checksum(table: str) -> str | None:
    """Beginning of a table's SHA-256; None if there is no such table any more."""
    known = benchmark_tables().get(table)
    return None if known is None else known.sha256[:12]


def _processor() -> float:
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system

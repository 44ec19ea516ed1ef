"""Files of tables: CSV, Parquet and Excel, recognised by their contents."""

from __future__ import annotations

import io
from pathlib import Path

import pandas as pd

from .cells import Dialect
from .csv import read_csv
from .foreign import with_times
from .shapes import from_long

_SUFFIXES = {
    ".parquet": "Parquet", ".pq": "Parquet", ".xlsx": "Excel", ".xlsm": "Excel",
}  # fmt: skip
"""The others are CSV."""

_BEGINNINGS = (
    (b"PAR1", "Parquet", ".parquet"),
    (b"PK\x03\x04", "Excel", ".xlsx"),
    (b"\xd0\xcf\x11\xe0", "old Excel", ".xls"),
    (b"\x1f\x8b", "gzip", ".gz"),
)
"""First bytes of files, what they are, and the suffix that says so."""

_WORKBOOK = b"xl/"
"""Begins the names of files in the ZIP archive that is an Excel file."""


def read_table(path: str | Path, dialect: Dialect | None = None) -> pd.DataFrame:
    """Read a file of series.

    Parameters
    ----------
    path
        ``.parquet``, ``.xlsx`` (its first sheet), or anything else: CSV, see `csv.read_csv`.  In
        Excel, and where a Parquet file has no index, the times are in the only column of dates, or
        else in the first column.
    dialect
        How a CSV file is written; for other files only `Dialect.long` matters.

    Returns
    -------
    DataFrame
        As `lkm_gpflow.discover` takes it: rows are times, columns are series.

    Raises
    ------
    OSError
        If the file cannot be read.
    ValueError
        If something is wrong with the file: what was expected, what was given, and where.
    ModuleNotFoundError
        If the library that reads such files is not installed.
    """
    path = Path(path)
    kind = _SUFFIXES.get(path.suffix.lower(), "CSV")
    contents = path.read_bytes()  # once: a pipe has nothing more to say
    for beginning, what, suffix in _BEGINNINGS:
        if what == "Excel" and _WORKBOOK not in contents:
            what, suffix = "a ZIP archive", ".zip"
        if contents.startswith(beginning) and kind != what:
            cure = (
                f"rename it to {path.with_suffix(suffix).name}"
                if suffix in _SUFFIXES
                else "save it as CSV, Parquet or .xlsx"
            )
            article = "an" if kind == "Excel" else "a"
            raise ValueError(
                f"{path}: expected {article} {kind} file by its name, got {what} by its contents: "
                f"{cure}"
            )
    beginnings = tuple(beginning for beginning, what, _ in _BEGINNINGS if what == kind)
    if kind != "CSV" and not contents.startswith(beginnings):
        raise ValueError(
            f"{path}: expected {kind} by its name, got something else: if it is text, rename it to "
            f"{path.with_suffix('.csv').name}"
        )
    try:
        if kind == "CSV":
            return read_csv(contents, dialect)
        frame = _load(contents, kind)
        return from_long(frame, *dialect.long) if dialect and dialect.long else with_times(frame)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error
    except ImportError as error:
        raise ModuleNotFoundError(
            f"{path}: reading {kind} needs another library: pip install '.[files]' in a clone of "
            "lkm_gpflow"
        ) from error


def _load(contents: bytes, kind: str) -> pd.DataFrame:
    file = io.BytesIO(contents)
    try:
        return pd.read_parquet(file) if kind == "Parquet" else pd.read_excel(file)
    except (ValueError, KeyError) as error:
        raise ValueError(f"cannot be read as {kind} ({error})") from error

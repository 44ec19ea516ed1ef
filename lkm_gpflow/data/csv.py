"""Tables of series from CSV files; what is wrong with one is said with its row and column.

The rows are numbered as an editor numbers the lines of the file.
"""

from __future__ import annotations

import csv
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

MISSING = ("", "NA", "N/A", "NaN", "nan")
"""Cells that stand for a missing observation."""


@dataclass(frozen=True)
class _Row:
    line: int
    cells: list[str]


def read_table(path: str | Path) -> pd.DataFrame:
    """Read a CSV file of series.

    The file is UTF-8 with commas.  Its first row has the names.  The first column has the times,
    dates as 2024-01-31 (ISO 8601) or numbers; every other column is a series, and an empty cell is
    a missing observation.

    Parameters
    ----------
    path
        The file.

    Returns
    -------
    DataFrame
        As `lkm_gpflow.discover` takes it: rows are times, columns are series.

    Raises
    ------
    OSError
        If the file cannot be read.
    ValueError
        If something is wrong with it: what was expected, what was given, in which row and column.
    """
    try:
        header, rows = _split(_read_rows(Path(path)))
        index = _times([row.cells[0] for row in rows], header[0], rows)
        columns = {
            name: [_number(row.cells[i], name, row.line) for row in rows]
            for i, name in enumerate(header)
            if i > 0
        }
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error
    return pd.DataFrame(columns, index=index)


def _read_rows(path: Path) -> list[_Row]:
    """Return the rows that are not blank."""
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise ValueError(f"row {line}: expected UTF-8 text, got another encoding") from error
    reader = csv.reader(text.splitlines(keepends=True), strict=True)
    try:
        rows = [_Row(reader.line_num, [cell.strip() for cell in row]) for row in reader]
    except csv.Error as error:
        raise ValueError(f"row {reader.line_num}: not CSV ({error})") from error
    return [row for row in rows if any(row.cells)]


def _split(rows: Sequence[_Row]) -> tuple[list[str], Sequence[_Row]]:
    """Return the names and the rows of values; both are complete and fit each other."""
    if not rows:
        raise ValueError("expected a header and rows of values, got an empty file")
    header, body = rows[0].cells, rows[1:]
    _check_header(header)
    if not body:
        raise ValueError("expected rows of values below the header, got none")
    for row in body:
        if len(row.cells) != len(header):
            raise ValueError(
                f"row {row.line}: expected {len(header)} cells as in the header, "
                f"got {len(row.cells)}"
            )
    return header, body


def _check_header(header: Sequence[str]) -> None:
    if len(header) < 2:
        found = next((sign for sign in (";", "\t") if sign in header[0]), None)
        hint = f"; the cells seem to be separated by {found!r}, not by commas" if found else ""
        raise ValueError(
            f"expected a column of times and at least one series, got only one column{hint}"
        )
    if _is_time(header[0]) and all(_is_number(cell) for cell in header[1:]):
        raise ValueError(f"row 1: expected a header of names, got the values {', '.join(header)}")
    for i, name in enumerate(header[1:], start=2):
        if not name:
            raise ValueError(f"row 1, column {i}: expected the name of a series, got nothing")
    twice = [name for name, count in Counter(header[1:]).items() if count > 1]
    if twice:
        raise ValueError(
            f"row 1: expected series of different names, got more than one named {twice}"
        )


def _times(cells: Sequence[str], name: str, rows: Sequence[_Row]) -> pd.Index:
    """Return the times: numbers if the first one is, else dates."""
    numeric = _is_number(cells[0])
    wanted = "a number" if numeric else "a date such as 2024-01-31 (or numbers throughout)"
    for cell, row in zip(cells, rows, strict=True):
        if not (_is_number(cell) if numeric else _is_date(cell)):
            raise ValueError(
                f"row {row.line}, column {name or 1!r}: expected {wanted}, got {cell!r}"
            )
    index: pd.Index
    if numeric:
        index = pd.Index([float(cell) for cell in cells])
    else:
        try:
            index = pd.DatetimeIndex(pd.to_datetime(list(cells), format="ISO8601")).as_unit("ns")
        except ValueError as error:
            raise ValueError(
                f"column {name or 1!r}: expected dates of one time zone; write all of them in UTC"
            ) from error
    first: dict[object, int] = {}
    for time, row in zip(index, rows, strict=True):
        if time in first:
            raise ValueError(
                f"row {row.line}: expected different times, got {row.cells[0]} again, which "
                f"row {first[time]} has"
            )
        first[time] = row.line
    return index.rename(name or None)


def _number(cell: str, name: str, line: int) -> float:
    if cell in MISSING:
        return math.nan
    if not _is_number(cell):
        wanted = "a finite number" if _is_float(cell) else "a number"
        raise ValueError(f"row {line}, column {name!r}: expected {wanted}, got {cell!r}")
    return float(cell)


def _is_number(cell: str) -> bool:
    return _is_float(cell) and math.isfinite(float(cell))


def _is_float(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return "_" not in cell


def _is_date(cell: str) -> bool:
    try:
        return not pd.isna(pd.to_datetime(cell, format="ISO8601"))
    except ValueError:
        return False


def _is_time(cell: str) -> bool:
    return bool(cell) and (_is_number(cell) or _is_date(cell))

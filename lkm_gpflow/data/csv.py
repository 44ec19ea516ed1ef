"""Tables of series from CSV files; errors name the row and column.

Rows are numbered as an editor numbers the lines of the file.
"""

from __future__ import annotations

import csv
import io
import re
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from .cells import (
    Dialect,
    date_hint,
    is_date,
    is_missing,
    is_number,
    is_time,
    is_too_far,
    number,
    other_zone,
    to_dates,
    to_float,
)
from .shapes import LongNames, from_long, long_names

TAB = "\t"

_WHOLE = re.compile(r"[+-]?\d{1,18}")
"""A number that fits in eight bytes."""


@dataclass(frozen=True)
class _Row:
    line: int
    cells: list[str]


def read_csv(contents: bytes, dialect: Dialect | None = None) -> pd.DataFrame:
    """Read a CSV file of series.

    The file is UTF-8.  Its first row has the names.  The first column has the times, dates or
    numbers; every other column is a series.  A cell that is empty, or says NA or the like, is a
    missing observation.  In long format three columns are read, and every row is one observation.

    Parameters
    ----------
    contents
        The file's bytes.
    dialect
        How it writes dates and numbers; by default 2024-01-31 and 1.5, separated by commas.

    Returns
    -------
    DataFrame
        As `lkm_gpflow.discover` takes it: rows are times, columns are series.

    Raises
    ------
    ValueError
        If something is wrong with the file: what was expected, what was given, and where.
    """
    dialect = dialect or Dialect()
    header, rows = _split(_read_rows(contents, dialect.separator), dialect)
    if dialect.long is not None:
        return _long(header, rows, dialect, dialect.long)
    _check_layout(header, rows, dialect)
    index = _times(0, header, rows, dialect)
    _check_different(index, rows)
    columns = {name: _numbers(i, header, rows, dialect) for i, name in enumerate(header) if i > 0}
    return pd.DataFrame(columns, index=index)


def _long(
    header: Sequence[str], rows: Sequence[_Row], dialect: Dialect, names: LongNames
) -> pd.DataFrame:
    for name in names:
        if name not in header:
            raise ValueError(
                f"--long names a column {name!r}, but the columns are {', '.join(header)}"
            )
    series, time, value = (header.index(name) for name in names)
    for row in rows:
        if not row.cells[series]:
            raise ValueError(
                f"row {row.line}, column {names.series!r}: expected the name of a series, got "
                "nothing"
            )
    columns = {
        names.series: [row.cells[series] for row in rows],
        names.time: _times(time, header, rows, dialect),
        names.value: _numbers(value, header, rows, dialect),
    }
    return from_long(pd.DataFrame(columns), *names)


def _check_layout(header: Sequence[str], rows: Sequence[_Row], dialect: Dialect) -> None:
    """Reject a table in long format, and name the option that reads it."""
    if len(header) < 3:
        return
    cells = pd.DataFrame([row.cells for row in rows], columns=list(header))
    for name in header:
        if all(is_missing(cell) or is_number(cell, dialect) for cell in cells[name]):
            cells[name] = 0.0
    names = long_names(cells)
    if names is not None:
        raise ValueError(
            "expected a column for each series, got long format, a row for each observation: "
            f"read it with --long {','.join(names)}"
        )


def _read_rows(contents: bytes, separator: str) -> list[_Row]:
    """Return the rows that are not blank."""
    try:
        text = contents.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise ValueError(
            f"row {line}: expected UTF-8 text, got another encoding: save the file as UTF-8 (in a "
            "spreadsheet: CSV UTF-8)"
        ) from error
    # Not `splitlines`, which breaks cells at signs such as U+2028, too.
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    try:
        rows = [_Row(reader.line_num, [cell.strip() for cell in row]) for row in reader]
    except csv.Error as error:
        raise ValueError(f"row {reader.line_num}: not CSV ({error})") from error
    return [row for row in rows if any(row.cells)]


def _split(rows: Sequence[_Row], dialect: Dialect) -> tuple[list[str], Sequence[_Row]]:
    """Return the header and the rows of values, after checking that they fit each other."""
    if not rows:
        raise ValueError("expected a header and rows of values, got an empty file")
    header, body = rows[0].cells, rows[1:]
    _check_header(header, dialect)
    if not body:
        raise ValueError("expected rows of values below the header, got none")
    mark = dialect.decimal
    quotes = f'; put decimals in quotes, "1{mark}5"' if mark == dialect.separator else ""
    for row in body:
        if len(row.cells) != len(header):
            raise ValueError(
                f"row {row.line}: expected {len(header)} cells as in the header, "
                f"got {len(row.cells)}{quotes}"
            )
    return header, body


def _check_header(header: Sequence[str], dialect: Dialect) -> None:
    if len(header) < 2:
        signs = [sign for sign in f";{TAB},|" if sign != dialect.separator]
        found = next((sign for sign in signs if sign in header[0]), None)
        hint = (
            f"; the cells seem to be separated by {found!r}: "
            f"give --separator {'tab' if found == TAB else repr(found)}"
            if found
            else ""
        )
        raise ValueError(
            f"expected a column of times and at least one series, got only one column{hint}"
        )
    if is_time(header[0], dialect) and all(is_number(cell, dialect) for cell in header[1:]):
        raise ValueError(f"row 1: expected a header of names, got the values {', '.join(header)}")
    for i, name in enumerate(header[1:], start=2):
        if not name:
            raise ValueError(f"row 1, column {i}: expected the name of a series, got nothing")
    twice = [name for name, count in Counter(header).items() if count > 1]
    if twice:
        raise ValueError(
            f"row 1: expected columns of different names, got more than one named {twice}"
        )


def _times(column: int, header: Sequence[str], rows: Sequence[_Row], dialect: Dialect) -> pd.Index:
    """Return the times: numbers if the first one is and no format of dates is given, else dates."""
    cells, name = [row.cells[column] for row in rows], header[column]
    numeric = dialect.dates is None and is_number(cells[0], dialect)
    wanted = (
        "a number"
        if numeric
        else f"a date of the format {dialect.dates!r}"
        if dialect.dates is not None
        else "a date such as 2024-01-31 (or numbers throughout)"
    )
    for cell, row in zip(cells, rows, strict=True):
        if not (is_number(cell, dialect) if numeric else is_date(cell, dialect)):
            if not numeric and is_too_far(cell, dialect):
                wanted = f"a date from {pd.Timestamp.min.year} to {pd.Timestamp.max.year}"
            raise ValueError(
                f"row {row.line}, column {name or 1!r}: expected {wanted}, got {cell!r}"
                f"{date_hint(cell, cells)}"
            )
    if numeric:
        is_whole = all(map(_WHOLE.fullmatch, cells))
        numbers = [int(cell) if is_whole else to_float(cell, dialect) for cell in cells]
        return pd.Index(numbers, name=name or None)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # of pandas 2, about time zones
            dates = to_dates(cells, dialect).rename(name or None)
    except ValueError:
        _check_zones(cells, name, rows, dialect)
        raise
    if dates.tz is not None:
        _check_zones(cells, name, rows, dialect)
    return dates


def _check_zones(cells: Sequence[str], name: str, rows: Sequence[_Row], dialect: Dialect) -> None:
    """Name the first row of another time zone than the first one."""
    if (other := other_zone(cells, dialect)) is not None:
        place, wanted, given = other
        raise ValueError(
            f"row {rows[place].line}, column {name or 1!r}: expected {wanted} as in row "
            f"{rows[0].line}, got {given}; write all dates in UTC"
        )


def _check_different(index: pd.Index, rows: Sequence[_Row]) -> None:
    first: dict[object, _Row] = {}
    for time, row in zip(index, rows, strict=True):
        if time in first:
            raise ValueError(
                f"row {row.line}: expected different times, got {row.cells[0]} again, which "
                f"row {first[time].line} has"
            )
        first[time] = row


def _numbers(
    column: int, header: Sequence[str], rows: Sequence[_Row], dialect: Dialect
) -> list[float]:
    cells = [row.cells[column] for row in rows]
    return [
        number(cell, cells, header[column], row.line, dialect)
        for cell, row in zip(cells, rows, strict=True)
    ]

"""Tables of series from CSV files; errors name the row and column.

Rows are numbered as an editor numbers the lines of the file.
"""

from __future__ import annotations

import csv
import io
import math
import re
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

import pandas as pd

from .shapes import QUARTER, LongNames, from_long, long_names

TAB = "\t"

_MISSING = ("", "na", "n/a", "#n/a", "<na>", "nan", "null", "none", "nat")
"""Cells that stand for a missing observation, in small or capital letters."""

_UNCLEAR = ("-", ".", "?")
"""Cells that may stand for a missing observation, or for something else."""

_DAYS_AND_MONTHS = re.compile(r"(\d{1,2})([-/.])(\d{1,2})\2(\d{4}|\d{2})")
"""Dates such as 31/12/2024 and 12.31.24."""

_WEEK = re.compile(r"(\d{4})-?W(\d{2})")
_FIRST_AND_LAST_DAY = re.compile(r"(\d{4}-\d{2}-\d{2})/\d{4}-\d{2}-\d{2}")
"""A week as pandas writes it."""

_DIGIT = re.compile(r"\d")
_WHOLE = re.compile(r"[+-]?\d{1,18}")
"""A number that fits in eight bytes."""


@dataclass(frozen=True)
class _Row:
    line: int
    cells: list[str]


@dataclass(frozen=True)
class Dialect:
    """How a file writes a table.

    Parameters
    ----------
    separator
        Between cells.
    decimal
        Mark before the decimals; where it is the separator, too, such numbers are in quotes.
    dates
        Format of the dates as of `datetime.strptime`, such as "%d/%m/%Y"; None: ISO 8601, or
        quarters such as 2024Q1; quarters and weeks become their first day.
    long
        The columns of a table in long format; None: a column for each series.
    """

    separator: str = ","
    decimal: str = "."
    dates: str | None = None
    long: LongNames | None = None

    def __post_init__(self) -> None:
        for name, sign in (("separator", self.separator), ("decimal mark", self.decimal)):
            if len(sign) != 1:
                raise ValueError(f"expected a single character as {name}, got {sign!r}")
        if self.dates is not None:
            _check_format(self.dates)


def _check_format(dates: str) -> None:
    """Reject a format that does not read the dates it writes."""
    example, given = "such as %d/%m/%Y", pd.Timestamp("2003-12-31", tz="UTC")
    try:
        year = pd.to_datetime(given.strftime(dates), format=dates).year if "%" in dates else None
    except (ValueError, re.error) as error:
        raise ValueError(
            f"expected a format of dates {example}, got {dates!r} ({error})"
        ) from error
    if year is None:
        raise ValueError(f"expected a format of dates {example}, got {dates!r}")
    if year != given.year:
        raise ValueError(f"expected a format of dates with a year, {example}, got {dates!r}")


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
        if all(_is_missing(cell) or _is_number(cell, dialect) for cell in cells[name]):
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
        raise ValueError(f"row {line}: expected UTF-8 text, got another encoding") from error
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
    if _is_time(header[0], dialect) and all(_is_number(cell, dialect) for cell in header[1:]):
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
    numeric = dialect.dates is None and _is_number(cells[0], dialect)
    wanted = (
        "a number"
        if numeric
        else f"a date of the format {dialect.dates!r}"
        if dialect.dates is not None
        else "a date such as 2024-01-31 (or numbers throughout)"
    )
    for cell, row in zip(cells, rows, strict=True):
        if not (_is_number(cell, dialect) if numeric else _is_date(cell, dialect)):
            if not numeric and _is_too_far(cell, dialect):
                wanted = f"a date from {pd.Timestamp.min.year} to {pd.Timestamp.max.year}"
            raise ValueError(
                f"row {row.line}, column {name or 1!r}: expected {wanted}, got {cell!r}"
                f"{_date_hint(cell, cells)}"
            )
    if numeric:
        is_whole = all(map(_WHOLE.fullmatch, cells))
        numbers = [int(cell) if is_whole else _to_float(cell, dialect) for cell in cells]
        return pd.Index(numbers, name=name or None)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # of pandas 2, about time zones
            dates = _to_dates(cells, dialect).rename(name or None)
    except ValueError:
        _check_zones(cells, name, rows, dialect)
        raise
    if dates.tz is not None:  # after a first date in UTC pandas takes others for UTC, too
        _check_zones(cells, name, rows, dialect)
    return dates


def _check_zones(cells: Sequence[str], name: str, rows: Sequence[_Row], dialect: Dialect) -> None:
    """Name the first row of another time zone than the first one."""
    zones = [str(_to_dates([cell], dialect).tz or "no time zone") for cell in cells]
    for zone, row in zip(zones, rows, strict=True):
        if zone != zones[0]:
            raise ValueError(
                f"row {row.line}, column {name or 1!r}: expected {zones[0]} as in row "
                f"{rows[0].line}, got {zone}; write all dates in UTC"
            )


def _date_hint(cell: str, cells: Sequence[str]) -> str:
    """Return the option that reads a date such as 31/12/2024; nothing for other texts."""
    parts = _DAYS_AND_MONTHS.fullmatch(cell)
    if parts is None:
        return ""
    sign, year = parts[2], "%Y" if len(parts[4]) == 4 else "%y"
    every = [match for each in cells if (match := _DAYS_AND_MONTHS.fullmatch(each))]
    month_first = any(int(match[3]) > 12 for match in every)
    order = ("%m", "%d") if month_first else ("%d", "%m")
    form = sign.join([*order, year])
    return f"; read it with --dates {form}" if _are_dates(cells, Dialect(dates=form)) else ""


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
        _number(cell, cells, header[column], row.line, dialect)
        for cell, row in zip(cells, rows, strict=True)
    ]


def _number(cell: str, cells: Sequence[str], name: str, line: int, dialect: Dialect) -> float:
    if _is_missing(cell):
        return math.nan
    if _is_number(cell, dialect):
        return _to_float(cell, dialect)
    wanted = "a finite number" if _is_float(cell, dialect) else "a number"
    hint = _number_hint(cell, cells, dialect)
    raise ValueError(f"row {line}, column {name!r}: expected {wanted}, got {cell!r}{hint}")


def _number_hint(cell: str, cells: Sequence[str], dialect: Dialect) -> str:
    """Return the cure for a cell of a column that is almost a number; nothing for other texts."""
    if cell in _UNCLEAR:
        return "; leave the cell empty if it is missing"
    other = "," if dialect.decimal == "." else "."
    thousands = (
        rf"[+-]?[1-9]\d{{0,2}}({re.escape(other)}\d{{3}})+({re.escape(dialect.decimal)}\d*)?"
    )
    if re.fullmatch(thousands, cell):
        return f"; write it without {other!r} if that separates thousands"
    if not _is_number(cell, Dialect(";", other)):
        return ""
    for each in cells:
        if dialect.decimal in each and _is_number(each, dialect):
            return f"; write it with {dialect.decimal!r}, as {each}"
    return f"; read it with --decimal {other}"


def _is_missing(cell: str) -> bool:
    return cell.lower() in _MISSING


def _to_float(cell: str, dialect: Dialect) -> float:
    """Return a number; a ValueError if it has another decimal mark."""
    if dialect.decimal != ".":
        if "." in cell:
            raise ValueError(f"expected the decimal mark {dialect.decimal!r}, got {cell!r}")
        cell = cell.replace(dialect.decimal, ".")
    if "_" in cell:  # Python's own way of writing 10_000
        raise ValueError(f"expected a number, got {cell!r}")
    return float(cell)


def _is_float(cell: str, dialect: Dialect) -> bool:
    try:
        _to_float(cell, dialect)
    except ValueError:
        return False
    return True


def _is_number(cell: str, dialect: Dialect) -> bool:
    return _is_float(cell, dialect) and math.isfinite(_to_float(cell, dialect))


def _are_dates(cells: Sequence[str], dialect: Dialect) -> bool:
    # Without a digit are "today" and "now", which pandas reads as the present.
    try:
        return all(map(_DIGIT.search, cells)) and not _to_dates(cells, dialect).hasnans
    except ValueError:
        return False


def _is_date(cell: str, dialect: Dialect) -> bool:
    return _are_dates([cell], dialect)


def _is_too_far(cell: str, dialect: Dialect) -> bool:
    """Whether a cell is a date that a number of nanoseconds in eight bytes cannot tell."""
    try:
        _to_dates([cell], dialect)
    except pd.errors.OutOfBoundsDatetime:
        return True
    except ValueError:
        pass
    return False


def _to_dates(cells: Sequence[str], dialect: Dialect) -> pd.DatetimeIndex:
    if dialect.dates is None:
        cells = [_first_day(cell) for cell in cells]
    dates = pd.to_datetime(list(cells), format=dialect.dates or "ISO8601")
    return pd.DatetimeIndex(dates).as_unit("ns")


def _first_day(cell: str) -> str:
    """Return the first day of a quarter or week, as of pandas' periods; other texts as they are."""
    if quarter := QUARTER.fullmatch(cell):
        return f"{quarter[1]}-{3 * int(quarter[2]) - 2:02d}-01"
    if week := _WEEK.fullmatch(cell):
        return date.fromisocalendar(int(week[1]), int(week[2]), 1).isoformat()
    days = _FIRST_AND_LAST_DAY.fullmatch(cell)
    return days[1] if days else cell


def _is_time(cell: str, dialect: Dialect) -> bool:
    return bool(cell) and (_is_number(cell, dialect) or _is_date(cell, dialect))

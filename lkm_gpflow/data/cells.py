"""Cells of CSV files: whether they are missing, numbers or dates, and what cures others."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

import pandas as pd

from .shapes import QUARTER, LongNames

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


def is_missing(cell: str) -> bool:
    """Whether a cell stands for a missing observation."""
    return cell.lower() in _MISSING


def number(cell: str, cells: Sequence[str], name: str, line: int, dialect: Dialect) -> float:
    """Return the number in a cell, NaN for a missing one.

    Raises
    ------
    ValueError
        If it is none: in which row and column, and how it may be read, going by the whole column.
    """
    if is_missing(cell):
        return math.nan
    if is_number(cell, dialect):
        return to_float(cell, dialect)
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
    if not is_number(cell, Dialect(";", other)):
        return ""
    for each in cells:
        if dialect.decimal in each and is_number(each, dialect):
            return f"; write it with {dialect.decimal!r}, as {each}"
    return f"; read it with --decimal {other}"


def is_number(cell: str, dialect: Dialect) -> bool:
    """Whether a cell is a finite number."""
    return _is_float(cell, dialect) and math.isfinite(to_float(cell, dialect))


def _is_float(cell: str, dialect: Dialect) -> bool:
    try:
        to_float(cell, dialect)
    except ValueError:
        return False
    return True


def to_float(cell: str, dialect: Dialect) -> float:
    """Return a number; a ValueError if it has another decimal mark."""
    if dialect.decimal != ".":
        if "." in cell:
            raise ValueError(f"expected the decimal mark {dialect.decimal!r}, got {cell!r}")
        cell = cell.replace(dialect.decimal, ".")
    if "_" in cell:  # Python's own way of writing 10_000
        raise ValueError(f"expected a number, got {cell!r}")
    return float(cell)


def is_time(cell: str, dialect: Dialect) -> bool:
    """Whether a cell is a number or a date."""
    return bool(cell) and (is_number(cell, dialect) or is_date(cell, dialect))


def is_date(cell: str, dialect: Dialect) -> bool:
    """Whether a cell is a date."""
    return _are_dates([cell], dialect)


def _are_dates(cells: Sequence[str], dialect: Dialect) -> bool:
    # Without a digit are "today" and "now", which pandas reads as the present.
    try:
        return all(map(_DIGIT.search, cells)) and not to_dates(cells, dialect).hasnans
    except ValueError:
        return False


def is_too_far(cell: str, dialect: Dialect) -> bool:
    """Whether a cell is a date that a number of nanoseconds in eight bytes cannot tell."""
    try:
        to_dates([cell], dialect)
    except pd.errors.OutOfBoundsDatetime:
        return True
    except ValueError:
        pass
    return False


def to_dates(cells: Sequence[str], dialect: Dialect) -> pd.DatetimeIndex:
    """Return the dates in cells; a ValueError if one is none."""
    if dialect.dates is None:
        cells = [_first_day(cell) for cell in cells]
    dates = pd.to_datetime(list(cells), format=dialect.dates or "ISO8601")
    return pd.DatetimeIndex(dates).as_unit("ns")


def other_zone(cells: Sequence[str], dialect: Dialect) -> tuple[int, str, str] | None:
    """Return the place of the first date of another time zone than the first one, and both zones.

    Pandas takes dates without a zone for UTC once it has read one in UTC.

    Raises
    ------
    ValueError
        If a cell is no date.
    """
    zones = [str(to_dates([cell], dialect).tz or "no time zone") for cell in cells]
    others = ((place, zones[0], zone) for place, zone in enumerate(zones) if zone != zones[0])
    return next(others, None)


def _first_day(cell: str) -> str:
    """Return the first day of a quarter or week, as of pandas' periods; other texts as they are."""
    if quarter := QUARTER.fullmatch(cell):
        return f"{quarter[1]}-{3 * int(quarter[2]) - 2:02d}-01"
    if week := _WEEK.fullmatch(cell):
        return date.fromisocalendar(int(week[1]), int(week[2]), 1).isoformat()
    days = _FIRST_AND_LAST_DAY.fullmatch(cell)
    return days[1] if days else cell


def date_hint(cell: str, cells: Sequence[str]) -> str:
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

"""From cells to a table of series: the checks in order, the same for CSV, Excel and DataFrames.

1. Is it a table?  Blank rows and titles above the header, units below it, totals and sources at
   the end are left out; a table with its times in the header is turned, and one of years and
   months is one series.
2. Which column is time?  The first one of dates; year and month, or date and time of day, are put
   together; otherwise the first column has numbers.
3. In which format are the dates?  See `date_formats`.
4. What are the numbers?  See `numerals`.

What is certain is done and said in one line (a `TableNote`).  What is likely is done, too, and is a
doubt (a `UserWarning`) with the option that settles it.  What is neither is an error with its row
and column, and what to do.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate

import numpy as np
import pandas as pd

from ..gp.types import Floats
from ..runtime.text import counted, did_you_mean, listed, quoted
from ..runtime.warn import TableNote, warn
from .date_formats import (
    NUMBER,
    Dates,
    OtherZones,
    best_format,
    check_format,
    dates_in_numbers,
    is_season,
    parse_times,
)
from .numerals import (
    NoNumber,
    decimal_mark,
    is_missing,
    is_number,
    is_plain,
    mark_by_size,
    read_numbers,
)
from .shapes import LongNames, from_long, long_names

_ISO = ("%Y-%m-%d", "%Y-%m")
"""Not worth a word."""

_TOTAL = re.compile(
    r"(grand |sub)?totals?|sums?|average|mean|gesamt|summe|insgesamt|total general|totaal|totale|"
    r"ytd|all (years|months)|\d{4} total|total \d{4}|max(imum)?|min(imum)?|std( dev)?|median",
    re.IGNORECASE,
)

_LOOKED_AT = 100
"""Rows at the end that say whether times or names are in the first column."""

_TIME_OF_DAY = re.compile(r"\d{1,2}:\d{2}(:\d{2}(\.\d+)?)?(\s?[AaPp]\.?[Mm]\.?)?")

_PARTS = {
    "Y": r"y(ear|r)?|yy(yy)?|jahr|ann[eé]e|a[nñ]o|anno|ano|jaar|fy",
    "m": r"m(o(nth)?|th)?|mm|mon|monat|mois|mes|mese|m[eê]s|maand|period",
    "q": r"q(uarter|tr)?|quartal|trimestre|kwartaal",
    "V": r"w(ee)?k|woche|kw|semaine|semana|iso_?week",
    "d": r"d(ay|om)?|dd|tag|jour|d[ií]a|giorno|dag|day_of_month",
    "H": r"h(our|r)?[ _]?(ending|end)?|he|hh|stunde|heure|hora",
    "M": r"mi?n(ute)?s?|mm",
    "j": r"doy|y(ear)?_?day|j(ulian)?_?day|day_?of_?(the_?)?year|julian|jour_julien",
}
"""Names of columns that are parts of a date, by the directive of `strptime`."""

_RANGES = {
    "Y": (1500, 2200), "m": (1, 12), "q": (1, 4), "V": (1, 53), "d": (1, 31), "j": (1, 366),
    "H": (0, 24), "M": (0, 59),
}  # fmt: skip


@dataclass(frozen=True)
class Dialect:
    """How a table is written, where it is said; what is None is read off the table.

    Parameters
    ----------
    separator
        Between the cells of a CSV file.
    decimal
        Mark before the decimals.
    dates
        Format of the dates as of `datetime.strptime`, such as "%d/%m/%Y", also with %q for quarters
        and %h for half-years; "number" for times that are numbers, "excel" for Excel's days, "s",
        "ms", "us" or "ns" since 1970.
    long
        The columns of a table in long format; None: a column for each series.
    sheet
        Of an Excel file.
    series, without
        The columns to read, and those to leave out.
    """

    separator: str | None = None
    decimal: str | None = None
    dates: str | None = None
    long: LongNames | None = None
    sheet: str | None = None
    series: tuple[str, ...] = ()
    without: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name, sign in (("separator", self.separator), ("decimal mark", self.decimal)):
            if sign is not None and len(sign) != 1:
                raise ValueError(f"expected a single character as {name}, got {sign!r}")
        if self.dates is not None:
            check_format(self.dates)

    def chosen(self, names: Sequence[str]) -> list[str]:
        """Return those of some names that are to be read.

        Raises
        ------
        ValueError
            If one that is asked for is not among them.
        """
        for option, asked in (("--series", self.series), ("--without", self.without)):
            for name in asked:
                if name not in names:
                    raise ValueError(
                        f"{option} names {name!r}, but there are {quoted(names)}"
                        f"{did_you_mean(name, names)}"
                    )
        wanted = self.series or names
        return [name for name in names if name in wanted and name not in self.without]


@dataclass(frozen=True)
class Cells:
    """A table as it was found.

    Parameters
    ----------
    rows
        Each of the same number of cells: texts, numbers, dates, or None.
    names
        How messages call the rows: "row 5".
    header
        The names of the columns, where they are known; none: they are in the first rows.
    top
        How messages call the header.
    """

    rows: list[list[object]]
    names: list[str]
    header: list[str] = field(default_factory=list)
    top: str = "header"

    @classmethod
    def of(cls, frame: pd.DataFrame, *, with_index: bool) -> Cells:
        """Take a DataFrame apart; its index is the first column, if it is wanted."""
        given = (
            frame.reset_index(names=["" if frame.index.name is None else str(frame.index.name)])
            if with_index
            else frame
        )
        columns = [given.iloc[:, i].astype(object) for i in range(given.shape[1])]
        rows = [list(map(_cell, row)) for row in zip(*columns, strict=True)]
        return cls(
            rows,
            [f"row {number} below the header" for number in range(1, len(rows) + 1)],
            [str(name) for name in given.columns],
        )


def read(cells: Cells, dialect: Dialect) -> pd.DataFrame:
    """Read cells as a table of series, by the checks of this module.

    Returns
    -------
    DataFrame
        As `lkm_gpflow.discover` takes it: rows are times, columns are series.

    Raises
    ------
    ValueError
        If they are no such table: what was expected, what was given, where, and what to do.

    Warns
    -----
    TableNote
        What was done.
    UserWarning
        What is likely, with the option that settles it.
    """
    table = _turned(_without_notes(_without_blanks(_with_header(cells))))
    table = table if dialect.dates == NUMBER else _by_months(table)
    if not table.rows:
        raise ValueError("expected rows of values below the header, got none")
    if dialect.long is not None:
        return _long(table, dialect, dialect.long)
    table = _chosen(table, dialect)
    table = _one_time_column(table)
    time = _time_column(table, dialect)
    _check_layout(table, time)
    index = _times(table, time, dialect)
    table, index = _without_repeats(table, index, time)
    frame = _series(table, time, index, dialect)
    return without_blank_end(frame)


def without_blank_end(frame: pd.DataFrame) -> pd.DataFrame:
    """Leave out rows at the end that have times but no values: the forecast begins there."""
    seen = frame.notna().any(axis=1).to_numpy()
    if not seen.any() or seen[-1] or not frame.index.is_monotonic_increasing:
        return frame
    last = len(seen) - int(np.argmax(seen[::-1]))
    blank = frame.index[last:]
    _note(
        f"{counted(len(blank), 'row')} at the end, {_shown(blank[0])} to {_shown(blank[-1])}, "
        "without a value: left out, the forecast begins there"
    )
    return frame.iloc[:last]


def _note(text: str) -> None:
    warn(text, TableNote)


def _shown(time: object) -> str:
    if isinstance(time, pd.Timestamp):
        return str(time.date() if time == time.normalize() else time)
    return f"{time:.15g}" if isinstance(time, float) else str(time)


def _cell(value: object) -> object:
    """Return a cell as text, number, date or None."""
    if isinstance(value, str):
        return value.strip()
    if value is None or value is pd.NaT or value is pd.NA:
        return None
    if isinstance(value, bool | np.bool_):
        return str(bool(value))
    if isinstance(value, int | float | np.integer | np.floating):
        number = float(value)
        return None if np.isnan(number) else number
    if isinstance(value, pd.Period):
        return value.to_timestamp()
    if isinstance(value, np.datetime64 | pd.Timestamp) or hasattr(value, "isoformat"):
        try:
            return pd.Timestamp(value)  # type: ignore[arg-type]
        except (ValueError, TypeError):
            return str(value)
    return value if isinstance(value, complex) else str(value)


def _text(cell: object) -> str:
    """Return a cell as it would be written in a CSV file."""
    if isinstance(cell, float):
        return f"{cell:.15g}"
    return "" if cell is None else str(cell)


# --- 1. is it a table? ---


def _with_header(cells: Cells) -> Cells:
    """Find the header, in the first row that is as wide as those of values."""
    if cells.header:
        return cells
    rows = [
        (name, row)
        for name, row in zip(cells.names, cells.rows, strict=True)
        if not all(map(is_missing, row))
    ]
    if not rows:
        raise ValueError("expected a header and rows of values, got an empty file")
    begin = _first_values([row for _, row in rows])
    width = max(sum(not is_missing(cell) for cell in row) for _, row in rows[begin:] or rows)
    filled = [sum(not is_missing(cell) for cell in row) for _, row in rows[:begin]]
    above = [
        place
        for place, count in enumerate(filled)
        if not _text(rows[place][1][0]).startswith("# ")
        and (count >= max(2, 0.5 * width) or (count == width - 1 and is_missing(rows[place][1][0])))
    ]
    if begin == 0:
        values = listed([_text(cell) for cell in rows[0][1]], 6)
        raise ValueError(
            f"{rows[0][0]}: expected a header of names, got the values {values}: write names above "
            "them"
        )
    if not above and width > 1:
        raise ValueError(
            f"{rows[begin - 1][0]}: expected a header of {width} names above the values, got "
            f"{listed([_text(cell) for cell in rows[begin - 1][1] if not is_missing(cell)], 6)}: "
            "write a name in each column"
        )
    first = above[0] if above else begin - 1
    if first > 0 and not _are_different([_text(cell) for cell in rows[first][1]]):
        first -= filled[first - 1] > 1  # groups of columns
    # Rows below the header that hold numbers are values, whatever stands where the time should.
    begin = next((k for k in range(first + 1, begin) if _has_numbers(rows[k][1])), begin)
    header = [_text(cell) for cell in rows[first][1]]
    for place in range(first + 1, begin):
        _, row = rows[place]
        is_named = not is_missing(row[0]) and _is_name(row[0])
        if place in above and (is_named or not _are_different(header)):  # names in two rows
            if len(set(filter(None, header[1:]))) == 1:  # a title of all
                header[1:] = [""] * (len(header) - 1)
            for i in range(2, len(header)):
                header[i] = header[i] or header[i - 1]
            header = [
                " ".join(filter(None, (a, _text(b)))) for a, b in zip(header, row, strict=True)
            ]
            _note("the names are in two rows, which are joined")
        else:
            cells_there = [_text(cell) for cell in row if not is_missing(cell)]
            _note(f"{rows[place][0]}, {listed(cells_there, 4)}: left out, as it holds no values")
    if first > 0:
        titles = [_text(cell) for _, row in rows[:first] for cell in row if not is_missing(cell)]
        _note(f"rows above the header are titles: {listed(titles, 3)}")
    below = rows[begin:]
    return Cells([row for _, row in below], [name for name, _ in below], header, rows[first][0])


def _are_different(names: Sequence[str]) -> bool:
    """Whether columns but the first and blank ones at the end have names, no two the same."""
    named = list(names)
    while named and not named[-1]:
        named.pop()
    return all(named[1:]) and len(set(named)) == len(named)


def _has_numbers(row: Sequence[object]) -> bool:
    return any(
        isinstance(cell, float) or (isinstance(cell, str) and is_plain(cell)) for cell in row[1:]
    )


def _is_name(cell: object) -> bool:
    return isinstance(cell, str) and not re.match(r"\(|\[|units?\b", cell, re.IGNORECASE)


def _first_values(rows: Sequence[Sequence[object]]) -> int:
    """Return the first row of values: after it, too, times or numbers stand in the same columns."""

    def has_values(row: Sequence[object]) -> bool:
        filled = [cell for cell in row if not is_missing(cell)]
        return len(filled) > (1 if len(row) > 1 else 0) and _is_time(filled[0])

    first = [row[0] for row in rows[-_LOOKED_AT:]]
    if sum(map(_is_time, first)) < 0.3 * len(first):  # names are in the first column
        widest = max(sum(not is_missing(cell) for cell in row) for row in rows)
        full = (sum(not is_missing(cell) for cell in row) >= 0.6 * widest for row in rows)
        return next((place for place, is_full in enumerate(full) if is_full), 0) + 1
    return next((place for place, row in enumerate(rows) if has_values(row)), len(rows))


def _is_time(cell: object) -> bool:
    """Whether a cell may be a time: a date, a number, or a text with digits of a date."""
    if isinstance(cell, str):
        return is_plain(cell) or (
            any(char.isdigit() for char in cell)
            and (len(cell) < 40 and not re.match(r"[A-Za-z_]+\d$", cell))
            and _reads_as_date(cell)
        )
    return isinstance(cell, float | pd.Timestamp)


def _reads_as_date(cell: str) -> bool:
    try:
        return best_format([cell]) is not None
    except (ValueError, pd.errors.OutOfBoundsDatetime):
        return True


def _without_blanks(table: Cells) -> Cells:
    """Leave out columns without a name and a value, and row numbers."""
    keep, numbers = [], []
    for i, name in enumerate(table.header):
        column = [row[i] for row in table.rows]
        is_blank_name = not name.strip() or re.fullmatch(r"Unnamed: \d+", name) is not None
        if is_blank_name and all(map(is_missing, column)):
            continue
        is_row = name.lower() in ("index", "id", "#", "no", "no.", "nr", "row")
        if len(table.header) > 2 and (
            (is_row and _go_on(column)) or (is_blank_name and _go_on(column, (0, 1)))
        ):
            numbers.append(i)
            continue
        keep.append(i)
    dated = any(_dates(table, i) for i in keep[:3]) or _parts(table)
    if numbers and dated:
        _note("the row numbers are left out")
    else:
        keep = sorted([*keep, *numbers])
    for i in keep[1:]:
        if not table.header[i].strip():
            raise ValueError(
                f"{table.top}, column {i + 1}: expected the name of a series, got nothing; write a "
                "name, or leave out the column"
            )
    return _of_columns(table, keep)


def _without_columns(table: Cells, places: Sequence[int]) -> Cells:
    return _of_columns(table, [i for i in range(len(table.header)) if i not in places])


def _of_columns(table: Cells, keep: Sequence[int]) -> Cells:
    header = [table.header[i] for i in keep]
    return replace(table, rows=[[row[i] for i in keep] for row in table.rows], header=header)


def _go_on(column: Sequence[object], starts: Sequence[int] | None = None) -> bool:
    """Whether a column counts on by ones; where cells are blank, as far as it goes."""
    texts = [_text(cell) for cell in column if not is_missing(cell)]
    if len(texts) < 3 or not texts[0].isdigit() or (starts and int(texts[0]) not in starts):
        return False
    return texts == [str(int(texts[0]) + place) for place in range(len(texts))]


def _dates(table: Cells, i: int) -> Dates | None:
    """Return a column read as dates, if most of its cells are; numbers are none."""
    cells = [row[i] for row in table.rows]
    filled = [cell for cell in cells if not is_missing(cell)]
    if not filled or all(map(is_plain, filled)):
        return None
    if all(isinstance(cell, pd.Timestamp) for cell in filled):
        return Dates(pd.DatetimeIndex(pd.Series(filled)), "")
    try:
        return best_format([_text(cell) for cell in filled], 0.75)
    except (OtherZones, pd.errors.OutOfBoundsDatetime):
        return Dates(pd.DatetimeIndex([]), "")


def _turned(table: Cells) -> Cells:
    """Turn a table that has its times in the header."""
    header = table.header
    times = [i for i, name in enumerate(header) if is_plain(name) or _is_time(name)]
    names = [i for i in range(len(header)) if i not in times]
    if len(times) < 3 or len(times) <= len(names) or not names or 0 in times:
        return table
    labels = [[_text(row[i]) for row in table.rows] for i in names]
    texts = [header[i] for i in times]
    is_years = all(re.fullmatch(r"(1[5-9]|2[01])\d\d", text) for text in texts)
    if any(_dates(table, i) is not None for i in names) or (
        not is_years and best_format(texts) is None
    ):
        return table
    own = [each for each in labels if len(set(each)) == len(each) and all(each)]
    own.sort(key=lambda each: all(map(is_number, each)))  # codes are worse names
    if not own or (all(map(is_number, own[0])) and all(map(is_plain, texts))):
        return table
    _note("the times are in the header: the table is turned, and its rows are the series")
    rows = [[header[i], *(row[i] for row in table.rows)] for i in times]
    return Cells(rows, [f"column {header[i]!r}" for i in times], ["time", *own[0]])


def _by_months(table: Cells) -> Cells:
    """Put the months of a table of years and months, one series, below each other."""
    months = [_month(name) for name in table.header]
    years = [_text(row[0]) for row in table.rows]
    if sorted(filter(None, months)) != list(range(1, 13)) or months[0]:
        return table
    if not all(re.fullmatch(r"(1[5-9]|2[01])\d\d", year) for year in years):
        return table
    warn(
        "the columns are the months of the years in the rows, and are read as one series, 'value': "
        f"if they are twelve series of years, --dates {NUMBER}"
    )
    places = sorted(range(1, len(months)), key=lambda i: months[i])[-12:]
    cells = [
        (f"{year}-{months[i]:02d}", row[i], f"{name}, {table.header[i]}")
        for year, row, name in zip(years, table.rows, table.names, strict=True)
        for i in places
    ]
    cells.sort(key=lambda cell: cell[0])
    rows = [[time, value] for time, value, _ in cells]
    return Cells(rows, [name for *_, name in cells], ["time", "value"], table.top)


def _month(name: str) -> int:
    """Return the month that a name stands for, or zero."""
    if not re.fullmatch(r"[^\W\d_]{3,}\.?", name) or (day := best_format([f"{name} 2000"])) is None:
        return 0
    return int(day.index[0].month)


def _without_notes(table: Cells) -> Cells:
    """Leave out totals, and lines such as sources at the end."""
    keep = list(range(len(table.rows)))
    starts = [[cell for cell in row[:2] if isinstance(cell, str)] for row in table.rows]
    totals = [p for p in keep if any(_TOTAL.fullmatch(cell.rstrip(":")) for cell in starts[p])]
    if totals and len(totals) < 0.4 * len(keep):
        word = next(filter(None, starts[totals[0]]))
        where = listed([table.names[place] for place in totals], 4)
        _note(f"{where}: left out, as {word!r} is no time but a total")
        keep = [place for place in keep if place not in totals]
    while len(keep) > 1:
        row = table.rows[keep[-1]]
        filled = [cell for cell in row if not is_missing(cell)]
        is_note = len(filled) == 1 < len(row) and isinstance(filled[0], str)
        if not is_note or _is_time(filled[0]):
            break
        _note(f"{table.names[keep[-1]]}, {str(filled[0])[:60]!r}: left out, as it holds no values")
        keep.pop()
    # A header is repeated where files were put one below the other.
    again = [p for p in keep if list(map(_text, table.rows[p])) == table.header]
    if again:
        _note(f"{listed([table.names[p] for p in again], 4)}: left out, the header once more")
        keep = [p for p in keep if p not in again]
    return replace(table, rows=[table.rows[p] for p in keep], names=[table.names[p] for p in keep])


def _chosen(table: Cells, dialect: Dialect) -> Cells:
    """Keep the series that are asked for, and all columns that may be times."""
    if not dialect.series and not dialect.without:
        return table
    chosen = dialect.chosen(table.header)
    dated = [i for i in range(len(table.header)) if _dates(table, i) is not None]
    times = {*_parts(table).values(), *dated[:1]} or {0}
    keep = [i for i, name in enumerate(table.header) if i in times or name in chosen]
    return _of_columns(table, keep)


# --- 2. which column is time? ---


def _parts(table: Cells) -> dict[str, int]:
    """Return the columns of year, month and so on, by directive; none if they are no dates."""
    parts: dict[str, int] = {}
    for i, name in enumerate(table.header[:6]):
        for directive, names in _PARTS.items():
            if re.fullmatch(names, name.strip(), re.IGNORECASE) and directive not in parts:
                cells = [row[i] for row in table.rows if not is_missing(row[i])]
                if cells and all(_is_part(cell, directive) for cell in cells):
                    parts[directive] = i
                    break
    if "Y" not in parts or len(parts) < 2 or not {"m", "q", "V", "j"} & set(parts):
        return {}
    years = [_text(row[parts["Y"]]) for row in table.rows]
    return parts if len(set(years)) < len(years) else {}


def _is_part(cell: object, directive: str) -> bool:
    text = _text(cell)
    if directive == "m" and re.fullmatch(r"[^\W\d_]{3,}", text):
        return _reads_as_date(f"{text} 2000")
    if directive in "qV":
        text = re.sub(r"^[QqWw]", "", text)
    low, high = _RANGES[directive]
    return re.fullmatch(r"\d+", text) is not None and low <= int(text) <= high


def _one_time_column(table: Cells) -> Cells:
    """Put year and month, or date and time of day, together in the first column."""
    parts = _parts(table)
    if parts and any(_dates(table, i) is not None for i in range(len(table.header))):
        known = [i for directive, i in parts.items() if directive not in "HM"]
        names = quoted(table.header[i] for i in known)
        _note(f"left out, as the dates say the same: {names}")
        return _one_time_column(_without_columns(table, known))
    if parts:
        joined = _joined(table.rows, parts)
        if len(set(joined)) == len(joined):
            return _with_times(table, joined, list(parts.values()))
        again, _ = Counter(joined).most_common(1)[0]
        names = quoted(table.header[i] for i in parts.values())
        raise ValueError(
            f"{table.names[joined.index(again)]}: expected different times in the columns {names}, "
            f"got {again} more than once: if a column names the series, "
            f"--long SERIES,{table.header[parts['Y']]},VALUE with the names of yours"
        )
    for i, j in ((0, 1), (1, 2)):
        if j + 1 >= len(table.header):
            break
        days = [_text(row[i]) for row in table.rows]
        hours = [_text(row[j]) for row in table.rows]
        is_hours = re.fullmatch(_PARTS["H"], table.header[j], re.IGNORECASE) and all(
            _is_part(hour, "H") for hour in hours
        )
        if len(set(days)) == len(days) or len(set(zip(days, hours, strict=True))) < len(days):
            continue
        if not (is_hours or all(map(_TIME_OF_DAY.fullmatch, hours))) or _dates(table, i) is None:
            continue
        from_one = bool(is_hours) and {min(map(int, hours)), max(map(int, hours))} == {1, 24}
        if from_one:
            _note(f"{table.header[j]!r}: hours 1 to 24 begin an hour before")
        days = [day.removesuffix(" 00:00:00") for day in days]
        if is_hours:
            hours = [f"{int(hour) - from_one:02d}:00" for hour in hours]
        return _with_times(table, list(map(" ".join, zip(days, hours, strict=True))), [i, j])
    return table


def _with_times(table: Cells, times: Sequence[str], places: Sequence[int]) -> Cells:
    """Put times in the first column, in place of the columns that tell them together."""
    names = quoted(table.header[i] for i in places)
    _note(f"the columns {names} are put together as the time")
    rest = _without_columns(table, places)
    rows = [[time, *row] for time, row in zip(times, rest.rows, strict=True)]
    return replace(rest, rows=rows, header=["time", *rest.header])


def _joined(rows: Sequence[Sequence[object]], parts: dict[str, int]) -> list[str]:
    """Return the times of all rows; years in merged cells are those above."""
    own = [_text(row[parts["Y"]]) for row in rows]
    years: Iterator[str] = accumulate(own, lambda above, year: year or above)
    return [
        _date({directive: _text(row[i]) for directive, i in parts.items()} | {"Y": year})
        for row, year in zip(rows, years, strict=True)
    ]


def _date(cell: dict[str, str]) -> str:
    if "V" in cell and "m" not in cell:
        return f"{cell['Y']}-W{int(re.sub(r'[Ww]', '', cell['V'])):02d}"
    if "q" in cell and "m" not in cell:
        return f"{cell['Y']}-Q{re.sub(r'[Qq]', '', cell['q'])}"
    hour = f" {int(cell['H']):02d}:{cell.get('M', '0').zfill(2)}" if "H" in cell else ""
    if "m" not in cell:
        return f"{cell['Y']}-{cell['j'].zfill(3)}{hour}"
    month = cell["m"].zfill(2)
    if "d" not in cell:
        return f"{cell['Y']}-{month}"
    return f"{cell['Y']}-{month}-{cell['d'].zfill(2)}{hour}"


def _time_column(table: Cells, dialect: Dialect) -> int:
    """Return the place of the column of times."""
    if len(table.header) < 2:
        raise ValueError(
            "expected a column of times and at least one series, got only one column"
            + (f", {table.header[0]!r}" if table.header else "")
        )
    if dialect.dates is not None:
        return 0
    place = next((i for i in range(len(table.header)) if _dates(table, i) is not None), 0)
    if place > 0:
        _note(f"the times are in the column {table.header[place]!r}")
    return place


def _check_layout(table: Cells, time: int) -> None:
    """Reject a table in long format, and name the option that reads it."""
    dates = _dates(table, time)
    others = [i for i in range(len(table.header)) if dates is None or i != time]
    if all(is_missing(cell) or is_number(cell) for cell in (table.rows[0][i] for i in others)):
        return  # no column names series
    if len(table.header) < 3 or len(set(table.header)) < len(table.header):
        return
    frame = pd.DataFrame(
        {name: [_text(row[i]) for row in table.rows] for i, name in enumerate(table.header)}
    )
    for i, name in enumerate(table.header):
        if i != time and all(is_missing(row[i]) or is_number(row[i]) for row in table.rows):
            frame[name] = 0.0
    if dates is not None and len(dates.index) == len(frame):
        frame[table.header[time]] = dates.index
    if (names := long_names(frame)) is not None:
        raise ValueError(
            "expected a column for each series, got long format, a row for each observation of "
            f"each series in {names.series!r}: read it with --long {','.join(names)}, in Python "
            f"{names.call}"
        )


# --- 3. in which format are the dates? ---


def _times(table: Cells, time: int, dialect: Dialect) -> pd.Index:
    """Return the times, and say how they were read."""
    name = table.header[time]
    cells = [row[time] for row in table.rows]
    for place, cell in enumerate(cells):
        if is_missing(cell):
            raise ValueError(
                f"{_where(table, place, time)}: expected a time, got nothing; write the time, or "
                "delete the row"
            )
    if all(isinstance(cell, pd.Timestamp) for cell in cells):
        return _typed(table, time, [cell for cell in cells if isinstance(cell, pd.Timestamp)])
    texts = [
        _text(cell).removesuffix(" 00:00:00") if isinstance(cell, pd.Timestamp) else _text(cell)
        for cell in cells
    ]
    try:
        if dialect.dates == NUMBER:
            return _numbers_as_times(table, time, dialect)
        if dialect.dates is not None:
            return _checked(
                table, time, texts, parse_times(texts, dialect.dates), dialect.dates
            ).rename(name or None)
        if all(map(is_plain, texts)):
            return _dates_or_numbers(table, time, texts, dialect)
        best = best_format(texts, 0.5)
    except OtherZones as other:
        raise ValueError(
            f"{_where(table, other.place, time)}: expected {other.wanted} as in {table.names[0]}, "
            f"got {other.given}; write all dates in UTC"
        ) from other
    except pd.errors.OutOfBoundsDatetime as error:
        place = next(place for place, text in enumerate(texts) if _is_too_far(text, dialect))
        raise ValueError(
            f"{_where(table, place, time)}: expected a date from {pd.Timestamp.min.year} to "
            f"{pd.Timestamp.max.year}, got {texts[place]!r}"
        ) from error
    if best is None and sum(map(is_plain, texts)) > 0.5 * len(texts):
        return _numbers_as_times(table, time, dialect)
    if best is None:
        place = next((p for p, text in enumerate(texts) if not _is_time(text)), 0)
        raise ValueError(
            f"{_where(table, place, time)}: expected a date such as 2024-01-31, or a number, got "
            f"{texts[place]!r}: {_cure(texts[place])}"
        )
    index = _checked(table, time, texts, best.index, best.form)
    _tell_format(texts[0], best)
    return index.rename(name or None)


def _cure(text: str) -> str:
    """Return what to do about a text among times."""
    if is_season(text):
        return "write the first year alone"
    if re.fullmatch(r"\d{1,2}[-/. ]*[^\W\d_]{3,}\.?|[^\W\d_]{3,}\.?[-/. ]*\d{0,2}", text):
        return "write the year, too"
    return (
        "name its format with --dates, such as %d/%m/%Y; or put a column of times first, or leave "
        "out the row if it is a title"
    )


def _typed(table: Cells, time: int, cells: list[pd.Timestamp]) -> pd.DatetimeIndex:
    zones = [str(cell.tz or "no time zone") for cell in cells]
    for place, zone in enumerate(zones):
        if zone != zones[0]:
            raise ValueError(
                f"{_where(table, place, time)}: expected {zones[0]} as in {table.names[0]}, got "
                f"{zone}; write all dates in UTC"
            )
    return pd.DatetimeIndex(cells, name=table.header[time] or None).as_unit("ns")


def _is_too_far(text: str, dialect: Dialect) -> bool:
    try:
        return (
            parse_times([text], dialect.dates)[0] is None
            if dialect.dates
            else best_format([text]) is None
        )
    except pd.errors.OutOfBoundsDatetime:
        return True


def _checked(
    table: Cells, time: int, texts: Sequence[str], index: pd.DatetimeIndex, form: str
) -> pd.DatetimeIndex:
    """Return dates, or name the first cell that is none."""
    if not (bad := np.flatnonzero(index.isna())).size:
        return index
    place = int(bad[0])
    good = np.flatnonzero(index.notna())
    such = f"such as {texts[good[0]]} " if len(good) else ""
    other = best_format(texts) if len(good) < 0.5 * len(texts) else None
    cure = f"read it with --dates {other.form}" if other else "correct it, or delete the row"
    raise ValueError(
        f"{_where(table, place, time)}: expected a date {such}of the format {form!r}, got "
        f"{texts[place]!r}; {cure}"
    )


def _dates_or_numbers(table: Cells, time: int, texts: list[str], dialect: Dialect) -> pd.Index:
    """Return the times of a column of numbers, which may be dates."""
    index = _numbers_as_times(table, time, dialect)
    numbers = index.to_numpy(np.float64)
    by_digits = best_format(texts)
    found = by_digits if by_digits and by_digits.score > 0.3 else None
    if found is None and np.isfinite(numbers).all():
        found = dates_in_numbers(numbers, table.header[time])
    if found is None or found.form == "%Y":
        return index
    _tell_format(texts[0], found)
    return found.index.rename(table.header[time] or None)


def _numbers_as_times(table: Cells, time: int, dialect: Dialect) -> pd.Index:
    cells, name = [row[time] for row in table.rows], table.header[time]
    texts = [cell for cell in cells if isinstance(cell, str)]
    try:
        found = read_numbers(cells, name, decimal_mark(texts) or ".", dialect.decimal)
    except NoNumber as error:
        raise ValueError(f"{_where(table, error.place, time)}: {error}") from error
    whole = np.all(found.values == np.round(found.values)) and np.abs(found.values).max() < 2**53
    values = (
        found.values.astype(np.int64)
        if whole and all("." not in t for t in texts)
        else found.values
    )
    return pd.Index(values, name=name or None)


def _tell_format(example: str, dates: Dates) -> None:
    """Say how dates were read; a doubt where they may be something else."""
    if dates.form in _ISO and not dates.rival:
        return
    first = _shown(dates.index[0])
    if (year := dates.last_year) is not None:
        warn(
            f"dates such as {example} are read with --dates {dates.form}, of years until {year}: "
            f"if they are until {year + 100}, write years with four digits"
        )
    if dates.is_unsure:
        rival = f"; {dates.rival} reads them, too" if dates.rival else ""
        warn(
            f"times such as {example} are read as dates ({first} and so on; --dates {dates.form})"
            f"{rival}: if they are numbers, --dates {NUMBER}"
        )
    elif dates.rival:
        warn(
            f"dates such as {example} are read with --dates {dates.form} ({first} and so on); "
            f"--dates {dates.rival} reads them, too: name the one that is right"
        )
    else:
        _note(f"dates such as {example} are read with --dates {dates.form}")


# --- 4. what are the numbers? ---


def _without_repeats(table: Cells, index: pd.Index, time: int) -> tuple[Cells, pd.Index]:
    """Leave out rows that repeat another in all cells; reject others of the same time."""
    first: dict[object, int] = {}
    keep = []
    for place, moment in enumerate(index):
        if moment not in first:
            first[moment] = place
            keep.append(place)
        elif table.rows[place] != table.rows[first[moment]]:
            raise ValueError(
                f"{table.names[place]}: expected different times, got "
                f"{_text(table.rows[place][time])} again, which {table.names[first[moment]]} has: "
                "delete one, or put each series in a column of its own (--long if a column names "
                "the series)"
            )
    if len(keep) == len(index):
        return table, index
    _note(f"{counted(len(index) - len(keep), 'row')} that repeat another left out")
    rows = replace(table, rows=[table.rows[p] for p in keep], names=[table.names[p] for p in keep])
    return rows, index[keep]


def _series(table: Cells, time: int, index: pd.Index, dialect: Dialect) -> pd.DataFrame:
    """Return the table, after its numbers are read."""
    twice = [name for name, count in Counter(table.header).items() if count > 1]
    if twice:
        raise ValueError(
            f"{table.top}: expected columns of different names, got more than one named {twice}; "
            "give each a name of its own, or leave them out (--without)"
        )
    places = [i for i in range(len(table.header)) if i != time]
    mark = _mark_of(table, places) if dialect.decimal is None else dialect.decimal
    columns: dict[str, Floats] = {}
    said: dict[str, type[UserWarning]] = {}
    texts = []
    for i in places:
        name, cells = table.header[i], [row[i] for row in table.rows]
        filled = [cell for cell in cells if not is_missing(cell)]
        if filled and not any(map(is_number, filled)):
            texts.append((i, filled[0]))
            continue
        try:
            found = read_numbers(cells, name, mark, dialect.decimal)
        except NoNumber as error:
            raise ValueError(f"{_where(table, error.place, i)}: {error}") from error
        columns[name] = found.values
        said |= dict.fromkeys(found.said, TableNote) | dict.fromkeys(found.doubts, UserWarning)
    if texts and not columns:
        i, cell = texts[0]
        place = next(p for p, row in enumerate(table.rows) if row[i] is cell)
        raise ValueError(f"{_where(table, place, i)}: expected a number, got {cell!r}")
    if texts:
        names = quoted(table.header[i] for i, _ in texts)
        _note(f"left out, as there is no number in it: {names}")
    for text, category in said.items():
        warn(text, category)
    return pd.DataFrame(columns, index=index)


def _mark_of(table: Cells, places: Sequence[int]) -> str | None:
    """Return the decimal mark of all numbers; None where both are possible."""
    columns = [[cell for row in table.rows if isinstance(cell := row[i], str)] for i in places]
    marked = {text for column in columns for text in column if "," in text or "." in text}
    if not marked:
        return "."
    by_size = (mark_by_size([text for text in column if is_plain(text)]) for column in columns)
    return decimal_mark(list(marked)) or next(filter(None, by_size), None)


def _where(table: Cells, place: int, column: int) -> str:
    return f"{table.names[place]}, column {table.header[column] or column + 1!r}"


def _long(table: Cells, dialect: Dialect, names: LongNames) -> pd.DataFrame:
    for name in names:
        if name not in table.header:
            raise ValueError(
                f"--long names a column {name!r}, but the columns are {', '.join(table.header)}"
            )
    series, time, value = (table.header.index(name) for name in names)
    if time in (parts := _parts(table)).values():
        for row, text in zip(table.rows, _joined(table.rows, parts), strict=True):
            row[time] = text
    for place, row in enumerate(table.rows):
        if is_missing(row[series]):
            raise ValueError(
                f"{_where(table, place, series)}: expected the name of a series, got nothing"
            )
    index = _times(table, time, dialect)
    only = _of_columns(table, [time, value])
    columns = {
        names.series: [_text(row[series]) for row in table.rows],
        names.time: index,
        names.value: _series(only, 0, pd.RangeIndex(len(index)), dialect)[names.value].to_numpy(),
    }
    frame = from_long(pd.DataFrame(columns), *names)
    return without_blank_end(frame[dialect.chosen(list(frame.columns))])

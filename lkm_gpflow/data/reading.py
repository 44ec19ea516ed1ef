"""From cells to a table of series: the checks in order, the same for CSV, Excel and DataFrames.

1. Is it a table?  Blank rows and titles above the header, units below it, totals and sources at
   the end are left out; a table with its times in the header is turned, and one of years and
   months is one series.
2. Which column is time?  The first one of dates; year and month, or date and time of day, are put
   together; otherwise the first column has numbers.
3. In which format are the dates?  See `date_formats`.
4. What are the numbers?  See `numerals`.

In between a table is a DataFrame of texts, numbers, dates and None.  Its index says how messages
call the rows ("row 5"), its columns are the header, and their name is how messages call that.

What is certain is done and said in one line (a `TableNote`).  What is likely is done, too, and is a
doubt (a `UserWarning`) with the option that settles it.  What is neither is an error with its row
and column, and what to do.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
import pandas as pd

from ..gp.types import Floats
from ..runtime.text import counted, did_you_mean, listed, quoted
from ..runtime.warn import TableNote, warn
from .date_formats import (
    NUMBER,
    UNLIKELY,
    Dates,
    best_format,
    check_format,
    dates_in_numbers,
    in_one_zone,
    is_season,
    parse_times,
)
from .numerals import (
    BadCell,
    decimal_mark,
    is_missing,
    is_number,
    is_plain,
    mark_by_size,
    read_numbers,
)
from .shapes import LongNames, explain_columns, from_long

_ISO = ("%Y-%m-%d", "%Y-%m")  # not worth a word

_TOTAL = re.compile(
    r"(grand |sub)?totals?|sums?|average|mean|gesamt|summe|insgesamt|total general|totaal|totale|"
    r"ytd|all (years|months)|\d{4} total|total \d{4}|max(imum)?|min(imum)?|std( dev)?|median",
    re.IGNORECASE,
)

_LOOKED_AT = 100  # rows at the end that say whether times or names are in the first column

_TIME_OF_DAY = re.compile(r"\d{1,2}:\d{2}(:\d{2}(\.\d+)?)?(\s?[AaPp]\.?[Mm]\.?)?")

_YEAR = re.compile(r"(1[5-9]|2[01])\d\d")

_PARTS = {
    "Y": (r"y(ear|r)?|yy(yy)?|jahr|ann[eé]e|a[nñ]o|anno|ano|jaar|fy", 1500, 2200),
    "m": (r"m(o(nth)?|th)?|mm|mon|monat|mois|mes|mese|m[eê]s|maand|period", 1, 12),
    "q": (r"q(uarter|tr)?|quartal|trimestre|kwartaal", 1, 4),
    "V": (r"w(ee)?k|woche|kw|semaine|semana|iso_?week", 1, 53),
    "d": (r"d(ay|om)?|dd|tag|jour|d[ií]a|giorno|dag|day_of_month", 1, 31),
    "H": (r"h(our|r)?[ _]?(ending|end)?|he|hh|stunde|heure|hora", 0, 24),
    "M": (r"mi?n(ute)?s?|mm", 0, 59),
    "j": (
        r"doy|y(ear)?_?day|j(ulian)?_?day|day_?of_?(the_?)?year|julian|jour_julien", 1, 366
    ),
}  # fmt: skip
"""Names and range of columns that are parts of a date, by the directive of `strptime`."""

_JOINED = {
    "d": "{Y}-{m:0>2}-{d:0>2}", "m": "{Y}-{m:0>2}", "V": "{Y}-W{V:0>2}", "q": "{Y}-Q{q}",
    "j": "{Y}-{j:0>3}",
}  # fmt: skip
"""How a date is written with its parts, by the finest of them."""


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
        Format of the dates as of `datetime.strptime` (without %U, %W, %w, %c, %x and %X), such as
        "%d/%m/%Y", also with %q for quarters and %h for half-years; "number" for times that are
        numbers, "excel" for Excel's days, "s", "ms", "us" or "ns" since 1970.
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
        """Return those of some names that are to be read; a ValueError says if one is none."""
        for option, asked in (("--series", self.series), ("--without", self.without)):
            for name in asked:
                if name not in names:
                    raise ValueError(
                        f"{option} names {name!r}, but there are {quoted(names)}"
                        f"{did_you_mean(name, names)}"
                    )
        wanted = self.series or names
        return [name for name in names if name in wanted and name not in self.without]


def cells_of(frame: pd.DataFrame, *, with_index: bool) -> pd.DataFrame:
    """Return the cells of a DataFrame; its index is the first column, if it is wanted."""
    name = "" if frame.index.name is None else str(frame.index.name)
    given = frame.reset_index(names=[name]) if with_index else frame
    columns = [map(_cell, given.iloc[:, i].astype(object)) for i in range(given.shape[1])]
    names = [f"row {number} below the header" for number in range(1, len(given) + 1)]
    return _table(list(zip(*columns, strict=True)), names, list(map(str, given.columns)))


def _table(
    rows: Sequence[Sequence[object]], names: Sequence[str], header: Sequence[str],
    top: object = "header",
) -> pd.DataFrame:  # fmt: skip
    cells = [[None if is_missing(cell) else cell for cell in row] for row in rows]
    return pd.DataFrame(cells, pd.Index(names), pd.Index(header, name=top), dtype=object)


def read(table: pd.DataFrame, dialect: Dialect) -> pd.DataFrame:
    """Read cells, of `cells_of` or `with_header`, as a table of series, by the checks above."""
    table = _turned(_without_notes(_without_blanks(table)))
    table = table if dialect.dates == NUMBER else _by_months(table)
    if table.empty:
        raise ValueError("expected rows of values below the header, got none")
    if dialect.long is not None:
        return _long(table, dialect, dialect.long)
    table = _one_time_column(_chosen(table, dialect))
    time = _time_column(table, dialect)
    _check_layout(table, time)
    index = _times(table, time, dialect)
    keep = _without_repeats(table, index, time)
    return without_blank_end(_series(table.iloc[keep], time, index[keep], dialect))


def without_blank_end(frame: pd.DataFrame) -> pd.DataFrame:
    """Leave out rows at the end that have times but no values: the forecast begins there."""
    seen = frame.notna().any(axis=1).to_numpy()
    if not seen.any() or seen[-1] or not frame.index.is_monotonic_increasing:
        return frame
    last = len(seen) - int(np.argmax(seen[::-1]))
    blank = frame.index[last:]
    _note(
        f"{counted(len(blank), 'row')} at the end, {shown(blank[0])} to {shown(blank[-1])}, "
        "without a value: left out, the forecast begins there"
    )
    return frame.iloc[:last]


def _note(text: str) -> None:
    warn(text, TableNote)


def shown(time: object) -> str:
    """Return a time without what goes without saying: midnight, and digits of rounding."""
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
        return None if np.isnan(number := float(value)) else number
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


def _texts(table: pd.DataFrame, i: int) -> list[str]:
    """Return a column as texts, [D]."""
    return list(map(_text, table.iloc[:, i]))


def _filled(row: Sequence[object]) -> list[object]:
    return [cell for cell in row if not is_missing(cell)]


# --- 1. is it a table? ---


def with_header(rows: Sequence[Sequence[object]], names: Sequence[str]) -> pd.DataFrame:
    """Return the cells of rows, whose header is the first row as wide as those of values."""
    cells = [[_cell(cell) for cell in row] for row in rows]
    keep = [k for k, row in enumerate(cells) if _filled(row)]
    if not keep:
        raise ValueError("expected a header and rows of values, got an empty file")
    rows, names = [cells[k] for k in keep], [names[k] for k in keep]
    told = list(map(_filled, rows))
    begin = _first_values(rows)
    if begin == 0:
        raise ValueError(
            f"{names[0]}: expected a header of names, got the values "
            f"{listed(list(map(_text, rows[0])), 6)}: write names above them"
        )
    width = max(map(len, told[begin:] or told))
    above = [
        k
        for k in range(begin)
        if not _text(rows[k][0]).startswith("# ")
        and (len(told[k]) >= max(2, 0.5 * width)
             or (len(told[k]) == width - 1 and is_missing(rows[k][0])))
    ]  # fmt: skip
    if not above and width > 1:
        raise ValueError(
            f"{names[begin - 1]}: expected a header of {width} names above the values, got "
            f"{listed(list(map(_text, told[begin - 1])), 6)}: write a name in each column"
        )
    first = above[0] if above else begin - 1
    header = list(map(_text, rows[first]))
    if first > 0 and not _are_different(header) and len(told[first - 1]) > 1:
        first -= 1  # groups of columns
        header = list(map(_text, rows[first]))
    # Rows below the header that hold numbers are values, whatever stands where the time should.
    has_numbers = (k for k in range(first + 1, begin) if any(map(is_plain, _filled(rows[k][1:]))))
    begin = next(has_numbers, begin)
    for k in range(first + 1, begin):
        name = rows[k][0]
        is_unit = is_missing(name) or re.match(r"\(|\[|units?\b", str(name), re.IGNORECASE)
        is_named = isinstance(name, str) and not is_unit
        if k in above and (is_named or not _are_different(header)):  # names in two rows
            if len(set(filter(None, header[1:]))) == 1:  # a title of all
                header[1:] = [""] * (len(header) - 1)
            for i in range(2, len(header)):
                header[i] = header[i] or header[i - 1]
            pairs = zip(header, map(_text, rows[k]), strict=True)
            header = [" ".join(filter(None, pair)) for pair in pairs]
            _note("the names are in two rows, which are joined")
        else:
            cells_there = listed(list(map(_text, told[k])), 4)
            _note(f"{names[k]}, {cells_there}: left out, as it holds no values")
    if first > 0:
        titles = [_text(cell) for row in told[:first] for cell in row]
        _note(f"rows above the header are titles: {listed(titles, 3)}")
    return _table(rows[begin:], names[begin:], header, names[first])


def _are_different(names: Sequence[str]) -> bool:
    """Whether columns but the first and blank ones at the end have names, no two the same."""
    named = list(names)
    while named and not named[-1]:
        named.pop()
    return all(named[1:]) and len(set(named)) == len(named)


def _first_values(rows: Sequence[Sequence[object]]) -> int:
    """Return the first row of values: after it, too, times or numbers stand in the same columns."""
    told = list(map(_filled, rows))
    first = [row[0] for row in rows[-_LOOKED_AT:]]
    if sum(map(_is_time, first)) < 0.3 * len(first):  # names are in the first column
        widest = max(map(len, told))
        return 1 + next((k for k, row in enumerate(told) if len(row) >= 0.6 * widest), 0)
    least = 1 if len(rows[0]) == 1 else 2
    has_values = (len(row) >= least and _is_time(row[0]) for row in told)
    return next((k for k, is_first in enumerate(has_values) if is_first), len(rows))


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
    except BadCell:
        return True


def _without_blanks(table: pd.DataFrame) -> pd.DataFrame:
    """Leave out columns without a name and a value, and row numbers."""
    keep: list[int] = []
    numbers: list[int] = []
    for i, name in enumerate(table.columns):
        is_nameless = not name.strip() or re.fullmatch(r"Unnamed: \d+", name) is not None
        if is_nameless and table.iloc[:, i].isna().all():
            continue
        is_row = name.lower() in ("index", "id", "#", "no", "no.", "nr", "row")
        goes_on = (is_row or is_nameless) and _go_on(table, i, None if is_row else (0, 1))
        (numbers if goes_on and table.shape[1] > 2 else keep).append(i)
    dated = any(_dates(table, i) for i in keep[:3]) or _parts(table)
    if numbers and dated:
        _note("the row numbers are left out")
    else:
        keep = sorted([*keep, *numbers])
    for i in keep[1:]:
        if not table.columns[i].strip():
            raise ValueError(
                f"{table.columns.name}, column {i + 1}: expected the name of a series, got "
                "nothing; write a name, or leave out the column"
            )
    return table.iloc[:, keep]


def _go_on(table: pd.DataFrame, i: int, starts: Sequence[int] | None) -> bool:
    """Whether a column counts on by ones; where cells are blank, as far as it goes."""
    texts = list(filter(None, _texts(table, i)))
    if len(texts) < 3 or not texts[0].isdigit() or (starts and int(texts[0]) not in starts):
        return False
    return texts == [str(int(texts[0]) + place) for place in range(len(texts))]


def _dates(table: pd.DataFrame, i: int) -> Dates | None:
    """Return a column read as dates, if most of its cells are; numbers are none."""
    filled = table.iloc[:, i].dropna().tolist()
    if not filled or all(map(is_plain, filled)):
        return None
    if all(isinstance(cell, pd.Timestamp) for cell in filled):
        return Dates(pd.DatetimeIndex(pd.Series(filled)), "")
    try:
        return best_format(list(map(_text, filled)), 0.75)
    except BadCell:
        return Dates(pd.DatetimeIndex([]), "")


def _has_a_date(table: pd.DataFrame) -> bool:
    return any(_dates(table, i) is not None for i in range(table.shape[1]))


def _turned(table: pd.DataFrame) -> pd.DataFrame:
    """Turn a table that has its times in the header."""
    is_time = np.array([_is_time(name) for name in table.columns], np.bool_)
    if is_time.sum() < 3 or is_time.all() or is_time.mean() <= 0.5 or is_time[0]:
        return table
    others, rest = table.loc[:, ~is_time], table.loc[:, is_time]
    texts = list(rest.columns)
    if _has_a_date(others) or not (
        all(map(_YEAR.fullmatch, texts)) or best_format(texts) is not None
    ):
        return table
    labels = [_texts(others, i) for i in range(others.shape[1])]
    own = [each for each in labels if len(set(each)) == len(each) and all(each)]
    own.sort(key=lambda each: all(map(is_number, each)))  # codes are worse names
    if not own or (all(map(is_number, own[0])) and all(map(is_plain, texts))):
        return table
    _note("the times are in the header: the table is turned, and its rows are the series")
    rows = [[text, *cells] for text, cells in zip(texts, rest.to_numpy().T.tolist(), strict=True)]
    return _table(rows, [f"column {text!r}" for text in texts], ["time", *own[0]])


def _by_months(table: pd.DataFrame) -> pd.DataFrame:
    """Put the months of a table of years and months, one series, below each other."""
    months = [_month(name) for name in table.columns]
    years = _texts(table, 0)
    if sorted(filter(None, months)) != list(range(1, 13)) or months[0]:
        return table
    if not all(map(_YEAR.fullmatch, years)):
        return table
    warn(
        "the columns are the months of the years in the rows, and are read as one series, 'value': "
        f"if they are twelve series of years, --dates {NUMBER}"
    )
    cells = sorted(
        (f"{year}-{month:02d}", place, i)
        for place, year in enumerate(years)
        for i, month in enumerate(months)
        if month
    )
    return _table(
        [[time, table.iat[place, i]] for time, place, i in cells],
        [f"{table.index[place]}, {table.columns[i]}" for _, place, i in cells],
        ["time", "value"],
        table.columns.name,
    )


def _month(name: str) -> int:
    """Return the month that a name stands for, or zero."""
    if not re.fullmatch(r"[^\W\d_]{3,}\.?", name) or (day := best_format([f"{name} 2000"])) is None:
        return 0
    return int(day.index[0].month)


def _without_notes(table: pd.DataFrame) -> pd.DataFrame:
    """Leave out totals, and lines such as sources at the end."""
    starts = [list(filter(None, row)) for row in table.iloc[:, :2].to_numpy().tolist()]
    words = [
        next((c for c in row if isinstance(c, str) and _TOTAL.fullmatch(c.rstrip(":"))), None)
        for row in starts
    ]
    is_total = np.array([word is not None for word in words], np.bool_)
    if 0 < is_total.sum() < 0.4 * len(table):
        word = next(c for c in starts[int(is_total.argmax())] if isinstance(c, str))
        where = listed(list(table.index[is_total]), 4)
        _note(f"{where}: left out, as {word!r} is no time but a total")
        table = table[~is_total]
    while len(table) > 1:
        filled = table.iloc[-1].dropna().tolist()
        is_note = len(filled) == 1 < table.shape[1] and isinstance(filled[0], str)
        if not is_note or _is_time(filled[0]):
            break
        _note(f"{table.index[-1]}, {filled[0][:60]!r}: left out, as it holds no values")
        table = table.iloc[:-1]
    # A header is repeated where files were put one below the other.
    header = list(table.columns)
    again = np.array([list(map(_text, row)) == header for row in table.to_numpy()], np.bool_)
    if again.any():
        _note(f"{listed(list(table.index[again]), 4)}: left out, the header once more")
        table = table[~again]
    return table


def _chosen(table: pd.DataFrame, dialect: Dialect) -> pd.DataFrame:
    """Keep the series that are asked for, and all columns that may be times."""
    if not dialect.series and not dialect.without:
        return table
    chosen = dialect.chosen(list(table.columns))
    dated = [i for i in range(table.shape[1]) if _dates(table, i) is not None]
    times = {*_parts(table).values(), *dated[:1]} or {0}
    return table.iloc[:, [i for i, n in enumerate(table.columns) if i in times or n in chosen]]


# --- 2. which column is time? ---


def _parts(table: pd.DataFrame) -> dict[str, int]:
    """Return the columns of year, month and so on, by directive; none if they are no dates."""
    parts: dict[str, int] = {}
    for i, name in enumerate(table.columns[:6]):
        cells = list(filter(None, _texts(table, i)))
        for directive, (names, _, _) in _PARTS.items():
            is_named = re.fullmatch(names, name.strip(), re.IGNORECASE) and directive not in parts
            if is_named and cells and all(_is_part(cell, directive) for cell in cells):
                parts[directive] = i
                break
    if "Y" not in parts or len(parts) < 2 or not {"m", "q", "V", "j"} & set(parts):
        return {}
    return parts if table.iloc[:, parts["Y"]].duplicated().any() else {}


def _is_part(text: str, directive: str) -> bool:
    if directive == "m" and re.fullmatch(r"[^\W\d_]{3,}", text):
        return _reads_as_date(f"{text} 2000")
    _, low, high = _PARTS[directive]
    text = re.sub(r"^[QqWw]", "", text) if directive in "qV" else text
    return re.fullmatch(r"\d+", text) is not None and low <= int(text) <= high


def _one_time_column(table: pd.DataFrame) -> pd.DataFrame:
    """Put year and month, or date and time of day, together in the first column."""
    parts = _parts(table)
    if parts and _has_a_date(table):
        known = [i for directive, i in parts.items() if directive not in "HM"]
        _note(f"left out, as the dates say the same: {quoted(table.columns[known])}")
        return _one_time_column(_without_columns(table, known))
    if parts:
        joined = _joined(table, parts)
        if len(set(joined)) == len(joined):
            return _with_times(table, joined, list(parts.values()))
        again, _ = Counter(joined).most_common(1)[0]
        raise ValueError(
            f"{table.index[joined.index(again)]}: expected different times in the columns "
            f"{quoted(table.columns[list(parts.values())])}, got {again} more than once: if a "
            f"column names the series, --long SERIES,{table.columns[parts['Y']]},VALUE with the "
            "names of yours"
        )
    for i, j in ((0, 1), (1, 2)):
        if j + 1 >= table.shape[1]:
            break
        name, days, hours = table.columns[j], _texts(table, i), _texts(table, j)
        is_hours = re.fullmatch(_PARTS["H"][0], name, re.IGNORECASE) and all(
            _is_part(hour, "H") for hour in hours
        )
        if len(set(days)) == len(days) or len(set(zip(days, hours, strict=True))) < len(days):
            continue
        if not (is_hours or all(map(_TIME_OF_DAY.fullmatch, hours))) or _dates(table, i) is None:
            continue
        if is_hours:
            from_one = {min(map(int, hours)), max(map(int, hours))} == {1, 24}
            if from_one:
                _note(f"{name!r}: hours 1 to 24 begin an hour before")
            hours = [f"{int(hour) - from_one:02d}:00" for hour in hours]
        days = [day.removesuffix(" 00:00:00") for day in days]
        return _with_times(table, list(map(" ".join, zip(days, hours, strict=True))), [i, j])
    return table


def _without_columns(table: pd.DataFrame, places: Sequence[int]) -> pd.DataFrame:
    return table.iloc[:, [i for i in range(table.shape[1]) if i not in places]]


def _with_times(table: pd.DataFrame, times: Sequence[str], places: Sequence[int]) -> pd.DataFrame:
    """Put times in the first column, in place of the columns that tell them together."""
    _note(f"the columns {quoted(table.columns[places])} are put together as the time")
    rest = _without_columns(table, places)
    rest.insert(0, "time", pd.Series(times, rest.index, dtype=object), allow_duplicates=True)
    return rest


def _joined(table: pd.DataFrame, parts: dict[str, int]) -> list[str]:
    """Return the times of all rows; years in merged cells are those above."""
    finest = next(directive for directive in "mVqj" if directive in parts)
    finest = "d" if finest == "m" and "d" in parts else finest
    form = _JOINED[finest] + (" {H:0>2}:{M:0>2}" if "H" in parts and finest in "dj" else "")
    cells = {directive: _texts(table, i) for directive, i in parts.items()}
    years: Iterator[str] = accumulate(cells["Y"], lambda above, year: year or above)
    cells["Y"] = list(years)
    for directive in parts.keys() & {"q", "V"}:
        cells[directive] = [re.sub(r"^[QqWw]", "", text) for text in cells[directive]]
    rows = zip(*cells.values(), strict=True)
    return [form.format(**{"M": "0"} | dict(zip(cells, row, strict=True))) for row in rows]


def _time_column(table: pd.DataFrame, dialect: Dialect) -> int:
    """Return the place of the column of times."""
    if table.shape[1] < 2:
        raise ValueError(
            "expected a column of times and at least one series, got only one column"
            + (f", {table.columns[0]!r}" if len(table.columns) else "")
        )
    if dialect.dates is not None:
        return 0
    place = next((i for i in range(table.shape[1]) if _dates(table, i) is not None), 0)
    if place > 0:
        _note(f"the times are in the column {table.columns[place]!r}")
    return place


def _check_layout(table: pd.DataFrame, time: int) -> None:
    """Reject a table in long format, and name the option that reads it."""
    dates = _dates(table, time)
    names_of = [table.iat[0, i] for i in range(table.shape[1]) if dates is None or i != time]
    if all(cell is None or is_number(cell) for cell in names_of):
        return  # no column names series
    if table.shape[1] < 3 or not table.columns.is_unique:
        return
    frame = pd.DataFrame(
        {name: _texts(table, i) if i == time or not table[name].dropna().map(is_number).all()
               else np.zeros(len(table)) for i, name in enumerate(table.columns)}
    )  # fmt: skip
    if dates is not None and len(dates.index) == len(frame):
        frame[table.columns[time]] = dates.index
    explain_columns(frame)


# --- 3. in which format are the dates? ---


def _times(table: pd.DataFrame, time: int, dialect: Dialect) -> pd.Index:
    """Return the times, and say how they were read."""
    cells, name = table.iloc[:, time].tolist(), table.columns[time]
    with _located(table, time):
        return _read_times(cells, name, dialect).rename(name or None)


@contextmanager
def _located(table: pd.DataFrame, column: int) -> Iterator[None]:
    """Say where a cell is that cannot be read."""
    try:
        yield
    except BadCell as error:
        name = table.columns[column] or column + 1
        raise ValueError(f"{table.index[error.place]}, column {name!r}: {error}") from error


def _read_times(cells: list[object], name: str, dialect: Dialect) -> pd.Index:
    if None in cells:
        place = cells.index(None)
        raise BadCell(place, "expected a time, got nothing; write the time, or delete the row")
    if all(isinstance(cell, pd.Timestamp) for cell in cells):
        return in_one_zone(cells)  # type: ignore[arg-type]
    texts = [
        _text(cell).removesuffix(" 00:00:00") if isinstance(cell, pd.Timestamp) else _text(cell)
        for cell in cells
    ]
    if dialect.dates == NUMBER:
        return _numbers_as_times(cells, name, dialect)
    if dialect.dates is not None:
        return _complete(texts, parse_times(texts, dialect.dates), dialect.dates)
    if all(map(is_plain, texts)):
        numbers = _numbers_as_times(cells, name, dialect)
        best = best_format(texts)
        if best is None or best.score <= UNLIKELY:
            best = dates_in_numbers(numbers.to_numpy(np.float64), name)
        if best is None or best.form == "%Y":
            return numbers
    elif (best := best_format(texts, 0.5)) is None:
        if sum(map(is_plain, texts)) > 0.5 * len(texts):
            return _numbers_as_times(cells, name, dialect)
        place = next((p for p, text in enumerate(texts) if not _is_time(text)), 0)
        raise BadCell(
            place,
            f"expected a date such as 2024-01-31, or a number, got {texts[place]!r}: "
            f"{_cure(texts[place])}",
        )
    index = _complete(texts, best.index, best.form)
    _tell_format(texts[0], best)
    return index


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


def _complete(texts: Sequence[str], index: pd.DatetimeIndex, form: str) -> pd.DatetimeIndex:
    """Return dates, or name the first cell that is none."""
    if not (bad := np.flatnonzero(index.isna())).size:
        return index
    place = int(bad[0])
    good = np.flatnonzero(index.notna())
    such = f"such as {texts[good[0]]} " if len(good) else ""
    other = best_format(texts) if len(good) < 0.5 * len(texts) else None
    cure = f"read it with --dates {other.form}" if other else "correct it, or delete the row"
    raise BadCell(
        place, f"expected a date {such}of the format {form!r}, got {texts[place]!r}; {cure}"
    )


def _numbers_as_times(cells: Sequence[object], name: str, dialect: Dialect) -> pd.Index:
    texts = [cell for cell in cells if isinstance(cell, str)]
    values = read_numbers(cells, name, decimal_mark(texts) or ".", dialect.decimal).values
    whole = np.all(values == np.round(values)) and np.abs(values).max() < 2**53
    is_int = whole and not any("." in text for text in texts)
    return pd.Index(values.astype(np.int64) if is_int else values)


def _tell_format(example: str, dates: Dates) -> None:
    """Say how dates were read; a doubt where they may be something else."""
    if dates.form in _ISO and not dates.rival:
        return
    first = shown(dates.index[0])
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


def _without_repeats(table: pd.DataFrame, index: pd.Index, time: int) -> list[int]:
    """Return the rows but those that repeat another in all cells; reject others of its time."""
    first: dict[object, int] = {}
    for place, moment in enumerate(index):
        before = first.setdefault(moment, place)
        if before < place and not table.iloc[place].equals(table.iloc[before]):
            raise ValueError(
                f"{table.index[place]}: expected different times, got "
                f"{_text(table.iat[place, time])} again, which {table.index[before]} has: "
                "delete one, or put each series in a column of its own (--long if a column names "
                "the series)"
            )
    if more := len(index) - len(first):
        _note(f"{counted(more, 'row')} that repeat another left out")
    return list(first.values())


def _series(table: pd.DataFrame, time: int, index: pd.Index, dialect: Dialect) -> pd.DataFrame:
    """Return the table, after its numbers are read."""
    twice = [name for name, count in Counter(table.columns).items() if count > 1]
    if twice:
        raise ValueError(
            f"{table.columns.name}: expected columns of different names, got more than one named "
            f"{twice}; give each a name of its own, or leave them out (--without)"
        )
    columns = {i: table.iloc[:, i].tolist() for i in range(table.shape[1]) if i != time}
    mark = _mark_of(list(columns.values())) if dialect.decimal is None else dialect.decimal
    values: dict[str, Floats] = {}
    said: dict[str, type[UserWarning]] = {}
    texts = []
    for i, cells in columns.items():
        name, filled = table.columns[i], [cell for cell in cells if cell is not None]
        if filled and not any(map(is_number, filled)):
            texts.append(i)
            continue
        with _located(table, i):
            found = read_numbers(cells, name, mark, dialect.decimal)
        values[name] = found.values
        said |= dict.fromkeys(found.said, TableNote) | dict.fromkeys(found.doubts, UserWarning)
    if texts and not values:
        column = table.iloc[:, texts[0]]
        place = int(column.notna().argmax())
        with _located(table, texts[0]):
            raise BadCell(place, f"expected a number, got {column.iloc[place]!r}")
    if texts:
        _note(f"left out, as there is no number in it: {quoted(table.columns[texts])}")
    for text, category in said.items():
        warn(text, category)
    return pd.DataFrame(values, index=index)


def _mark_of(columns: Sequence[Sequence[object]]) -> str | None:
    """Return the decimal mark of all numbers; None where both are possible."""
    texts = [[cell for cell in column if isinstance(cell, str)] for column in columns]
    marked = {text for column in texts for text in column if "," in text or "." in text}
    if not marked:
        return "."
    by_size = (mark_by_size([text for text in column if is_plain(text)]) for column in texts)
    return decimal_mark(list(marked)) or next(filter(None, by_size), None)


def _long(table: pd.DataFrame, dialect: Dialect, names: LongNames) -> pd.DataFrame:
    header = list(table.columns)
    for name in names:
        if name not in header:
            raise ValueError(
                f"--long names a column {name!r}, but the columns are {', '.join(header)}"
            )
    series, time, value = map(header.index, names)
    if time in (parts := _parts(table)).values():
        table = table.assign(**{names.time: _joined(table, parts)})
    if (absent := table.iloc[:, series].isna()).any():
        with _located(table, series):
            raise BadCell(int(absent.argmax()), "expected the name of a series, got nothing")
    index = _times(table, time, dialect)
    only = _series(table.iloc[:, [time, value]], 0, pd.RangeIndex(len(index)), dialect)
    columns = {
        names.series: _texts(table, series), names.time: index,
        names.value: only[names.value].to_numpy(),
    }  # fmt: skip
    frame = from_long(pd.DataFrame(columns), *names)
    return without_blank_end(frame[dialect.chosen(list(frame.columns))])

"""Texts and numbers that are dates: in which format, tried on all rows.

Each format of a list is tried on every cell.  Of those that read all of them, the one whose dates
are in order and on a grid is taken; the runner-up is named where it is close.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cache, lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from ..gp.types import Floats
from .grids import evenness
from .numerals import BadCell

NUMBER, EXCEL = "number", "excel"
"""Words of ``--dates`` for times that are plain numbers, and for those that are Excel's days."""

SINCE_1970 = {"s": "seconds", "ms": "milliseconds", "us": "microseconds", "ns": "nanoseconds"}

_CLOSE = 0.3
"""Scores that differ less leave a doubt; they are shares of a grid, less what a format is rare."""

UNLIKELY = 0.3  # digits that score less as dates are numbers

_YEARS_AHEAD = 10  # years of two digits are not later than that from today

_MONTH_NAMES = {
    name: month
    for month, names in enumerate(
        (
            "jan ene gen", "feb fév fev", "mar mär mrz maa", "apr abr avr", "may mai mag mei",
            "jun giu juin", "jul lug juil", "aug ago aoû aou", "sep set", "oct okt ott out",
            "nov", "dec dez dic déc",
        ),
        start=1,
    )
    for name in names.split()
}  # fmt: skip

_DIRECTIVES = {
    "Y": r"(?P<Y>\d{4})", "y": r"(?P<y>\d{2})", "m": r"(?P<m>0?[1-9]|1[0-2])",
    "b": r"(?P<b>[^\W\d_]{3,})\.?", "B": r"(?P<b>[^\W\d_]{3,})",
    "d": r"(?P<d>0?[1-9]|[12]\d|3[01])", "j": r"(?P<j>\d{3})",
    "q": r"(?P<q>0?[1-4])", "h": r"(?P<h>[12])",
    "G": r"(?P<Y>\d{4})", "V": r"(?P<V>0?[1-9]|[1-4]\d|5[0-3])", "u": r"(?P<u>[1-7])",
    "H": r"(?P<H>[01]?\d|2[0-4])", "I": r"(?P<H>0?[1-9]|1[0-2])", "M": r"(?P<M>[0-5]\d)",
    "S": r"(?P<S>[0-5]\d)", "f": r"(?P<f>\d{1,9})", "p": r"(?P<p>[AaPp])\.?[Mm]\.?",
    "z": r"(?P<z>Z|UTC|[+-]\d{2}:?\d{2})", "a": r"[^\W\d_]+\.?", "A": r"[^\W\d_]+",
}  # fmt: skip
"""Those of `strptime`, and %q for quarters and %h for half-years."""

_TIME_OF_DAY = (
    r"(?:(?:\s*[T,:]\s*|\s+)(?P<H>[01]?\d|2[0-4])"
    r"(?:(?::(?P<M>[0-5]\d)(?::(?P<S>[0-5]\d)(?:[.,](?P<f>\d{1,9}))?)?)?"
    r"(?:\s*(?P<p>[AaPp])\.?[Mm]\.?)?)"
    r"(?:\s*(?P<z>Z|UTC|GMT|[+-]\d{2}(?::?\d{2})?))?)?"
)
"""May stand behind a date."""

_SOLID = {
    "Y": r"(?P<Y>(?:1[6-9]|2[01])\d\d)", "G": r"(?P<Y>(?:1[6-9]|2[01])\d\d)",
    "d": r"(?P<d>0[1-9]|[12]\d|3[01])", "m": r"(?P<m>0[1-9]|1[0-2])",
    "V": r"(?P<V>0[1-9]|[1-4]\d|5[0-3])", "H": r"(?P<H>[01]\d|2[0-4])", "q": "(?P<q>[1-4])",
}  # fmt: skip
"""Without a sign between, all digits are there."""

_YEAR_BORDERS = {"%y%m": 89, "%y%j": 635}
"""Numbers of these forms leap from one year to the next; others may be anything."""

_WEEK = re.compile(
    r"(?:(?:week|w/?[cek]) (?:ending|beginning|commencing|starting|of)?:? ?)?"
    r"(?P<day>\d+(?P<sign>[-/. ])\w+(?P=sign)\d+)"
    r"(?:(?:/| ?[-\u2013] | to )\d+(?P=sign)\w+(?P=sign)\d+)?",
    re.IGNORECASE,
)
"""A day with words before it or another day behind it, as weeks are written."""


def _first_day(cell: str) -> str:
    """Return the first day of a week, or the cell as it is."""
    return match["day"] if (match := _WEEK.fullmatch(cell)) else cell


_LETTERS = {"Q": "%q", "W": "%V", "S": "%h", "H": "%h", "M": "%m", "T": "%q"}

_SIGNED = {
    "%Y_%m_%d": 0.0, "%d_%m_%Y": 0.0, "%m_%d_%Y": 0.02, "%Y_%d_%m": 0.4, "%d_%m_%y": 0.1,
    "%m_%d_%y": 0.12, "%y_%m_%d": 0.2, "%d_%b_%Y": 0.0, "%d_%b_%y": 0.1, "%Y_%b_%d": 0.1,
    "%b_%d_%Y": 0.1, "%Y_%m": 0.0, "%m_%Y": 0.0, "%b_%Y": 0.0, "%b_%y": 0.05, "%Y_%b": 0.0,
    "%y_%b": 0.15, "%Y_%q": 0.3, "%q_%Y": 0.3, "%Y_%V": 0.3, "%V_%Y": 0.3, "%Y_%j": 0.2,
    "%Y_@#": 0.0, "@#_%Y": 0.0, "@#_%y": 0.1, "@_#_%Y": 0.1, "%Y_@_#": 0.1, "%q_Q_%Y": 0.0,
    "KW_%V_%Y": 0.1,
}  # fmt: skip
"""Formats, and how much rarer they are than others: with a sign for _, a letter for @, and what it
stands for, in `_LETTERS`, for #."""

_OTHERS = {
    "%Y@#": 0.0, "@#%Y": 0.1, "%y@#": 0.2, "%Y:%q": 0.3,
} | dict.fromkeys((
    "%Y-W%V-%u", "%YW%V-%u", "%YW%V%u", "%b %d, %Y", "%A, %B %d, %Y", "%a %d %b %Y", "%qQ.%Y",
    "%A, %d %B %Y", "%a, %d %b %Y", "%a %b %d %Y", "%a %d/%m/%Y", "%a %Y-%m-%d", "%d%b%Y",
    "%d%b%y", "%b%Y", "%b%y", "%b '%y", "%b'%y", "%Y%b", "%Y:%m", "%Y:Q%q", "%qQ%Y", "%qQ%y",
    "%q. Quarter %Y", "Q%q'%y", "%Y年%m月%d日", "%Y年%m月", "%Y/KW%V", "KW%V/%Y",
    "Week %V, %Y", "Week %V %Y", "%d. %B %Y", "%d de %B de %Y", "%B de %Y", "%B, %Y",
), 0.0)  # fmt: skip

_DIGITS_ALONE = {
    "%Y%m%d": 0.05, "%Y%m": 0.05, "%Y%m%d%H": 0.05, "%Y%m%d%H%M": 0.05, "%Y%m%d%H%M%S": 0.05,
    "%G%V": 0.2, "%Y%j": 0.2, "%y%m%d": 0.2, "%d%m%Y": 0.2, "%m%d%Y": 0.2, "%y%m": 0.2,
    "%y%j": 0.2, "%Y%q": 0.3,
}  # fmt: skip


def _formats() -> Iterator[tuple[str, float, bool]]:
    """Yield formats, how rare they are, and whether what they read may be numbers."""
    for sign, forms in (*((sign, _SIGNED) for sign in "-/. "), ("", _OTHERS)):
        for form, rare in forms.items():
            for letter, number in _LETTERS.items() if "@" in form else [("", "")]:
                text = form.replace("_", sign).replace("@", letter).replace("#", number)
                yield text, rare, rare == 0.3 or text == "%Y.%m"
    for text, rare in _DIGITS_ALONE.items():
        yield text, rare, True


_FORMATS = tuple(_formats())


@cache
def _pattern(text: str) -> re.Pattern[str]:
    """Return what a format matches, with a time of day behind it where it has none."""
    is_solid = re.fullmatch(r"(%\w)+", text) is not None and "%b" not in text
    known = _DIRECTIVES | (_SOLID if is_solid else {})
    pieces = []
    for directive, literal in re.findall(r"%(.)|([^%]+)", text):
        if directive and directive not in known:
            raise re.error(f"unknown: %{directive}")
        pieces.append(known[directive] if directive else re.escape(literal).replace(r"\ ", r"\s+"))
    behind = "" if re.search("%[HIMSfpz]", text) else _TIME_OF_DAY
    return re.compile("".join(pieces) + behind, re.IGNORECASE)


def check_format(text: str) -> None:
    """Reject a format without a year, or with what is none of `_DIRECTIVES` or there twice."""
    if text in (NUMBER, EXCEL, *SINCE_1970):
        return
    example = "such as %d/%m/%Y"
    try:
        _pattern(text)
    except re.error as error:
        raise ValueError(f"expected a format of dates {example}, got {text!r} ({error})") from error
    if "%" not in text:
        raise ValueError(f"expected a format of dates {example}, got {text!r}")
    if not re.search("%[YyG]", text):
        raise ValueError(f"expected a format of dates with a year, {example}, got {text!r}")


@dataclass(frozen=True)
class Dates:
    """Cells read as dates."""

    index: pd.DatetimeIndex  # [D]; NaT where the format does not fit
    form: str  # as of ``--dates``
    score: float = 0.0  # between formats: a larger one is likelier
    is_unsure: bool = False  # whether the cells may be numbers as well
    rival: str = ""  # a format that is almost as likely

    @property
    def last_year(self) -> int | None:
        """The last year, if two digits may stand for the one a century later; None if not."""
        last = int(self.index.max().year)
        is_near = "%y" in self.form and last + 100 <= date.today().year + _YEARS_AHEAD
        return last if is_near else None


def parse_times(cells: Sequence[str], form: str) -> pd.DatetimeIndex:
    """Read cells by one format; NaT where it does not fit.  It raises what `in_one_zone` raises."""
    if form in SINCE_1970 or form == EXCEL:
        numbers = pd.to_numeric(pd.Series(cells), errors="coerce").to_numpy(np.float64)
        return of_numbers(numbers, form)
    if form == "%Y.%m" and any(re.search(r"\.0\d$", cell) for cell in cells):
        cells = [f"{cell}0" if re.search(r"\.1$", cell) else cell for cell in cells]
    return _parsed(tuple(cells), _pattern(form))


@lru_cache(maxsize=8)
def _parsed(cells: tuple[str, ...], pattern: re.Pattern[str]) -> pd.DatetimeIndex:
    """Read cells, once for all checks that ask for the same column."""
    matches = [pattern.fullmatch(_first_day(cell)) for cell in cells]
    groups = [{} if match is None else match.groupdict() for match in matches]
    found = [{name: part for name, part in each.items() if part} for each in groups]
    last_year = _last_year([int(parts["y"]) for parts in found if "y" in parts])
    return in_one_zone([_moment(parts, last_year) if parts else None for parts in found])


def in_one_zone(times: Sequence[pd.Timestamp | None]) -> pd.DatetimeIndex:
    """Return dates of one time zone, NaT for None.

    It raises BadCell if one is of another zone than the first one, or beyond 1677 to 2262.
    """
    seen = [(place, time) for place, time in enumerate(times) if time is not None]
    zones = [str(time.tz or "no time zone") for _, time in seen]
    found: list[Any] = [pd.NaT] * len(times)
    for (place, time), zone in zip(seen, zones, strict=True):
        if zone != zones[0]:
            raise BadCell(
                place,
                f"expected {zones[0]} as in the first row, got {zone}; write all dates in UTC",
            )
        try:
            found[place] = time.as_unit("ns")
        except pd.errors.OutOfBoundsDatetime as error:
            raise BadCell(
                place,
                f"expected a date from {pd.Timestamp.min.year} to {pd.Timestamp.max.year}, got "
                f"'{time.date()}'",
            ) from error
    return pd.DatetimeIndex(found)


def _moment(parts: dict[str, str], last_year: int) -> pd.Timestamp | None:
    """Return the time of the parts of a date; None if they are wrong."""
    hour, minute, second = (int(parts.get(part, 0)) for part in "HMS")
    day = _day(parts, last_year)
    if day is None or (hour == 24 and minute + second > 0):
        return None
    if "p" in parts:
        hour = hour % 12 + 12 * (parts["p"] in "pP")
    zone = re.sub("Z|UTC|GMT", "+00:00", parts.get("z", "").upper())
    clock = f"{hour % 24:02d}:{minute:02d}:{second:02d}.{parts.get('f', '0')}"
    time = pd.Timestamp(f"{day}T{clock}{zone}")
    return time + pd.Timedelta(days=1).as_unit("s") if hour == 24 else time


def _last_year(years: Sequence[int]) -> int:
    """Return the last year that two digits stand for: soon, or this one if rows begin later."""
    this_year = date.today().year

    def full(last: int) -> list[int]:
        return [last - (last - year) % 100 for year in years]

    soon = full(this_year + _YEARS_AHEAD)
    jumps = [sum(abs(a - b) > 50 for a, b in pairwise(each)) for each in (soon, full(this_year))]
    is_later = bool(soon) and (min(soon[0], soon[-1]) > this_year or jumps[1] < jumps[0])
    return this_year + (0 if is_later and max(soon) > this_year else _YEARS_AHEAD)


def _day(parts: dict[str, str], last_year: int) -> date | None:
    """Return the day of the parts of a date, the first one of a quarter or week; None if wrong."""
    year = int(parts.get("Y", -1))
    if "y" in parts:
        year = last_year - (last_year - int(parts["y"])) % 100
    month = int(parts.get("m", 1))
    if "b" in parts:
        name = parts["b"].lower()
        month = _MONTH_NAMES.get(name[:4], 0) or _MONTH_NAMES.get(name[:3], 0)
    elif "q" in parts or "h" in parts:
        month = 3 * int(parts["q"]) - 2 if "q" in parts else 6 * int(parts["h"]) - 5
    try:
        if "V" in parts:
            return date.fromisocalendar(year, int(parts["V"]), int(parts.get("u", 1)))
        if "j" in parts:
            found = date(year, 1, 1) + timedelta(days=int(parts["j"]) - 1)
            return found if found.year == year else None
        return date(year, month, int(parts.get("d", 1)))
    except ValueError:
        return None


def best_format(cells: Sequence[str], least: float = 1.0) -> Dates | None:
    """Return the likeliest reading of texts, also of numbers; at least this share must be dates.

    It raises what `in_one_zone` raises.
    """
    cells = [_first_day(cell) for cell in cells]
    if len(cells) > 2 and all(map(is_season, cells)):
        return None
    found, beyond = [], None
    sample = [*cells[:3], *cells[len(cells) // 2 :][:3], *cells[-3:]]
    for form, rare, is_unsure in _FORMATS:
        pattern = _pattern(form)
        if sum(pattern.fullmatch(cell) is not None for cell in sample) < least * len(sample) * 0.5:
            continue
        if not _may_be(form, cells):
            continue
        try:
            index = parse_times(cells, form)
        except BadCell as error:
            beyond = beyond or error
            continue
        if int(np.sum(index.notna())) >= least * len(cells):
            late = "%y" in form and index.max().year > date.today().year
            found.append(Dates(index, form, _score(index) - rare - 0.5 * late, is_unsure))
    found.sort(key=lambda dates: -dates.score)
    if beyond is not None and not any(dates.index.notna().all() for dates in found):
        raise beyond
    if not found:
        return None
    first, rest = found[0], [each for each in found[1:] if not each.index.equals(found[0].index)]
    rival = rest[0].form if rest and rest[0].score > first.score - _CLOSE else ""
    return Dates(first.index, first.form, first.score, first.is_unsure, rival)


def _may_be(form: str, cells: Sequence[str]) -> bool:
    """Reject days without a year, and numbers that just go on."""
    if form in _YEAR_BORDERS:
        numbers = [int(cell) for cell in cells if cell.isdigit()]
        return max((b - a for a, b in pairwise(sorted(numbers))), default=0) >= _YEAR_BORDERS[form]
    if {"%b", "%y"} == set(re.findall("%.", form)):
        months = [re.sub(r"[\W\d]", "", cell) for cell in cells]
        again = sum(a == b for a, b in pairwise(months))
        return len(set(months)) == 1 or again < 0.5 * len(months)
    return True


def is_season(cell: str) -> bool:
    """Whether a cell is a year that begins in one and ends in the next, such as 2010/11."""
    match = re.fullmatch(r"(?:FY ?)?\d\d(\d\d) ?[-/\u2013] ?(?:\d\d)?(\d\d)", cell)
    return match is not None and (int(match[1]) + 1) % 100 == int(match[2])


def _score(index: pd.DatetimeIndex) -> float:
    """Return how well dates look: on a grid, in order, not in the far future, few twice."""
    seen = index[index.notna()]
    times = seen.unique().sort_values()
    if len(times) < 2:
        return 0.0
    in_order = seen.is_monotonic_increasing or seen.is_monotonic_decreasing
    late = times[-1].year > date.today().year + _YEARS_AHEAD
    return (
        evenness(times)
        + 0.3 * in_order
        - 0.5 * late
        - 0.5 * (1.0 - len(times) / len(seen))
        - 1.0 * (1.0 - len(seen) / len(index))
    )


# --- numbers that are dates ---


def of_numbers(numbers: Floats, form: str) -> pd.DatetimeIndex:
    """Return the dates of Excel's days, or of seconds and so on since 1970; NaT of no number."""
    unit: Any = form
    if form == EXCEL:
        # To the second: a day has no finite number of them.
        numbers, unit = np.round((numbers - 25569.0) * 86400.0), "s"
    index = pd.to_datetime(pd.Series(numbers), unit=unit, errors="coerce")
    return pd.DatetimeIndex(index).as_unit("ns")


def dates_in_numbers(numbers: Floats, name: str = "") -> Dates | None:
    """Return the dates that finite numbers stand for: their digits, or since when they count.

    The name of their column counts: days of Excel one after another could be anything else.
    """
    texts = [f"{number:.15g}" for number in numbers]
    first, last = numbers.min(), numbers.max()
    if (best := best_format(texts)) is not None and best.score > UNLIKELY:
        return best
    for unit, per_second in (("s", 1.0), ("ms", 1e3), ("us", 1e6), ("ns", 1e9)):
        begin, end = (pd.Timestamp(f"{year}-01-01").timestamp() for year in (1990, 2100))
        if begin * per_second <= first and last <= end * per_second:
            return Dates(of_numbers(numbers, unit), unit, 1.0, True)
    if first >= 20_000.0 and last <= 60_000.0:
        index = of_numbers(numbers, EXCEL)
        steps = np.diff(np.unique(numbers))
        is_named = re.search(r"date|day|time|month|week|datum|fecha|data|period", name, re.I)
        is_calendar = (
            len(steps) > 2 and np.ptp(steps) > 0.0 and evenness(index.unique().sort_values()) > 0.9
        )
        if is_named or is_calendar:
            return Dates(index, EXCEL, 1.0, True)
    return None

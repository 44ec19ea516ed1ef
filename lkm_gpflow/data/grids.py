"""Grids of dates: which times a table has rows at, so that forecasts go on at the same times.

A grid must generate all rows.  Of those that do, the one with the fewest empty slots is taken:
last Fridays are Fridays, too, but three of four Fridays would be empty.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Protocol

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ..runtime.text import listed
from .timetable import DAY, HOUR, WEEKDAYS, Timetable, in_zone

_ORDINALS = ("first", "second", "third", "fourth", "fifth")

_HALF = 0.5  # share of the slots of a grid that must have rows
_FEW = 0.2  # enough where many rows lie on a grid that is coarser than their dates could tell

_MANY_ROWS = 8

_MOST_SLOTS = 6  # of a month: more are days with gaps
_MOST_OUTSIDE = 0.05  # share of the rows that may lie beside a grid of one row a month
_MONTHS = 7300  # more than nanoseconds in eight bytes can tell
_EVEN = 0.1  # steps that differ by a smaller share are even but for rounding

_UNITS = {
    "week": 7 * DAY, "day": DAY, "hour": HOUR, "minute": pd.Timedelta(minutes=1),
    "second": pd.Timedelta(seconds=1), "millisecond": pd.Timedelta(milliseconds=1),
    "microsecond": pd.Timedelta(microseconds=1), "nanosecond": pd.Timedelta(nanoseconds=1),
}  # fmt: skip


_ODD = 0.8
"""Credit of an odd grid, such as the same few days of every January, as a sign that dates are read
right: what are months with one order of day and month are such days with the other."""


class Grid(Protocol):
    """Times at which rows may fall."""

    @property
    def name(self) -> str:
        """The grid in words, such as "the last Friday of each month"."""

    @property
    def season(self) -> int:
        """Steps in a season: a year, a week or a day; one where there is none."""

    def after(self, start: pd.Timestamp, count: int) -> pd.DatetimeIndex:
        """Return the next `count` times, in the time zone of `start`."""


def grid_of(index: pd.DatetimeIndex) -> Grid | None:
    """Return the grid of a sorted index without duplicates, or None if it follows none."""
    return next(iter(grids_of(index)[1]), None)


def grids_of(index: pd.DatetimeIndex) -> tuple[float, list[Grid]]:
    """Return the grids that generate all rows and have most rows by slot, and that share."""
    rated = _rated(index)
    best = max((share for share, _ in rated), default=0.0)
    equal = [grid for share, grid in rated if share > best - 1e-9]
    # Years of 365 days in a row, or two months of 31, are years and months.
    equal.sort(key=lambda grid: isinstance(grid, _Steps) and grid.step >= 29 * DAY)
    return best, equal


def outside(index: pd.DatetimeIndex, grid: Grid) -> pd.DatetimeIndex:
    """Return the rows that a grid does not generate."""
    return grid.outside(index) if isinstance(grid, Timetable | _Months) else index[:0]


def evenness(index: pd.DatetimeIndex) -> float:
    """Return the share of the slots of the best grid that have rows; zero if there is no grid.

    Almost any few days of a year are an odd grid: it counts for less than a simpler one.
    """
    share = 0.0
    for own, grid in _rated(index):  # several days of some months only, or many of every month
        is_odd = isinstance(grid, _Months) and len(grid.rules) > (1 if grid.every > 1 else 3)
        share = max(share, own * (_ODD if is_odd else 1.0))
    return max(share, 0.9) if len(index) > 2 and is_even(index.as_unit("ns").asi8) else share


def _rated(index: pd.DatetimeIndex) -> list[tuple[float, Grid]]:
    """Return grids that generate all rows, each with the share of its slots that have rows."""
    if len(index) < 2:
        return []
    if (timetable := Timetable.of(index)) is not None:
        return [(0.95, timetable)]
    local = index.tz_localize(None).as_unit("ns")
    found: list[tuple[float, Grid]] = []
    if (steps := _Steps.of(index)) is not None:
        found.append(steps)
    if len(index) >= 3:
        found += _months(local)
        if max((share for share, _ in found), default=0.0) < 0.9:
            found += [*_fiscal_years(local), *_cycles(local)]
    return found


def is_even(times: NDArray[Any]) -> bool:
    """Whether the steps of sorted times are equal but for rounding."""
    steps = np.diff(times)
    return bool(np.all(np.abs(steps - np.median(steps)) <= _EVEN * np.median(steps)))


@dataclass(frozen=True)
class _Steps:
    """Equal steps: days on the clock of the time zone, shorter ones whatever the clock does."""

    step: pd.Timedelta

    @classmethod
    def of(cls, index: pd.DatetimeIndex) -> tuple[float, _Steps] | None:
        for each in (index.tz_localize(None), index):
            # Python's integers do not overflow.
            ticks = [int(tick) for tick in np.diff(each.as_unit("ns").asi8)]
            step = int(np.gcd.reduce(ticks))
            if step % DAY.value == 0:
                break
        share = len(index) * step / (sum(ticks) + step)
        finest = next(unit.value for unit in _UNITS.values() if step % unit.value == 0)
        is_coarse = step > max(finest, DAY.value if step % DAY.value == 0 else 0)
        if share < (_FEW if is_coarse and len(index) >= _MANY_ROWS else _HALF):
            return None
        return share, cls(pd.Timedelta(step, unit="ns"))

    @property
    def name(self) -> str:
        unit, size = next(
            (unit, self.step // size)
            for unit, size in _UNITS.items()
            if self.step % size == pd.Timedelta(0)
        )
        return f"every {unit}" if size == 1 else f"every {size} {unit}s"

    @property
    def season(self) -> int:
        if self.step < pd.Timedelta(seconds=1):
            return 1
        long = DAY if self.step < DAY else 7 * DAY if self.step < 7 * DAY else 364 * DAY
        season, rest = divmod(long, self.step)
        return season if rest == pd.Timedelta(0) else 1

    def after(self, start: pd.Timestamp, count: int) -> pd.DatetimeIndex:
        in_days = self.step % DAY == pd.Timedelta(0)
        first = start.tz_localize(None) if in_days else start
        ahead = pd.date_range(first, periods=count + 1, freq=self.step)[1:]
        return in_zone(ahead, start.tz) if in_days else ahead


def _next(dates: NDArray[Any], start: pd.Timestamp, count: int) -> pd.DatetimeIndex:
    """Return the first dates after a time, at its time of day and in its zone."""
    local = start.tz_localize(None)
    hour = (local - local.normalize()).to_timedelta64().astype("m8[us]")
    times = np.sort(dates[~np.isnat(dates)]).astype("M8[us]") + hour
    # Later ones may be beyond what nanoseconds can tell.
    ahead = pd.DatetimeIndex(times[times > local.to_datetime64()][:count]).as_unit("ns")
    return in_zone(ahead, start.tz)


# --- months ---


@dataclass(frozen=True)
class _Rule:
    """Which day of a month: by its number, a weekday, or a working day, from either end."""

    kind: str  # "day", "weekday" or "working day"
    number: int  # from one on; minus one is the last
    weekday: int = 0  # for Monday

    @property
    def name(self) -> str:
        n = abs(self.number)
        if self.kind == "day" and self.number > 0:
            return f"day {n}"
        what = WEEKDAYS[self.weekday] if self.kind == "weekday" else self.kind
        if self.number == -1:
            return f"the last {what}"
        order = _ORDINALS[n - 1] if n <= len(_ORDINALS) else f"{n}th"
        return f"the {order} {'last ' if self.number < 0 else ''}{what}"

    def dates(self, months: NDArray[Any]) -> NDArray[Any]:
        """Return the date in each of some months; NaT where there is none."""
        first = months.astype("M8[D]")
        beyond = (months + np.timedelta64(1, "M")).astype("M8[D]")
        last: NDArray[Any] = beyond - np.timedelta64(1, "D")
        counted = {"weekday": (self.weekday,), "working day": range(5), "day": range(7)}[self.kind]
        mask = [int(weekday in counted) for weekday in range(7)]
        if self.number > 0:
            dates = np.busday_offset(first, self.number - 1, "forward", mask)
        else:
            dates = np.busday_offset(last, self.number + 1, "backward", mask)
        if self.kind == "day" and self.number > 0:  # of a shorter month the last one
            return np.minimum(dates, last)
        is_inside = (first <= dates) & (dates <= last) | (self.kind == "day")
        return np.where(is_inside, dates, np.datetime64("NaT", "D"))


@dataclass(frozen=True)
class _Months:
    """Days by rules in every k-th month, at one time of day."""

    rules: tuple[_Rule, ...]
    every: int

    @property
    def name(self) -> str:
        days = listed([rule.name for rule in self.rules])
        often = (
            "month" if self.every == 1 else "year" if self.every == 12 else f"{self.every} months"
        )
        return f"{days} of every {often}"

    @property
    def season(self) -> int:
        season, rest = divmod(12, self.every)
        return season * len(self.rules) if rest == 0 else 1

    def outside(self, index: pd.DatetimeIndex) -> pd.DatetimeIndex:
        """Return the rows at other times."""
        days = index.tz_localize(None).to_numpy().astype("M8[D]")
        slots = np.array([rule.dates(days.astype("M8[M]")) for rule in self.rules])
        return index[~(slots == days).any(axis=0)]

    def after(self, start: pd.Timestamp, count: int) -> pd.DatetimeIndex:
        first = np.datetime64(start.tz_localize(None).to_datetime64(), "M")
        most = min(2 + 2 * count // len(self.rules), _MONTHS // self.every)
        months = first + self.every * np.arange(most)
        return _next(np.concatenate([rule.dates(months) for rule in self.rules]), start, count)


def _months(local: pd.DatetimeIndex) -> list[tuple[float, _Months]]:
    """Return the grids of days of months that generate all rows, and the shares of their slots."""
    days = local.normalize()
    if (local - days).nunique() > 1 or len(local) > 366 * _MOST_SLOTS:
        return []
    dates = days.to_numpy().astype("M8[D]")
    months = dates.astype("M8[M]")
    number = months.astype(np.int64)
    every = int(np.gcd.reduce(np.diff(np.unique(number)))) or 1
    grid_months = np.arange(number[0], number[-1] + 1, every).astype("M8[M]")
    day, long = local.day.to_numpy(), local.days_in_month.to_numpy()
    weekday = local.day_of_week.to_numpy()
    most, anywhere = day.max(), np.zeros_like(day)
    keys = [
        _rules("weekday", (day - 1) // 7 + 1, weekday),
        _rules("weekday", -((long - day) // 7) - 1, weekday),
    ]
    if np.all(day == long):
        keys.insert(0, [_Rule("day", -1)])
    else:
        last = np.where(day == np.minimum(most, long), most, day)
        keys[:0] = [_rules("day", each, anywhere) for each in (last, day - long - 1)]
    if np.all(weekday < 5):
        firsts, lasts = months.astype("M8[D]"), (months + np.timedelta64(1, "M")).astype("M8[D]")
        keys.append(_rules("working day", np.busday_count(firsts, dates) + 1, anywhere))
        keys.append(_rules("working day", -np.busday_count(dates, lasts), anywhere))
    found: list[tuple[float, _Months]] = []
    most_rows = int(np.bincount(number - number[0]).max())
    for rules in keys:
        if not 1 <= len(rules) <= min(_MOST_SLOTS, len(local) // 3, most_rows):
            continue
        slots = [each[~np.isnat(each)] for each in (rule.dates(grid_months) for rule in rules)]
        inside = [each[(dates[0] <= each) & (each <= dates[-1])] for each in slots]
        visits = [np.isin(each, dates).sum() for each in inside]
        share = len(dates) / max(1, sum(map(len, inside)))
        least = _HALF if len(rules) > 1 or len(local) < _MANY_ROWS else _FEW
        if np.isin(dates, np.concatenate(slots)).all() and min(visits) > 1 and share >= least:
            found.append((min(share, 1.0), _Months(tuple(rules), every)))
    if len(np.unique(number)) == len(local) >= _MANY_ROWS and not found:
        found += _almost(keys, months, dates, every)
    fewest = min((len(grid.rules) for _, grid in found), default=0)
    return [each for each in found if len(each[1].rules) == fewest]


def _rules(kind: str, numbers: NDArray[Any], weekdays: NDArray[Any]) -> list[_Rule]:
    """Return a rule for each number, of each weekday, that is there."""
    every = sorted(set(zip(weekdays.tolist(), numbers.tolist(), strict=True)))
    return [_Rule(kind, number, weekday) for weekday, number in every]


def _almost(
    keys: Iterable[Sequence[_Rule]], months: NDArray[Any], dates: NDArray[Any], every: int
) -> Iterator[tuple[float, _Months]]:
    """Yield grids of one row a month which but a few rows follow, such as those before holidays."""
    slots = np.arange(months[0], months[-1] + np.timedelta64(1, "M"), every)
    for rule in (rule for rules in keys for rule in rules):
        num_outside = int(np.sum(rule.dates(months) != dates))
        if num_outside <= max(1, _MOST_OUTSIDE * len(dates)) and len(dates) >= _HALF * len(slots):
            yield 0.9 * len(dates) / len(slots), _Months((rule,), every)


# --- years of weeks ---

_PATTERNS = {
    (4, 4, 5) * 4: "months of 4, 4 and 5 weeks",
    (4, 5, 4) * 4: "months of 4, 5 and 4 weeks",
    (5, 4, 4) * 4: "months of 5, 4 and 4 weeks",
    (4,) * 13: "periods of 4 weeks, 13 a year",
    (13,) * 4: "quarters of 13 weeks",
    (52,): "years of whole weeks",
}
"""Weeks of the periods of a fiscal year; the last one has a week more in years of 53."""


@dataclass(frozen=True)
class _FiscalYear:
    """Periods of whole weeks in years that end on a weekday near the end of a month.

    The year ends on the last such weekday of the month, or the one `nearest` to its end.
    """

    weeks: tuple[int, ...]  # of each period
    weekday: int
    month: int
    nearest: bool
    shift: int  # days from the end of a period to the row: none, or one for the next's beginning

    @property
    def name(self) -> str:
        which = "nearest to the end" if self.nearest else "that is the last"
        month = pd.Timestamp(2000, self.month, 1).month_name()
        return (
            f"{_PATTERNS[self.weeks]} in years that end on the {WEEKDAYS[self.weekday]} {which} "
            f"of {month}"
        )

    @property
    def season(self) -> int:
        return len(self.weeks)

    def dates(self, first: int, last: int) -> NDArray[Any]:
        """Return the rows of some years, [M]."""
        months = 12 * (np.arange(first - 1, last + 1) - 1970) + self.month
        ends = months.astype("M8[M]").astype("M8[D]").astype(np.int64) - 1
        back = ((ends + 3) % 7 - self.weekday) % 7
        ends = ends - back + np.where(self.nearest & (back > 3), 7, 0)
        of_period = 7 * np.cumsum(self.weeks[:-1]).astype(np.int64)
        inner = (ends[:-1, None] + of_period).ravel()
        return (np.sort(np.concatenate([ends[1:], inner])) + self.shift).astype("M8[D]")

    def after(self, start: pd.Timestamp, count: int) -> pd.DatetimeIndex:
        return _next(
            self.dates(start.year, start.year + 2 + count // len(self.weeks)), start, count
        )


def _fiscal_years(local: pd.DatetimeIndex) -> Iterator[tuple[float, Grid]]:
    """Yield the fiscal years that generate all rows, and the shares of their slots."""
    dates = local.normalize().to_numpy().astype("M8[D]")
    weeks = set((np.diff(dates).astype(np.int64) // 7).tolist())
    if (local - local.normalize()).nunique() > 1 or local.day_of_week.nunique() > 1:
        return
    for pattern, shift in product(_PATTERNS, (0, 1)):
        if len(weeks & {*pattern, pattern[-1] + 1}) == 0 or len(dates) < 1 + min(6, len(pattern)):
            continue
        weekday = int(local.day_of_week[0] - shift) % 7
        for month, nearest in product(range(1, 13), (True, False)):
            grid = _FiscalYear(pattern, weekday, month, nearest, shift)
            every = grid.dates(local[0].year, local[-1].year + 1)
            inside = every[(every >= dates[0]) & (every <= dates[-1])]
            if np.isin(dates, inside).all() and len(dates) >= 0.8 * len(inside):
                yield len(dates) / len(inside), grid


@dataclass(frozen=True)
class _Cycle:
    """Steps of whole days that come in turns, such as 4, 4 and 5 weeks."""

    days: tuple[int, ...]  # beginning with the one after the last row

    @property
    def name(self) -> str:
        return f"steps of {listed(self.days)} days in turn"

    @property
    def season(self) -> int:
        turns, rest = divmod(364, sum(self.days))
        return turns * len(self.days) if rest == 0 else len(self.days)

    def after(self, start: pd.Timestamp, count: int) -> pd.DatetimeIndex:
        days = np.cumsum(np.resize(self.days, count))
        return in_zone(start.tz_localize(None) + pd.to_timedelta(days, unit="D"), start.tz)


def _cycles(local: pd.DatetimeIndex) -> Iterator[tuple[float, Grid]]:
    """Yield the shortest cycle of steps that was seen three times, if all rows follow it."""
    steps = np.diff(local.asi8) // DAY.value
    if (local - local.normalize()).nunique() > 1:
        return
    for length in range(2, min(7, len(steps) // 3 + 1)):
        if np.all(steps[length:] == steps[:-length]):
            yield 1.0, _Cycle(tuple(np.roll(steps[:length], -len(steps)).tolist()))
            return

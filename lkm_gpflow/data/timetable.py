"""The weekdays and times of day at which a table has rows, and the holidays at which it has none.

Where a table never has rows on Sundays, or at night, its forecasts have none there, either.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import tzinfo
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.tseries import holiday as rules
from pandas.tseries.offsets import Easter
from scipy.stats import binom

from ..gp.types import Integers
from ..runtime.text import listed

DAY, HOUR = pd.Timedelta(days=1), pd.Timedelta(hours=1)
WEEKDAYS = (
    "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday",
)  # fmt: skip

_LEAST_DAYS = 14  # of a table: then a weekday that it never has was left out twice

_LEAST_DAYS_WITH_NIGHTS = 10
"""So many days with rows must lack a time of day for a timetable to lack it."""

_LEAST_SHARE = 0.8
"""Of the slots of a timetable that must be there; the others are holidays and lost rows."""

_VISITED = 0.2
"""Share of its chances at which a weekday or a time of day must have rows: rarer ones are special
sessions, and forecasts have none there."""

_MOST_OUTSIDE = 0.05  # share of the rows that may lie at such rare times

_LUCK = 5e-4
"""A weekday is closed if gaps at random would hide one of seven with a smaller probability.

Two weeks are enough where no other day is lost, four where 2 of 24 are, six where a fifth is.  Of
daily tables that lose 10 to 20% of their rows at random, about 1.5% of those over two weeks, 0.2%
over three or four and 0.02% over five were taken for tables with a closed weekday.
"""

_LUCKY_HOLIDAYS = 0.01  # holidays that gaps at random may make up, on average over tables

_MOVABLE = (
    rules.GoodFriday, rules.EasterMonday,
    rules.Holiday("Ascension", month=1, day=1, offset=[Easter(), pd.offsets.Day(39)]),
    rules.Holiday("Whit Monday", month=1, day=1, offset=[Easter(), pd.offsets.Day(50)]),
    rules.Holiday("Corpus Christi", month=1, day=1, offset=[Easter(), pd.offsets.Day(60)]),
    rules.USMartinLutherKingJr, rules.USPresidentsDay, rules.USMemorialDay, rules.USLaborDay,
    rules.USColumbusDay, rules.USThanksgivingDay,
)  # fmt: skip
_OBSERVANCES = (rules.nearest_workday, rules.sunday_to_monday, rules.next_monday, None)
"""What becomes of a holiday on a weekend; None: nothing."""


@dataclass(frozen=True)
class Timetable:
    """The slots of a week in which rows may fall: on some weekdays, at some times of day."""

    weekdays: tuple[int, ...]  # 0 for Monday, ascending
    times: tuple[pd.Timedelta, ...]  # since midnight on the clock of the time zone, ascending
    holidays: tuple[rules.Holiday, ...] = ()  # pandas' rules of the days that never had rows

    @classmethod
    def of(cls, index: pd.DatetimeIndex) -> Timetable | None:
        """Read the timetable off a sorted index.

        None where every weekday and time of day occurs, where the index may be too short to have
        those that do not, or where it has less than `_LEAST_SHARE` of the slots.
        """
        local = index.tz_localize(None).as_unit("ns").unique()
        days = local.normalize()
        every = pd.date_range(days[0], days[-1])
        visited = days.unique()
        chances = np.bincount(every.day_of_week, minlength=7)
        visits = np.bincount(visited.day_of_week, minlength=7)
        weekdays = np.flatnonzero((visits > 1) & (visits > _VISITED * chances))
        of_day, counts = np.unique((local - days).to_numpy(), return_counts=True)
        often = (counts > 1) & (counts > _VISITED * len(visited))
        times = pd.TimedeltaIndex(of_day[often])
        if len(weekdays) == 0 or len(times) == 0:
            return cls._few_weeks(visited, of_day)
        if len(weekdays) == 7 and len(times) * _step(times) == DAY:
            return None
        is_inside = days.day_of_week.isin(weekdays) & (local - days).isin(times)
        local, days = local[is_inside], days[is_inside]
        if np.sum(~is_inside) > max(1, _MOST_OUTSIDE * len(is_inside)):
            return None
        open_days = every[every.day_of_week.isin(weekdays)]
        num_outside = np.sum(times < local[0] - days[0]) + np.sum(times > local[-1] - days[-1])
        num_slots = len(open_days) * len(times) - num_outside
        has_closed_days, has_nights = len(weekdays) < 7, len(times) * _step(times) < DAY
        is_sure = (
            (has_closed_days or has_nights)
            and len(local) >= _LEAST_SHARE * num_slots
            and not (has_closed_days and _may_be_luck(chances, visits, weekdays, len(every)))
            and not (has_nights and days.nunique() < _LEAST_DAYS_WITH_NIGHTS)
        )
        if not is_sure:
            return cls._few_weeks(visited, of_day)
        return cls(tuple(weekdays.tolist()), tuple(times), _holidays(open_days, days.unique()))

    @classmethod
    def _few_weeks(cls, days: pd.DatetimeIndex, of_day: NDArray[Any]) -> Timetable | None:
        """Take days next to each other for working days where no weekend has rows."""
        is_daily = len(of_day) == 1 and len(days) > 2 and np.median(np.diff(days)) == DAY
        if is_daily and not np.any(days.day_of_week >= 5) and days[-1] - days[0] >= 5 * DAY:
            return cls((0, 1, 2, 3, 4), (pd.Timedelta(of_day[0]),))
        return None

    @property
    def name(self) -> str:
        """The timetable in words."""
        days = listed([f"{WEEKDAYS[weekday]}s" for weekday in self.weekdays])
        if self.weekdays == (0, 1, 2, 3, 4):
            days = "Monday to Friday"
        hours = f" at {len(self.times)} times of day" if len(self.times) > 1 else ""
        but = f" but {len(self.holidays)} holidays a year" if self.holidays else ""
        return f"{days}{hours}{but}"

    @property
    def season(self) -> int:
        """Steps in a day, or in a week if there is one row a day; in a year of weeks."""
        if len(self.times) > 1:
            return len(self.times)
        return len(self.weekdays) if len(self.weekdays) > 1 else 52

    def outside(self, index: pd.DatetimeIndex) -> pd.DatetimeIndex:
        """Return the rows at other times."""
        local = index.tz_localize(None)
        days = local.normalize()
        return index[~(days.day_of_week.isin(self.weekdays) & (local - days).isin(self.times))]

    def after(self, start: pd.Timestamp, count: int) -> pd.DatetimeIndex:
        """Return so many slots after `start`, in its time zone."""
        times = pd.TimedeltaIndex(self.times)
        weeks = 2 + len(self.holidays) + int(1.1 * count / (len(self.weekdays) * len(times)))
        days = pd.date_range(start.tz_localize(None).normalize(), periods=7 * weeks)
        days = days[days.day_of_week.isin(self.weekdays)]
        for rule in self.holidays:
            days = days.difference(pd.DatetimeIndex(rule.dates(days[0], days[-1])))
        local = pd.DatetimeIndex(np.add.outer(days.to_numpy(), times.to_numpy()).ravel())
        slots = in_zone(local, start.tz)
        if _step(times) <= HOUR:  # hours go on when clocks change: one comes twice, or not at all
            slots = slots.union(in_zone(local, start.tz, first=False)).unique()
            shown = slots.tz_localize(None)
            slots = slots[(shown - shown.normalize()).isin(times)]
        return slots[slots > start][:count]


def _step(times: pd.TimedeltaIndex) -> pd.Timedelta:
    """Return the longest step that divides a day and leads from each time of day to the next."""
    ticks = np.append((times - times[0]).as_unit("ns").asi8, DAY.value)
    return pd.Timedelta(int(np.gcd.reduce(ticks)), unit="ns")


def in_zone(
    local: pd.DatetimeIndex, zone: tzinfo | None, *, first: bool = True
) -> pd.DatetimeIndex:
    """Return local times with their zone.

    One that a change of the clock leaves out is moved to the next that exists; of one that comes
    twice the `first` is meant, or the second.
    """
    which = np.full(len(local), first)
    return local.tz_localize(zone, ambiguous=which, nonexistent="shift_forward")


def _may_be_luck(chances: Integers, visits: Integers, open_: Integers, num_days: int) -> bool:
    """Whether gaps at random may be why some weekday is none of the open days."""
    closed = np.setdiff1d(np.arange(7), open_)
    seen, all_ = visits[open_].sum(), chances[open_].sum()
    # Two days more that were lost, where a closed weekday has rows: less is certain then.
    share_seen = np.where(visits[closed] > 0, seen / (all_ + 2), seen / all_)
    luckiest = binom.cdf(visits[closed], chances[closed], share_seen).max()
    return bool(num_days < _LEAST_DAYS or 7.0 * luckiest > _LUCK)


def _holidays(open_days: pd.DatetimeIndex, days: pd.DatetimeIndex) -> tuple[rules.Holiday, ...]:
    """Return the rules all of whose days have no rows, if gaps at random would make up none."""
    lost = open_days.difference(days)
    found: list[tuple[rules.Holiday, int]] = []
    explained = pd.DatetimeIndex([])
    for rule in (*_MOVABLE, *_fixed(lost, open_days)) if len(lost) > 1 else ():
        dates = rule.dates(open_days[0], open_days[-1]).intersection(open_days)
        if len(dates) >= 2 and dates.isin(lost).all() and not dates.isin(explained).all():
            found.append((rule, len(dates)))
            explained = explained.union(dates)
    lost_else = len(lost.difference(explained)) / len(open_days)
    num_days = 3 * len(open_days.strftime("%m-%d").unique())
    return tuple(rule for rule, count in found if num_days * lost_else**count <= _LUCKY_HOLIDAYS)


def _fixed(lost: pd.DatetimeIndex, open_days: pd.DatetimeIndex) -> Iterator[rules.Holiday]:
    """Yield holidays on a day of a month that had no rows whenever it was an open day."""
    keys, chances = lost.strftime("%m-%d"), open_days.strftime("%m-%d")
    counts = chances[chances.isin(keys.unique())].value_counts()
    for key in sorted(set(keys) - {"02-29"}):
        if (keys == key).sum() == counts[key]:
            month, day = map(int, key.split("-"))
            for observance in _OBSERVANCES:
                yield rules.Holiday(key, month=month, day=day, observance=observance)

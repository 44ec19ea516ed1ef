"""The timetable of a week: the weekdays and the times of day at which a table has rows.

Where a table never has rows on Sundays, or at night, its forecasts have none there, either.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import tzinfo

import numpy as np
import pandas as pd

_DAY, _HOUR = pd.Timedelta(days=1), pd.Timedelta(hours=1)
_NAMES = ("MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN")

_LEAST_DAYS = 14
"""Of a table: then a weekday that it never has was left out twice."""

_LEAST_DAYS_WITH_NIGHTS = 10
"""So many days with rows must lack a time of day for a timetable to lack it."""

_LEAST_SHARE = 0.8
"""Of the slots of a timetable that must be there; the others are holidays and lost rows."""

_LUCK = 5e-4
"""A weekday is closed if gaps at random would hide one of seven with a smaller probability.

Two weeks are enough where no other day is lost, four where 2 of 24 are, six where a fifth is.  Of
daily tables that lose 10 to 20% of their rows at random, about 1.5% of those over two weeks, 0.2%
over three or four and 0.02% over five were taken for tables with a closed weekday.
"""


@dataclass(frozen=True)
class Timetable:
    """The slots of a week in which rows may fall: on some weekdays, at some times of day.

    Parameters
    ----------
    weekdays
        0 for Monday, ascending.
    times
        Since midnight on the clock of the time zone, ascending.
    """

    weekdays: tuple[int, ...]
    times: tuple[pd.Timedelta, ...]

    @classmethod
    def of(cls, index: pd.DatetimeIndex) -> Timetable | None:
        """Read the timetable off a sorted index.

        Returns
        -------
        Timetable or None
            None where every weekday and time of day occurs, where the index may be too short to
            have those that do not, or where it has less than `_LEAST_SHARE` of the slots.
        """
        local = index.tz_localize(None).as_unit("ns").unique()
        days = local.normalize()
        of_day = local - days
        weekdays, times = days.dayofweek.unique().sort_values(), of_day.unique().sort_values()
        every = pd.date_range(days[0], days[-1])
        open_days = every[every.dayofweek.isin(weekdays)]
        num_outside = np.sum(times < of_day[0]) + np.sum(times > of_day[-1])
        num_slots = len(open_days) * len(times) - num_outside
        has_closed_days, has_nights = len(weekdays) < 7, len(times) * _step(times) < _DAY
        is_sure = (
            (has_closed_days or has_nights)
            and len(local) >= _LEAST_SHARE * num_slots
            and not (has_closed_days and _may_be_luck(every, open_days, days.unique()))
            and not (has_nights and days.nunique() < _LEAST_DAYS_WITH_NIGHTS)
        )
        return cls(tuple(weekdays.tolist()), tuple(times)) if is_sure else None

    @property
    def name(self) -> str | None:
        """Pandas' name of the timetable, where it has one: "B" or "W-SUN"."""
        if len(self.times) > 1:
            return None
        if self.weekdays == (0, 1, 2, 3, 4):
            return "B"
        return f"W-{_NAMES[self.weekdays[0]]}" if len(self.weekdays) == 1 else None

    def after(self, start: pd.Timestamp, horizon: int) -> pd.DatetimeIndex:
        """Return so many slots after `start`, in its time zone.

        Raises
        ------
        pandas.errors.OutOfBoundsDatetime
            If they are later than all dates.
        """
        times = pd.TimedeltaIndex(self.times)
        weeks = 2 + int(1.02 * horizon / (len(self.weekdays) * len(times)))
        days = pd.date_range(start.tz_localize(None).normalize(), periods=7 * weeks)
        days = days[days.dayofweek.isin(self.weekdays)]
        local = pd.DatetimeIndex(np.add.outer(days.to_numpy(), times.to_numpy()).ravel())
        slots = in_zone(local, start.tz)
        if _step(times) <= _HOUR:  # hours go on when clocks change: one comes twice, or not at all
            slots = slots.union(in_zone(local, start.tz, first=False)).unique()
            shown = slots.tz_localize(None)
            slots = slots[(shown - shown.normalize()).isin(times)]
        return slots[slots > start][:horizon]


def _step(times: pd.TimedeltaIndex) -> pd.Timedelta:
    """Return the longest step that divides a day and leads from each time of day to the next."""
    ticks = np.append((times - times[0]).as_unit("ns").asi8, _DAY.value)
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


def _may_be_luck(
    every: pd.DatetimeIndex, open_days: pd.DatetimeIndex, days_with_rows: pd.DatetimeIndex
) -> bool:
    """Whether gaps at random may be why some weekday is none of the open days."""
    closed = every.difference(open_days)
    chances = np.bincount(closed.dayofweek, minlength=7)
    fewest = min(chances[weekday] for weekday in set(range(7)) - set(open_days.dayofweek))
    share_lost = 1.0 - len(days_with_rows) / len(open_days)
    return bool(len(every) < _LEAST_DAYS or 7.0 * share_lost**fewest > _LUCK)

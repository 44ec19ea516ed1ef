"""Durations, dates and probabilities as a person would say them."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from ..data.tables import Table
from ..runtime.text import listed

_UNITS = (
    ("year", 365.25),
    ("month", 365.25 / 12.0),
    ("week", 7.0),
    ("day", 1.0),
    ("hour", 1.0 / 24.0),
    ("minute", 1.0 / 1440.0),
    ("second", 1.0 / 86400.0),
)
"""Units of time in days, the longest first."""

_MOST_NAMED = 8

_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")

_SURE = (
    (0.99, "almost certainly"),
    (0.9, "very probably"),
    (0.7, "probably"),
    (0.5, "more likely than not"),
    (0.1, "perhaps"),
    (0.01, "hardly"),
    (0.0, "almost certainly not"),
)


@dataclass(frozen=True)
class Timeline:
    """The time axis of a table, for words: days since a date, or plain numbers.

    Parameters
    ----------
    origin
        The date that is day 0; None for a numeric index.
    start, end
        First and last time, in days or numbers.
    step
        The typical distance of two rows, likewise.
    """

    origin: pd.Timestamp | None
    start: float
    end: float
    step: float

    @classmethod
    def of(cls, table: Table) -> Timeline:
        """Read it off a table."""
        return cls(table.axis.origin, table.start, table.start + table.span, table.axis.step)

    @property
    def span(self) -> float:
        """Length of the data, in days or numbers."""
        return self.end - self.start

    def duration(self, length: float) -> str:
        """Return a length of time: "2.7 weeks", or a plain number."""
        if self.origin is None:
            return _two_digits(length)
        for name, days in _UNITS:
            number = _two_digits(length / days)
            if float(number) >= 1.0:
                return f"{number} {name}" + ("" if float(number) == 1.0 else "s")
        return f"{_two_digits(length / _UNITS[-1][1])} seconds"

    def adjective(self, length: float) -> str:
        """Return a length of time as it stands before a noun: "1.4-year"."""
        return self.duration(length).removesuffix("s").replace(" ", "-")

    def date(self, time: float) -> str:
        """Return a point in time, no finer than the data tell it: "Apr 2017"."""
        if self.origin is None:
            return f"{time:.4g}"
        try:
            moment = self.origin + pd.Timedelta(days=time)
        except (OverflowError, pd.errors.OutOfBoundsDatetime, pd.errors.OutOfBoundsTimedelta):
            return f"{self.duration(abs(time))} {'before' if time < 0.0 else 'after'} the first row"
        month = f"{_MONTHS[moment.month - 1]} {moment.year}"
        if self.span > 180.0:
            return month
        day = f"{moment.day} {month}"
        return day if self.span > 5.0 else f"{day}, {moment:%H:%M}"


def how_sure(probability: float) -> str:
    """Return a probability in words: "very probably"."""
    return next(word for least, word in _SURE if probability >= least)


def _two_digits(value: float) -> str:
    """Two significant digits, but all digits before the point, and no exponent for usual sizes."""
    if value != 0.0 and not 1e-4 <= abs(value) < 1e6:
        return f"{value:.1e}"
    return f"{value:.0f}" if abs(value) >= 9.95 else f"{float(f'{value:.2g}'):g}"


def scale_note(table: Table) -> str:
    """Say which series are modelled by their logarithms and what that means; else nothing."""
    is_log = table.transforms.is_log
    names = [name for name, each in zip(table.names, is_log, strict=True) if each]
    if not names:
        return ""
    who = "All series" if is_log.all() and len(names) > 1 else listed(names, _MOST_NAMED)
    verb = "is" if len(names) == 1 else "are"
    return (
        f"{who} {verb} modelled on a log scale: components multiply rather than add, their heights "
        "are percentages, and a straight line stands for growth at a constant rate."
    )

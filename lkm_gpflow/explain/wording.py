"""Durations and dates as a person would say them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass

import pandas as pd

from ..data.tables import Table
from ..runtime.text import listed

_UNITS = (
    ("year", 365.25, 0.042, 1.25),
    ("month", 365.25 / 12.0, 0.02, 1.95),
    ("week", 7.0, 0.007, 1.95),
    ("day", 1.0, 0.021, 1.95),
    ("hour", 1.0 / 24.0, 0.009, 1.95),
    ("minute", 1.0 / 1440.0, 0.009, 1.95),
)
"""Units of time, the longest first: days, how near to 1 is "1 year", and from where on "1.4 years".

Near is what the next unit would round: 350 days are no "12 months".  Nobody says "1.1 weeks".
"""

_MINUTE, _SECOND = 1.0 / 1440.0, 1.0 / 86400.0

_SOUNDS_LIKE_VOWEL = re.compile(r"[aeio]|8|1[18](?!\d)", re.IGNORECASE)
"""The numbers are eight, eleven, eighteen and eighty."""

_MOST_NAMED = 8

_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


@dataclass(frozen=True)
class Timeline:
    """The time axis of a table, for words: days since a date, or plain numbers."""

    origin: pd.Timestamp | None  # the date that is day 0; None for a numeric index
    # First and last time, in days or numbers.
    start: float
    end: float
    step: float  # the typical distance of two rows, likewise

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
            return few_digits(length)
        for name, days, near, least in _UNITS:
            number = length / days
            if abs(number - 1.0) <= near:
                return f"1 {name}"
            if number >= least:
                return f"{few_digits(number)} {name}s"
        seconds = few_digits(length / _SECOND)
        return f"{seconds} second" + ("" if seconds == "1" else "s")

    def interval(self, lower: float, upper: float) -> str:
        """Return an interval of lengths of time: "2.7 to 3 weeks"; one that reads alike once."""
        low, high = self.duration(lower), self.duration(upper)
        if low == high:
            return f"about {low}"
        number, _, unit = high.partition(" ")
        if low.startswith("1 ") and number != "1" and not unit.startswith(low[2:]):
            low = f"{few_digits(float(number) * lower / upper)} {unit}"  # not "1 year to 13 months"
        return f"{low.removesuffix(f' {unit}') if unit else low} to {high}"

    def moment(self, time: object) -> str:
        """Return a time of the table's index: its date, and its hour if there are several a day."""
        if not isinstance(time, pd.Timestamp):
            return f"{time:.10g}"
        return f"{time:%Y-%m-%d} {self._clock(time)}" if self.step < 1.0 else f"{time:%Y-%m-%d}"

    def adjective(self, length: float) -> str:
        """Return a length of time as it stands before a noun: "1.4-year"."""
        return self.duration(length).removesuffix("s").replace(" ", "-")

    def date(self, time: float) -> str:
        """Return a point in time, no finer than the data tell it: "Apr 2017"."""
        if self.origin is None:
            # Four digits, or more where these would not tell the start of the data from the end.
            size = max(abs(self.start), abs(self.end))
            digits = max(4, 3 + math.floor(math.log10(size / self.span)))
            return f"{float(f'{time:.{digits}g}'):.{max(digits, 10)}g}"
        try:
            moment = self.origin + pd.Timedelta(days=time).round("s")
        except (OverflowError, pd.errors.OutOfBoundsDatetime, pd.errors.OutOfBoundsTimedelta):
            return f"{self.duration(abs(time))} {'before' if time < 0.0 else 'after'} the first row"
        month = f"{_MONTHS[moment.month - 1]} {moment.year}"
        if self.span > 180.0:
            return month
        day = f"{moment.day} {month}"
        return day if self.span > 5.0 else f"{day}, {self._clock(moment)}"

    def _clock(self, time: pd.Timestamp) -> str:
        """Return the time of day, with seconds where the rows are less than a minute apart."""
        return f"{time:%H:%M:%S}" if self.step < 0.99 * _MINUTE else f"{time:%H:%M}"


def with_article(words: str) -> str:
    """Return words with "a" or "an" before them: "an 8-month cycle"."""
    return ("an " if _SOUNDS_LIKE_VOWEL.match(words) else "a ") + words


def few_digits(value: float) -> str:
    """Two significant digits, three from 100 on, and no exponent for usual sizes."""
    if value != 0.0 and not 1e-4 <= abs(value) < 1e6:
        return f"{value:.1e}"
    if abs(value) < 99.5:
        return f"{float(f'{value:.2g}'):g}"
    return f"{float(f'{value:.3g}'):.0f}"


def scale_note(table: Table) -> str:
    """Say which series are modelled by their logarithms and what that means; else nothing."""
    is_log = table.transforms.is_log
    names = [name for name, each in zip(table.names, is_log, strict=True) if each]
    kinds = "".join(f" {note}" for note in _kind_notes(table))
    if not names:
        return kinds.strip()
    who = "All series" if is_log.all() and len(names) > 1 else listed(names, _MOST_NAMED)
    verb = "is" if len(names) == 1 else "are"
    return (
        f"{who} {verb} modelled on a log scale: components multiply rather than add, their heights "
        f"are percentages, and a straight line stands for growth at a constant rate.{kinds}"
    )


def _kind_notes(table: Table) -> Iterator[str]:
    """Say which series are counts, shares or have outliers, and what that means."""
    meaning = {
        "log": "components multiply the rate, and their heights are percentages of it",
        "logit": "components multiply the odds, and their heights are percentages of these",
        "own": "components add on the scale of its link",
        "identity": "values that are far off count less, and are listed as suspicious",
    }
    by_words: dict[tuple[str, str], list[str]] = {}
    for name, kind in zip(table.names, table.transforms.kinds, strict=False):
        if kind is not None:
            by_words.setdefault((kind.words, meaning[kind.link]), []).append(name)
    for (words, what), names in by_words.items():
        verb = "is" if len(names) == 1 else "are"
        yield f"{listed(names, _MOST_NAMED)} {verb} modelled as {words}: {what}."

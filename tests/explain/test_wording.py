"""Durations, dates, lists and probabilities in words."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from lkm_gpflow.explain.wording import Timeline
from lkm_gpflow.runtime.text import counted, listed, percent

ORIGIN = pd.Timestamp("2015-07-05")
WEEKS = Timeline(ORIGIN, 0.0, 980.0, 7.0)
NUMBERS = Timeline(None, 0.0, 10.0, 0.5)


@pytest.mark.parametrize(
    ("days", "words"),
    [
        (511.0, "1.4 years"), (365.25, "1 year"), (364.0, "1 year"), (3652.5, "10 years"),
        (18.9, "2.7 weeks"), (30.4375, "1 month"), (100.0, "3.3 months"), (7.0, "1 week"),
        (6.9, "6.9 days"), (8.0, "8 days"), (7.2, "7.2 days"), (13.0, "13 days"), (14.0, "2 weeks"),
        (30.0, "1 month"), (31.0, "1 month"), (359.0, "1 year"), (365.0, "1 year"),
        (349.0, "11 months"), (396.0, "13 months"), (547.0, "1.5 years"),
        (0.99, "1 day"), (1.0 / 16.0, "90 minutes"), (1.0, "1 day"), (0.5, "12 hours"),
        (1.0 / 1440.0, "1 minute"), (1.0 / 86400.0, "1 second"),
        (2.0 / 86400.0, "2 seconds"), (0.005 / 86400.0, "0.005 seconds"), (4.9, "4.9 days"),
    ],
)  # fmt: skip
def test_durations_take_the_longest_unit_that_fits(days: float, words: str) -> None:
    assert WEEKS.duration(days) == words


def test_numeric_durations_are_plain_numbers() -> None:
    assert NUMBERS.duration(2.71828) == "2.7"
    assert NUMBERS.duration(365.0) == "365"
    assert NUMBERS.duration(63895.0) == "63900"
    assert NUMBERS.duration(3e7) == "3.0e+07"
    assert NUMBERS.date(4.5) == "4.5"


@pytest.mark.parametrize(
    ("start", "end", "time", "said"),
    [
        (2451545.0, 2452045.0, 2451800.3, "2451800"),
        (0.0, 20000.0, 12345.6, "12350"),
        (0.0, 99.0, 49.732, "49.73"),
        (1950.0, 2020.0, 1985.25, "1985"),
        (-3.0, 5.0, 0.0, "0"),
        (0.0, 10.0, -1234567.0, "-1235000"),
    ],
)
def test_numeric_times_lie_within_the_data(
    start: float, end: float, time: float, said: str
) -> None:
    assert Timeline(None, start, end, 1.0).date(time) == said


def test_no_length_of_time_reads_like_a_longer_unit_once() -> None:
    """Nothing is called "12 months", "24 hours" or "1.1 weeks"."""
    for days in np.geomspace(1e-5, 1e4, 20_000):
        number, unit = WEEKS.duration(days).split()
        assert float(number) == 1.0 or float(number) >= 1.2 or unit == "seconds"
        assert (number, unit.rstrip("s")) not in {
            ("12", "month"), ("7", "day"), ("24", "hour"), ("60", "minute"), ("60", "second"),
        }  # fmt: skip


def test_intervals_that_read_alike_are_said_once() -> None:
    assert WEEKS.interval(360.0, 367.0) == "about 1 year"
    assert WEEKS.interval(340.0, 367.0) == "11 months to 1 year"
    assert WEEKS.interval(360.0, 396.0) == "12 to 13 months"
    assert WEEKS.interval(7.0, 9.0) == "7 to 9 days"
    assert WEEKS.interval(240.0, 244.0) == "7.9 to 8 months"
    assert NUMBERS.interval(2.0, 3.0) == "2 to 3"


def test_dates_are_no_finer_than_the_data() -> None:
    assert WEEKS.date(658.0) == "Apr 2017"
    assert Timeline(ORIGIN, 0.0, 30.0, 1.0).date(2.0) == "7 Jul 2015"
    assert Timeline(ORIGIN, 0.0, 2.0, 0.04).date(0.5) == "5 Jul 2015, 12:00"


def test_lists() -> None:
    assert listed(["a"]) == "a"
    assert listed(["a", "b", "c"]) == "a, b and c"
    assert listed("abcde", most=3) == "a, b and 3 more"
    assert listed([]) == ""
    assert listed("abc", last="or") == "a, b or c"


def test_shares_and_counts() -> None:
    assert (percent(0.0), percent(0.004), percent(0.128)) == ("0%", "under 1%", "13%")
    assert (percent(0.994), percent(0.997), percent(1.0)) == ("99%", "over 99%", "100%")
    almost = np.nextafter(1.0, 0.0)
    assert (percent(almost), percent(1.0 - almost)) == ("100%", "0%")
    assert (counted(1, "fit"), counted(2, "fit"), counted(1, "series")) == (
        "1 fit", "2 fits", "1 series",
    )  # fmt: skip

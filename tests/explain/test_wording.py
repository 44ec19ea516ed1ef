"""Durations, dates, lists and probabilities in words."""

from __future__ import annotations

import pandas as pd
import pytest
from small import small_table

from lkm_gpflow.data.tables import Table
from lkm_gpflow.explain.wording import Timeline, how_sure
from lkm_gpflow.runtime.text import counted, listed, percent

ORIGIN = pd.Timestamp("2015-07-05")
WEEKS = Timeline(ORIGIN, 0.0, 980.0, 7.0)
NUMBERS = Timeline(None, 0.0, 10.0, 0.5)


@pytest.mark.parametrize(
    ("days", "words"),
    [
        (511.0, "1.4 years"), (365.25, "1 year"), (364.0, "1 year"), (3652.5, "10 years"),
        (18.9, "2.7 weeks"), (30.4375, "1 month"), (100.0, "3.3 months"), (7.0, "1 week"),
        (6.9, "6.9 days"), (1.0, "1 day"), (0.5, "12 hours"), (1.0 / 1440.0, "1 minute"),
        (2.0 / 86400.0, "2 seconds"), (0.005 / 86400.0, "0.005 seconds"), (4.9, "4.9 days"),
    ],
)  # fmt: skip
def test_durations_take_the_longest_unit_that_fits(days: float, words: str) -> None:
    assert WEEKS.duration(days) == words


def test_numeric_durations_are_plain_numbers() -> None:
    assert NUMBERS.duration(2.71828) == "2.7"
    assert NUMBERS.duration(1234.0) == "1234"
    assert NUMBERS.duration(3e7) == "3.0e+07"
    assert NUMBERS.date(4.5) == "4.5"


def test_adjectives() -> None:
    assert WEEKS.adjective(511.0) == "1.4-year"
    assert WEEKS.adjective(7.0) == "1-week"


def test_dates_are_no_finer_than_the_data() -> None:
    assert WEEKS.date(658.0) == "Apr 2017"
    assert Timeline(ORIGIN, 0.0, 30.0, 1.0).date(2.0) == "7 Jul 2015"
    assert Timeline(ORIGIN, 0.0, 2.0, 0.04).date(0.5) == "5 Jul 2015, 12:00"


def test_a_location_far_outside_the_calendar_is_told_as_a_distance() -> None:
    assert WEEKS.date(-1e9).endswith("years before the first row")
    assert WEEKS.date(1e9).endswith("years after the first row")


def test_timeline_of_a_table() -> None:
    timeline = Timeline.of(Table.of(small_table()))
    assert (timeline.step, timeline.start, timeline.end) == (7.0, 0.0, 39 * 7.0)
    assert timeline.date(0.0) == "Jan 2021"


def test_lists() -> None:
    assert listed(["a"]) == "a"
    assert listed(["a", "b", "c"]) == "a, b and c"
    assert listed("abcde", most=3) == "a, b and 3 more"
    assert listed([]) == ""


def test_probabilities_shares_and_counts() -> None:
    words = [how_sure(p) for p in (1.0, 0.95, 0.8, 0.6, 0.3, 0.05, 0.001)]
    assert len(set(words)) == len(words)
    assert words[0] == "almost certainly"
    assert (percent(0.0), percent(0.004), percent(0.128)) == ("0%", "under 1%", "13%")
    assert (counted(1, "fit"), counted(2, "fit"), counted(1, "series")) == (
        "1 fit", "2 fits", "1 series",
    )  # fmt: skip

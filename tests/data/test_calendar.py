"""Times that follow rows on one day of each month, or on two."""

from __future__ import annotations

import pandas as pd
import pytest

from lkm_gpflow.data.tables import TimeAxis

ZONES = pytest.mark.parametrize("zone", [None, "Europe/Berlin"])


@ZONES
@pytest.mark.parametrize("gaps", [[], [3], [1, 7, 8]], ids=str)
@pytest.mark.parametrize(
    ("first", "months"),
    [
        ("2016-01-15", 1), ("2016-02-15", 3), ("2016-03-30", 12),
        ("2016-03-29", 1), ("2016-03-30", 1), ("2015-11-30", 3),
    ],
)  # fmt: skip
def test_the_same_day_of_every_month_goes_on(
    first: str, months: int, gaps: list[int], zone: str | None
) -> None:
    """From any row on, also one of February."""
    start = pd.Timestamp(first, tz=zone)
    times = pd.DatetimeIndex([start + pd.DateOffset(months=months * n) for n in range(60)])
    for rows in range(20, 32):
        axis = TimeAxis.of(times[:rows].delete(gaps))
        assert axis.grid.name.startswith(f"day {start.day} of every ")
        assert list(axis.after(times[rows - 1], 28)) == list(times[rows : rows + 28])
    uneven = times[:24].delete(gaps).union(times[0] + pd.to_timedelta([3, 5], unit="D"))
    assert TimeAxis.of(uneven).grid is None
    assert TimeAxis.of(times[[0, 1, 40]]).grid is None


def test_a_first_row_in_february_does_not_hide_the_day() -> None:
    index = pd.DatetimeIndex(["2023-02-28", "2023-03-30", "2023-04-30", "2023-05-30"])
    assert TimeAxis.of(index).after(index[-1], 10)[-1] == pd.Timestamp("2024-03-30")
    assert TimeAxis.of(index).after(index[0], 12)[-1] == pd.Timestamp("2024-02-29")


@ZONES
@pytest.mark.parametrize("gaps", [[], [3], [1, 7, 8]], ids=str)
@pytest.mark.parametrize("frequency", ["SMS", "SME"])
def test_twice_a_month_goes_on(frequency: str, gaps: list[int], zone: str | None) -> None:
    times = pd.date_range("2023-01-01", periods=60, freq=frequency, tz=zone)
    axis = TimeAxis.of(times[:30].delete(gaps))
    assert list(axis.after(times[29], 28)) == list(times[30:58])


def test_every_other_month_is_not_twice_a_month() -> None:
    times = pd.date_range("2020-01-01", periods=24, freq="2MS").delete([3, 5])
    assert TimeAxis.of(times).grid.name == "day 1 of every 2 months"


def test_days_that_differ_are_not_one_day_of_the_month() -> None:
    for days in (["01-30", "02-27", "03-30", "04-30"], ["01-30", "02-28", "03-28", "04-28"]):
        index = pd.DatetimeIndex([f"2023-{day}" for day in days])
        assert TimeAxis.of(index).grid is None

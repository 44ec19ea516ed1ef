"""Grids that generate all rows go on; what lies beside them, or in no month, is a doubt."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import pandas as pd
import pytest
from pandas.tseries.holiday import USFederalHolidayCalendar

from lkm_gpflow.data.doubts import doubts
from lkm_gpflow.data.tables import TimeAxis


def every(offset: object, months: Sequence[int] = range(1, 13), num: int = 60) -> pd.DatetimeIndex:
    """So many dates of a frequency, those of some months alone."""
    dates = pd.date_range("2009-01-01", "2109-01-01", freq=offset)
    return dates[dates.month.isin(months)][:num]


def of_months(*days: int) -> pd.DatetimeIndex:
    """The same days of 30 months; 31 is the last."""
    months = pd.date_range("2018-03-01", periods=30, freq="MS")
    return pd.DatetimeIndex(
        [m + pd.Timedelta(days=min(d, m.days_in_month) - 1) for m in months for d in days]
    )


def fiscal(weeks: Sequence[int], month: int, weekday: int, *, nearest: bool) -> pd.DatetimeIndex:
    """Ends of periods of whole weeks in years that end near the end of a month."""
    ends = [pd.Timestamp(year, month, 1) + pd.offsets.MonthEnd(0) for year in range(2008, 2019)]
    back = [(end.day_of_week - weekday) % 7 for end in ends]
    shift = [7 if nearest and days > 3 else 0 for days in back]
    years = [e + pd.Timedelta(days=s - b) for e, s, b in zip(ends, shift, back, strict=True)]
    inner = [
        year + pd.Timedelta(weeks=int(count))
        for year in years[:-1]
        for count in np.cumsum(weeks)[:-1]
    ]
    return pd.DatetimeIndex(sorted([*years[1:], *inner]))


LAST = pd.offsets.LastWeekOfMonth
GRIDS = {
    "the second Wednesday of every month": every("WOM-2WED"),
    "the last Thursday of every month": every(LAST(weekday=3)),
    "the last Monday of every year": every(LAST(weekday=0), [8], 30),
    "the second Wednesday of every 3 months": every("WOM-2WED", [1, 4, 7, 10]),
    "the third working day of every month": pd.DatetimeIndex(
        np.busday_offset(np.arange("2015-01", "2020-01", dtype="M8[M]"), 2, roll="forward")
    ),
    "the last working day of every 3 months": every("BQE"),
    "day 5, day 15 and day 25 of every month": of_months(5, 15, 25),
    "day 10, day 20 and day 31 of every month": of_months(10, 20, 31),
    "months of 4, 4 and 5 weeks in years that end on the Sunday that is the last of June": fiscal(
        (4, 4, 5) * 4, 6, 6, nearest=False
    ),
    "months of 5, 4 and 4 weeks in years that end on the Friday nearest to the end of May": fiscal(
        (5, 4, 4) * 4, 5, 4, nearest=True
    ),
    "quarters of 13 weeks in years that end on the Saturday that is the last of August": fiscal(
        (13,) * 4, 8, 5, nearest=False
    ),
    "periods of 4 weeks, 13 a year in years that end on the Sunday that is the last of December": (
        fiscal((4,) * 13, 12, 6, nearest=False)
    ),
    "steps of 35, 28 and 28 days in turn": pd.Timestamp("2015-01-24")
    + pd.to_timedelta(np.cumsum([0, *[28, 28, 35] * 18]), unit="D"),  # years of 52 weeks
}


@pytest.mark.parametrize("name", GRIDS)
def test_the_grid_of_all_rows_goes_on(name: str) -> None:
    times = GRIDS[name]
    rows = times[: 2 * len(times) // 3]
    axis = TimeAxis.of(rows)
    assert axis.grid.name == name
    following = times[len(rows) :]
    assert list(axis.after(rows[-1], len(following))) == list(following)
    assert doubts(pd.DataFrame({"a": 1.0, "b": 2.0}, rows)) == []


def test_rows_before_holidays_lie_beside_the_last_working_days() -> None:
    offset = pd.offsets.CustomBusinessMonthEnd(calendar=USFederalHolidayCalendar())
    rows = pd.date_range("2010-01-01", periods=120, freq=offset)
    axis = TimeAxis.of(rows)
    assert list(axis.after(rows[-1], 12)) == list(
        pd.date_range(rows[-1], periods=13, freq="BME")[1:]
    )
    (doubt,) = doubts(pd.DataFrame({"a": 1.0, "b": 2.0}, rows))
    assert "2 rows lie outside of the usual times, the last working day of every month" in doubt
    assert "Fri 2010-05-28" in doubt


def of_days(months: Sequence[int]) -> pd.DatetimeIndex:
    return pd.date_range("2015-01-01", "2018-12-31")[
        pd.date_range("2015-01-01", "2018-12-31").month.isin(months)
    ]


DOUBTED = {
    "only 4.% of the times have rows, if they are day 1 of every month": every("MS", num=100)[
        np.sort(np.random.default_rng(0).permutation(100)[:45])
    ],
    "no row is in January, February, .* of 10 years: forecasts are there": every(
        "ME", range(4, 10)
    ),
    "no grid that is known: forecasts are a day apart": of_days(range(6, 10)),
    "no grid that is known: forecasts are 16 days apart": pd.DatetimeIndex(
        [
            pd.Timestamp(f"{year}-01-01") + pd.Timedelta(days=16 * k)
            for year in range(2018, 2021)
            for k in range(23)
        ]
    ),
    "1 row lies outside of the usual times, Monday to Friday: Sun 2024-03-03": pd.bdate_range(
        "2024-01-01", periods=120
    ).union([pd.Timestamp("2024-03-03")]),
}


@pytest.mark.parametrize("doubt", DOUBTED)
def test_times_of_forecasts_are_doubted(doubt: str) -> None:
    rows = DOUBTED[doubt]
    (said,) = doubts(pd.DataFrame({"a": 1.0, "b": 2.0}, rows))
    assert re.search(doubt, said), said

"""Times that follow rows on some days of each week and at some times of each day."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from pandas.tseries.holiday import USFederalHolidayCalendar

from lkm_gpflow.data.tables import Table, TimeAxis
from lkm_gpflow.data.timetable import Timetable

ALL = "Mon Tue Wed Thu Fri Sat Sun"
OFFICE = "Mon Tue Wed Thu Fri"
ZONES = pytest.mark.parametrize("zone", [None, "Europe/Berlin", "Australia/Lord_Howe"])
"""The clocks of Berlin change on 31 March 2024, those of Lord Howe by half an hour on 7 April."""


def slots(
    names: str,
    num_days: int,
    step: str = "D",
    hours: tuple[float, float] = (0.0, 24.0),
    first: str = "2024-02-01",
) -> pd.DatetimeIndex:
    """All times of a grid in some hours of the named weekdays, in so many days."""
    start = pd.Timestamp(first)
    grid = pd.date_range(start, start + pd.Timedelta(days=num_days), freq=step, inclusive="left")
    hour = (grid - grid.normalize()) / pd.Timedelta(hours=1)
    weekdays = [ALL.split().index(name) for name in names.split()]
    return grid[grid.day_of_week.isin(weekdays) & (hours[0] <= hour) & (hour <= hours[1])]


def with_gaps(index: pd.DatetimeIndex, share: float, seed: int) -> pd.DatetimeIndex:
    """Lose so many rows at random, but the last one."""
    kept = np.random.default_rng(seed).uniform(size=len(index)) >= share
    kept[-1] = True
    return index[kept]


def timetable(index: pd.DatetimeIndex) -> Timetable | None:
    grid = TimeAxis.of(index).grid
    return grid if isinstance(grid, Timetable) else None


def goes_on(rows: pd.DatetimeIndex, following: pd.DatetimeIndex) -> bool:
    """Whether these are the times after the rows, also of a table."""
    frame = pd.DataFrame({"a": np.sin(np.arange(len(rows)))}, rows)
    after = Table.of(frame).after(len(following))
    assert list(after) == list(TimeAxis.of(rows).after(rows[-1], len(following)))
    return list(after) == list(following)


# --- days ---


@ZONES
@pytest.mark.parametrize("share", [0.0, 0.03, 0.08])
@pytest.mark.parametrize(
    "names",
    ["Mon Tue Wed Thu Fri Sat", "Sun Mon Tue Wed Thu", "Sat Sun", "Tue Thu", OFFICE],
)
def test_weekdays_go_on_after_holidays(names: str, share: float, zone: str | None) -> None:
    times = slots(names, 320, first="2024-01-01 09:30").tz_localize(zone)
    for seed in range(4):
        rows = len(times) // 2 + seed
        assert goes_on(with_gaps(times[:rows], share, seed), times[rows : rows + 20])


@ZONES
def test_working_days_with_the_holidays_of_a_country_keep_their_name(zone: str | None) -> None:
    days = pd.date_range("2023-01-03", "2024-06-28", freq="B")
    holidays = USFederalHolidayCalendar().holidays(days[0], days[-1])
    rows = days[~days.isin(holidays)].tz_localize(zone)
    assert TimeAxis.of(rows).grid.name.startswith("Monday to Friday")
    assert goes_on(rows, pd.date_range("2024-07-01", periods=30, freq="B", tz=zone))


def test_working_days_may_end_early() -> None:
    closes = slots(OFFICE, 100, first="2024-02-01 16:00")
    rows = closes.delete(30).insert(30, closes[30] - pd.Timedelta(hours=3))
    assert TimeAxis.of(rows).grid.name.startswith("Monday to Friday")
    assert goes_on(rows[:60], closes[60:])


@pytest.mark.parametrize("num_days", [10, 17, 24])
def test_few_weeks_with_a_gap_say_nothing(num_days: int) -> None:
    rows = slots("Mon Tue Wed Thu Fri Sat", num_days)
    axis = TimeAxis.of(rows.delete(8))
    assert axis.grid.name == "every day"


def test_closed_for_more_than_a_fifth_of_the_time_is_no_timetable() -> None:
    rows = slots("Mon Tue Wed Thu Fri Sat", 100)
    assert timetable(rows.delete(range(20, 20 + len(rows) // 6))) is not None
    assert timetable(rows.delete(range(20, 20 + len(rows) // 4))) is None


# --- hours ---

HOURS = pytest.mark.parametrize(
    ("step", "hours"),
    [("h", (9.0, 17.0)), ("h", (9.0, 16.0)), ("h", (10.0, 17.0)), ("15min", (8.5, 18.25))],
)
"""Nine hours; eight, which pandas takes for business hours from 09:00 on; and quarters."""


@ZONES
@pytest.mark.parametrize("names", [ALL, OFFICE, "Sun Mon Tue Wed Thu"])
@HOURS
def test_office_hours_go_on(
    step: str, hours: tuple[float, float], names: str, zone: str | None
) -> None:
    """Over changes of the clock, with and without gaps, from any time of day on."""
    times = slots(names, 66, step, hours).tz_localize(zone)
    for seed in range(3):
        rows = len(times) // 2 + 5 * seed
        rows_there = with_gaps(times[:rows], [0.0, 0.02, 0.1][seed % 3], seed)
        assert goes_on(rows_there, times[rows : rows + 300])


@ZONES
def test_times_of_day_far_apart_go_on(zone: str | None) -> None:
    times = slots(ALL, 90, "h")
    times = times[times.hour.isin([8, 18])].tz_localize(zone)
    assert goes_on(with_gaps(times[:100], 0.1, 0), times[100:150])


@pytest.mark.parametrize(
    "first", ["2024-03-01", "2024-03-01 00:30", "2024-10-01", "2024-10-01 00:30"]
)
@pytest.mark.parametrize("step", ["h", "30min"])
def test_nights_have_an_hour_less_or_more_when_clocks_change(step: str, first: str) -> None:
    start = pd.Timestamp(first, tz="Europe/Berlin")
    times = pd.date_range(start, start + pd.DateOffset(days=45), freq=step)
    times = times[(times.hour < 6) | (times.hour >= 22)]
    before = int((times < start + pd.DateOffset(days=20)).sum())
    assert goes_on(times[:before], times[before:])


@pytest.mark.parametrize("num_days", [5, 9])
def test_few_days_do_not_say_what_a_night_is(num_days: int) -> None:
    rows = slots(ALL, num_days, "h", (9.0, 17.0))
    axis = TimeAxis.of(rows)
    assert axis.grid is None
    assert axis.after(rows[-1], 1)[0] == rows[-1] + pd.Timedelta(hours=1)


# --- bad luck ---


@pytest.mark.parametrize("share", [0.02, 0.1, 0.2, 0.3])
@pytest.mark.parametrize("num_days", [22, 28, 60])
def test_gaps_at_random_leave_days_daily(num_days: int, share: float) -> None:
    """At worst about one table in 500 loses a weekday."""
    times = pd.date_range("2024-02-01", periods=num_days)
    rows = [with_gaps(times, share, seed) for seed in range(150)]
    assert sum(timetable(index) is not None for index in rows) <= 1


@ZONES
@pytest.mark.parametrize("share", [0.02, 0.2, 0.35])
@pytest.mark.parametrize(("step", "num_days"), [("h", 3), ("h", 12), ("h", 40), ("15min", 20)])
def test_gaps_at_random_leave_hours_hourly(
    step: str, num_days: int, share: float, zone: str | None
) -> None:
    grid = 24 * num_days * (4 if step == "15min" else 1)
    times = pd.date_range("2024-03-20", periods=grid + 50, freq=step, tz=zone)
    for seed in range(5):
        rows = with_gaps(times[:grid], share, seed)
        assert TimeAxis.of(rows).grid.step == pd.Timedelta(1, "h") / (4 if step == "15min" else 1)
        assert goes_on(rows, times[grid:])


def test_whole_days_lost_at_random_leave_hours_hourly() -> None:
    times = pd.date_range("2024-02-01", periods=24 * 60, freq="h")
    day = np.arange(len(times)) // 24
    for seed in range(60):
        lost = np.random.default_rng(seed).uniform(size=59) < 0.15
        assert TimeAxis.of(times[~np.append(lost, False)[day]]).grid.name == "every hour"


def test_rows_without_order_have_no_timetable() -> None:
    for seed in range(50):
        minutes = np.random.default_rng(seed).choice(60 * 24 * 60, 500, replace=False)
        rows = pd.Timestamp("2024-01-01") + pd.to_timedelta(np.sort(minutes), unit="min")
        assert timetable(rows) is None


# --- horizons ---


def test_long_horizons_and_long_tables_go_on() -> None:
    times = slots(OFFICE, 1600, "15min", (9.0, 16.75))
    assert goes_on(times[:20_000], times[20_000:35_000])
    centuries = pd.date_range("1700-01-01", "2024-05-31")
    rows = centuries[centuries.day_of_week < 6]
    assert goes_on(rows.delete(5), pd.DatetimeIndex(["2024-06-01", "2024-06-03", "2024-06-04"]))

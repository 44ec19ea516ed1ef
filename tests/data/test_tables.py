"""Tables in, scaled arrays out; what is wrong with a table is said with its row and column."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd
import pytest

from lkm_gpflow.data.grids import grid_of
from lkm_gpflow.data.tables import Table, TimeAxis

DAYS = pd.date_range("2020-01-05", periods=8, freq="D")


def frame(index: pd.Index | None = None, **columns: object) -> pd.DataFrame:
    """Two series that are all right, and others."""
    index = DAYS if index is None else index
    rng = np.random.default_rng(0)
    good = {"a": rng.normal(10.0, 2.0, len(index)), "b": rng.normal(-1.0, 0.1, len(index))}
    return pd.DataFrame({**good, **columns}, index=index)


def series(row: int, value: object) -> list[object]:
    values: list[object] = [float(i) for i in range(8)]
    values[row] = value
    return values


# --- bad input -----------------------------------------------------------------------------------

BAD: dict[str, tuple[str, Callable[[], object]]] = {
    "not a table": (r"expected a pandas DataFrame .*, got list", lambda: [[1.0, 2.0]]),
    "a series": (r"expected a pandas DataFrame .*, got Series: \.to_frame\(\)",
        lambda: frame()["a"]),
    "empty": (r"rows and columns, got shape \(0, 0\)", pd.DataFrame),
    "no columns": (r"rows and columns, got shape \(8, 0\)", lambda: frame()[[]]),
    "two rows": (r"at least 3 rows \(time points\), got 2", lambda: frame().iloc[:2]),
    "constant": (r"series 'c' is constant \(4\): expected a series that varies",
        lambda: frame(c=np.full(8, 4.0))),
    "constant but for rounding": (
        r"series 'c': .* varies by more than rounding, got 1000000000\.0 to 1000000000\.0000007",
        lambda: frame(c=1e9 + 1e-7 * np.arange(8))),
    "next to an offset": (
        r"series 'c': .*, got 1000000000000000\.0 to 1000000000000007\.0: subtract an offset",
        lambda: frame(c=1e15 + np.arange(8))),
    "constant where seen": ("series 'c' is constant",
        lambda: frame(c=[np.nan, 2.0, 2.0, 2.0, np.nan, 2.0, 2.0, 2.0])),
    "all missing": ("series 'c': expected at least 3 observed values, got 0",
        lambda: frame(c=np.full(8, np.nan))),
    "two observed": ("series 'c': expected at least 3 observed values, got 2",
        lambda: frame(c=[1.0, 2.0] + [np.nan] * 6)),
    "minus infinite": (r"column 'c' at 2020-01-05.*: expected a finite number, got -inf",
        lambda: frame(c=series(0, -np.inf))),
    "text": (r"column 'c' at 2020-01-07.*: expected a number, got 'n\.a\.'",
        lambda: frame(c=series(2, "n.a."))),
    "text, where the rows are out of order": (r"^column 'c' at 2020-01-10.*, got '\?'",
        lambda: frame(c=series(5, "?")).iloc[::-1]),
    "dates as values": (r"column 'c' at 2020-01-05.*: expected a number, got Timestamp",
        lambda: frame(c=DAYS)),
    "complex values": (
        r"column 'c' at 2020-01-05.*: expected a real number, got 1j: give its real and its",
        lambda: frame(c=np.arange(8) + 1j)),
    "a complex value among others": (
        r"column 'c' at 2020-01-10.*: expected a real number, got \(5\+1j\)",
        lambda: frame(c=pd.Series(series(5, 5.0 + 1.0j), DAYS, dtype=object))),
    "duplicate dates": (
        r"^the time 2020-01-06.* a second time \(1 duplicates in all\); expected different",
        lambda: frame(DAYS[[0, 1, 2, 1, 4, 5, 6, 7]])),
    "duplicate numbers": (r"^the time 0\.5 appears a second time \(2 duplicates",
        lambda: frame(pd.Index([0.5, 0.5, 1.0, 2.0, 1.0]))),
    "no date": (r"row 3 below the header: expected a time, got NaT",
        lambda: frame(pd.DatetimeIndex([*DAYS[:2], pd.NaT, *DAYS[3:]]))),
    "NaN as time": ("row 2 below the header: expected a time, got nan",
        lambda: frame(pd.Index([0.0, np.nan, 2.0, 3.0]))),
    "infinite time": ("row 4 below the header: expected a time, got inf",
        lambda: frame(pd.Index([0.0, 1.0, 2.0, np.inf]))),
    "years beyond those of pandas": ("dates from 1677 to 2262, got 2250",
        lambda: frame(pd.period_range("2250", periods=20, freq="Y"))),
    "dates beyond those of pandas": ("dates from 1677 to 2262, got 2250",
        lambda: frame(pd.date_range("2250-01-01", periods=20, freq="YS", unit="s"))),
    "names as times": (
        r"row 1 below the header, column 1: expected a date such as .*, got 'w': name its format",
        lambda: frame(pd.Index(list("wxyz")))),
    "durations": (
        r"expected an index .* got timedelta64\[ns\]: frame\.index /= pd\.Timedelta\(days=1\)$",
        lambda: frame(pd.timedelta_range("1D", periods=8).as_unit("ns"))),
    "two levels": (r"expected an index of dates or numbers, got 2 levels .*frame\.unstack",
        lambda: frame(pd.MultiIndex.from_product([[1, 2], [3, 4]]))),
    "one name twice": (r"expected series of different names, got more than one named \['b'\]",
        lambda: frame(c=np.arange(8.0)).rename(columns={"c": "b"})),
    "huge": (
        r"column 'c' at 2020-01-10.*: expected a number of at most 1e\+100 in size, "
        r"got 1e\+300: .* make it NaN", lambda: frame(c=series(5, 1e300))),
    "tiny": (r"series 'c': expected values that differ by more than 1e-100, .*another unit",
        lambda: frame(c=1e-200 * np.arange(8.0))),
    "columns of two levels": (
        r"expected one name for each column, got 2 levels such as \('Close', 'a'\): .*"
        r"frame\['Close'\]",
        lambda: frame().set_axis(pd.MultiIndex.from_product([["Close"], ["a", "b"]]), axis=1)),
    "long format": (
        r"expected a column for each series, got long format.*"
        r"from_long\(frame, 'variable', 'day', 'value'\)",
        lambda: frame().rename_axis("day").reset_index().melt("day")),
    "long format with times as index": (r"from_long\(frame, 'variable', 'day', 'value'\)",
        lambda: frame().rename_axis("day").reset_index().melt("day").set_index("day")),
    "long format with numbers as times": (r"from_long\(frame, 'variable', 'day', 'value'\)",
        lambda: frame(pd.RangeIndex(8)).rename_axis("day").reset_index().melt("day")),
    "nothing but blanks as name": (
        "column 1: expected a text or a number as the name of a series, got ' '",
        lambda: frame().set_axis([" ", "b"], axis=1)),
    "a truth as name": ("column 2: expected a text or a number as the name of a series, got True",
        lambda: frame().set_axis([1.5, True], axis=1)),
    "no name": ("column 1: expected a text .*, got (None|nan)",
        lambda: frame().set_axis([None, "b"], axis=1)),
    "NaN as name": ("column 2: .*, got nan", lambda: frame().set_axis(["a", np.nan], axis=1)),
    "one name as number and text": (r"more than one named \['1'\]",
        lambda: frame().set_axis([1, "1"], axis=1)),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_bad_tables_are_refused(case: str) -> None:
    message, make = BAD[case]
    with pytest.raises(ValueError, match=message):
        Table.of(make())


READ: dict[str, Callable[[], pd.DataFrame]] = {
    "dates as objects": lambda: frame(pd.Index([day.date() for day in DAYS], dtype=object)),
    "dates in a column": lambda: frame().rename_axis("day").reset_index(),
    "texts in a column": lambda: (
        frame().assign(day=DAYS.strftime("%Y-%m-%d")).reset_index(drop=True)
    ),
    "texts": lambda: frame(DAYS.strftime("%Y-%m-%d")),
    "days first": lambda: frame(DAYS.strftime("%d. %B %Y")),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore::lkm_gpflow.runtime.warn.TableNote")
@pytest.mark.parametrize("case", READ)
def test_times_of_a_frame_are_read_as_those_of_a_file(case: str) -> None:
    pd.testing.assert_frame_equal(
        Table.of(READ[case]()).frame, Table.of(frame()).frame, check_names=False, check_freq=False
    )


def test_rows_out_of_order_are_sorted_with_a_warning() -> None:
    given = frame()
    with pytest.warns(UserWarning, match="not in order: the rows are sorted") as caught:
        table = Table.of(given.iloc[[2, 0, 1, 7, 6, 5, 4, 3]])
    assert len(caught) == 1
    np.testing.assert_array_equal(table.frame.index, given.index)
    np.testing.assert_array_equal(table.frame, given)
    assert table.axis.grid.name == "every day"


def test_a_column_in_the_place_of_the_times_is_a_guess_of_the_warning() -> None:
    given = frame().set_index(np.random.default_rng(0).normal(size=len(frame())))
    with pytest.warns(UserWarning, match="if the first column .* is a series and no times"):
        Table.of(given)


@pytest.mark.filterwarnings("error")
def test_good_tables_pass_without_a_warning() -> None:
    given = frame(c=[1, 2, None, "4", 5, 6, 7, 8], d=pd.array([1, None, 3, 4, 5, 6, 7, 8], "Int64"))
    before = given.copy()
    table = Table.of(given)
    assert table.names == ["a", "b", "c", "d"]
    np.testing.assert_array_equal(table.frame["c"], [1, 2, np.nan, 4, 5, 6, 7, 8])
    np.testing.assert_array_equal(table.frame["d"], [1, np.nan, 3, 4, 5, 6, 7, 8])
    assert set(table.frame.dtypes) == {np.dtype(np.float64)}
    pd.testing.assert_frame_equal(given, before)


def test_times_that_differ_by_rounding_alone_are_refused() -> None:
    index = pd.Index(2**60 + np.arange(8))
    message = r"^the time 1152921504606846977 .* \(7 duplicates .*frame.index -= frame.index"
    with pytest.raises(ValueError, match=message):
        Table.of(frame(index))
    assert Table.of(frame(index - index[0])).span == 7.0


# --- the time axis -------------------------------------------------------------------------------

AXES: dict[str, tuple[pd.Index, float, str | None, list[object]]] = {
    "daily": (DAYS, 1.0, "every day", ["2020-01-13", "2020-01-14", "2020-01-15"]),
    "month ends": (pd.date_range("2019-10-31", periods=4, freq="ME"), 31.0,
        "the last day of every month", ["2020-02-29", "2020-03-31", "2020-04-30"]),
    "business days with a holiday": (pd.date_range("2020-01-06", periods=10, freq="B").delete(2),
        1.0, "Monday to Friday", ["2020-01-20", "2020-01-21", "2020-01-22"]),
    "hours": (pd.date_range("2020-01-06", periods=5, freq="h"), 1.0 / 24.0, "every hour",
        ["2020-01-06 05:00", "2020-01-06 06:00", "2020-01-06 07:00"]),
    "irregular": (
        pd.DatetimeIndex(["2020-01-01", "2020-01-03", "2020-01-04", "2020-01-06", "2020-01-11"]),
        2.0, None, ["2020-01-13", "2020-01-15", "2020-01-17"]),
    "numbers": (pd.Index([0.0, 0.5, 1.0, 1.5]), 0.5, None, [2.0, 2.5, 3.0]),
    "uneven whole numbers": (pd.Index([10, 12, 14, 20]), 2.0, None, [22.0, 24.0, 26.0]),
}  # fmt: skip


@pytest.mark.parametrize("case", AXES)
def test_time_axis(case: str) -> None:
    index, step, frequency, following = AXES[case]
    axis = Table.of(frame(index)).axis
    assert axis.step == pytest.approx(step)
    assert (axis.grid and axis.grid.name) == frequency
    after = axis.after(index[-1], 3)
    expected = pd.Index(following) if axis.origin is None else pd.DatetimeIndex(following)
    assert list(after) == list(expected)
    assert axis.after(index[-1], 1)[0] == expected[0]
    assert axis.unit == ("" if axis.origin is None else "days")


@pytest.mark.parametrize("zone", [None, "Europe/Berlin"])
@pytest.mark.parametrize("gaps", [[1], [10], [2, 30], [5, 6, 7], range(3, 56, 6)], ids=str)
@pytest.mark.parametrize(
    "frequency",
    [
        "YS", "YE-JUN", "QS", "QE", "MS", "ME", "BME", "2W", "W", "B", "2D", "D",
        "6h", "h", "7min", "s",
    ],
)  # fmt: skip
def test_missing_rows_do_not_matter(frequency: str, gaps: Sequence[int], zone: str | None) -> None:
    """The times after a table with gaps are those after the complete one, also in summer time."""
    index = pd.date_range("2018-01-01", periods=70, freq=frequency, tz=zone)
    complete, axis = TimeAxis.of(index[:60]), TimeAxis.of(index[:60].delete(list(gaps)))
    assert axis.grid.season == complete.grid.season
    assert list(axis.after(index[59], 10)) == list(index[60:])


@pytest.mark.parametrize("gaps", [[], [100]], ids=str)
@pytest.mark.parametrize("zone", [None, "UTC"])
def test_centuries_of_years(gaps: Sequence[int], zone: str | None) -> None:
    """Sunspots are counted since 1700: nanoseconds in eight bytes end after 292 years."""
    index = pd.date_range("1700-01-01", periods=320, freq="YS", tz=zone)
    table = Table.of(frame(index[:310].delete(gaps)))
    assert list(table.after(10)) == list(index[310:])
    days = np.array([day.toordinal() for day in index])
    expected = (days - days[0]) / (days[309] - days[0])
    np.testing.assert_allclose(table.scaled_times(index), expected, rtol=1e-12)


def test_steps_without_a_frequency_are_whole_nanoseconds() -> None:
    hours = [0, 1, 2, 3, 5, 6, 7, 8, 100, 101, 250]
    index = pd.Timestamp("2020-01-01") + pd.to_timedelta(hours, unit="h")
    axis = TimeAxis.of(index)
    assert axis.grid is None
    assert list(axis.after(index[-1], 30)) == list(
        pd.date_range(index[-1], periods=31, freq="h")[1:]
    )


@pytest.mark.parametrize("frequency", ["ME", "D", "B", None])
def test_dates_beyond_those_of_pandas_are_refused(frequency: str | None) -> None:
    grid = frequency and grid_of(pd.date_range("2020-01-31", periods=20, freq=frequency))
    axis = TimeAxis(pd.Timestamp("2020-01-31"), 1.5, grid or None)
    for horizon in (10**5, 10**7):
        with pytest.raises(ValueError, match=f"ends before 2262, got {horizon} steps after 2020"):
            axis.after(pd.Timestamp("2020-01-31"), horizon)


def test_horizons_beyond_all_use_are_refused() -> None:
    for table in (Table.of(frame()), Table.of(frame(pd.Index(range(8))))):
        for ask in (table.after, table.steps):
            with pytest.raises(
                ValueError, match="horizon of 1 to 1000000 steps, got 10000000000000"
            ):
                ask(10**13)


COUNTS, ZONED = pd.Index(range(8)), DAYS.tz_localize("UTC")


@pytest.mark.parametrize(
    ("index", "times", "message"),
    [
        (COUNTS, pd.Index([1.0, np.inf]), "expected finite times, got inf"),
        (COUNTS, pd.Index([1.0 + 2.0j]), "numeric times as in the training data, got complex128"),
        (COUNTS, pd.Index([True, False]), "numeric times as in the training data, got bool times"),
        (COUNTS, pd.MultiIndex.from_tuples([(1, 2)]), "expected times, got a MultiIndex of 2 lev"),
        (COUNTS, DAYS, "expected numeric times as in the training data, got"),
        (COUNTS, pd.Index(["a", "b"]), "expected numeric times as in the training data, got"),
        (DAYS, pd.Index([1, 2]), "expected dates as in the training data, got int64 times"),
        (DAYS, ZONED, "time zone"),
        (ZONED, DAYS, "time zone"),
    ],
    ids=range(9),
)
def test_times_of_another_kind_are_refused(index: pd.Index, times: pd.Index, message: str) -> None:
    table = Table.of(frame(index))
    for ask in (table.after, table.scaled_times):
        with pytest.raises(ValueError, match=message):
            ask(times)


def test_whole_numbers_stay_whole() -> None:
    for index, following in (
        (pd.Index([2017, 2018, 2019]), [2020, 2021]),
        (pd.Index([17, 18, 19], dtype="uint8"), [20, 21]),
        (pd.Index([17, 18, 19], dtype="Int64"), [20, 21]),
        (pd.Index([0, 1, 2, 4, 6]), [7.5, 9.0]),
        (pd.Index([1.0, 2.0, 3.0]), [4.0, 5.0]),
    ):
        after = Table.of(frame(index)).after(2)
        assert [repr(time) for time in after.tolist()] == [repr(time) for time in following]


def test_hours_of_the_universal_day_go_on_when_clocks_change() -> None:
    index = pd.date_range("2020-03-20", periods=40, freq="24h", tz="UTC").tz_convert(
        "Europe/Berlin"
    )
    axis = TimeAxis.of(index[:30].delete(12))
    assert list(axis.after(index[29], 10)) == list(index[30:])


def test_times_of_day_that_a_change_of_the_clock_leaves_out_are_no_obstacle() -> None:
    index = pd.date_range("2020-03-20 02:30", periods=20, freq="D")
    index = index.delete(9).tz_localize("Europe/Berlin")  # without 29 March
    assert TimeAxis.of(index).grid.name == "every day"


@pytest.mark.parametrize(
    ("first", "frequency", "odd", "expected"),
    [
        ("2024-03-20 02:30", "D", "2024-03-31", "2024-03-31T03:00:00+02:00"),
        ("2024-10-16 02:30", "D", "2024-10-27", "2024-10-27T02:30:00+02:00"),
        ("2024-01-28 02:30", "W-SUN", "2024-03-31", "2024-03-31T03:00:00+02:00"),
        ("2023-08-31 02:30", "ME", "2024-03-31", "2024-03-31T03:00:00+02:00"),
        ("2024-01-27 02:30", "months", "2024-10-27", "2024-10-27T02:30:00+02:00"),
    ],
)
def test_forecasts_go_on_over_times_of_day_that_are_left_out_or_come_twice(
    first: str, frequency: str, odd: str, expected: str
) -> None:
    index = (
        pd.DatetimeIndex([pd.Timestamp(first) + pd.DateOffset(months=k) for k in range(15)])
        if frequency == "months"
        else pd.date_range(first, periods=15, freq=frequency)
    )
    rows = int(np.argmax(index.normalize() == odd))
    past = index[:rows].tz_localize("Europe/Berlin")
    after = TimeAxis.of(past).after(past[-1], 3)
    assert [time.isoformat() for time in after] == [
        expected,
        *(time.isoformat() for time in index[rows + 1 : rows + 3].tz_localize("Europe/Berlin")),
    ]


@pytest.mark.parametrize(
    ("index", "first", "frequency", "following"),
    [
        (pd.period_range("2019-11", periods=5, freq="M"), "2019-11-01", "MS", "2020-04-01"),
        (pd.period_range("2015", periods=5, freq="Y"), "2015-01-01", "YS-JAN", "2020-01-01"),
        (pd.period_range("2019Q1", periods=5, freq="Q"), "2019-01-01", "QS-OCT", "2020-04-01"),
    ],
)
def test_periods_become_their_first_day(
    index: pd.PeriodIndex, first: str, frequency: str, following: str
) -> None:
    table = Table.of(frame(index))
    assert table.frame.index[0] == pd.Timestamp(first)
    assert table.axis.grid == grid_of(pd.date_range(first, periods=20, freq=frequency))
    assert table.axis.after(table.frame.index[-1], 1)[0] == pd.Timestamp(following)
    np.testing.assert_array_equal(table.scaled_times(index), table.observations.x)


def test_dates_with_a_time_zone() -> None:
    """Over a change of the clock: local midnights, 23 hours apart once."""
    index = pd.date_range("2020-03-26", periods=8, freq="D", tz="Europe/Berlin")
    table = Table.of(frame(index))
    after = table.axis.after(index[-1], 2)
    assert list(after) == list(pd.date_range("2020-04-03", periods=2, tz="Europe/Berlin"))
    days = table.axis.to_numbers(index)
    np.testing.assert_allclose(days, [0, 1, 2, 3, *(np.arange(4, 8) - 1 / 24)])
    assert table.scaled_times(after).min() > 1.0


def test_numbers_of_dates_are_days() -> None:
    axis = TimeAxis.of(DAYS)
    later = pd.DatetimeIndex(["2020-01-05", "2020-01-06 06:00", "2021-01-05", "2020-01-04"])
    np.testing.assert_array_equal(axis.to_numbers(later), [0.0, 1.25, 366.0, -1.0])


# --- scaling -------------------------------------------------------------------------------------


@pytest.mark.parametrize("index", [DAYS, pd.Index([3, 4, 5, 9, 10, 11, 12, 23])], ids=str)
def test_scaling_and_back(index: pd.Index) -> None:
    given = frame(index, c=[np.nan, 2e6, 3e6, np.nan, 5e6, 2e6, np.nan, 1e6])
    table = Table.of(given)
    scaled = table.observations
    assert scaled.Y.shape == scaled.mask.shape == (3, 8)
    assert (scaled.x[0], scaled.x[-1]) == (0.0, 1.0)
    np.testing.assert_array_equal(scaled.mask.T, given.notna())
    np.testing.assert_array_equal(scaled.Y[scaled.mask == 0.0], 0.0)
    for y, mask in zip(scaled.Y, scaled.mask, strict=True):
        assert y[mask == 1.0].mean() == pytest.approx(0.0, abs=1e-9)
        assert y[mask == 1.0].std() == pytest.approx(1.0)
    back = np.where(scaled.mask == 1.0, scaled.Y, np.nan).T * table.scale + table.location
    np.testing.assert_allclose(back, given, rtol=1e-8)  # rounded to nine decimals
    times = table.start + table.span * scaled.x
    np.testing.assert_allclose(times, table.axis.to_numbers(index), rtol=1e-14)


def test_other_units_are_the_same_to_the_last_bit() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(50, 3)), columns=list("abc"))
    one = Table.of(frame).observations
    other = Table.of(1234.5 * frame - 77.7).observations
    np.testing.assert_array_equal(other.Y, one.Y)

"""Tables of other shapes, libraries and files: the same table comes out, or what to do about it."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import lkm_gpflow as lkm
from lkm_gpflow.data.files import read_table
from lkm_gpflow.data.foreign import as_frame
from lkm_gpflow.data.reading import Dialect
from lkm_gpflow.data.shapes import LongNames
from lkm_gpflow.data.tables import Table


def wide() -> pd.DataFrame:
    index = pd.date_range("2024-01-28", periods=10, name="day")
    values = np.random.default_rng(0).normal(size=(10, 2)).round(3)
    values[3, 1] = np.nan
    return pd.DataFrame(values, index, ["b", "a"])


def assert_same(frame: pd.DataFrame) -> None:
    pd.testing.assert_frame_equal(
        Table.of(frame).frame, Table.of(wide()).frame, check_names=False, check_freq=False
    )


# --- long format ---


def test_long_format_there_and_back() -> None:
    long = wide().rename_axis(columns="name").stack(future_stack=True).rename("y").reset_index()
    assert_same(lkm.from_long(long.dropna(), "name", "day", "y"))
    shuffled = long.sample(frac=1.0, random_state=0)
    found = lkm.from_long(shuffled, "name", "day", "y")
    assert_same(found[["b", "a"]])
    again = lkm.to_long(wide().unstack().rename("y").to_frame())
    assert list(again.columns) == ["unique_id", "ds", "y"]
    assert_same(lkm.from_long(again))
    assert_same(lkm.from_long(again.set_index("unique_id")))
    assert_same(lkm.from_long(again.set_index(["unique_id", "ds"])))


def test_long_format_is_refused_where_it_is_not_clear() -> None:
    long = lkm.to_long(wide().unstack().rename("y").to_frame())
    with pytest.raises(ValueError, match=r"expected the columns 'who', 'ds' and 'y', got \['uni"):
        lkm.from_long(long, series="who")
    with pytest.raises(ValueError, match="three different columns, got 'ds', 'ds' and 'y'"):
        lkm.from_long(long, series="ds")
    renamed = long.set_axis(["town", "day", "heat"], axis=1)
    for table, message in (
        (
            pd.concat([long, long.iloc[[4, 5]]]),
            r"'b' at 2024-02-01 00:00:00 in row 21 .* \(2 such r",
        ),
        (pd.concat([long, long[["ds"]]], axis=1), r"got more than one named \['ds'\]$"),
        (renamed, r"from_long\(frame, 'town', 'day', 'heat'\)$"),
        (wide(), r"from_long\(frame, 'SERIES', 'TIME', 'VALUE'\)$"),
        (long["y"], r"expected a pandas DataFrame, got Series$"),
    ):
        with pytest.raises(ValueError, match=message):
            lkm.from_long(table)


@pytest.mark.parametrize("column", ["unique_id", "ds"])
def test_rows_of_no_series_or_time_are_named(column: str) -> None:
    long = lkm.to_long(wide().unstack().rename("y").to_frame())
    long[column] = long[column].astype(object).mask(long.index == 4, None)
    with pytest.raises(
        ValueError, match=f"nothing in the column '{column}' of row 5 below the header: fill it"
    ):
        lkm.from_long(long)


# --- other libraries ---


def test_polars_and_arrow() -> None:
    polars, arrow = pytest.importorskip("polars"), pytest.importorskip("pyarrow")
    own = polars.from_pandas(wide().reset_index())
    assert_same(as_frame(own))
    assert_same(as_frame(arrow.Table.from_pandas(wide())))
    assert_same(as_frame(arrow.Table.from_pandas(wide().reset_index())))
    with pytest.raises(ValueError, match=r"got LazyFrame: \.collect\(\)"):
        as_frame(own.lazy())
    long = own.unpivot(index="day")
    with pytest.raises(ValueError, match=r"from_long\(frame, 'variable', 'day', 'value'\)"):
        Table.of(long)
    with pytest.raises(ValueError, match=r"got DataFrame of polars: give frame\.to_pandas\(\)$"):
        lkm.from_long(long, "variable", "day", "value")


def test_an_arrow_table_with_a_name_twice_is_refused() -> None:
    arrow = pytest.importorskip("pyarrow")
    days = arrow.array(wide().index)
    table = arrow.table([days, *([[1.0, 2.0] * 5] * 2)], names=["day", "a", "a"])
    with pytest.raises(ValueError, match=r"different names, got more than one named \['a'\]"):
        Table.of(table)


def test_a_polars_table_without_dates_has_numbers_as_times() -> None:
    polars = pytest.importorskip("polars")
    own = polars.DataFrame({"t": [0.0, 1.5, 2.0, 3.0], "a": [1.0, None, 2.0, 5.0]})
    frame = Table.of(own).frame
    assert list(frame.index) == [0.0, 1.5, 2.0, 3.0]
    np.testing.assert_array_equal(frame["a"], [1.0, np.nan, 2.0, 5.0])


def test_xarray() -> None:
    xarray = pytest.importorskip("xarray")
    matrix = xarray.DataArray(
        wide().to_numpy(),
        dims=("day", "series"),
        coords={"day": wide().index, "series": ["b", "a"]},
    )
    assert_same(as_frame(matrix))
    assert_same(as_frame(matrix.transpose()))
    assert_same(as_frame(matrix.to_dataset(dim="series")))
    with pytest.raises(ValueError, match=r"xarray DataArray of two dimensions.*'site': 1.*\.sel"):
        as_frame(matrix.expand_dims("site"))
    with pytest.raises(ValueError, match=r"xarray Dataset of one dimension, time, got"):
        as_frame(matrix.to_dataset(name="y"))


# --- files ---


def test_parquet_and_excel(tmp_path: Path) -> None:
    wide().to_parquet(tmp_path / "index.parquet")
    wide().reset_index().to_parquet(tmp_path / "column.parquet")
    for name in ("index", "column"):
        assert_same(read_table(tmp_path / f"{name}.parquet"))
    pytest.importorskip("openpyxl")
    wide().to_excel(tmp_path / "t.xlsx")
    assert_same(read_table(tmp_path / "t.xlsx"))
    (tmp_path / "index.parquet").rename(tmp_path / "named.csv")
    assert_same(read_table(tmp_path / "named.csv"))
    long = lkm.to_long(wide().unstack().rename("y").to_frame())
    long.to_excel(tmp_path / "long.xlsx", index=False)
    assert_same(read_table(tmp_path / "long.xlsx", Dialect(long=LongNames("unique_id", "ds", "y"))))


@pytest.mark.parametrize(
    ("contents", "message"),
    [
        (b"PK\x03\x04 t.csv", r"got a ZIP archive: save it as CSV"),
        (b"\xd0\xcf\x11\xe0", r"expected CSV, .*got old Excel: save it as CSV"),
        (b"\x1f\x8b", "got gzip"),
        (b"PAR1....", r"cannot be read as Parquet"),
        (b"PK\x03\x04 xl/", "cannot be read as Excel"),
    ],
)
def test_files_of_another_kind(contents: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes(contents)
    with pytest.raises(ValueError, match=message):
        read_table(tmp_path / "t.csv")


@pytest.mark.parametrize("num_rows", [3, 700])
def test_a_pipe_is_read_once(num_rows: int) -> None:
    if not Path("/dev/fd").exists():
        pytest.skip("this system does not name its pipes")
    reading, writing = os.pipe()
    lines = [f"{row},{row % 7},{row % 5}" for row in range(num_rows)]
    os.write(writing, "\n".join(["t,a,b", *lines]).encode())
    os.close(writing)
    try:
        assert list(read_table(f"/dev/fd/{reading}").index) == list(range(num_rows))
    finally:
        os.close(reading)


LONG = Dialect(long=LongNames("id", "day", "y"))
UNREADABLE = [
    *(
        (f"day,a\n2024-01-01,1\n{word},2\n", Dialect(dates=form), f"row 3, column 'day': {said}")
        for word, said in [
            ("today", "expected a date.* got 'today'"),
            ("now", "expected a date.* got 'now'"),
            ("NaT", "expected a time.* got nothing"),
            ("1500-01-02", "expected a date from 1677 to 2262, got '1500-01-02'"),
            ("2500-01-02", "expected a date from 1677 to 2262, got '2500-01-02'"),
            ("9999-12-31", "expected a date from 1677 to 2262, got '9999-12-31'"),
        ]
        for form in (None, "%Y-%m-%d")
    ),
    *(
        (
            f"day,a\n2024-01-01T00:00{zone},1\n2024-01-02T00:00{zone},2\n2024-01-03{odd},3\n",
            Dialect(),
            f"row 4, column 'day': expected {said}",
        )
        for zone, odd, said in [
            (
                "+01:00",
                "T00:00+02:00",
                r"UTC\+01:00 as in the first row, got UTC\+02:00; write ",
            ),
            ("+01:00", "", r"UTC\+01:00 as in the first row, got no time zone"),
            ("Z", "T00:00", "UTC as in the first row, got no time zone"),
            ("Z", "T00:00-05:00", "UTC as in the first row, got UTC-05:00"),
        ]
    ),
    *(
        (f"t;a\n1;2\n2;{cell}\n", Dialect(";"), f"row 3, column 'a': .* a number.*got '{cell}'")
        for cell in ("1,5,2", "abc7", "12:30", "5-7", "1.2.3")
    ),
    ("t,a,b\n1,0,5,0\n", Dialect(decimal=","), r'3 cells .*, got 4; put decimals in quotes, "1,5"'),
    ("day,day,b\n2024-01-01,1,2\n", Dialect(), r"of different names, got .* named \['day'\]"),
    ("id,day,y\nx,1,1\nx,2,2\n,1,3\n,2,4\n", LONG, "row 4, column 'id': expected the name of a"),
]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(("text", "dialect", "message"), UNREADABLE)
def test_what_cannot_be_read_is_named(
    text: str, dialect: Dialect, message: str, tmp_path: Path
) -> None:
    (tmp_path / "t.csv").write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=message):
        read_table(tmp_path / "t.csv", dialect)


@pytest.mark.parametrize("form", ["%d/%m/%Y", "%m.%d.%y", "%b %Y", "%G-W%V-%u", "%Y %z"])
def test_formats_of_dates(form: str) -> None:
    assert Dialect(dates=form).dates == form


@pytest.mark.parametrize(
    ("form", "message"),
    [
        ("%d/%m", "a format of dates with a year, such as %d/%m/%Y, got '%d/%m'"),
        ("%Q", r"a format of dates such as %d/%m/%Y, got '%Q' \(.*"),
        ("%Y-%Y", r"a format of dates such as %d/%m/%Y, got '%Y-%Y' \(.*"),
        ("DD/MM/YYYY", "a format of dates such as %d/%m/%Y, got 'DD/MM/YYYY'"),
        ("", "a format of dates such as %d/%m/%Y, got ''"),
    ],
)
def test_formats_that_read_no_dates(form: str, message: str) -> None:
    with pytest.raises(ValueError, match=f"^expected {message}$"):
        Dialect(dates=form)


def test_decimals_in_quotes(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text('t,a,b\n1,"0,5",0\n"2,5","-1,25",NA\n', encoding="utf-8")
    read = read_table(tmp_path / "t.csv", Dialect(decimal=","))
    assert list(read.index) == [1.0, 2.5]
    np.testing.assert_array_equal(read, [[0.5, 0.0], [-1.25, np.nan]])


NUMBERS = {
    "1,034": 1034.0, "-1,234.5": -1234.5, "1,234,567": 1234567.0, "1,23,456": 123456.0,
    "0,125": 0.125, "1234,567": 1234.567, "1.234,5": 1234.5, "1 034": 1034.0, "1'034.5": 1034.5,
    "3.1%": 3.1, "$50.59": 50.59, "€ 7": 7.0, "7 kg": 7.0, "(12)": -12.0, "($5)": -5.0, "5-": -5.0,
    "\u22123.5": -3.5, "1.2K": 1200.0, "3M": 3e6, "1e-3": 1e-3, ".5": 0.5, "-": np.nan,
    ".": np.nan, "?": np.nan, "n.a.": np.nan, "#DIV/0!": np.nan,
}  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("cell", NUMBERS)
def test_numbers_as_people_write_them(cell: str, tmp_path: Path) -> None:
    rows = "" if not np.isnan(NUMBERS[cell]) else "3;7\n"
    (tmp_path / "t.csv").write_text(f't;a\n1;"{cell}"\n{rows}', encoding="utf-8")
    assert read_table(tmp_path / "t.csv")["a"].iloc[0] == pytest.approx(NUMBERS[cell], nan_ok=True)


def test_thousands_of_one_column_are_a_doubt(tmp_path: Path) -> None:
    rows = "".join(f"{i},{text},{i}.5\n" for i, text in enumerate(["1.204", "977", "1.013", "989"]))
    (tmp_path / "t.csv").write_text("t,a,b\n" + rows)
    with pytest.warns(UserWarning, match=r"column 'a': 1\.204 is read as 1204.*--decimal \."):
        read = read_table(tmp_path / "t.csv")
    assert list(read["a"]) == [1204.0, 977.0, 1013.0, 989.0]
    assert list(read["b"]) == [0.5, 1.5, 2.5, 3.5]
    assert read_table(tmp_path / "t.csv", Dialect(decimal="."))["a"].iloc[0] == 1.204


def test_spellings_of_missing(tmp_path: Path) -> None:
    words = ["", "na", "N/A", "n/a", "#N/A", "<NA>", "NaN", "NAN", "NULL", "null", "None", "NaT"]
    rows = "".join(f"{i},{i},{word}\n" for i, word in enumerate(words))
    (tmp_path / "t.csv").write_text("t,a,b\n" + rows, encoding="utf-8")
    read = read_table(tmp_path / "t.csv")
    assert read["b"].isna().all()
    assert read["a"].notna().all()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(("zone", "said"), [("Z", "UTC"), ("+01:00", r"UTC\+01:00")])
@pytest.mark.parametrize("kind", ["Parquet", "Excel", "polars"])
def test_texts_without_a_zone_are_not_taken_for_utc(
    kind: str, zone: str, said: str, tmp_path: Path
) -> None:
    texts: list[str | None] = [f"2024-01-0{day}T00:00{zone}" for day in range(1, 5)]
    path = tmp_path / ("t.parquet" if kind == "Parquet" else "t.xlsx")

    def read() -> pd.DataFrame:
        frame = pd.DataFrame({"day": texts, "a": [1.0, 2.0, 4.0, 3.0]})
        if kind == "polars":
            return as_frame(pytest.importorskip("polars").from_pandas(frame))
        if kind == "Parquet":
            frame.to_parquet(path)
        else:
            pytest.importorskip("openpyxl")
            frame.to_excel(path, index=False)
        return read_table(path)

    assert list(read().index) == list(pd.to_datetime(texts))
    texts[2] = "2024-01-03T00:00"
    wanted = f"row [34].*, column 'day': expected {said} as in the first row.*, got no time zone"
    with pytest.raises(ValueError, match=f"{wanted}; write all dates in UTC$"):
        read()
    texts[2] = None
    with pytest.raises(ValueError, match=r"row [34].*, column 'day': expected a time, got nothing"):
        read()


@pytest.mark.parametrize("frequency", ["Q", "W", "M", "Y"])
def test_periods_as_pandas_writes_them(frequency: str, tmp_path: Path) -> None:
    """They begin where `Table` lets a PeriodIndex begin."""
    frame = wide().set_axis(pd.period_range("2019-11", periods=10, freq=frequency, name="day"))
    frame.to_csv(tmp_path / "t.csv")
    read = Table.of(read_table(tmp_path / "t.csv"))
    expected = Table.of(frame).frame
    if frequency == "Y":  # whole numbers, which could be anything
        expected.index = expected.index.year
    pd.testing.assert_frame_equal(read.frame, expected, check_freq=False, check_index_type=False)


@pytest.mark.parametrize(
    ("texts", "days"),
    [
        (["2020-Q4", "2021-Q1", "2021-Q2"], ["2020-10-01", "2021-01-01", "2021-04-01"]),
        (["2020-W53", "2021-W01", "2021-W02"], ["2020-12-28", "2021-01-04", "2021-01-11"]),
    ],
)
def test_quarters_and_weeks_of_the_standard(
    texts: list[str], days: list[str], tmp_path: Path
) -> None:
    path = tmp_path / "t.csv"
    path.write_text("t,a\n" + "".join(f"{text},{i}\n" for i, text in enumerate(texts)))
    assert list(read_table(path).index.strftime("%Y-%m-%d")) == days
    for wrong in ("2021-W53", "2021Q5"):
        path.write_text(f"t,a\n{texts[0]},1\n{texts[1]},1\n{wrong},2\n")
        with pytest.raises(ValueError, match=rf"row 4, .* expected a date .* got '{wrong}'"):
            read_table(path)


def test_names_of_csv_may_hold_separators_of_lines(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes("day,a\u2028b,c\x85\r\n2024-01-01,1,2\r2024-01-02,3,4\n".encode())
    assert list(read_table(path).columns) == ["a\u2028b", "c"]
    assert len(read_table(path)) == 2

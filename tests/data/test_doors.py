"""Tables of other shapes, libraries and files: the same table comes out, or what to do about it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import lkm_gpflow as lkm
from lkm_gpflow.data.csv import Dialect
from lkm_gpflow.data.doubts import doubts
from lkm_gpflow.data.files import read_table
from lkm_gpflow.data.foreign import as_frame
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


def test_long_format_is_refused_where_it_is_not_clear() -> None:
    long = lkm.to_long(wide().unstack().rename("y").to_frame())
    with pytest.raises(ValueError, match=r"expected the columns 'who', 'ds' and 'y', got \['uni"):
        lkm.from_long(long, series="who")
    with pytest.raises(ValueError, match="three different columns, got 'ds', 'ds' and 'y'"):
        lkm.from_long(long, series="ds")
    twice = pd.concat([long, long.iloc[[4]]])
    with pytest.raises(ValueError, match=r"second one for 'b' at 2024-02-01 .* in row 21"):
        lkm.from_long(twice)


@pytest.mark.parametrize("column", ["unique_id", "ds"])
def test_rows_of_no_series_or_time_are_named(column: str) -> None:
    long = lkm.to_long(wide().unstack().rename("y").to_frame())
    long[column] = long[column].astype(object).mask(long.index == 4, None)
    with pytest.raises(ValueError, match=f"nothing in the column '{column}' of row 5: fill it"):
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
    long = lkm.to_long(wide().unstack().rename("y").to_frame())
    long.to_excel(tmp_path / "long.xlsx", index=False)
    assert_same(read_table(tmp_path / "long.xlsx", Dialect(long=LongNames("unique_id", "ds", "y"))))


@pytest.mark.parametrize(
    ("name", "contents", "message"),
    [
        ("t.csv", b"PAR1....", r"CSV file by its name, got Parquet .* rename it to t\.parquet"),
        ("t.csv", b"PK\x03\x04", r"got Excel by its contents: rename it to t\.xlsx"),
        ("t.parquet", b"day,a\n", r"expected Parquet by its name, .* rename it to t\.csv"),
        ("t.xlsx", b"day,a\n", r"expected Excel by its name, .* rename it to t\.csv"),
        ("t.xls", b"\xd0\xcf\x11\xe0", r"got old Excel by its contents: save it as CSV"),
        ("t.parquet", b"PAR1....", r"cannot be read as Parquet"),
    ],
)
def test_files_of_another_kind(name: str, contents: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(contents)
    with pytest.raises(ValueError, match=message):
        read_table(tmp_path / name)


def test_csv_of_other_countries(tmp_path: Path) -> None:
    frame = wide()
    frame.index = pd.Index(wide().index.strftime("%d/%m/%Y"), name="day")
    frame.to_csv(tmp_path / "t.csv", sep=";", decimal=",")
    assert_same(read_table(tmp_path / "t.csv", Dialect(";", ",", "%d/%m/%Y")))
    long = frame.rename_axis(columns="name").stack(future_stack=True).rename("y").reset_index()
    long.to_csv(tmp_path / "long.csv", sep=";", decimal=",", index=False)
    dialect = Dialect(";", ",", "%d/%m/%Y", LongNames("name", "day", "y"))
    assert_same(read_table(tmp_path / "long.csv", dialect))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("day;a\n", r"seem to be separated by ';': give --separator ';'"),
        ("day\ta\n", r"seem to be separated by '\\t': give --separator tab"),
        ("day,a\n28/01/2024,1\n", r"a date such as 2024-01-31.*; read it with --dates %d/%m/%Y"),
        ("day,a\n01.02.24,1\n02.28.24,2\n", r"read it with --dates %m\.%d\.%y"),
        ('day,a\n2024-01-01,"1,5"\n', r"expected a number, got '1,5'; read it with --decimal ,"),
        (
            "day,who,y\n2024-01-01,a,1\n2024-01-01,b,2\n2024-01-02,a,1\n",
            r"long format.*read it with --long who,day,y",
        ),
    ],
)
def test_the_option_that_reads_a_file_is_named(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=message):
        read_table(tmp_path / "t.csv")


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


def test_quarters_and_weeks_of_the_standard(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("t,a\n2020-Q4,1\n2020-W53,2\n2021W01,3\n2021 Q2,4\n")
    read = list(read_table(tmp_path / "t.csv").index.strftime("%Y-%m-%d"))
    assert read == ["2020-10-01", "2020-12-28", "2021-01-04", "2021-04-01"]
    for wrong in ("2021-W53", "2021Q5"):
        (tmp_path / "t.csv").write_text(f"t,a\n2020-W01,1\n{wrong},2\n")
        with pytest.raises(ValueError, match=rf"row 3, .* expected a date .* got '{wrong}'"):
            read_table(tmp_path / "t.csv")


def test_names_of_csv_may_hold_separators_of_lines_and_must_differ(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes("day,a\u2028b,c\x85\r\n2024-01-01,1,2\r2024-01-02,3,4\n".encode())
    assert list(read_table(path).columns) == ["a\u2028b", "c"]
    assert len(read_table(path)) == 2
    path.write_bytes(b"day,day,b\n2024-01-01,1,2\n")
    with pytest.raises(ValueError, match=r"columns of different names, got .* named \['day'\]"):
        read_table(path)


def test_a_dialect_that_contradicts_itself() -> None:
    with pytest.raises(ValueError, match="differs from the separator, got ','"):
        Dialect(decimal=",")
    with pytest.raises(ValueError, match="a single character as separator, got ''"):
        Dialect("")


# --- doubts ---


def test_sound_tables_raise_no_doubts() -> None:
    for name in ("demo", "toy"):
        assert doubts(lkm.datasets.load(name).frame) == []
    jump = pd.DataFrame({"a": np.repeat([0.0, 1.0], [29, 1]), "b": np.arange(30.0) ** 3})
    assert doubts(jump) == []


@pytest.mark.parametrize("form", ["%Y%m", "%Y%m%d"])
def test_dates_without_hyphens_are_a_doubt(form: str, tmp_path: Path) -> None:
    frame = wide().set_axis(pd.date_range("2019-06-30", periods=30, freq="ME")[:10])
    frame.index = frame.index.strftime(form)
    frame.to_csv(tmp_path / "t.csv")
    (doubt,) = doubts(Table.of(read_table(tmp_path / "t.csv")).frame)[1:]
    assert f"{frame.index[0]} are read as numbers: if they are dates" in doubt
    assert doubt.endswith(f"--dates {form}")
    dated = read_table(tmp_path / "t.csv", Dialect(dates=form))
    assert dated.index[1].strftime("%Y-%m") == "2019-07"
    assert doubts(dated)[1:] == []
    frame.index = pd.Index(range(201995, 202005))
    assert doubts(frame)[1:] == []


def test_doubtful_tables() -> None:
    frame = pd.DataFrame({"a": np.random.default_rng(0).normal(size=30)})
    frame.loc[3, "a"] = np.nan
    (alone,) = doubts(frame)
    assert "at least 2 series, got 'a' alone" in alone
    frame.loc[7, "a"] = 1e12
    _, outlier = doubts(frame.assign(b=np.arange(30.0)))[:1] * 2
    assert "row 8 (7), column 'a': 1e+12" in outlier
    assert "make it NaN" in outlier
    assert "at least 20 rows (time points) to find patterns in, got 19" in doubts(frame[:19])[0]

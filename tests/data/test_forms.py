"""Forms of tables from public questions: read right, doubted, or refused with the cure."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from lkm_gpflow.data.files import read_table
from lkm_gpflow.data.reading import Dialect
from lkm_gpflow.runtime.warn import TableNote


def days(*texts: str) -> list[pd.Timestamp]:
    return [pd.Timestamp(text) for text in texts]


MONTHS = days("2021-01-01", "2021-02-01", "2021-03-01", "2021-04-01")

READ: dict[str, tuple[str, list[pd.Timestamp]]] = {
    "titles above": ("Sales of 2021\nprinted today\n\nmonth,a\n{rows}", MONTHS),
    "a row of units": ("month,a\n,kg\n{rows}", MONTHS),
    "a total at the end": ("month,a\n{rows}Total,999\n", MONTHS),
    "a source at the end": ("month,a\n{rows}\nSource: the office,\n", MONTHS),
    "a subtotal between": ("month,a\n2021-01,1\n2021-02,2\nTotal,3\n2021-03,4\n2021-04,5\n",
        MONTHS),
    "separators at the end": ("month,a,\n2021-01,1,\n2021-02,2,\n2021-03,4,\n2021-04,5,\n", MONTHS),
    "the header again": ("month,a\n2021-01,1\n2021-02,2\nmonth,a\n2021-03,4\n2021-04,5\n", MONTHS),
    "a row twice": ("month,a\n2021-01,1\n2021-01,1\n2021-02,2\n2021-03,4\n2021-04,5\n", MONTHS),
    "times in the header": ("shop,2021-01,2021-02,2021-03,2021-04\na,1,2,4,5\nb,2,2,1,3\n", MONTHS),
    "time behind": ("a,month\n1.5,2021-01\n2.5,2021-02\n1.5,2021-03\n4.5,2021-04\n", MONTHS),
    "a text column": ("month,a,note\n2021-01,1,x\n2021-02,2,\n2021-03,4,y\n2021-04,5,\n", MONTHS),
    "tabs": ("month\ta\n2021-01\t1\n2021-02\t2\n2021-03\t4\n2021-04\t5\n", MONTHS),
    "semicolons and commas": ("m;a\n2021-01;1,5\n2021-02;2,5\n2021-03;4,0\n2021-04;5,5\n", MONTHS),
    "names of months": ("m,a\nJanuary 2021,1\nFebruary 2021,2\nMarch 2021,3\nApril 2021,5\n",
        MONTHS),
    "German months": ("m,a\nJan 2021,1\nFeb 2021,2\nMrz 2021,3\nApr 2021,5\n", MONTHS),
    "French months": ("m,a\njanv. 2021,1\nfévr. 2021,2\nmars 2021,3\navr. 2021,5\n", MONTHS),
    "year and name of month": ("year,month,a\n2021,Jan,1\n2021,Feb,2\n2021,Mar,3\n2021,Apr,5\n",
        MONTHS),
    "days of Excel": ("date,a\n44197,1\n44228,2\n44256,4\n44287,5\n", MONTHS),
    "years and quarters": ("year,quarter,a\n2020,3,1\n2020,4,2\n2021,1,3\n2021,2,5\n",
        days("2020-07-01", "2020-10-01", "2021-01-01", "2021-04-01")),
    "half-years": ("t,a\n2019H1,1\n2019H2,2\n2020H1,3\n2020H2,5\n",
        days("2019-01-01", "2019-07-01", "2020-01-01", "2020-07-01")),
    "Stata's quarters": ("t,a\n1960q1,1\n1960q2,2\n1960q3,3\n1960q4,5\n",
        days("1960-01-01", "1960-04-01", "1960-07-01", "1960-10-01")),
    "calendar weeks": ("t,a\nKW 01 2021,1\nKW 02 2021,2\nKW 03 2021,3\nKW 04 2021,5\n",
        days("2021-01-04", "2021-01-11", "2021-01-18", "2021-01-25")),
    "weeks as pandas writes them": (
        "t,a\n2021-01-04/2021-01-10,1\n2021-01-11/2021-01-17,2\n2021-01-18/2021-01-24,3\n",
        days("2021-01-04", "2021-01-11", "2021-01-18")),
    "date and hour": (
        "date,hour,a\n2021-01-01,22,1\n2021-01-01,23,2\n2021-01-02,0,3\n2021-01-02,1,5\n",
        days("2021-01-01 22:00", "2021-01-01 23:00", "2021-01-02", "2021-01-02 01:00")),
    "date and time of day": (
        "date,time,a\n1/13/2021,10:00 PM,1\n1/13/2021,11:00 PM,2\n1/14/2021,12:00 AM,3\n",
        days("2021-01-13 22:00", "2021-01-13 23:00", "2021-01-14")),
    "hours to 24": (
        "t,a\n2021-01-01 22:00,1\n2021-01-01 23:00,2\n2021-01-01 24:00,3\n2021-01-02 01:00,4\n",
        days("2021-01-01 22:00", "2021-01-01 23:00", "2021-01-02", "2021-01-02 01:00")),
    "weekday and date": (
        "t,a\nMon 04/01/2021,1\nTue 05/01/2021,2\nWed 06/01/2021,3\nWed 13/01/2021,3\n",
        days("2021-01-04", "2021-01-05", "2021-01-06", "2021-01-13")),
    "SAS": ("t,a\n01JAN2021:10:00:00,1\n01JAN2021:11:00:00,2\n01JAN2021:12:00:00,4\n",
        days("2021-01-01 10:00", "2021-01-01 11:00", "2021-01-01 12:00")),
    "milliseconds": ("t,a\n1609459200000,1\n1609462800000,2\n1609466400000,4\n",
        days("2021-01-01", "2021-01-01 01:00", "2021-01-01 02:00")),
    "blank rows at the end": ("month,a\n{rows}2021-05,\n2021-06,\n", MONTHS),
    "flags behind numbers": ("m,a\n2021-01,1.5 p\n2021-02,2\n2021-03,4\n2021-04,5\n", MONTHS),
    "day of the year": ("year,doy,a\n2020,365,1\n2020,366,2\n2021,1,3\n2021,2,3\n",
        days("2020-12-30", "2020-12-31", "2021-01-01", "2021-01-02")),
    "years in merged cells": ("year,month,a\n2020,Nov,1\n,Dec,2\n2021,Jan,4\n,Feb,5\n",
        days("2020-11-01", "2020-12-01", "2021-01-01", "2021-02-01")),
    "codes before names, times in the header": (
        "code,shop,2021-01,2021-02,2021-03,2021-04\n01,a,1,2,4,5\n02,b,2,2,1,3\nSum,,3,4,5,8\n",
        MONTHS),
    "groups of columns": (
        "month,a,,b,\n,old,new,old,new\n2021-01,1,2,3,4\n2021-02,2,2,3,4\n2021-03,4,2,3,1\n"
        "2021-04,5,2,3,1\n", MONTHS),
    "week ending": (
        "t,a\nweek ending 24/01/2021,1\nweek ending 31/01/2021,2\nweek ending 07/02/2021,4\n",
        days("2021-01-24", "2021-01-31", "2021-02-07")),
    "from day to day": (
        "t,a\n18/01/2021 - 24/01/2021,1\n25/01/2021 - 31/01/2021,2\n01/02/2021 - 07/02/2021,4\n",
        days("2021-01-18", "2021-01-25", "2021-02-01")),
    "accounts": (
        'month,a\n2021-01,"$(1,200.50)"\n2021-02,"$1,310.00"\n2021-03,$80.25\n2021-04,$5.00\n',
        MONTHS),
    "last century": ("m,a\nDec-98,1\nJan-99,2\nFeb-99,3\nMar-99,5\n",
        days("1998-12-01", "1999-01-01", "1999-02-01", "1999-03-01")),
}  # fmt: skip
ROWS = "2021-01,1\n2021-02,2\n2021-03,4\n2021-04,5\n"


@pytest.mark.parametrize("form", READ)
def test_forms_are_read(form: str, tmp_path: Path) -> None:
    text, times = READ[form]
    (tmp_path / "t.csv").write_text(text.replace("{rows}", ROWS), encoding="utf-8")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        read = read_table(tmp_path / "t.csv")
    assert list(read.index) == times
    assert read.columns[0] in ("a", "a old")
    assert read.notna().all().all()


DOUBTED = {
    "days and months first": (
        "t,a\n" + "".join(f"0{i}/0{i % 3 + 1}/2021,{i}\n" for i in (1, 3, 7, 9)),
        r"--dates %[dm]/%[dm]/%Y reads them, too"),
    "dashes": ("t,a\n2021-01,5\n2021-02,-\n2021-03,4\n2021-04,6\n", "if they stand for zero"),
    "flags": ("t,a\n2021-01,5 e\n2021-02,5\n2021-03,4\n2021-04,6\n", "a mark such as '5 e'"),
    "years until the next decade": ("t,a\nJan-29,1\nFeb-29,2\nMar-29,3\nApr-29,3\n",
        "if they are until 2029, write years with four digits"),
    "years and months in digits": ("t,a\n1811,1\n1812,2\n1901,3\n1902,3\n1903,3\n",
        r"--dates %y%m\)"),
    "digits": ("t,a\n202101,5\n202102,6\n202103,4\n202104,6\n", "if they are numbers"),
    "quarters or months": ("t,a\n2020/3,5\n2020/4,6\n2021/1,4\n2021/2,6\n2021/3,6\n",
        "--dates %Y/%q"),
}  # fmt: skip


@pytest.mark.parametrize("form", DOUBTED)
def test_forms_are_doubted(form: str, tmp_path: Path) -> None:
    text, doubt = DOUBTED[form]
    (tmp_path / "t.csv").write_text(text, encoding="utf-8")
    with pytest.warns(UserWarning, match=doubt) as caught:
        read_table(tmp_path / "t.csv")
    assert any(each.category is not TableNote for each in caught)


REFUSED = {
    "no rows": ("day;a\n", "expected rows of values below the header, got none"),
    "dates of two forms": ("t,a\n2024-01-01,1\n02/01/2024,2\n2024-01-10,3\n",
        "row 3, .* expected a date .*, got '02/01/2024'; correct"),
    "a limit": ("t,a\n1,<0.1\n2,3\n", "row 2, column 'a': .* it is a limit"),
    "a range": ("t,a\n1,3-4\n2,3\n", "row 2, column 'a': .* it is a range"),
    "a duration": ("t,a\n1,1:30\n2,3\n", "row 2, column 'a': .* it is a time"),
    "seasons": ("t,a\n2009/10,1\n2010/11,2\n2011/12,3\n", "row 2, .* write the first year alone"),
    "no year": ("t,a\n30 Nov,1\n1 Dec,2\n2 Dec,3\n", "row 3, .* write the year, too"),
    "a name twice": ("t,a,a\n1,2,3\n2,3,3\n", "row 1: expected columns of different names"),
    "two units": ("t,a\n1,5%\n2,3\n", "numbers of one unit"),
    "a time twice": ("t,a\n1,5\n1,3\n2,3\n", "row 3: expected different times, .* delete one"),
    "a word among dates": ("t,a\n2021-01,5\nsoon,3\n2021-03,3\n",
        "row 3, .* got 'soon'; correct it"),
    "no time": ("t,a\n2021-01,5\n,3\n2021-03,3\n", "row 3, .*nothing; write the time"),
    "two decimal marks": ('t,a\n1,"1,5"\n2,2.25\n', "with the decimal mark .*--decimal ,"),
}  # fmt: skip


@pytest.mark.parametrize("form", REFUSED)
def test_forms_are_refused_with_the_cure(form: str, tmp_path: Path) -> None:
    text, message = REFUSED[form]
    (tmp_path / "t.csv").write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=message):
        read_table(tmp_path / "t.csv")


def test_sheets_titles_and_totals_of_excel(tmp_path: Path) -> None:
    pytest.importorskip("openpyxl")
    rows = [[f"{i:02d}.2021", 10.0 * i + (i % 3), i] for i in range(1, 13)]
    table = [["Turnover", None, None], [None, None, None], ["month", "a", "b"], *rows]
    with pd.ExcelWriter(tmp_path / "t.xlsx") as book:
        pd.DataFrame([["read me"]]).to_excel(book, sheet_name="about", header=False, index=False)
        pd.DataFrame([*table, ["Sum", 780.0, 78]]).to_excel(
            book, sheet_name="data", header=False, index=False
        )
    with pytest.warns(TableNote, match="sheet 'data' is read; others are 'about'"):
        read = read_table(tmp_path / "t.xlsx")
    assert list(read.index) == list(pd.date_range("2021-01-01", periods=12, freq="MS"))
    assert list(read["b"]) == list(range(1, 13))
    with pytest.raises(ValueError, match="expected --sheet among 'about' and 'data', got 'x'"):
        read_table(tmp_path / "t.xlsx", Dialect(sheet="x"))


def test_years_and_months_are_one_series(tmp_path: Path) -> None:
    months = [f"{month:%b}" for month in pd.date_range("2021-01-01", periods=12, freq="MS")]
    table = pd.DataFrame(np.arange(36.0).reshape(3, 12), [2020, 2021, 2022], months)
    for frame in (table.assign(Year=table.sum(axis=1)), table.T):
        frame.to_csv(tmp_path / "t.csv", index_label="when")
        with pytest.warns(UserWarning, match="if they are twelve series of years, --dates number"):
            read = read_table(tmp_path / "t.csv")
        assert list(read["value"]) == list(range(36))
        assert list(read.index) == list(pd.date_range("2020-01-01", periods=36, freq="MS"))
        assert read_table(tmp_path / "t.csv", Dialect(dates="number")).shape[0] == 3


def test_the_sheet_with_numbers_is_meant_and_named(tmp_path: Path) -> None:
    pytest.importorskip("openpyxl")
    table = pd.DataFrame({"a": range(30), "b": 2.5}, pd.date_range("2021-01-01", periods=30))
    with pd.ExcelWriter(tmp_path / "t.xlsx") as book:
        pd.DataFrame({"rate": [1.0, 2.0, 3.0]}, [2019, 2020, 2021]).to_excel(
            book, sheet_name="rates"
        )
        table.astype(object).replace(7, "seven").to_excel(book, sheet_name="data")
    with pytest.raises(ValueError, match=r"sheet 'data', row 9, column 'a': .* got 'seven'"):
        read_table(tmp_path / "t.xlsx")
    assert len(read_table(tmp_path / "t.xlsx", Dialect(sheet="rates"))) == 3


def test_series_are_chosen(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("m,a,b,c\n2021-01,1,2,3\n2021-02,2,2,3\n")
    assert list(read_table(tmp_path / "t.csv", Dialect(series=("c", "a"))).columns) == ["a", "c"]
    assert list(read_table(tmp_path / "t.csv", Dialect(without=("b",))).columns) == ["a", "c"]
    with pytest.raises(ValueError, match="--without names 'd', but there are"):
        read_table(tmp_path / "t.csv", Dialect(without=("d",)))

"""Tables as people have them go through ``discover``: forecasts at the right times, or a doubt."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from lkm_gpflow import cli

pytestmark = pytest.mark.slow

QUICK = ("--restarts", "1", "--depth", "0", "--bases", "SE,PER", "--jobs", "1", "--horizon", "3")


def values(num: int, season: int = 12) -> pd.DataFrame:
    """Two series that share a cycle."""
    t, rng = np.arange(num), np.random.default_rng(num)
    wave = 8.0 * np.sin(2.0 * np.pi * t / season)
    noise = rng.normal(size=(num, 2))
    return pd.DataFrame({"a": 60.0 + wave + noise[:, 0], "b": 25.0 + wave + noise[:, 1]}).round(2)


def run(path: Path, *options: object) -> tuple[str, list[str]]:
    """What the command says, and the times of its forecast."""
    out = path.parent / "out"
    arguments = ["discover", path, "--out", out, *QUICK, *options]
    result = CliRunner().invoke(cli.main, [*map(str, arguments)])
    assert result.exit_code == 0, result.output
    forecast = pd.read_csv(out / "forecast.csv", dtype={"time": str})
    assert set(forecast["series"]) == {"a", "b"}
    return re.sub(r"\s+", " ", result.output), list(forecast["time"][:3])


def of_frequency(offset: object, first: str, form: str = "%Y-%m-%d", num: int = 48) -> list[str]:
    return list(pd.date_range(first, periods=num, freq=offset).strftime(form))


QUARTERS = pd.date_range("2003-01-01", periods=40, freq="QS")
TIMES: dict[str, tuple[list[str], tuple[str, ...], list[str], str]] = {
    "the last Thursday": (of_frequency(pd.offsets.LastWeekOfMonth(weekday=3), "2016-01-01"), (),
        ["2020-01-30", "2020-02-27", "2020-03-26"], ""),
    "the second Wednesday of a quarter": (of_frequency("WOM-2WED", "2008-01-01", num=142)[::3], (),
        ["2020-01-08", "2020-04-08", "2020-07-08"], ""),
    "a session on a Sunday": (sorted([*of_frequency("B", "2024-03-01", num=60), "2024-04-07"]), (),
        ["2024-05-24", "2024-05-27", "2024-05-28"],
        "1 row lies outside of the usual times, Monday to Friday: Sun 2024-04-07"),
    "months with points": (of_frequency("MS", "2011-01-01", "%Y.%m"), (),
        ["2015-01-01", "2015-02-01", "2015-03-01"], "--dates %Y.%m"),
    "weeks in digits": (of_frequency("W-MON", "2019-09-02", "%G%V"), (),
        ["2020-08-03", "2020-08-10", "2020-08-17"], "--dates %G%V"),
    "hours in digits": (of_frequency("h", "2021-03-30", "%Y%m%d%H"), (),
        ["2021-04-01 00:00:00", "2021-04-01 01:00:00", "2021-04-01 02:00:00"], "--dates %Y%m%d%H"),
    "days of Excel": ([str(day) for day in range(43_000, 43_048)], (),
        ["2017-11-09", "2017-11-10", "2017-11-11"], "--dates excel"),
    "quarters with slashes": ([f"{day.year}/{day.quarter}" for day in QUARTERS], (),
        ["2013-01-01", "2013-04-01", "2013-07-01"], "--dates %Y/%q"),
    "years of two digits": (of_frequency("MS", "1961-01-01", "%b-%y"), ("--dates", "%b-%y"),
        ["1965-01-01", "1965-02-01", "1965-03-01"], ""),
    "years before those of the next decade": (of_frequency("MS", "1931-01-01", "%b-%y"), (),
        ["1935-01-01", "1935-02-01", "1935-03-01"], "write years with four digits"),
}  # fmt: skip


@pytest.mark.parametrize("name", TIMES)
def test_forecasts_go_on_at_the_times_of_the_rows(name: str, tmp_path: Path) -> None:
    times, options, following, word = TIMES[name]
    values(len(times)).set_index(pd.Index(times, name="date")).to_csv(tmp_path / "t.csv")
    told, ahead = run(tmp_path / "t.csv", *options)
    assert ahead == following
    assert word in told
    assert word or "Warning" not in told, told


def test_values_that_are_none_are_named(tmp_path: Path) -> None:
    """Words for missing, a spike, thousands, series of few values, rows without a value."""
    frame = values(60, 7)
    frame.index = pd.date_range("2022-05-01", periods=60, name="day")
    frame.loc[frame.index[[3, 17, 18, 40]], "a"] = -9999.0
    frame.loc[frame.index[30], "b"] = 700.0
    frame.loc[pd.Timestamp("2022-06-30")] = np.nan
    frame.to_csv(tmp_path / "t.csv")
    told, ahead = run(tmp_path / "t.csv")
    assert "column 'a': -9999 stands 4 times, first at 2022-05-04" in told
    assert "column 'b': 700 at 2022-05-31" in told
    assert ahead[0] == "2022-06-30"
    told, _ = run(tmp_path / "t.csv", "--drop-suspicious", "--force")
    listed = pd.read_csv(tmp_path / "out" / "suspicious.csv")
    assert len(listed) == 5
    forecast = pd.read_csv(tmp_path / "out" / "forecast.csv").query("series == 'a'")
    assert forecast["lower"].min() > 20.0


def test_thousands_and_series_of_few_values_are_doubted(tmp_path: Path) -> None:
    frame = (30.0 * values(48)).round()
    frame["a"] -= 800.0
    texts = frame.map(lambda value: f"{value:,.0f}".replace(",", "."))
    texts.index = pd.Index(of_frequency("MS", "2014-01-01"), name="month")
    texts.loc[texts.index[5:], "b"] = ""
    texts.to_csv(tmp_path / "t.csv")
    told, _ = run(tmp_path / "t.csv")
    assert "if it is the decimal mark, --decimal ." in told
    assert "got fewer of 'b' (5)" in told
    forecast = pd.read_csv(tmp_path / "out" / "forecast.csv").query("series == 'a'")
    assert forecast["mean"].between(600.0, 1500.0).all()


@pytest.mark.parametrize("dates", [(), ("--dates", "%d.%m.%Y")], ids=["found", "told"])
def test_workbooks_of_people(dates: tuple[str, ...], tmp_path: Path) -> None:
    """Titles, row numbers, dates in texts, a total, and another sheet."""
    pytest.importorskip("openpyxl")
    frame = values(48).assign(date=of_frequency("MS", "2015-01-01", "%d.%m.%Y"))
    rows = [
        ["Turnover by shop"],
        [],
        ["", "date", "a", "b"],
        *([i, row.date, row.a, row.b] for i, row in enumerate(frame.itertuples())),
        ["", "Total", frame["a"].sum(), frame["b"].sum()],
    ]
    with pd.ExcelWriter(tmp_path / "t.xlsx") as book:
        for name, cells in {"Notes": [["year", "tax"], [2015, 0.2]], "Shops": rows}.items():
            pd.DataFrame(cells).to_excel(book, sheet_name=name, header=False, index=False)
    told, ahead = run(tmp_path / "t.xlsx", *dates)
    assert ahead == ["2019-01-01", "2019-02-01", "2019-03-01"]
    assert "sheet 'Shops' is read" in told
    rows[20][2] = "closed"
    pd.DataFrame(rows).to_excel(
        tmp_path / "bad.xlsx", sheet_name="Shops", header=False, index=False
    )
    result = CliRunner().invoke(cli.main, ["discover", str(tmp_path / "bad.xlsx")])
    assert result.exit_code == 2
    message = "sheet 'Shops', row 21, column 'a': expected a number, got 'closed'"
    assert message in re.sub(r"\s+", " ", result.output)

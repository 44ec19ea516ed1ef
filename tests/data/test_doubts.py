"""Doubtful tables: what is said of them, and of which nothing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import lkm_gpflow as lkm
from lkm_gpflow.data.doubts import doubts
from lkm_gpflow.data.files import read_table
from lkm_gpflow.data.reading import Dialect
from lkm_gpflow.data.suspicious import find


def test_sound_tables_raise_no_doubts() -> None:
    for name in ("demo", "toy"):
        assert doubts(lkm.datasets.load(name).frame) == []
    jump = pd.DataFrame({"a": np.repeat([0.0, 1.0], [29, 1]), "b": np.arange(30.0) ** 3})
    assert doubts(jump) == []


@pytest.mark.parametrize("form", ["%Y%m", "%Y%m%d", "%Y.%m", "%Y%m%d%H", "%Y%j"])
def test_dates_without_hyphens_are_a_doubt(form: str, tmp_path: Path) -> None:
    months = pd.date_range("2019-06-01", periods=30, freq="MS", name="day")
    values = np.random.default_rng(0).normal(size=(30, 2)).round(3)
    frame = pd.DataFrame(values, months.strftime(form), ["b", "a"])
    frame.to_csv(tmp_path / "t.csv", index_label="day")
    with pytest.warns(UserWarning, match=f"times such as {frame.index[0]} are read as dates"):
        read = read_table(tmp_path / "t.csv")
    assert list(read.index) == list(months)
    dated = read_table(tmp_path / "t.csv", Dialect(dates=form))
    assert list(dated.index) == list(months)
    plain = read_table(tmp_path / "t.csv", Dialect(dates="number"))
    (doubt, *_) = doubts(plain)
    assert f"{float(frame.index[0]):.15g} are read as numbers: if they are dates" in doubt
    assert f"--dates {form}" in doubt
    plain.index = pd.Index(range(201995, 202025))
    assert doubts(plain) == []


@pytest.mark.parametrize(("unit", "name"), [("s", "seconds"), ("ms", "milliseconds")])
def test_times_of_a_computer_are_a_doubt(unit: str, name: str) -> None:
    times = pd.date_range("2024-01-01", periods=30, freq="h").as_unit(unit).asi8
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(30, 2)), times, ["a", "b"])
    (doubt,) = doubts(frame)
    assert f"if they are {name} since 1970, frame.index = pd.to_datetime(frame.index" in doubt
    frame.index = pd.to_datetime(frame.index, unit=unit)  # as it says
    assert doubts(frame) == []


@pytest.mark.parametrize(
    ("first", "frequency", "num_doubts"),
    [("2024-10-20", "h", 1), ("2024-11-20", "h", 0), ("2024-10-20", "D", 0)],
)
def test_a_change_of_the_clock_is_a_doubt(first: str, frequency: str, num_doubts: int) -> None:
    times = pd.date_range(first, periods=240, freq=frequency, tz="Europe/Berlin")
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(240, 2)), times, ["a", "b"])
    said = doubts(frame)
    assert len(said) == num_doubts
    assert all("the clock changes on 2024-10-27" in each for each in said)
    assert doubts(frame.tz_localize(None)) == []


def test_doubtful_tables() -> None:
    frame = pd.DataFrame({"a": np.random.default_rng(0).normal(size=30)})
    frame.loc[3, "a"] = np.nan
    (alone,) = doubts(frame)
    assert "at least 2 series, got 'a' alone" in alone
    frame.loc[7, "a"] = 1e12
    (outlier,) = doubts(frame.assign(b=np.arange(30.0)), find(frame))
    assert "column 'a': 1e+12 at 7" in outlier
    assert "--drop-suspicious" in outlier
    few = frame.assign(b=np.arange(30.0), c=np.where(np.arange(30) % 9 == 0, np.arange(30), np.nan))
    assert "fewer of 'c' (4)" in doubts(few)[0]
    assert "at least 20 rows (time points) to find patterns in, got 19" in doubts(frame[:19])[0]

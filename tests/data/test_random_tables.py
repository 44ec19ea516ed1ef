"""Random tables, written as people write them, are read back right, or a doubt names the cause."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from lkm_gpflow.data.files import read_table
from lkm_gpflow.runtime.warn import TableNote

GRIDS = (
    "D", "2D", "W-SUN", "W-FRI", "2W-MON", "B", "MS", "ME", "BMS", "BME", "2MS", "QS", "QE", "BQE",
    "QS-FEB", "YS", "YE", "YE-JUN", "SMS", "SME", "WOM-1MON", "WOM-2TUE", "WOM-3FRI", "WOM-4THU",
    "3D", "W-WED", "4W-SAT", "6MS",
)  # fmt: skip
LAST_WEEKDAYS = tuple(pd.offsets.LastWeekOfMonth(weekday=day) for day in (0, 4))
HOURS = ("h", "2h", "3h", "6h", "12h", "30min", "15min", "10min", "min", "s")
DATES = (
    "%Y-%m-%d", "%d/%m/%Y", "%m/%d/%Y", "%d.%m.%Y", "%Y/%m/%d", "%d-%b-%Y", "%d %B %Y", "%B %d, %Y",
    "%Y%m%d", "%d.%m.%y", "%m/%d/%y", "%d%b%Y", "%A, %d %B %Y", "%Y.%m.%d", "%Y-%j",
)  # fmt: skip
NUMBERS = ("plain", "comma", "thousands", "german", "spaces", "percent", "dollars", "brackets")


def written(value: float, style: str) -> str:
    if np.isnan(value):
        return ""
    text = f"{value:,.2f}"
    if style == "plain":
        return f"{value:.2f}"
    if style == "comma":
        return f"{value:.2f}".replace(".", ",")
    if style == "german":
        return text.replace(",", "_").replace(".", ",").replace("_", ".")
    if style == "spaces":
        return text.replace(",", " ")
    if style == "percent":
        return f"{value:.2f}%"
    if style == "dollars":
        return f"${text}" if value >= 0 else f"-${text[1:]}"
    if style == "brackets":
        return text if value >= 0 else f"({text[1:]})"
    return text


def drawn(rng: np.random.Generator) -> tuple[pd.DataFrame, str, str, str]:
    """Return a table, a format that tells its times, a style of numbers, a missing word."""
    with_hours = rng.uniform() < 0.25
    every = HOURS if with_hours else (*GRIDS, *LAST_WEEKDAYS)
    frequency = every[rng.integers(len(every))]
    start = pd.Timestamp("1995-01-01") + pd.Timedelta(days=int(rng.integers(0, 9000)))
    index = pd.date_range(start, periods=int(rng.integers(24, 80)), freq=frequency)
    kept = rng.uniform(size=len(index)) >= rng.choice([0.0, 0.0, 0.05])
    kept[[0, -1]] = True
    index = index[kept]
    scale = 10.0 ** rng.uniform(0.5, 4.0)
    level = rng.choice([0.0, 3.0]) * scale
    values = (level + scale * rng.normal(size=(len(index), 2))).round(2)
    values[rng.uniform(size=values.shape) < 0.03] = np.nan
    values[0] = [1234.56, -7.25]
    # Two digits of a year that is far ahead stand for the last century.
    dates = [form for form in DATES if "%y" not in form or index[-1].year < 2026]
    form = str(rng.choice(dates)) + (" %H:%M:%S" if with_hours else "")
    style, word = str(rng.choice(NUMBERS)), str(rng.choice(["", "NA", "n.a.", "."]))
    return pd.DataFrame(values, index, ["a", "b"]), form, style, word


@pytest.mark.parametrize("block", range(10))
def test_random_tables_are_read_back(block: int, tmp_path: Path) -> None:
    """Times and values are right, or a doubt (no note) names the dates as what may be wrong."""
    doubted = 0
    for seed in range(50 * block, 50 * block + 50):
        frame, form, style, word = drawn(np.random.default_rng(seed))
        lines = ["when;a;b"] + [
            ";".join([time.strftime(form), *(written(v, style) or word for v in row)])
            for time, row in zip(frame.index, frame.to_numpy(), strict=True)
        ]
        path = tmp_path / f"{seed}.csv"
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            read = read_table(path)
        doubts = [str(each.message) for each in caught if each.category is not TableNote]
        about = f"seed {seed}, {form}, {style}, {lines[1:4]}, {doubts}"
        same_times = list(read.index) == list(frame.dropna(how="all").index) or (
            list(read.index) == list(frame.index)
        )
        dates_doubted = any("--dates" in each for each in doubts)
        assert same_times or dates_doubted, about
        doubted += not same_times
        if same_times:
            np.testing.assert_allclose(read, frame.loc[read.index], err_msg=about)
    assert doubted <= 2

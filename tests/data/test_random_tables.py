"""Random tables, written as people write them, are read back right, or a doubt names the cause."""

from __future__ import annotations

import csv
import re
import warnings
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest

from lkm_gpflow.data.date_formats import parse_times
from lkm_gpflow.data.doubts import doubts
from lkm_gpflow.data.files import read_table
from lkm_gpflow.data.suspicious import find
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


class Drawn(NamedTuple):
    """A table, a format that tells its times, how cells are written, and what stands for missing.

    `places` are the rows of series a with the word `sentinel`; rows without values end the file.
    """

    frame: pd.DataFrame
    form: str
    style: str
    blank: str
    separator: str
    sentinel: float
    places: list[int]


def written(value: float, style: str) -> str:
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


def drawn(rng: np.random.Generator) -> Drawn:
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
    places = rng.permutation(np.arange(1, len(index)))[: rng.choice([0, 0, 2, 4])]
    nines = 10.0 ** np.ceil(np.log10(4.0 * np.nanmax(np.abs(values)))) - 1.0
    sentinel = float(rng.choice([-nines, nines]))
    values[places, 0] = sentinel
    values[len(index) - rng.choice([0, 0, 3]) :] = np.nan
    # Two digits of a year that is far ahead stand for the last century.
    dates = [form for form in DATES if "%y" not in form or index[-1].year < 2026]
    form = str(rng.choice(dates)) + (" %H:%M:%S" if with_hours else "")
    frame = pd.DataFrame(values, index, ["a", "b"])
    return Drawn(
        frame,
        form,
        str(rng.choice(NUMBERS)),
        str(rng.choice(["", "NA", "n.a.", "."])),
        str(rng.choice([";", "\t", ","])),
        sentinel,
        sorted(np.flatnonzero(values[:, 0] == sentinel).tolist()),
    )


def doubt_of_times(said: list[str], texts: list[str], index: pd.DatetimeIndex) -> bool:
    """Whether a doubt names a format that reads the times as they were."""
    forms = re.findall(r"--dates ([^;()]+?) reads them, too", " ".join(said))
    return any(parse_times(texts, form).equals(index.as_unit("ns")) for form in forms)


@pytest.mark.parametrize("block", range(5))
def test_random_tables_are_read_back(block: int, tmp_path: Path) -> None:
    """Times, values and sentinels are right, or a doubt (no note) names the other reading."""
    doubted = 0
    for seed in range(50 * block, 50 * block + 50):
        table = drawn(np.random.default_rng(seed))
        texts = list(table.frame.index.strftime(table.form))
        path = tmp_path / f"{seed}.csv"
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, delimiter=table.separator)
            writer.writerow(["when", "a", "b"])
            for text, row in zip(texts, table.frame.to_numpy(), strict=True):
                cells = [table.blank if np.isnan(v) else written(v, table.style) for v in row]
                writer.writerow([text, *cells])
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            read = read_table(path)
        said = [str(each.message) for each in caught if each.category is not TableNote]
        about = f"seed {seed}, {table[1:]}, {texts[:3]}, {said}"
        meant = table.frame.loc[: table.frame.dropna(how="all").index[-1]]
        if list(read.index) != list(meant.index):
            assert doubt_of_times(said, texts, table.frame.index), about
            doubted += 1
            continue
        np.testing.assert_allclose(read, meant, err_msg=about)
        found = find(read)
        words = found[found["kind"] == "sentinel"]
        assert list(words["time"]) == list(read.index[table.places]), about
        if table.places:
            count = len(table.places)
            named = f"column 'a': {table.sentinel:g} stands {count} time"
            assert any(named in each for each in doubts(read, found)), about
    assert doubted <= 2

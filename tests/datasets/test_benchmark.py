"""The benchmark's tables: checksums, recipes from raw files, and what is refused."""

from __future__ import annotations

import csv
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from lkm_gpflow import datasets
from lkm_gpflow.datasets import registry
from lkm_gpflow.datasets.benchmark import absent_files, benchmark_tables, to_text
from lkm_gpflow.datasets.recipes import RECIPES
from lkm_gpflow.datasets.registry import ChecksumError, DownloadError


@pytest.fixture(scope="session")
def bench(tables: Path) -> Path:
    folder = tables / "bench"
    if not (folder / "bench.csv").exists():
        pytest.skip(f"needs data: {folder} does not hold the benchmark's tables")
    return folder


def of_raw_copies(bench: Path) -> list[str]:
    """Names of the tables whose raw files are all there, and that have a recipe."""
    there = {path.name for path in (bench / "raw").iterdir()}
    return [
        name
        for name, table in benchmark_tables().items()
        if name in RECIPES and {file.name for file in table.files} <= there
    ]


def test_registry_says_what_the_reference_says(bench: Path) -> None:
    with (bench / "bench.csv").open() as file:
        expected = {row["name"]: row for row in csv.DictReader(file)}
    assert list(benchmark_tables()) == list(expected)
    for name, table in benchmark_tables().items():
        row = expected[name]
        found = datasets.load(f"bench/{name}")
        assert found.frame.shape == (int(row["rows"]), int(row["series"]))
        assert int(found.frame.isna().to_numpy().sum()) == int(row["gaps"])
        assert (table.domain, table.horizon) == (row["domain"], int(row["horizon"]))
        assert table.season == found.season == int(row["season"] or 1)
        assert len(found.split().test) == found.test_size == table.horizon


def test_values_are_those_of_the_file(bench: Path) -> None:
    expected = pd.read_csv(bench / "solent_tide.csv", index_col="date", parse_dates=True)
    found = datasets.load("bench/solent_tide")
    np.testing.assert_array_equal(found.frame.to_numpy(), expected.to_numpy())
    assert found.frame.index.freqstr == "30min"
    assert found.name in datasets.names()
    assert datasets.fetch("bench/solent_tide") == [bench / "solent_tide.csv"]


def test_recipes_give_the_tables_to_the_last_digit(
    bench: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From nothing but raw files: the SHA-256 of what a recipe makes is checked when it loads."""
    expected = {name: datasets.load(f"bench/{name}").frame for name in of_raw_copies(bench)}
    assert len(expected) == 12
    monkeypatch.setenv(registry.FOLDER_VARIABLE, str(tmp_path / "raw"))
    (tmp_path / "raw").mkdir()
    for name, frame in expected.items():
        for file in benchmark_tables()[name].files:
            shutil.copy(bench / "raw" / file.name, tmp_path / "raw" / file.name)
        pd.testing.assert_frame_equal(datasets.load(f"bench/{name}").frame, frame)


def test_a_changed_table_and_a_changed_raw_file_are_refused(
    bench: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(registry.FOLDER_VARIABLE, str(tmp_path / "raw"))
    (tmp_path / "bench" / "raw").mkdir(parents=True)
    table = tmp_path / "bench" / "great_lakes.csv"
    table.write_text((bench / "great_lakes.csv").read_text().replace("183.4,", "183.5,", 1))
    for get in (datasets.load, datasets.fetch):
        with pytest.raises(ChecksumError, match="not the table of the benchmark; delete it"):
            get("bench/great_lakes")
    without = table.with_name("retail_nsw.csv")
    without.write_text("date,a\n")
    with pytest.raises(ChecksumError, match="not the table of the benchmark; put the right one"):
        datasets.fetch("bench/retail_nsw")
    table.unlink()
    (file,) = benchmark_tables()["great_lakes"].files
    text = (bench / "raw" / file.name).read_text()
    (tmp_path / "bench" / "raw" / file.name).write_text(text.replace("jan", "feb", 1))
    with pytest.raises(ChecksumError, match="is not the file"):
        datasets.load("bench/great_lakes")


def test_what_is_absent_and_has_no_recipe_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(registry.FOLDER_VARIABLE, str(tmp_path))
    assert absent_files("great_lakes") == [
        "timothypholmes+great-lakes-water-level+great_lakes_mean_water_levels.csv"
    ]
    without = next(name for name in benchmark_tables() if name not in RECIPES)
    assert absent_files(without) == [f"{without}.csv"]
    for file in benchmark_tables()[without].files:
        (tmp_path / file.name).write_text("there, but nothing is made of it")
    for get in (datasets.load, datasets.fetch):
        with pytest.raises(DownloadError, match=f"put {without}.csv there"):
            get(f"bench/{without}")


def test_addresses_name_a_commit_and_every_table_its_terms() -> None:
    for table in benchmark_tables().values():
        assert table.files
        assert table.terms
        for file in table.files:
            assert len(file.sha256) == 64
            commit = file.url.split("/")[5]
            assert len(commit) == 40
            assert " " not in file.url


def test_text_of_a_table() -> None:
    index = pd.DatetimeIndex(["2020-01-01 00:00", "2020-01-01 12:30"])
    frame = pd.DataFrame({"a": [1, 2], "b": [np.nan, 1.0 / 3.0]}, index=index)
    expected = "date,a,b\n2020-01-01 00:00:00,1,\n2020-01-01 12:30:00,2,0.3333333333\n"
    assert to_text(frame).decode() == expected

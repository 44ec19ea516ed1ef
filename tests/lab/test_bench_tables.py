"""The benchmark's tables: checksums, recipes from raw files, and what is refused."""

from __future__ import annotations

import csv
import shutil
from pathlib import Path

import pandas as pd
import pytest

from lkm_gpflow.datasets import downloads
from lkm_gpflow.datasets.downloads import ChecksumError
from paper_experiments.lab.bench_tables import benchmark_tables, load_table
from paper_experiments.lab.recipes import RECIPES


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
        frame = load_table(name)
        assert frame.shape == (int(row["rows"]), int(row["series"]))
        assert int(frame.isna().to_numpy().sum()) == int(row["gaps"])
        assert (table.domain, table.horizon) == (row["domain"], int(row["horizon"]))
        assert table.season == int(row["season"] or 1)


def test_recipes_give_the_tables_to_the_last_digit(
    bench: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From nothing but raw files: the SHA-256 of what a recipe makes is checked when it loads."""
    expected = {name: load_table(name) for name in of_raw_copies(bench)}
    assert len(expected) == 12
    monkeypatch.setenv(downloads.FOLDER_VARIABLE, str(tmp_path / "raw"))
    (tmp_path / "raw").mkdir()
    for name, frame in expected.items():
        for file in benchmark_tables()[name].files:
            shutil.copy(bench / "raw" / file.name, tmp_path / "raw" / file.name)
        pd.testing.assert_frame_equal(load_table(name), frame)


def test_a_changed_table_and_a_changed_raw_file_are_refused(
    bench: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(downloads.FOLDER_VARIABLE, str(tmp_path / "raw"))
    (tmp_path / "bench" / "raw").mkdir(parents=True)
    table = tmp_path / "bench" / "great_lakes.csv"
    table.write_text((bench / "great_lakes.csv").read_text().replace("183.4,", "183.5,", 1))
    with pytest.raises(ChecksumError, match="not the table of the benchmark"):
        load_table("great_lakes")
    table.unlink()
    (file,) = benchmark_tables()["great_lakes"].files
    text = (bench / "raw" / file.name).read_text()
    (tmp_path / "bench" / "raw" / file.name).write_text(text.replace("jan", "feb", 1))
    with pytest.raises(ChecksumError, match="is not the file"):
        load_table("great_lakes")

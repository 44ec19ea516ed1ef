"""``lkm-gpflow data``: what it says of files that are absent, damaged, or no files."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from lkm_gpflow import cli
from lkm_gpflow.datasets import downloads


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "raw"
    path.mkdir()
    monkeypatch.setenv(downloads.FOLDER_VARIABLE, str(path))
    return path


def data(*names: str) -> tuple[int, str]:
    """Exit code of the command, and what it says, on one line."""
    result = CliRunner().invoke(cli.main, ["data", *names])
    return result.exit_code, " ".join(result.output.split())


def test_the_list_says_what_can_be_fetched_and_what_is_damaged(folder: Path) -> None:
    (folder / "stock-9.mat").write_bytes(b"something else")
    code, said = data()
    assert code == 0
    assert "gonu to be fetched: gonu_train.mat, gonu_test.mat" in said
    assert "stocks there, but damaged: `lkm-gpflow data stocks` says which file" in said


def test_a_folder_in_the_place_of_a_file_is_named(folder: Path) -> None:
    path = folder / "stock-9.mat"
    path.mkdir()
    expected = f"Error: expected the file {path.name}, got a folder of that name: {path}"
    assert data("stocks") == (1, expected)


def test_a_data_folder_that_is_a_file_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv(downloads.FOLDER_VARIABLE, str(tmp_path / "file"))
    code, said = data("stocks")
    assert code == 1
    assert f"the folder {tmp_path / 'file'} cannot be written to (" in said
    assert "network" not in said

"""A small table in a file, for commands."""

from __future__ import annotations

from pathlib import Path

import pytest
from small import small_table, with_one_picture


@pytest.fixture
def csv(tmp_path: Path) -> Path:
    """Return the path of a table of two series."""
    path = tmp_path / "t.csv"
    small_table(num_times=20)[["a", "b"]].to_csv(path)
    return path


@pytest.fixture
def one_picture(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a folder of results have one empty picture, for tests that look at other files."""
    with_one_picture(monkeypatch.setattr)

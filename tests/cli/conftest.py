"""A small table in a file, for commands."""

from __future__ import annotations

from pathlib import Path

import pytest
from small import small_table


@pytest.fixture
def csv(tmp_path: Path) -> Path:
    """Return the path of a table of two series."""
    path = tmp_path / "t.csv"
    small_table(num_times=20)[["a", "b"]].to_csv(path)
    return path

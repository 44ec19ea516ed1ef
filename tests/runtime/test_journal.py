"""Journals: what is refused.  Faults of disks and half files: `tests/cli/test_faults.py`."""

from __future__ import annotations

from pathlib import Path

import pytest

from lkm_gpflow.runtime.journal import Journal


def test_a_file_that_is_no_text_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "picture.png"
    path.write_bytes(b"\x89PNG\xff\xfe\x00")
    with pytest.raises(ValueError, match=rf"{path}: expected a ledger of the format"):
        Journal(path, "ledger", {})
    assert path.read_bytes() == b"\x89PNG\xff\xfe\x00"


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ('{"format": "lkm_gpflow ledger 1"}', "expected a ledger of the format"),
        ('{"format": "lkm_gpflow ledger 1", "header": null}', "expected a ledger of the format"),
        ('{"format": "lkm_gpflow ledger 1", "header": {}}\n[1, 2]', r"line 2: .* cannot read '\[1"),
    ],
)
def test_damaged_lines_that_are_json_are_refused_by_name(
    lines: str, message: str, tmp_path: Path
) -> None:
    path = tmp_path / "ledger.jsonl"
    path.write_text(lines + "\n")
    with pytest.raises(ValueError, match=f"{path}.*{message}"):
        Journal(path, "ledger", {})

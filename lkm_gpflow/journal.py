"""A journal: results on disk as they happen, one JSON object a line.

The first line says of what kind the journal is and what its results depend on.  A line that was
cut off when the process died is dropped when the journal is read again.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any


class Journal:
    """A file to which records are added, or nothing where there is no path.

    Parameters
    ----------
    path
        The file; one that is there already must be of the same kind and header, and is gone on
        with.
    kind
        What the journal holds, such as "ledger".
    header
        What the records depend on, in JSON's types.

    Attributes
    ----------
    records
        What was there when the journal was opened.

    Raises
    ------
    ValueError
        If the file is something else, or of another header: which keys differ.
    """

    def __init__(self, path: Path | None, kind: str, header: Mapping[str, Any]) -> None:
        self._path = path
        self._format = f"lkm_gpflow {kind} 1"
        self.records: list[dict[str, Any]] = []
        if path is None:
            return
        if path.exists() and path.stat().st_size > 0:
            self.records = self._read(path, kind, header)
        else:
            self.append({"format": self._format, "header": header})

    def append(self, record: Mapping[str, Any]) -> None:
        """Write a record, and wait until it is on the disk."""
        if self._path is None:
            return
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")
            file.flush()
            os.fsync(file.fileno())

    def _read(self, path: Path, kind: str, header: Mapping[str, Any]) -> list[dict[str, Any]]:
        whole, _, torn = path.read_text(encoding="utf-8").rpartition("\n")
        records = []
        for number, line in enumerate(whole.splitlines(), start=1):
            try:
                records.append(json.loads(line))
            except ValueError as error:
                raise ValueError(
                    f"{path}, line {number}: expected a {kind} of the format {self._format!r}, "
                    f"cannot read {line[:40]!r}"
                ) from error
        first = records[0] if records else None
        if not isinstance(first, dict) or first.get("format") != self._format:
            raise ValueError(f"{path}: expected a {kind} of the format {self._format!r}")
        there, wanted = first["header"], json.loads(json.dumps(header))
        differing = [key for key in wanted if there.get(key) != wanted[key]]
        if differing or set(there) != set(wanted):
            raise ValueError(
                f"{path} is a {kind} of other settings or data, it differs in "
                f"{', '.join(differing) or 'its settings'}: choose another file or delete it"
            )
        if torn:
            # Or the next line would be appended to half a line.
            with path.open("r+", encoding="utf-8") as file:
                file.truncate(len((whole + "\n").encode()))
        return records[1:]

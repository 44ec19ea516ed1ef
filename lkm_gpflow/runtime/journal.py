"""A journal: results on disk as they happen, one JSON object a line.

The first line says of what kind the journal is and what its results depend on.  A line that was
cut off when the process died or the disk was full is dropped when the journal is read again.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

_LONGEST_SHOWN = 60  # of what differs in two headers, in characters: longer values are not quoted


class Journal:
    """A file to which records are added, or nothing where there is no path.

    An existing file is continued; its records are in `records`.  It must be of the same kind (such
    as "ledger") and header, which says what the records depend on, in JSON's types.

    Raises
    ------
    ValueError
        If the file is something else, or of another header: which keys differ.
    OSError
        If the file cannot be read or written: before anything is computed for it.
    """

    def __init__(self, path: Path | None, kind: str, header: Mapping[str, Any]) -> None:
        self._path, self._kind = path, kind
        self._format = f"lkm_gpflow {kind} 1"
        self.records: list[dict[str, Any]] = []
        if path is None:
            return
        first = {"format": self._format, "header": header}
        try:
            with path.open("a"):  # what can be read may still not be written
                pass
            there = path.read_text(encoding="utf-8")
            if (json.dumps(first) + "\n").startswith(there) and not there.endswith("\n"):
                # Nothing, or whoever began it died within the first line.
                os.truncate(path, 0)
        except OSError as error:
            raise OSError(
                f"expected a {kind} that can be read and written, got {path} "
                f"({error.strerror}): choose another file, or repair this one"
            ) from error
        except UnicodeDecodeError as error:
            raise ValueError(f"{path}: expected a {kind} of the format {self._format!r}") from error
        if path.stat().st_size > 0:
            self.records = self._read(path, header, there)
        else:
            self.append(first)

    def append(self, record: Mapping[str, Any]) -> None:
        """Write a record, and wait until it is on the disk; an OSError says what is kept."""
        if self._path is None:
            return
        try:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(record) + "\n")
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise OSError(
                f"cannot write to the {self._kind} {self._path} ({error.strerror}); what it holds "
                "is kept: free some space or repair the file, then the same call continues from it"
            ) from error

    def damaged(self, number: int, line: str) -> ValueError:
        """Return what to raise about a line that cannot be read."""
        return ValueError(
            f"{self._path}, line {number}: expected a {self._kind} of the format "
            f"{self._format!r}, cannot read {line[:40]!r}"
        )

    def _read(self, path: Path, header: Mapping[str, Any], there: str) -> list[dict[str, Any]]:
        whole, _, torn = there.rpartition("\n")
        records = []
        for number, line in enumerate(whole.splitlines(), start=1):
            try:
                record = json.loads(line)
            except ValueError:
                record = None
            if not isinstance(record, dict):
                raise self.damaged(number, line)
            records.append(record)
        first = records[0] if records else {}
        own, wanted = first.get("header"), json.loads(json.dumps(header))
        if first.get("format") != self._format or not isinstance(own, dict):
            raise ValueError(f"{path}: expected a {self._kind} of the format {self._format!r}")
        if own != wanted:
            raise ValueError(
                f"{path} is a {self._kind} of other settings or data, it differs in "
                f"{'; '.join(_differences(own, wanted))}: choose another file or delete it"
            )
        if torn:
            # Or the next line would be appended to half a line.
            with path.open("r+", encoding="utf-8") as file:
                file.truncate(len((whole + "\n").encode()))
        return records[1:]


def _differences(own: Mapping[str, Any], wanted: Mapping[str, Any]) -> Iterator[str]:
    """Say in which entries two headers differ, and what each has, at any depth."""
    for key in sorted({*own, *wanted}):
        there, here = own.get(key), wanted.get(key)
        if isinstance(there, dict) and isinstance(here, dict):
            yield from (f"{key}: {difference}" for difference in _differences(there, here))
        elif there != here:
            shown = [str(value) if value is not None else "nothing" for value in (there, here)]
            yield (
                key
                if max(map(len, shown)) > _LONGEST_SHOWN
                else (f"{key} ({shown[0]} there, {shown[1]} here)")
            )

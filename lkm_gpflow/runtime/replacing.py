"""Files that are there as a whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

UNFINISHED = "unfinished-"
"""Begins the names of files that are being written; one that is left over was cut off."""


@contextmanager
def replacing(path: Path, work: Path | None = None) -> Iterator[Path]:
    """Write a file that is there as a whole or not at all, even if the machine stops.

    Yields an unfinished file of the same suffix to write to, in the folder `work` (of the same file
    system) or that of `path`; it becomes `path` at the end of the context, and is deleted if there
    is an error.  What is raised says if there is no such folder, or if the file is one.
    """
    if not path.parent.is_dir():
        raise FileNotFoundError(
            f"expected a folder that exists, got {path.parent} for the file {path.name}: make it "
            "first (Path.mkdir), or choose another one"
        )
    if path.is_dir():
        raise IsADirectoryError(f"expected the name of a file, got the folder {path}")
    descriptor, name = tempfile.mkstemp(path.suffix, UNFINISHED, work or path.parent)
    os.close(descriptor)
    unfinished = Path(name)
    try:
        yield unfinished
        with unfinished.open("rb+") as file:
            os.fsync(file.fileno())
        unfinished.chmod(0o644)  # a temporary file is its owner's alone
        unfinished.replace(path)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise
    _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    """Without it the new name may be lost with the machine's power (POSIX)."""
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

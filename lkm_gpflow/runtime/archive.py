"""The file of a discovery: JSON and npz in one zip, data only.

Loading never runs code from the file.  ``discovery.json`` holds settings and all fits,
``data.npz`` the table.  What they mean is the matter of `storage`.
"""

from __future__ import annotations

import io
import json
import struct
import zipfile
import zlib
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .files import replacing

FORMAT = "lkm_gpflow discovery"
VERSION = 2
LOG_VERSION = 3
"""Of files of which series are modelled by their logarithms: earlier programs would misread them.
"""


class Archive(NamedTuple):
    """What such a file holds.

    Parameters
    ----------
    document
        Settings and fits, as JSON has them.
    times
        Times as numbers, [D].
    values
        The table, [D, N].
    """

    document: dict[str, Any]
    times: np.ndarray[Any, Any]
    values: np.ndarray[Any, Any]


def write(path: Path, archive: Archive) -> None:
    """Write a file whole or not at all."""
    arrays = io.BytesIO()
    np.savez_compressed(arrays, index=archive.times, values=archive.values)
    is_log = "log" in archive.document["transforms"]
    version = LOG_VERSION if is_log else VERSION
    document = {"format": FORMAT, "version": version, **archive.document}
    with (
        replacing(path) as unfinished,
        zipfile.ZipFile(unfinished, "w", zipfile.ZIP_DEFLATED) as file,
    ):
        file.writestr("discovery.json", json.dumps(document))
        file.writestr("data.npz", arrays.getvalue())


def read(path: Path) -> Archive:
    """Read a file that `write` wrote.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If the file is damaged, or not a discovery, or of another version.
    """
    try:
        with zipfile.ZipFile(path) as file:
            document = json.loads(file.read("discovery.json"))
            with np.load(io.BytesIO(file.read("data.npz")), allow_pickle=False) as arrays:
                times, values = arrays["index"], arrays["values"]
    except FileNotFoundError:
        raise
    except (
        zipfile.BadZipFile, zlib.error, struct.error, KeyError, ValueError, OSError, EOFError,
        RuntimeError,  # encrypted, or compressed in another way
    ) as error:  # fmt: skip
        raise ValueError(
            f"{path}: expected a file that Discovery.save wrote, but it is damaged or another "
            f"sort of file ({error})"
        ) from error
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise ValueError(f"{path}: expected the format {FORMAT!r}")
    if document.get("version") not in (VERSION, LOG_VERSION):
        raise ValueError(
            f"{path}: expected version {VERSION} or {LOG_VERSION} of the format, got "
            f"{document.get('version')!r}"
        )
    return Archive(document, times, values)

"""A table and what is known of it in one file: JSON and npz in a zip, data only.

Loading never runs code from the file.  Names of series and times keep their kind, times their zone.
"""

from __future__ import annotations

import io
import json
import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta, timezone, tzinfo
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from .replacing import replacing

FORMAT = "lkm_gpflow archive"
VERSION = 1

Label: TypeAlias = "str | float | list[Label] | None"
"""The name of a series or an index as JSON has it; a tuple becomes a list."""


def write_archive(
    path: str | Path, kind: str, frame: pd.DataFrame, document: Mapping[str, Any], *, force: bool
) -> None:
    """Write a table, and a document in JSON's types, whole or not at all.

    `kind` is the class of the object that the document describes; `read_archive` compares it.  What
    is raised says if the file exists (without `force`) or is a folder, or if a series has a name,
    or the times a time zone, that a file cannot keep.
    """
    path = Path(path)
    if path.is_dir():
        raise IsADirectoryError(f"expected the name of a file, got the folder {path}")
    if path.exists() and not force:
        raise FileExistsError(f"{path} exists: give force=True (--force) to overwrite it")
    about, times = _index_to_json(frame.index)
    whole = {
        "format": FORMAT,
        "version": VERSION,
        "kind": kind,
        "series": [label_to_json(name) for name in frame.columns],
        "columns": label_to_json(frame.columns.name, 'rename_axis(columns="series")'),
        "index": about,
        **document,
    }
    arrays = io.BytesIO()
    np.savez_compressed(arrays, index=times, values=frame.to_numpy())
    with (
        replacing(path) as unfinished,
        zipfile.ZipFile(unfinished, "w", zipfile.ZIP_DEFLATED) as file,
    ):
        file.writestr("discovery.json", json.dumps(whole))
        file.writestr("data.npz", arrays.getvalue())


def read_archive(path: str | Path, kind: str) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Read the table and the document of a file that `write_archive` wrote.

    A ValueError says if it is damaged, another sort of file, or of an object of another class.
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
    if document.get("version") != VERSION:
        raise ValueError(
            f"{path}: expected version {VERSION} of the format, got {document.get('version')!r}"
        )
    if document.get("kind") != kind:
        raise ValueError(f"expected a {kind} in {path}, got a {document.get('kind')}")
    with fitting_together(path):
        frame = pd.DataFrame(values, index=_index_from_json(document["index"], times))
        series = list(map(label_from_json, document["series"]))
        name = label_from_json(document["columns"])
        frame.columns = pd.Index(series, name=name, tupleize_cols=False)
    return frame, document


@contextmanager
def fitting_together(path: str | Path, *known: type[Exception]) -> Iterator[None]:
    """Turn errors of contents into a ValueError that names the file; known ones keep their text."""
    try:
        yield
    except known as error:
        raise ValueError(f"{path}: {error}") from error
    except (KeyError, TypeError, IndexError, AttributeError, ValueError) as error:
        raise ValueError(f"{path}: the contents do not fit together ({error!r})") from error


def label_to_json(name: object, cure: str = "rename(columns=str)") -> Label:
    """Keep the kind of a name; the error for one that JSON has not says a cure by pandas."""
    if isinstance(name, np.integer | np.floating):
        name = name.item()
    if name is None or isinstance(name, str | int | float):
        return name
    if isinstance(name, tuple):
        return [label_to_json(part, cure) for part in name]
    raise ValueError(
        f"expected names of series and times that are texts, numbers or tuples of them, got "
        f"{name!r}, which a file cannot keep: rename it before the search, such as by frame.{cure}"
    )


def label_from_json(label: Label) -> Any:
    """Read what `label_to_json` wrote."""
    return tuple(map(label_from_json, label)) if isinstance(label, list) else label


def _index_to_json(times: pd.Index) -> tuple[dict[str, Any], np.ndarray[Any, Any]]:
    """Return kind, zone and name of times, and the times as whole nanoseconds or numbers, [D]."""
    name = label_to_json(times.name, 'rename_axis(index="time")')
    if isinstance(times, pd.DatetimeIndex):
        zone = _zone_to_json(times.tz)
        return {"dated": True, "timezone": zone, "name": name}, times.as_unit("ns").asi8
    # Whole numbers stay whole, all in eight bytes.
    numbers = times.to_numpy(np.dtype(f"{times.dtype.kind}8"))
    return {"dated": False, "timezone": None, "name": name}, numbers


def _index_from_json(about: Mapping[str, Any], numbers: np.ndarray[Any, Any]) -> pd.Index:
    name = label_from_json(about["name"])
    if not about["dated"]:
        return pd.Index(numbers, name=name)
    times = pd.DatetimeIndex(numbers.view("datetime64[ns]"), name=name)
    zone = about["timezone"]
    if zone is None:
        return times
    if not isinstance(zone, str):
        zone = timezone(timedelta(seconds=zone))
    return times.tz_localize("UTC").tz_convert(zone)


def _zone_to_json(zone: tzinfo | None) -> str | float | None:
    """Return the name by which pandas knows a time zone, else its fixed offset in seconds."""
    if zone is None:
        return None
    offset = zone.utcoffset(None)  # None if it changes over time
    try:
        named = pd.Timestamp(0, tz=str(zone)).tz
    except (AttributeError, KeyError, ValueError):  # no such zone, or no name at all
        named = None
    if named is not None and named.utcoffset(None) == offset:
        return str(zone)
    if offset is not None:
        return offset.total_seconds()
    raise ValueError(
        f"expected times of a time zone with a name such as 'Europe/Berlin', or of a fixed offset, "
        f"got {zone!r}, which a file cannot keep: before the search, "
        "frame = frame.tz_convert('Europe/Berlin')"
    )

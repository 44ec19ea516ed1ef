"""Discoveries as files: JSON and npz in one zip, data only.

Loading never runs code from the file.  ``discovery.json`` holds settings and all fits,
``data.npz`` the table.
"""

from __future__ import annotations

import io
import json
import zipfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from .averaging import Member
from .discovery import Discovery
from .files import replacing
from .fits import FitSettings
from .frames import Table
from .ledger import entry_from_json, fit_from_json, fit_to_json
from .search import SearchSettings

FORMAT = "lkm_gpflow discovery"
VERSION = 2


def save(discovery: Discovery, path: str | Path, *, force: bool = False) -> None:
    """Write a discovery to a file.

    Raises
    ------
    FileExistsError
        If the file exists and `force` is not given.
    """
    path = Path(path)
    if path.exists() and not force:
        raise FileExistsError(f"{path} exists: give force=True (--force) to overwrite it")
    frame = discovery.table.frame
    times = frame.index
    timezone = None
    if isinstance(times, pd.DatetimeIndex):
        timezone = None if times.tz is None else str(times.tz)
        numbers = times.as_unit("ns").asi8
    else:
        numbers = times.to_numpy(np.float64)
    document = {
        "format": FORMAT,
        "version": VERSION,
        "settings": asdict(discovery.settings),
        "averaging": discovery.averaging,
        "stopped": discovery.stopped,
        "series": discovery.table.names,
        "index": {
            "dated": isinstance(times, pd.DatetimeIndex),
            "timezone": timezone,
            "name": None if times.name is None else str(times.name),
        },
        "entries": [{**vars(entry), "fit": fit_to_json(entry.fit)} for entry in discovery.entries],
        "stacked": [
            {**vars(member), "fit": fit_to_json(member.fit)} for member in discovery.stacked
        ],
    }
    arrays = io.BytesIO()
    np.savez_compressed(arrays, index=numbers, values=frame.to_numpy())
    with (
        replacing(path) as unfinished,
        zipfile.ZipFile(unfinished, "w", zipfile.ZIP_DEFLATED) as archive,
    ):
        archive.writestr("discovery.json", json.dumps(document))
        archive.writestr("data.npz", arrays.getvalue())


def load(path: str | Path) -> Discovery:
    """Read a discovery that `Discovery.save` wrote.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If the file is damaged, or not a discovery, or of a newer version.
    """
    path = Path(path)
    try:
        with zipfile.ZipFile(path) as archive:
            document = json.loads(archive.read("discovery.json"))
            with np.load(io.BytesIO(archive.read("data.npz")), allow_pickle=False) as arrays:
                index, values = arrays["index"], arrays["values"]
    except FileNotFoundError:
        raise
    except (zipfile.BadZipFile, KeyError, ValueError, OSError, EOFError) as error:
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
    try:
        return _from_document(document, index, values)
    except (KeyError, TypeError, IndexError, AttributeError, ValueError) as error:
        raise ValueError(f"{path}: the contents do not fit together ({error!r})") from error


def _from_document(
    document: dict[str, Any], index: np.ndarray[Any, Any], values: np.ndarray[Any, Any]
) -> Discovery:
    about = document["index"]
    times: pd.Index
    if about["dated"]:
        times = pd.DatetimeIndex(index.view("datetime64[ns]"), name=about["name"])
        if about["timezone"] is not None:
            times = times.tz_localize("UTC").tz_convert(about["timezone"])
    else:
        times = pd.Index(index, name=about["name"])
    settings = dict(document["settings"])
    settings["bases"] = tuple(settings["bases"])
    settings["fit"] = FitSettings(**settings["fit"])
    return Discovery(
        table=Table.of(pd.DataFrame(values, index=times, columns=document["series"])),
        settings=SearchSettings(**settings),
        averaging=document["averaging"],
        entries=tuple(entry_from_json(record) for record in document["entries"]),
        stacked=tuple(
            Member(**{**record, "fit": fit_from_json(record["fit"])})
            for record in document["stacked"]
        ),
        stopped=document.get("stopped", ""),
    )

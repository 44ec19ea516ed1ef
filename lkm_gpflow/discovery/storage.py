"""Discoveries as files, and back; see `archive` for the file itself."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from ..data.tables import Table
from ..kernels.grammar import UnknownBaseError
from ..models import subclasses
from ..models.subclasses import UnknownModelError
from ..search.averaging import Member
from ..search.ledger import entry_from_json, fit_from_json, fit_to_json
from ..search.settings import SearchSettings
from . import archive
from .result import Discovery


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
        "settings": discovery.settings.to_json(),
        "averaging": discovery.averaging,
        "stopped": discovery.stopped,
        "series": discovery.table.names,
        "transforms": discovery.table.transforms.names,
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
    archive.write(path, archive.Archive(document, numbers, frame.to_numpy()))


def load(path: str | Path) -> Discovery:
    """Read a discovery that `Discovery.save` wrote.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If the file is damaged, or not a discovery, or of another version; or if it has a base
        kernel that is not registered, or a model class that is not imported.
    """
    contents = archive.read(Path(path))
    try:
        return _from_archive(contents)
    except (UnknownBaseError, UnknownModelError) as error:
        raise ValueError(f"{path}: {error}") from error
    except (KeyError, TypeError, IndexError, AttributeError, ValueError) as error:
        raise ValueError(f"{path}: the contents do not fit together ({error!r})") from error


def _from_archive(contents: archive.Archive) -> Discovery:
    document, index, values = contents
    about = document["index"]
    times: pd.Index
    if about["dated"]:
        times = pd.DatetimeIndex(index.view("datetime64[ns]"), name=about["name"])
        if about["timezone"] is not None:
            times = times.tz_localize("UTC").tz_convert(about["timezone"])
    else:
        times = pd.Index(index, name=about["name"])
    settings = SearchSettings.from_json(document["settings"])
    subclasses.find(settings.fit.model, imports=False)  # a file does not say what is imported
    series = document["series"]
    transforms = document.get("transforms", ["none"] * len(series))  # absent in old files
    return Discovery(
        table=Table.of(
            pd.DataFrame(values, index=times, columns=series),
            dict(zip(series, transforms, strict=True)),
        ),
        settings=settings,
        averaging=document["averaging"],
        entries=tuple(entry_from_json(record) for record in document["entries"]),
        stacked=tuple(
            Member(**{**record, "fit": fit_from_json(record["fit"])})
            for record in document["stacked"]
        ),
        stopped=document.get("stopped", ""),
    )

"""Discoveries as files, and back; see `archive` for the file itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta, timezone, tzinfo
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import numpy as np
import pandas as pd

from ..coupling.coupled_discovery import CoupledDiscovery
from ..coupling.learn_coupling import Coupling
from ..coupling.patterns import Patterns
from ..data.tables import Table
from ..fit.fits import PLAIN_MODEL
from ..forecast.forecasters import Member
from ..forecast.stacking import forecaster_from_json
from ..gp.types import Floats, Integers
from ..kernels.grammar import UnknownBaseError, parse
from ..model import subclasses
from ..model.subclasses import UnknownModelError
from ..runtime import archive
from ..search.ledger import entry_from_json, fit_to_json
from ..search.settings import SearchSettings
from .result import Discovery

T = TypeVar("T", Discovery, CoupledDiscovery)

Label: TypeAlias = "str | float | list[Label] | None"
"""The name of a series or an index as JSON has it; of a tuple a list."""

_ARRAYS = ("loadings", "evidence", "pair_evidence")


def save(found: Discovery | CoupledDiscovery, path: str | Path, *, force: bool = False) -> None:
    """Write a discovery, coupled or not, to a file.

    Of some series of a discovery (`Discovery.select`) the file holds all, and which they are.

    Raises
    ------
    FileExistsError
        If the file exists and `force` is not given.
    IsADirectoryError
        If it is a folder.
    ValueError
        If a series has a name, or the times a time zone, that a file cannot keep.
    """
    path = Path(path)
    if path.is_dir():
        raise IsADirectoryError(f"expected the name of a file, got the folder {path}")
    if path.exists() and not force:
        raise FileExistsError(f"{path} exists: give force=True (--force) to overwrite it")
    whole = found if isinstance(found, CoupledDiscovery) else found.whole
    frame = whole.table.frame
    about, numbers = _index_to_json(frame.index)
    document: dict[str, Any] = {
        "series": [_label_to_json(name) for name in frame.columns],
        "columns": _label_to_json(frame.columns.name, 'rename_axis(columns="series")'),
        "transforms": whole.table.transforms.names,
        "index": about,
    }
    if isinstance(whole, CoupledDiscovery):
        document |= {
            "coupled": [member.to_json() for member in whole.members],
            "couplings": [_coupling_to_json(coupling) for coupling in whole.couplings],
        }
    else:
        document |= {
            "settings": whole.settings.to_json(),
            "averaging": whole.averaging,
            "stopped": whole.stopped,
            "entries": [{**vars(entry), "fit": fit_to_json(entry.fit)} for entry in whole.entries],
            "stacked": [member.to_json() for member in whole.stacked],
        }
    if whole is not found:
        document["selected"] = [_label_to_json(name) for name in found.table.frame.columns]
    archive.write(path, archive.Archive(document, numbers, frame.to_numpy()))


def _index_to_json(times: pd.Index) -> tuple[dict[str, Any], np.ndarray[Any, Any]]:
    """Return what there is to say of times, and the times as whole nanoseconds or numbers."""
    name = _label_to_json(times.name, 'rename_axis(index="time")')
    if isinstance(times, pd.DatetimeIndex):
        zone = _zone_to_json(times.tz)
        return {"dated": True, "timezone": zone, "name": name}, times.as_unit("ns").asi8
    # Whole numbers stay whole, all in eight bytes.
    numbers = times.to_numpy(np.dtype(f"{times.dtype.kind}8"))
    return {"dated": False, "timezone": None, "name": name}, numbers


def _index_from_json(about: Mapping[str, Any], numbers: Integers | Floats) -> pd.Index:
    name = _label_from_json(about["name"])
    if not about["dated"]:
        return pd.Index(numbers, name=name)
    times = pd.DatetimeIndex(numbers.view("datetime64[ns]"), name=name)
    zone = about["timezone"]
    if zone is None:
        return times
    if not isinstance(zone, str):
        zone = timezone(timedelta(seconds=zone))
    return times.tz_localize("UTC").tz_convert(zone)


def _label_to_json(name: object, cure: str = "rename(columns=str)") -> Label:
    """Keep the kind of a name; a ValueError if JSON has none like it, with a cure by pandas."""
    if isinstance(name, np.integer | np.floating):
        name = name.item()
    if name is None or isinstance(name, str | int | float):
        return name
    if isinstance(name, tuple):
        return [_label_to_json(part, cure) for part in name]
    raise ValueError(
        f"expected names of series and times that are texts, numbers or tuples of them, got "
        f"{name!r}, which a file cannot keep: rename it before the search, such as by frame.{cure}"
    )


def _label_from_json(label: Label) -> Any:
    return tuple(map(_label_from_json, label)) if isinstance(label, list) else label


def _zone_to_json(zone: tzinfo | None) -> str | float | None:
    """Return the name of a time zone if pandas knows it by that, else its fixed offset in seconds.

    Raises
    ------
    ValueError
        If it has neither.
    """
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


def _coupling_to_json(coupling: Coupling) -> dict[str, Any]:
    """Write a coupling in JSON's types; numbers keep all their digits."""
    return {
        "kernels": [str(kernel) for kernel in coupling.patterns.kernels],
        "components": coupling.patterns.components,
        "amplitudes": coupling.patterns.amplitudes.tolist(),
        **{name: getattr(coupling, name).tolist() for name in _ARRAYS},
        "log_likelihood": coupling.log_likelihood,
        "uncoupled": coupling.uncoupled,
    }


def _coupling_from_json(record: Mapping[str, Any]) -> Coupling:
    patterns = Patterns(
        tuple(parse(text) for text in record["kernels"]),
        np.array(record["amplitudes"], np.float64),
        tuple(tuple(own) for own in record["components"]),
    )
    arrays = {name: np.array(record[name], np.float64) for name in _ARRAYS}
    return Coupling(
        patterns,
        **arrays,
        log_likelihood=record["log_likelihood"],
        uncoupled=record["uncoupled"],
    )


def load(path: str | Path) -> Discovery:
    """Read a discovery that `Discovery.save` wrote.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If the file is damaged, or not a discovery, or of another version; or if it has a base
        kernel that is not registered, or a model class that is not imported; or if its discovery
        is coupled.
    """
    return _read(path, _discovery, "entries", "a coupled discovery: CoupledDiscovery.load reads it")


def load_coupled(path: str | Path) -> CoupledDiscovery:
    """Read a discovery that `CoupledDiscovery.save` wrote; it raises what `load` raises."""
    return _read(path, _coupled, "couplings", "a discovery that is not coupled: load reads it")


def _read(
    path: str | Path,
    build: Callable[[dict[str, Any], Table], T],
    expected: str,
    otherwise: str,
) -> T:
    """Build what is in a file from its document and table, if the document has what is expected."""
    document, index, values = archive.read(Path(path))
    if expected not in document and {"entries", "couplings"} & document.keys():
        raise ValueError(f"{path} holds {otherwise}")
    try:
        return build(document, _table(document, index, values))
    except (UnknownBaseError, UnknownModelError) as error:
        raise ValueError(f"{path}: {error}") from error
    except (KeyError, TypeError, IndexError, AttributeError, ValueError) as error:
        raise ValueError(f"{path}: the contents do not fit together ({error!r})") from error


def _table(document: Mapping[str, Any], index: Integers | Floats, values: Floats) -> Table:
    series = [_label_from_json(label) for label in document["series"]]
    transforms = document.get("transforms", ["none"] * len(series))  # absent in old files
    frame = pd.DataFrame(values, index=_index_from_json(document["index"], index))
    columns = _label_from_json(document.get("columns"))  # absent in old files
    frame.columns = pd.Index(series, name=columns, tupleize_cols=False)
    return Table.of(frame, dict(zip(series, transforms, strict=True)))


def _discovery(document: dict[str, Any], table: Table) -> Discovery:
    settings = SearchSettings.from_json(document["settings"])
    if settings.fit.model != PLAIN_MODEL:
        subclasses.find(settings.fit.model, imports=False)  # a file does not say what is imported
    whole = Discovery(
        table=table,
        settings=settings,
        averaging=document["averaging"],
        entries=tuple(entry_from_json(record) for record in document["entries"]),
        stacked=tuple(
            forecaster_from_json(record, table, settings.seed) for record in document["stacked"]
        ),
        stopped=document.get("stopped", ""),
    )
    selected = document.get("selected")  # absent in old files
    return whole if selected is None else whole.select(list(map(_label_from_json, selected)))


def _coupled(document: dict[str, Any], table: Table) -> CoupledDiscovery:
    return CoupledDiscovery(
        table,
        tuple(Member.from_json(record) for record in document["coupled"]),
        tuple(_coupling_from_json(record) for record in document["couplings"]),
    )

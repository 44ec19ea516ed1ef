"""Discoveries as files, and back; see `archive` for the file itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pandas as pd

from ..data.tables import Table
from ..kernels.grammar import UnknownBaseError, parse
from ..learning.coupling import Coupling
from ..learning.patterns import Patterns
from ..models import subclasses
from ..models.subclasses import UnknownModelError
from ..numerics.types import Floats, Integers
from ..search.averaging import Member
from ..search.ledger import entry_from_json, fit_from_json, fit_to_json
from ..search.settings import SearchSettings
from . import archive
from .coupled import CoupledDiscovery
from .result import Discovery

T = TypeVar("T", Discovery, CoupledDiscovery)

_ARRAYS = ("loadings", "evidence", "pair_evidence")


def save(found: Discovery | CoupledDiscovery, path: str | Path, *, force: bool = False) -> None:
    """Write a discovery, coupled or not, to a file.

    Raises
    ------
    FileExistsError
        If the file exists and `force` is not given.
    """
    path = Path(path)
    if path.exists() and not force:
        raise FileExistsError(f"{path} exists: give force=True (--force) to overwrite it")
    frame = found.table.frame
    times = frame.index
    timezone = None
    if isinstance(times, pd.DatetimeIndex):
        timezone = None if times.tz is None else str(times.tz)
        numbers = times.as_unit("ns").asi8
    else:
        numbers = times.to_numpy(np.float64)
    document: dict[str, Any] = {
        "series": found.table.names,
        "transforms": found.table.transforms.names,
        "index": {
            "dated": isinstance(times, pd.DatetimeIndex),
            "timezone": timezone,
            "name": None if times.name is None else str(times.name),
        },
    }
    if isinstance(found, CoupledDiscovery):
        document |= {
            "coupled": [_member_to_json(member) for member in found.members],
            "couplings": [_coupling_to_json(coupling) for coupling in found.couplings],
        }
    else:
        document |= {
            "settings": found.settings.to_json(),
            "averaging": found.averaging,
            "stopped": found.stopped,
            "entries": [{**vars(entry), "fit": fit_to_json(entry.fit)} for entry in found.entries],
            "stacked": [_member_to_json(member) for member in found.stacked],
        }
    archive.write(path, archive.Archive(document, numbers, frame.to_numpy()))


def _member_to_json(member: Member) -> dict[str, Any]:
    return {**vars(member), "fit": fit_to_json(member.fit)}


def _member_from_json(record: Mapping[str, Any]) -> Member:
    return Member(**{**record, "fit": fit_from_json(record["fit"])})


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


def _table(document: Mapping[str, Any], index: Integers, values: Floats) -> Table:
    about = document["index"]
    times: pd.Index
    if about["dated"]:
        times = pd.DatetimeIndex(index.view("datetime64[ns]"), name=about["name"])
        if about["timezone"] is not None:
            times = times.tz_localize("UTC").tz_convert(about["timezone"])
    else:
        times = pd.Index(index, name=about["name"])
    series = document["series"]
    transforms = document.get("transforms", ["none"] * len(series))  # absent in old files
    return Table.of(
        pd.DataFrame(values, index=times, columns=series),
        dict(zip(series, transforms, strict=True)),
    )


def _discovery(document: dict[str, Any], table: Table) -> Discovery:
    settings = SearchSettings.from_json(document["settings"])
    subclasses.find(settings.fit.model, imports=False)  # a file does not say what is imported
    return Discovery(
        table=table,
        settings=settings,
        averaging=document["averaging"],
        entries=tuple(entry_from_json(record) for record in document["entries"]),
        stacked=tuple(_member_from_json(record) for record in document["stacked"]),
        stopped=document.get("stopped", ""),
    )


def _coupled(document: dict[str, Any], table: Table) -> CoupledDiscovery:
    return CoupledDiscovery(
        table,
        tuple(_member_from_json(record) for record in document["coupled"]),
        tuple(_coupling_from_json(record) for record in document["couplings"]),
    )

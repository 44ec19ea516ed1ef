"""The tables of the benchmark: found ready-made, or rebuilt from their publishers' files.

`benchmark.yml` beside this module says where every number comes from.  A finished table is a CSV
file in the folder ``bench`` inside or beside that of the raw files; its SHA-256 is checked.  Where
there is none it is rebuilt by its recipe, and must have the same SHA-256 again.
"""

from __future__ import annotations

import hashlib
import io
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from urllib.parse import quote

import numpy as np
import pandas as pd
import yaml

from .dataset import Dataset
from .recipes import RECIPES
from .registry import (
    GITHUB,
    ChecksumError,
    DownloadError,
    RawFile,
    check_no_folder,
    fetch_files,
    folder,
)

PREFIX = "bench/"
"""What the names of these tables begin with, for `lkm_gpflow.datasets.load`."""


@dataclass(frozen=True)
class BenchmarkTable:
    """What `benchmark.yml` says of a table.

    Parameters
    ----------
    name
        Without `PREFIX`.
    title
        What the table holds, in a line.
    domain
        macro, markets, demand, nature, signals or health.
    season
        Rows in a season, one where there is none.
    horizon
        Rows that are forecast from each of the two origins.
    sha256
        Of the finished table.
    files
        The publishers' files that it is made of.
    recipe
        Which rows and columns, in words.
    terms
        What one may do with it.
    """

    name: str
    title: str
    domain: str
    season: int
    horizon: int
    sha256: str
    files: tuple[RawFile, ...]
    recipe: str
    terms: str


@cache
def benchmark_tables() -> dict[str, BenchmarkTable]:
    """Return all tables by name, without `PREFIX`."""
    registry = yaml.safe_load(Path(__file__).with_name("benchmark.yml").read_text(encoding="utf-8"))

    def raw(name: str) -> RawFile:
        repository, path = name.split(" ", 1)
        commit = registry["commits"][repository]
        return RawFile(
            f"{repository}/{path}".replace("/", "+"),
            f"{GITHUB}/{repository}/{commit}/{quote(path)}",
            registry["files"][name],
        )

    return {
        name: BenchmarkTable(name, **{**entry, "files": tuple(map(raw, entry["files"]))})
        for name, entry in registry["tables"].items()
    }


def load_benchmark(name: str) -> Dataset:
    """Load one table.

    Parameters
    ----------
    name
        Without `PREFIX`.

    Raises
    ------
    ChecksumError
        If a file, or what a recipe made of it, is not what the benchmark was built from.
    DownloadError
        If the table is absent and cannot be rebuilt.
    """
    table = benchmark_tables()[name]
    made = _ready_made(table)
    text = _rebuilt(table) if made is None else made.read_bytes()
    frame = pd.read_csv(
        io.BytesIO(text), index_col="date", parse_dates=True, float_precision="round_trip"
    ).astype(np.float64)
    frame.index = pd.DatetimeIndex(frame.index).as_unit("ns")
    frame.index = pd.DatetimeIndex(frame.index, freq="infer")
    return Dataset(
        name=PREFIX + name,
        title=table.title,
        frame=frame,
        units=dict.fromkeys(frame.columns, "as published"),
        source=f"{table.recipe}; from GitHub {', '.join(_repositories(table))}",
        licence=table.terms,
        season=table.season,
        horizon=table.horizon,
    )


def fetch_benchmark(name: str) -> list[Path]:
    """Return the finished table's path, or those of the files that it is rebuilt from.

    Raises
    ------
    ChecksumError, DownloadError
        As `load_benchmark`.
    """
    table = benchmark_tables()[name]
    made = _ready_made(table)
    if made is not None:
        return [made]
    _check_recipe(table)
    return fetch_files(PREFIX + name, table.files, _raw_copies())


def absent_files(name: str) -> list[str]:
    """Names of the files that are missing to load a table: to be fetched, or put there by hand."""
    table = benchmark_tables()[name]
    if any(path.exists() for path in _places(table)):
        return []
    if name not in RECIPES:
        return [f"{name}.csv"]
    kept = (folder(), *_raw_copies())
    return [
        file.name for file in table.files if not any((place / file.name).exists() for place in kept)
    ]


def _ready_made(table: BenchmarkTable) -> Path | None:
    """Return where the finished table is; None if it is nowhere."""
    path = next((path for path in _places(table) if path.exists()), None)
    if path is not None:
        check_no_folder(path)
        cure = "delete it to rebuild" if table.name in RECIPES else "put the right one there"
        _check(table, path.read_bytes(), f"{path} is not the table of the benchmark; {cure}")
    return path


def _check_recipe(table: BenchmarkTable) -> None:
    if table.name not in RECIPES:
        raise DownloadError(
            f"table {table.name!r} is in none of {', '.join(map(str, _places(table)))}, and there "
            f"is no program to rebuild it from {', '.join(file.url for file in table.files)}; "
            f"put {table.name}.csv there ({table.recipe})"
        )


def _rebuilt(table: BenchmarkTable) -> bytes:
    _check_recipe(table)
    paths = fetch_files(PREFIX + table.name, table.files, _raw_copies())
    text = to_text(RECIPES[table.name](paths))
    _check(table, text, f"the recipe of {table.name!r} made another table with these libraries")
    return text


def to_text(frame: pd.DataFrame) -> bytes:
    """Write a table as the benchmark's checksums have it: ten digits, gaps empty."""
    index = pd.DatetimeIndex(frame.index)
    form = "%Y-%m-%d"
    if (index != index.normalize()).any():
        form = "%Y-%m-%d %H:%M:%S" + (".%f" if (index != index.floor("s")).any() else "")
    named = frame.astype(np.float64).set_axis(index.strftime(form).rename("date"))
    return named.to_csv(float_format="%.10g", lineterminator="\n").encode()


def _check(table: BenchmarkTable, text: bytes, wrong: str) -> None:
    found = hashlib.sha256(text).hexdigest()
    if found != table.sha256:
        raise ChecksumError(f"{wrong}: expected SHA-256 {table.sha256}, found {found}")


def _places(table: BenchmarkTable) -> list[Path]:
    return [place / f"{table.name}.csv" for place in _bench_folders()]


def _raw_copies() -> list[Path]:
    return [place / "raw" for place in _bench_folders()]


def _bench_folders() -> list[Path]:
    return [folder() / "bench", folder().parent / "bench"]


def _repositories(table: BenchmarkTable) -> list[str]:
    owners = ["/".join(file.name.split("+")[:2]) for file in table.files]
    return list(dict.fromkeys(owners))

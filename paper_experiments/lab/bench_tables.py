"""The benchmark's 36 tables: found ready-made, or rebuilt from their publishers' files.

`bench_tables.yml` says where every number comes from.  A finished table is a CSV file in the folder
``bench`` inside or beside that of the raw files; its SHA-256 is checked.  Where there is none it is
rebuilt by its recipe, and must have the same SHA-256 again.  Which tables choose defaults and which
are held back to judge them was drawn domain by domain before any method ran: `split.csv`.
"""

from __future__ import annotations

import csv
import hashlib
import io
import random
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal
from urllib.parse import quote

import numpy as np
import pandas as pd
import yaml

from lkm_gpflow.datasets.downloads import (
    GITHUB,
    ChecksumError,
    DownloadError,
    RawFile,
    fetch_files,
    folder,
)

from .recipes import RECIPES

Part = Literal["choosing", "held"]

HELD, SEED = 2, 19
"""Tables of a domain that are held back, and the seed of their draw."""


@dataclass(frozen=True)
class BenchmarkTable:
    """What `bench_tables.yml` says of a table; season and horizon in rows, 1 for no season."""

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
    """Return all tables by name."""
    text = Path(__file__).with_name("bench_tables.yml").read_text(encoding="utf-8")
    registry = yaml.safe_load(text)

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


def load_table(name: str) -> pd.DataFrame:
    """Load one table.

    Raises
    ------
    ChecksumError
        If a file, or what a recipe made of it, is not what the benchmark was built from.
    DownloadError
        If the table is absent and cannot be rebuilt.
    """
    table = benchmark_tables()[name]
    places = [place / f"{name}.csv" for place in _bench_folders()]
    made = next((path for path in places if path.exists()), None)
    if made is not None:
        text, wrong = made.read_bytes(), f"{made} is not the table of the benchmark"
    elif name in RECIPES:
        copies = [place / "raw" for place in _bench_folders()]
        text = to_text(RECIPES[name](fetch_files(f"bench/{name}", table.files, copies)))
        wrong = f"the recipe of {name!r} made another table with these libraries"
    else:
        raise DownloadError(
            f"table {name!r} is in none of {', '.join(map(str, places))}, and there is no program "
            f"to rebuild it from {', '.join(file.url for file in table.files)}; put {name}.csv "
            f"there ({table.recipe})"
        )
    found = hashlib.sha256(text).hexdigest()
    if found != table.sha256:
        raise ChecksumError(f"{wrong}: expected SHA-256 {table.sha256}, found {found}")
    frame = pd.read_csv(
        io.BytesIO(text), index_col="date", parse_dates=True, float_precision="round_trip"
    ).astype(np.float64)
    frame.index = pd.DatetimeIndex(frame.index).as_unit("ns")
    frame.index = pd.DatetimeIndex(frame.index, freq="infer")
    return frame


def to_text(frame: pd.DataFrame) -> bytes:
    """Write a table as the benchmark's checksums have it: ten digits, gaps empty."""
    index = pd.DatetimeIndex(frame.index)
    form = "%Y-%m-%d"
    if (index != index.normalize()).any():
        form = "%Y-%m-%d %H:%M:%S" + (".%f" if (index != index.floor("s")).any() else "")
    named = frame.astype(np.float64).set_axis(index.strftime(form).rename("date"))
    return named.to_csv(float_format="%.10g", lineterminator="\n").encode()


def _bench_folders() -> list[Path]:
    return [folder() / "bench", folder().parent / "bench"]


def draw(domains: Mapping[str, str], seed: int = SEED) -> dict[str, Part]:
    """Draw `HELD` tables of every domain, from the domain of every table."""
    rng = random.Random(seed)
    held: set[str] = set()
    for domain in sorted(set(domains.values())):
        tables = sorted(table for table, of in domains.items() if of == domain)
        held.update(rng.sample(tables, HELD))
    return {table: "held" if table in held else "choosing" for table in domains}


@cache
def _split() -> list[tuple[str, str]]:
    with Path(__file__).with_name("split.csv").open(encoding="utf-8", newline="") as file:
        return [(row["table"], row["part"]) for row in csv.DictReader(file)]


def tables_of(part: Part) -> list[str]:
    """Return the tables that choose defaults, or those that are held back."""
    return [table for table, of in _split() if of == part]

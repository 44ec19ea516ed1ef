"""The data sets by name. A new one is a function that returns a `Dataset` and a line here."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from pathlib import Path

from lkm_gpflow.datasets import benchmark, registry
from lkm_gpflow.datasets.dataset import Dataset
from lkm_gpflow.datasets.recipes import RECIPES
from lkm_gpflow.datasets.seizure import seizure
from lkm_gpflow.datasets.synthetic import demo, toy
from lkm_gpflow.datasets.tables import currencies, gonu, houses, stocks
from lkm_gpflow.runtime.text import did_you_mean

LOADERS: dict[str, Callable[..., Dataset]] = {
    loader.__name__: loader for loader in (toy, demo, stocks, houses, currencies, gonu, seizure)
}
"""The paper's data sets and the generated ones; the benchmark's tables have a file of their own."""


def names() -> list[str]:
    """Return the names that `load` knows; those of the benchmark's tables begin with bench/."""
    return [*LOADERS, *(benchmark.PREFIX + table for table in benchmark.benchmark_tables())]


def known_names() -> str:
    """Return the names in words: the benchmark's tables are only counted."""
    return f"{', '.join(LOADERS)}, {len(names()) - len(LOADERS)} tables {benchmark.PREFIX}..."


def load(
    name: str,
    *,
    seed: int | None = None,
    sample: str | None = None,
    per_class: int | None = None,
) -> Dataset:
    """Load a data set, downloading the publishers' files where they are not there yet.

    Parameters
    ----------
    name : str
        One of `names`.
    seed : int, optional
        For ``toy`` and ``demo``, which are generated, and for ``seizure`` with `per_class`.
    sample : str, optional
        For ``seizure``: one of the samples the authors drew, such as ``"get_50_exp_0"``.
    per_class : int, optional
        For ``seizure``: draw this many series of each class.

    Returns
    -------
    Dataset

    Raises
    ------
    ValueError
        If the name is unknown or the data set does not take an option.
    lkm_gpflow.datasets.registry.ChecksumError
        If a file is not the one the tables are built from.
    lkm_gpflow.datasets.registry.DownloadError
        If a file is absent and cannot be downloaded.
    """
    loader = _loader(name)
    options = {"seed": seed, "sample": sample, "per_class": per_class}
    given = {option: value for option, value in options.items() if value is not None}
    accepted = inspect.signature(loader).parameters
    for option in given:
        if option not in accepted:
            takes = ", ".join(accepted) or "none"
            raise ValueError(f"data set {name!r} has no option {option!r}; its options: {takes}")
    return loader(**given)


def fetch(name: str) -> list[Path]:
    """Make sure that the files of a data set are on this machine, and say where.

    Parameters
    ----------
    name : str
        One of `names`.

    Returns
    -------
    list of Path
        The publishers' files, each with the right checksum, or the finished table of the benchmark
        where it is there; empty for a generated data set.

    Raises
    ------
    ValueError, ChecksumError, DownloadError
        As `load`.
    """
    table = _benchmark_table(_known(name))
    return registry.fetch(name) if table is None else benchmark.fetch_benchmark(table)


def absent_files(name: str) -> list[str] | None:
    """Names of the files of a data set that are not on this machine; None: it needs none."""
    table = _benchmark_table(_known(name))
    if table is not None:
        return benchmark.absent_files(table)
    files = registry.RAW_FILES.get(name, ())
    return [f.name for f in files if not (registry.folder() / f.name).exists()] if files else None


def can_be_fetched(name: str) -> bool:
    """Whether the files of a data set can be fetched; a table without a recipe is put by hand."""
    table = _benchmark_table(_known(name))
    return table is None or table in RECIPES


def _loader(name: str) -> Callable[..., Dataset]:
    table = _benchmark_table(_known(name))
    return LOADERS[name] if table is None else partial(benchmark.load_benchmark, table)


def _benchmark_table(name: str) -> str | None:
    return name.removeprefix(benchmark.PREFIX) if name.startswith(benchmark.PREFIX) else None


def _known(name: str) -> str:
    every = names()
    if name not in every:
        hint = did_you_mean(str(name), every)
        raise ValueError(f"there is no data set {name!r}, only {known_names()}{hint}")
    return name

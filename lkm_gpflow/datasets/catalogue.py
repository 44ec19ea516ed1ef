"""The data sets by name. A new one is a function that returns a `Dataset` and a line here."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path

from lkm_gpflow.datasets import downloads
from lkm_gpflow.datasets.dataset import Dataset
from lkm_gpflow.datasets.real_tables import currencies, gonu, houses, stocks
from lkm_gpflow.datasets.seizure import seizure
from lkm_gpflow.datasets.synthetic import demo, toy
from lkm_gpflow.runtime.text import did_you_mean

LOADERS: dict[str, Callable[..., Dataset]] = {
    loader.__name__: loader for loader in (toy, demo, stocks, houses, currencies, gonu, seizure)
}
"""The paper's data sets and the generated ones."""


def names() -> list[str]:
    """Return the names that `load_dataset` knows."""
    return list(LOADERS)


def load_dataset(name: str, *, seed: int | None = None, per_class: int | None = None) -> Dataset:
    """Load a data set by its name, downloading the publishers' files where they are not there yet.

    `seed` is for ``toy`` and ``demo``, which are generated, and for ``seizure`` with `per_class`,
    which draws this many series of each class.

    Raises
    ------
    ValueError
        If the name is unknown or the data set does not take an option.
    ChecksumError, DownloadError
        If a file is not the one the tables are built from, or is absent and cannot be downloaded.
    """
    loader = LOADERS[_known(name)]
    options = {"seed": seed, "per_class": per_class}
    given = {option: value for option, value in options.items() if value is not None}
    accepted = inspect.signature(loader).parameters
    for option in given:
        if option not in accepted:
            takes = ", ".join(accepted) or "none"
            raise ValueError(f"data set {name!r} has no option {option!r}; its options: {takes}")
    return loader(**given)


def fetch(name: str) -> list[Path]:
    """Make sure that the files of a data set are on this machine, and say where.

    Each has the right checksum; a generated data set has none.  It raises what `load` raises.
    """
    return downloads.fetch_dataset(_known(name))


def _known(name: str) -> str:
    if name not in LOADERS:
        hint = did_you_mean(str(name), names())
        raise ValueError(f"there is no data set {name!r}, only {', '.join(LOADERS)}{hint}")
    return name

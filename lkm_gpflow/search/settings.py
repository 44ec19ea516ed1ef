"""What a search depends on besides the data, and which tables are too large for one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from numbers import Integral
from typing import Any, Literal

import numpy as np

from ..data.observations import Observations
from ..data.tables import Table
from ..fit.fits import FitSettings
from ..fit.training import most_times
from ..gp import limits
from ..gp.types import Integers
from ..kernels.grammar import (
    CHANGE_POINTS,
    EXTENDED_BASES,
    Product,
    UnknownBaseError,
    base_kernel,
    parse,
    with_windows,
)
from ..runtime.text import whole_number
from ..runtime.warn import warn

_DRAW = 2_000_000
"""Sets the seed of the draw apart from those of the search, (seed, step, restart)."""

LONGEST_SEARCH = 1000
"""At irregular times one objective with its gradient takes 0.2 processor seconds at 800 times (4
series, 4 kernels) and 1.0 at 1,600; a search needs some ten thousand."""

MOST_SEARCHED = 50
"""A millisecond a series, evaluation and row of Z, until covariances are shared (`sharing`)."""

_SECONDS = 5e-4
"""Processor seconds per series and squared number of times for a default search with its averaging;
the middle of the searches in the benchmark's journal."""

_LOWER, _UPPER = 0.1, 4.2
"""Factors on it that held nine tenths of these searches."""

_LONG = 200
"""From so many times on, time grows with their power 2.7, until a table is long."""

_OF_A_VALUE = 23.0
"""The same for each value of a long table at regular times: a search on 8 series of 400 times took
36 processor seconds."""

Strategy = Literal["partial", "full"]


@dataclass(frozen=True)
class SearchSettings:
    """What a search depends on, besides the data.

    Parameters
    ----------
    bases
        Names of the base kernels.
    depth
        How often every member may be expanded.
    restarts
        Fits of each structure, from different random numbers; of a long table of the first alone.
    strategy
        "partial" or "full" set expansion.
    seed
        Everything random follows from it.
    fit
        How one structure is learnt.
    """

    bases: tuple[str, ...] = EXTENDED_BASES
    depth: int = 2
    restarts: int = 3
    strategy: Strategy = "partial"
    seed: int = 0
    fit: FitSettings = field(default_factory=FitSettings)

    def __post_init__(self) -> None:
        if set(self.bases) <= {"WN", CHANGE_POINTS}:
            raise ValueError(f"expected base kernels beside WN and CP, got {self.bases}")
        for name in with_windows(self.bases):
            try:
                base_kernel(name)
            except UnknownBaseError as error:
                raise UnknownBaseError(f"{error}; {CHANGE_POINTS} adds change points") from error
        for name, least in (("depth", 0), ("restarts", 1), ("seed", 0)):
            object.__setattr__(self, name, whole_number(getattr(self, name), name, least))
        if self.strategy not in ("partial", "full"):
            raise ValueError(f"expected strategy 'partial' or 'full', got {self.strategy!r}")

    def to_json(self) -> dict[str, Any]:
        """Return the settings in JSON's types."""
        return {**asdict(self), "fit": self.fit.to_json()}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> SearchSettings:
        """Read what `to_json` wrote."""
        fit = FitSettings.from_json(values["fit"])
        return cls(**{**values, "bases": tuple(values["bases"]), "fit": fit})

    @property
    def start(self) -> tuple[Product, ...]:
        """The first set: every base kernel; WN is in the noise of the series already."""
        return tuple(parse(name) for name in self.bases if name not in ("WN", CHANGE_POINTS))


def base_names(bases: object) -> tuple[str, ...]:
    """Return the names of base kernels.

    Raises
    ------
    ValueError
        If they are not a list of names; a single text is not split into letters.
    """
    if isinstance(bases, str) or not isinstance(bases, Iterable):
        raise ValueError(
            f"expected bases as a list of names such as ['SE', 'PER'], got {bases!r}: "
            "lkm_gpflow.PAPER_BASES and lkm_gpflow.EXTENDED_BASES are such lists"
        )
    names = tuple(bases)
    for name in names:
        if not isinstance(name, str):
            raise ValueError(f"expected the name of a base kernel such as 'SE', got {name!r}")
    return names


def check_size(observations: Observations, fit: FitSettings, subset: int | None) -> None:
    """Refuse tables on which a search would not end; warn about those on which it takes hours.

    Raises
    ------
    ValueError
        If there are more times than `training.most_times`.
    """
    num_series, num_times = observations.Y.shape
    most = most_times(observations, fit)
    instead = (
        "bring them to regular steps, such as frame.resample('W').mean(), or search on some: "
        "lkm_gpflow.discover(lkm_gpflow.thin(frame)).update(frame), at the command line --thin 300"
    )
    if num_times > most:
        raise ValueError(
            f"expected at most {most:g} times, {limits.LONGEST:g} unless they are regular, because "
            f"time and memory would not do, got {num_times}: {instead}"
        )
    if num_times > LONGEST_SEARCH and most == limits.LONGEST:
        warn(
            f"a search on more than {LONGEST_SEARCH} irregular times takes hours, got {num_times}: "
            f"{instead}",
        )
    if subset is None and num_series > MOST_SEARCHED:
        warn(
            f"a search on more than {MOST_SEARCHED} series may take hours, got {num_series}: with "
            "a subset, such as 25, it searches on 25 series and then learns the result on all",
        )


def size_of_work(num_times: int, num_series: int) -> float:
    """Return what the time of a search, of its averaging and of draws is in proportion to."""
    if num_times >= limits.LONG:
        return num_series * _OF_A_VALUE * num_times
    return num_series * num_times**2 * max(1.0, num_times / _LONG) ** 0.7


def expected_seconds(
    num_times: int, num_series: int, settings: SearchSettings, parallel: int = 1
) -> tuple[float, float]:
    """Return bounds on the seconds of a search by the learner "scan", `parallel` fits at a time."""
    work = (1 + settings.depth) / 3.0 * settings.restarts / 3.0
    seconds = _SECONDS * size_of_work(num_times, num_series) * work
    seconds /= min(parallel, settings.restarts)
    return _LOWER * seconds, _UPPER * seconds


def ledger_header(settings: SearchSettings, table: Table, subset: int | None) -> dict[str, Any]:
    """Return what a search depends on, in JSON's types: a ledger begins with it."""
    header: dict[str, Any] = {
        "settings": settings.to_json(),
        "data": table.observations.fingerprint,
    }
    if subset is not None:
        header["subset"] = int(subset) if isinstance(subset, Integral) else subset
    if table.transforms.any:
        header["transform"] = table.transforms.names
    return header


def draw(num_series: int, count: int, seed: int) -> Integers:
    """Draw `count` of the numbers of series, sorted.

    Raises
    ------
    ValueError
        If there are not more series than that.
    """
    if isinstance(count, bool) or not isinstance(count, Integral) or not 1 <= count < num_series:
        raise ValueError(
            f"expected a subset of at least 1 and fewer than all {num_series} series, got {count!r}"
        )
    rng = np.random.default_rng((seed, _DRAW))
    return np.sort(rng.choice(num_series, count, replace=False)).astype(np.int32)

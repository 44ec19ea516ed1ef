"""Base kernels as the grammar sees them: names, hyperparameters and what these measure.

Pure Python; `grammar` has their products, `base` their covariances.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum


class Kind(Enum):
    """What a hyperparameter measures: decides its range and how a change of units acts on it."""

    DURATION = "duration"
    """A positive length of time."""
    MEMORY = "memory"
    """A positive length of time over which something is remembered; it may be far below a step."""
    PERIOD = "period"
    """A positive length of time after which a pattern repeats."""
    RATIO = "ratio"
    """A positive number without a unit."""
    LOCATION = "location"
    """A point in time, learnt."""
    ORIGIN = "origin"
    """A point in time, given by the data and not learnt."""
    CHANGE = "change"
    """A point in time within the data, learnt."""
    WIDTH = "width"
    """A positive length of time over which a change happens; it may be far below a step."""

    @property
    def positive(self) -> bool:
        """Whether values must be above zero."""
        return self in (Kind.DURATION, Kind.MEMORY, Kind.PERIOD, Kind.RATIO, Kind.WIDTH)


@dataclass(frozen=True)
class BaseKernel:
    """A base kernel of unit variance, as the grammar sees it.

    Parameters
    ----------
    name
        Its name in expressions, upper case.
    parameters
        Names and kinds of its hyperparameters, in order.
    stationary
        Whether it depends on the difference of two times alone.
    degree
        The power of time in its values (LIN 2, RW 1), which a change of the unit of time moves
        into the variance.
    """

    name: str
    parameters: tuple[tuple[str, Kind], ...] = ()
    stationary: bool = True
    degree: int = 0

    @property
    def is_walk(self) -> bool:
        """Whether it sets out from a point in time that the data give, as RW and IOU do."""
        return any(kind is Kind.ORIGIN for _, kind in self.parameters)

    @property
    def is_window(self) -> bool:
        """Whether it only says when others are there, as UNTIL and FROM do."""
        return any(kind is Kind.CHANGE for _, kind in self.parameters)


@dataclass(frozen=True)
class Words:
    """A base kernel in words, for reports.

    Parameters
    ----------
    title
        A noun as it stands after "has", with its article if it needs one: "growth that levels
        off", "a sudden jump".
    sentence
        What a series with it does; a whole sentence.
    beyond
        What happens beyond the data; a whole sentence.
    """

    title: str
    sentence: str
    beyond: str


WN = BaseKernel("WN")
C = BaseKernel("C")
LIN = BaseKernel("LIN", (("location", Kind.LOCATION),), stationary=False, degree=2)
SE = BaseKernel("SE", (("lengthscale", Kind.DURATION),))
PER = BaseKernel("PER", (("period", Kind.PERIOD), ("lengthscale", Kind.RATIO)))
RW = BaseKernel("RW", (("start", Kind.ORIGIN),), stationary=False, degree=1)
IOU = BaseKernel(
    "IOU", (("lengthscale", Kind.MEMORY), ("start", Kind.ORIGIN)), stationary=False, degree=1
)

OU = BaseKernel("OU", (("lengthscale", Kind.MEMORY),))

UNTIL = BaseKernel("UNTIL", (("at", Kind.CHANGE), ("width", Kind.WIDTH)), stationary=False)
FROM = BaseKernel("FROM", (("at", Kind.CHANGE), ("width", Kind.WIDTH)), stationary=False)

PAPER_BASES = ("WN", "C", "LIN", "SE", "PER")
"""The base kernels of the paper (its appendix A)."""

EXTENDED_BASES = (*PAPER_BASES, "RW", "IOU")
"""The paper's base kernels, the random walk, and the random walk with momentum."""

CHANGE_POINTS = "CP"
"""Stands among bases for change points: the search may tell what ends from what begins."""

_REGISTRY = {base.name: base for base in (WN, C, LIN, SE, PER, RW, IOU, OU, UNTIL, FROM)}
_WORDS: dict[str, Words] = {}


def register_base(base: BaseKernel, words: Words | None = None, *, replace: bool = False) -> None:
    """Make a base kernel known to the grammar; `lkm_gpflow.kernels.register_kernel` calls this.

    Parameters
    ----------
    base
        Its name and hyperparameters.
    words
        What reports say of it.
    replace
        Whether another base kernel of this name may be there, and goes.

    Raises
    ------
    ValueError
        If the name is not upper case letters and digits, or belongs to another base kernel.
    """
    if not re.fullmatch(r"[A-Z][A-Z0-9]*", base.name) or base.name in ("X", CHANGE_POINTS):
        raise ValueError(f"expected a base kernel name of capitals and digits, got {base.name!r}")
    if not replace and _REGISTRY.get(base.name, base) != base:
        raise ValueError(
            f"there is another base kernel named {base.name}, with other hyperparameters: choose "
            "another name"
        )
    _REGISTRY[base.name] = base
    _WORDS.pop(base.name, None)
    if words is not None:
        _WORDS[base.name] = words


def words_of(name: str) -> Words | None:
    """Return the words that a base kernel was registered with; built-in ones have none here."""
    return _WORDS.get(name)


class UnknownBaseError(ValueError):
    """No base kernel has this name; the text lists the known ones."""


def base_kernel(name: str) -> BaseKernel:
    """Return the base kernel of this name.

    Raises
    ------
    UnknownBaseError
        If none is registered under this name.
    """
    if name not in _REGISTRY:
        raise UnknownBaseError(
            f"expected a base kernel among {', '.join(_REGISTRY)}, got {name!r}: register one of "
            "your own first (lkm_gpflow.kernels.register_kernel)"
        )
    return _REGISTRY[name]


def with_windows(bases: Sequence[str]) -> tuple[str, ...]:
    """Names of base kernels, UNTIL and FROM in the place of change points ("CP")."""
    windows = {CHANGE_POINTS: (UNTIL.name, FROM.name)}
    return tuple(each for name in bases for each in windows.get(name, (name,)))

"""What options of ``lkm-gpflow discover`` are read into."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast, get_args

import click

from ..data.files import TAB
from ..data.shapes import LongNames
from ..data.transforms import Transform
from ..gp.likelihoods import LikelihoodName, PointName
from ..kernels.grammar import EXTENDED_BASES, PAPER_BASES

_Value = TypeVar("_Value")


class ReadAs(click.ParamType[_Value]):
    """A text that a function reads; its ValueError is what the command says of another text."""

    def __init__(self, name: str, read: Callable[[str], _Value]) -> None:
        self.name, self._read = name, read

    def convert(
        self, value: str | _Value, param: click.Parameter | None, ctx: click.Context | None
    ) -> _Value:
        """Read a text; what is read already stays."""
        if not isinstance(value, str):
            return value
        try:
            return self._read(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


class Spreading(click.Command):
    """A command with options that take several values, also as ``--series A B``.

    The values end at the next option; where nothing else is SOURCE, the last one is.
    """

    several = ("--series", "--without")

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Give each value an option of its own."""
        spread: list[str] = []
        last, option = 0, ""
        for arg in args:
            if arg.startswith("-"):
                option = arg if arg in self.several else ""
            elif option and spread[-1] != option:
                last = len(spread)
                spread.append(option)
            spread.append(arg)
        trial = click.Context(self, resilient_parsing=True)
        super().parse_args(trial, [*spread])
        if last and trial.params["source"] is None:
            del spread[last]
        return super().parse_args(ctx, spread)


def bases(text: str) -> tuple[str, ...]:
    """Read names of base kernels, of the sets of them, or both: each base kernel once."""
    sets = {"PAPER": PAPER_BASES, "EXTENDED": EXTENDED_BASES}
    names = [name.strip().upper() for name in text.split(",") if name.strip()]
    if not names:
        raise ValueError(
            f"expected base kernels: paper, extended, or a list such as SE,PER, got {text!r}"
        )
    return tuple(dict.fromkeys(base for name in names for base in sets.get(name, (name,))))


def separator(text: str) -> str:
    """Read a character; a tab also as a shell can write it."""
    return TAB if text in ("tab", r"\t") else text


def long_columns(text: str) -> LongNames:
    """Read three names of columns, with commas between."""
    names = [name.strip() for name in text.split(",")]
    if len(names) != 3 or not all(names):
        raise ValueError(f"expected the names of three columns, got {text!r}")
    return LongNames(*names)


def transform(text: str) -> Transform:
    """Read a transformation of all series, or of one: "auto", "log", "none", or "Gold=log"."""
    if text in ("auto", "log", "none"):
        return cast(Transform, text)
    series, _, kind = text.rpartition("=")
    if kind != "log" or not series:
        raise ValueError(
            f"expected auto, log, none, or the name of a series and =log, got {text!r}"
        )
    return {series: "log"}


def likelihoods(text: str) -> Any:
    """Read a likelihood of all series, or of some: "poisson", or "visits=poisson,open=share"."""
    known = ("auto", *get_args(LikelihoodName), *get_args(PointName))
    named = [each.rpartition("=") for each in text.split(",")]
    for _, _, kind in named:
        if kind not in known:
            raise ValueError(f"expected a likelihood among {known}, got {kind!r}")
    if all(sign for _, sign, _ in named):
        return {series: kind for series, _, kind in named}
    if len(named) > 1:
        raise ValueError(f"expected one likelihood, or names such as visits=poisson, got {text!r}")
    return text


def new_folder(text: str) -> Path:
    """Read a path that may not exist yet; an empty one would stand for the working folder."""
    if not text.strip():
        raise ValueError(f"expected the name of a folder, got {text!r}")
    return Path(text)

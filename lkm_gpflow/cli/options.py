"""What options of ``lkm-gpflow discover`` are read into."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import cast

import click

from ..data.files import TAB
from ..data.shapes import LongNames
from ..data.transforms import Transform
from ..kernels.grammar import EXTENDED_BASES, PAPER_BASES


class Bases(click.ParamType[tuple[str, ...]]):
    """Names of base kernels, or of the sets of them."""

    name = "bases"

    def convert(
        self,
        value: str | tuple[str, ...],
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> tuple[str, ...]:
        """Read names, sets of names, or both: each base kernel once."""
        if isinstance(value, tuple):
            return value
        sets = {"PAPER": PAPER_BASES, "EXTENDED": EXTENDED_BASES}
        names = [name.strip().upper() for name in value.split(",") if name.strip()]
        if not names:
            self.fail(
                "expected base kernels: paper, extended, or a list such as SE,PER, got "
                f"{value!r}", param, ctx,
            )  # fmt: skip
        return tuple(dict.fromkeys(base for name in names for base in sets.get(name, (name,))))


class Budget(click.ParamType[float]):
    """A number with its unit, read by one of the functions of `budget`."""

    def __init__(self, name: str, read: Callable[[str], float]) -> None:
        self.name = name
        self._read = read

    def convert(
        self, value: str | float, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Read a text, or say what was expected."""
        if isinstance(value, float):
            return value
        try:
            return self._read(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


class Separator(click.ParamType[str]):
    """A character; a tab also as a shell can write it."""

    name = "character"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Read a character, or the word tab."""
        return TAB if value in ("tab", r"\t") else value


class LongColumns(click.ParamType[LongNames]):
    """Three names of columns."""

    name = "series,time,value"

    def convert(
        self, value: str | LongNames, param: click.Parameter | None, ctx: click.Context | None
    ) -> LongNames:
        """Read three names with commas between."""
        if isinstance(value, LongNames):
            return value
        names = [name.strip() for name in value.split(",")]
        if len(names) != 3 or not all(names):
            self.fail(f"expected the names of three columns, got {value!r}", param, ctx)
        return LongNames(*names)


class TransformOption(click.ParamType[Transform]):
    """A transformation of all series, or of one: "auto", "log", "none", or "Gold=log"."""

    name = "transform"

    def convert(
        self, value: str | Transform, param: click.Parameter | None, ctx: click.Context | None
    ) -> Transform:
        """Read what stands for all series, or the logarithm of one."""
        if not isinstance(value, str):
            return value
        if value in ("auto", "log", "none"):
            return cast(Transform, value)
        series, _, kind = value.rpartition("=")
        if kind != "log" or not series:
            self.fail(
                f"expected auto, log, none, or the name of a series and =log, got {value!r}",
                param, ctx,
            )  # fmt: skip
        return {series: "log"}


class NewFolder(click.ParamType[Path]):
    """A folder that may not exist yet; no name at all would stand for the working folder."""

    name = "path"

    def convert(
        self, value: str | Path, param: click.Parameter | None, ctx: click.Context | None
    ) -> Path:
        """Read a path that is not empty."""
        if not str(value).strip():
            self.fail(f"expected the name of a folder, got {value!r}", param, ctx)
        return Path(value)

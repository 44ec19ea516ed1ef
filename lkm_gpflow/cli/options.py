"""What options of ``lkm-gpflow discover`` are read into."""

from __future__ import annotations

from collections.abc import Sequence

import click

from ..data.shapes import LongNames
from ..kernels.grammar import EXTENDED_BASES, PAPER_BASES
from ..runtime.arguments import check_series


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


def long_columns(text: str) -> LongNames:
    """Read three names of columns, with commas between."""
    names = [name.strip() for name in text.split(",")]
    if len(names) != 3 or not all(names):
        raise ValueError(f"--long: expected the names of three columns, got {text!r}")
    return LongNames(*names)


def by_series(
    option: str, given: Sequence[str], series: Sequence[object]
) -> str | dict[str, str] | None:
    """Read [SERIES=]VALUE, given several times: one for all series, or some by name.

    Beside names, one without a name is that of all the others.
    """
    parts = [each.rpartition("=") for each in given]
    named = {name: value for name, sign, value in parts if sign}
    others = [value for _, sign, value in parts if not sign][-1:]
    if not named:
        return others[0] if others else None
    known = list(map(str, series))
    for name in named:
        check_series(name, known, f"{option}: ")
    return {name: value for name in known for value in others} | named

"""The command line: ``lkm-gpflow`` with one file a command, imported when it is asked for.

May import: everything.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

_COMMANDS = {
    "data": "List the data sets, or download the named ones and say where they are.",
    "discover": "Discover the components of the series in SOURCE and forecast them.",
    "reproduce": "Run the notebooks of the paper's experiments, and make a page of their results.",
    "status": "Say which of the paper's experiments are done, failed, stale and missing, and "
    "minutes left.",
}
"""What the list of commands says of each, so that it need not import them."""


_OF_CLONE = ("reproduce", "status")
"""Commands of the laboratory, which is in a clone of the repository and no part of the package."""

_PIPE_CLOSED = 141  # exit status of a Unix tool that SIGPIPE ends: 128 + 13


@contextmanager
def ended_quietly() -> Iterator[None]:
    """End a command without a word if its reader has gone, as in ``lkm-gpflow data | head``."""
    try:
        yield
    except BrokenPipeError:
        with open(os.devnull, "wb") as nowhere:  # takes what Python still has to write
            for stream in (sys.stdout, sys.stderr):
                os.dup2(nowhere.fileno(), stream.fileno())
        sys.exit(_PIPE_CLOSED)


def _of_clone() -> str:
    """Return the laboratory's commands, of the clone that one works in or installed from."""
    here = Path.cwd()
    for clone in (here, here.parent, Path(__file__).resolve().parents[2]):
        if (clone / "paper_experiments" / "lab" / "commands.py").exists():
            sys.path.insert(0, str(clone))
            return "paper_experiments.lab.commands"
    raise click.UsageError(
        f"expected the working folder to be a clone of lkm_gpflow's repository, got {here}: the "
        "paper's experiments are there, in paper_experiments, and not in the installed package"
    )


class _Commands(click.Group):
    """The command NAME is the function NAME_command of the module of that name beside this file."""

    def make_context(self, *args: Any, **kwargs: Any) -> click.Context:
        with ended_quietly():  # here, for --help is written now and `main` would end it with 1
            return super().make_context(*args, **kwargs)

    def invoke(self, ctx: click.Context) -> Any:
        with ended_quietly():
            return super().invoke(ctx)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        name = f"{cmd_name}_command"
        module = _of_clone() if cmd_name in _OF_CLONE else f"{__name__}.{name}"
        command: click.Command = getattr(importlib.import_module(module), name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(_COMMANDS.items()))


@click.command(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="lkm_gpflow")
def main() -> None:
    """Discover which patterns several time series share, forecast them, and rerun the paper."""


__all__ = ["main"]

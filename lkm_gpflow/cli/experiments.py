"""What ``reproduce`` and ``status`` share: which runs, and where."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from ..experiments.folders import RESULTS_VARIABLE
from ..experiments.profiles import PROFILES, Plan
from ..experiments.store import Store

_Command = TypeVar("_Command", bound=Callable[..., Any])

_OPTIONS = (
    click.option(
        "--profile",
        type=click.Choice(PROFILES),
        default="smoke",
        show_default=True,
        help="smoke: everything, tiny (minutes).  quick: the paper's settings, one seed (an hour)."
        "  paper: five seeds (hours).",
    ),
    click.option(
        "--only",
        metavar="ID...",
        multiple=True,
        help="Experiments or runs, or patterns such as 'extrapolation/gonu*'.  [default: all]",
    ),
    click.option(
        "--results",
        type=click.Path(path_type=Path, file_okay=False),
        envvar=RESULTS_VARIABLE,
        help="Folder of the results.  [default: results beside the notebooks]",
    ),
    click.option(
        "--experiments",
        type=click.Path(path_type=Path, exists=True, dir_okay=False),
        help="A file of your own in place of the paper's experiments.yml, its notebooks beside it.",
    ),
    click.argument("more", nargs=-1, metavar=""),
)


def experiment_options(command: _Command) -> _Command:
    """Give a command the options that choose runs and folders."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def chosen_ids(only: Sequence[str], more: Sequence[str]) -> list[str]:
    """Ids after ``--only``, which may be several: ``--only table1 ablations``."""
    if more and not only:
        raise ValueError(
            f"expected options, got {more[0]!r}: to choose runs write --only {more[0]}"
        )
    return [*only, *more]


def store_of(plan: Plan, results: Path | None) -> Store:
    """Where the results of a plan are."""
    return Store((results or plan.folder / "results").resolve())

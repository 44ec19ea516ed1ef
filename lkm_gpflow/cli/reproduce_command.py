"""``lkm-gpflow reproduce``: the paper's experiments, as far as they are not done yet.

The experiments are no part of the package: they are run in a clone of the repository.
"""

from __future__ import annotations

import importlib
import os
import signal
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from ..runtime.executors import process_pool
from .common import check_writable, said_plainly

_Command = TypeVar("_Command", bound=Callable[..., Any])

_OPTIONS = (
    click.option(
        "--profile",
        type=click.Choice(("smoke", "quick", "paper")),
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
        default=Path("paper-lkm"),
        show_default=True,
        help="Folder of the results.  Those committed are in paper_experiments/results.",
    ),
    click.argument("more", nargs=-1, metavar=""),
)


def experiment_options(command: _Command) -> _Command:
    """Give a command the options that choose runs and their folder."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def runner_of_clone() -> Any:
    """Import the runner of the clone that one works in, or that the package is installed from."""
    here = Path.cwd()
    for clone in (here, here.parent, Path(__file__).resolve().parents[2]):
        if (clone / "paper_experiments" / "lab" / "runner.py").exists():
            sys.path.insert(0, str(clone))
            return importlib.import_module("paper_experiments.lab.runner")
    raise ValueError(
        f"expected the working folder to be a clone of lkm_gpflow's repository, got {here}: the "
        "paper's experiments are there, in paper_experiments, and not in the installed package"
    )


def chosen(only: Sequence[str], more: Sequence[str]) -> list[str]:
    """Return the ids after ``--only``, which may be several: ``--only table1 ablations``."""
    if more and not only:
        raise ValueError(
            f"expected options, got {more[0]!r}: to choose runs write --only {more[0]}"
        )
    return [*only, *more]


@click.command("reproduce")
@experiment_options
@click.option(
    "--jobs",
    type=click.IntRange(min=1),
    help="Notebooks to run at a time on this machine.  [default: one per processor]",
)
@click.option(
    "--scheduler",
    metavar="ADDRESS",
    help="Run on the Dask cluster with this scheduler, such as tcp://host:8786; its workers must "
    "see the clone and the folder of results.",
)
@click.option("--force", is_flag=True, help="Run finished notebooks again.")
def reproduce_command(
    profile: str,
    only: Sequence[str],
    results: Path,
    more: Sequence[str],
    jobs: int | None,
    scheduler: str | None,
    force: bool,
) -> None:
    """Run the notebooks of the paper's experiments, and make a page of their results.

    Finished runs are not repeated.  A run that fails does not stop the others, and is tried again
    the next time.  You can stop the command at any time; the same command continues.

    RESULTS/runs.jsonl has a line for each run, RESULTS/executed the notebooks, and
    RESULTS/results.html all tables and figures.  `lkm-gpflow status` says what is done.
    """
    with said_plainly():
        if jobs and scheduler:
            raise ValueError("expected --jobs or --scheduler, got both")
        runner = runner_of_clone()
        runs = runner.read_plan(profile, chosen(only, more))
        _need_papermill()
        where = results.resolve()
        check_writable(where, "a folder of results")
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        workers = (
            runner.dask_executor(scheduler) if scheduler else process_pool(jobs or os.cpu_count())
        )
        try:
            with workers as executor:
                states = runner.reproduce(runs, where, executor, force=force, say=click.echo)
        except KeyboardInterrupt:
            click.echo(
                f"stopped: finished runs are kept in {where}; the same command continues", err=True
            )
            sys.exit(128 + signal.SIGINT)
        counts = Counter(states.values())
        click.echo(
            f"{counts['done']} runs done, {counts['there']} were finished before, "
            f"{counts['failed']} failed"
        )
        if counts["there"] == len(states):
            click.echo(f"to run them yourself, name another folder than {where} (--results)")
        records = runner.read_records(where)
        for run in [run for run, state in states.items() if state == "failed"]:
            click.echo(
                f"failed: {run}: {runner.last_line(records[run]['error'])}\n"
                f"  as far as it came: {where / 'executed' / run}.ipynb",
                err=True,
            )
        click.echo(f"tables and figures: {runner.write_page(runs, where, profile)}")
        if counts["failed"]:
            sys.exit(1)


def _need_papermill() -> None:
    try:
        import nbconvert  # noqa: F401
        import papermill  # noqa: F401
    except ImportError as error:
        raise ValueError(
            f"running notebooks needs {error.name}: pip install '.[notebooks]' in a "
            "clone of lkm_gpflow"
        ) from error

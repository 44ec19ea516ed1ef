"""``lkm-gpflow reproduce`` and ``lkm-gpflow status``: the paper's experiments from a shell."""

from __future__ import annotations

import os
import signal
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar, get_args

import click

from lkm_gpflow.cli.common import check_writable, said_plainly
from lkm_gpflow.runtime.executors import process_pool
from lkm_gpflow.runtime.replacing import replacing

from . import runner

_Command = TypeVar("_Command", bound=Callable[..., Any])

_OPTIONS = (
    click.option(
        "--profile",
        type=click.Choice(runner.PROFILES),
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


def _experiment_options(command: _Command) -> _Command:
    """Give a command the options that choose runs and their folder."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def _chosen(only: Sequence[str], more: Sequence[str]) -> list[str]:
    """Return the ids after ``--only``, which may be several: ``--only table1 ablations``."""
    if more and not only:
        raise ValueError(
            f"expected options, got {more[0]!r}: to choose runs write --only {more[0]}"
        )
    return [*only, *more]


@click.command("reproduce")
@_experiment_options
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
        runs = runner.read_plan(profile, _chosen(only, more))
        for library in ("papermill", "nbconvert"):
            if find_spec(library) is None:
                raise ValueError(
                    f"running notebooks needs {library}: pip install '.[notebooks]' in the clone"
                )
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


@click.command("status")
@_experiment_options
@click.option("--runs", "listed", is_flag=True, help="List every run and its state.")
@click.option(
    "--page",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="Update the table of artefacts in this Markdown page.",
)
def status_command(
    profile: str,
    only: Sequence[str],
    results: Path,
    more: Sequence[str],
    listed: bool,
    page: Path | None,
) -> None:
    """Say which of the paper's experiments are done, failed, stale and missing, and minutes left.

    A run is stale if the code of its notebook, or the results that it reads, are not as they were.
    Minutes are those expected on one processor: with --jobs 2 it takes about half.
    """
    with said_plainly():
        runs = runner.read_plan(profile, _chosen(only, more))
        where = results.resolve()
        records = runner.read_records(where)
        click.echo(f"profile {profile}, results in {where}")
        table = runner.overview(runs, records, profile)
        states = list(get_args(runner.State))
        shown = table[[*states, "minutes left"]]
        shown.loc["all"] = shown.sum()
        click.echo(shown.astype(dict.fromkeys(states, int)).reset_index().to_string(index=False))
        for run in runs:
            state = runner.state(run, records)
            if state == "failed":
                click.echo(f"failed: {run.id}: {runner.last_line(records[run.id]['error'])}")
            elif listed and state == "done":
                record = records[run.id]
                click.echo(f"done: {run.id} ({record['seconds']:.0f} s, {record['finished']})")
            elif listed:
                click.echo(f"{state}: {run.id} (about {run.minutes:g} min)")
        if page is not None:
            text = runner.with_results(page.read_text(encoding="utf-8"), table)
            with replacing(page) as unfinished:
                unfinished.write_text(text, encoding="utf-8")
            click.echo(f"{page} is up to date")

"""``lkm-gpflow reproduce``: the paper's experiments, as far as they are not done yet."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import click

from ..experiments.overview import progress_of
from ..experiments.profiles import read_plan
from ..experiments.results_page import results_html
from ..experiments.runner import dask_workers, local_workers, reproduce
from ..experiments.store import write_atomically
from .common import Stopped, check_writable, said_plainly, signals_stop
from .experiments import chosen_ids, experiment_options, store_of


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
    "see the folders of notebooks and results.",
)
@click.option("--force", is_flag=True, help="Run finished notebooks again.")
def reproduce_command(
    profile: str,
    only: Sequence[str],
    results: Path | None,
    experiments: Path | None,
    more: Sequence[str],
    jobs: int | None,
    scheduler: str | None,
    force: bool,
) -> None:
    """Run the notebooks of the paper's experiments, and make a page of their results.

    Finished runs are not repeated: to run everything yourself, name an empty folder with
    --results.  A run that fails is kept with its traceback, does not stop the others, and is tried
    again the next time.  You can stop the command at any time; the same command continues.
    Several machines may work on one folder of results.

    RESULTS/runs has a small JSON file for each run, RESULTS/executed the notebooks, and
    RESULTS/results.html all tables and figures.  `lkm-gpflow status` says what is done.
    """
    with said_plainly(), signals_stop():
        _need_papermill()
        if jobs and scheduler:
            raise ValueError("expected --jobs or --scheduler, got both")
        plan = read_plan(experiments)
        store = store_of(plan, results)
        runs = plan.runs(profile, chosen_ids(only, more))
        check_writable(store.folder, "a folder of results")
        workers = (
            dask_workers(scheduler) if scheduler else local_workers(jobs or os.cpu_count() or 1)
        )
        try:
            with workers as where:
                outcomes = reproduce(runs, plan, store, where, force=force, say=click.echo)
        except Stopped as stopped:
            click.echo(
                f"stopped: finished runs are kept in {store.folder}; the same command continues",
                err=True,
            )
            sys.exit(128 + stopped.number)
        states = Counter(outcome.state for outcome in outcomes)
        click.echo(
            f"{states['done']} runs done, {states['there']} were finished before, "
            f"{states['failed']} failed"
        )
        if states["there"] == len(outcomes):
            click.echo(f"to run them yourself, name another folder than {store.folder} (--results)")
        failed = [outcome for outcome in outcomes if outcome.state == "failed"]
        for outcome in failed:
            click.echo(
                f"failed: {outcome.run.id}: {outcome.message}\n"
                f"  traceback: {store.failure_path(outcome.run.id)}",
                err=True,
            )
        page = store.folder / "results.html"
        html = results_html(
            progress_of(plan, profile, store, chosen_ids(only, more)), profile, store
        )
        write_atomically(page, html, store.folder / "work")
        click.echo(f"tables and figures: {page}")
        if failed:
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

"""``lkm-gpflow status``: what is done, failed and missing."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from ..experiments.overview import overview, progress_of, with_results
from ..experiments.profiles import read_plan
from ..experiments.store import damaged, write_atomically
from .common import said_plainly
from .experiments import chosen_ids, experiment_options, store_of


@click.command("status")
@experiment_options
@click.option("--runs", is_flag=True, help="List every run and its state.")
@click.option(
    "--page",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="Update the table of artefacts in this Markdown page.",
)
def status_command(
    profile: str,
    only: Sequence[str],
    results: Path | None,
    experiments: Path | None,
    more: Sequence[str],
    runs: bool,
    page: Path | None,
) -> None:
    """Say which of the paper's experiments are done, failed and missing, and the minutes left.

    Minutes are those expected on one processor: with --jobs 2 it takes about half.
    """
    with said_plainly():
        plan = read_plan(experiments)
        store = store_of(plan, results)
        progress = progress_of(plan, profile, store, chosen_ids(only, more))
        click.echo(f"profile {profile}, results in {store.folder}")
        table = overview(progress)
        table.loc["all"] = table.sum()
        counts = {name: int for name in ("done", "failed", "missing")}
        click.echo(table.astype(counts).reset_index().to_string(index=False))
        for each in progress:
            for run, record in each.failed:
                click.echo(
                    f"failed: {run.id}: {record.error.strip().splitlines()[-1]}\n"
                    f"  traceback: {store.failure_path(run.id)}"
                )
            for run, record in each.done if runs else ():
                click.echo(f"done: {run.id} ({record.seconds:.0f} s, {record.finished})")
            for run in each.missing if runs else ():
                click.echo(f"missing: {run.id} (about {run.minutes:g} min)")
        for path in damaged(store, [run.id for run in plan.runs(profile)]):
            click.echo(f"Warning: {path} is damaged and not taken for a result", err=True)
        if page is not None:
            text = page.read_text(encoding="utf-8")
            write_atomically(page, with_results(text, progress, profile), page.parent)
            click.echo(f"{page} is up to date")

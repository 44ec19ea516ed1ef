"""``lkm-gpflow status``: what is done, failed and missing."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from ..runtime.replacing import replacing
from .common import said_plainly
from .reproduce_command import chosen, experiment_options, runner_of_clone


@click.command("status")
@experiment_options
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
    """Say which of the paper's experiments are done, failed and missing, and the minutes left.

    Minutes are those expected on one processor: with --jobs 2 it takes about half.
    """
    with said_plainly():
        runner = runner_of_clone()
        runs = runner.read_plan(profile, chosen(only, more))
        where = results.resolve()
        records = runner.read_records(where)
        click.echo(f"profile {profile}, results in {where}")
        table = runner.overview(runs, records, profile)
        shown = table[["done", "failed", "missing", "minutes left"]]
        shown.loc["all"] = shown.sum()
        counts = dict.fromkeys(["done", "failed", "missing"], int)
        click.echo(shown.astype(counts).reset_index().to_string(index=False))
        for run in runs:
            state = runner.state(run, records)
            if state == "failed":
                click.echo(f"failed: {run.id}: {runner.last_line(records[run.id]['error'])}")
            elif listed and state == "done":
                record = records[run.id]
                click.echo(f"done: {run.id} ({record['seconds']:.0f} s, {record['finished']})")
            elif listed:
                click.echo(f"missing: {run.id} (about {run.minutes:g} min)")
        if page is not None:
            text = runner.with_results(page.read_text(encoding="utf-8"), table)
            with replacing(page) as unfinished:
                unfinished.write_text(text, encoding="utf-8")
            click.echo(f"{page} is up to date")

"""Search planted tables with the variants of the model, and say how much of Z is wrong.

Beside them stands how much is wrong if all but Z is known.

What is done is kept in the output file: a run that was stopped goes on where it was.

    python paper_experiments/sharing.py --amplitudes none --amplitudes series --seeds 5
"""

from __future__ import annotations

import itertools
from functools import partial
from pathlib import Path

import click
from tqdm.auto import tqdm

from lkm_gpflow import process_pool
from lkm_gpflow.experiments.sharing import (
    BASES,
    DESIGNS,
    HEIGHTS,
    PUBLISHED,
    TOLD,
    best_possible,
    named,
    search,
    summary,
)
from lkm_gpflow.runtime.executors import run_all
from lkm_gpflow.runtime.journal import Journal

RESULTS = Path(__file__).parent / "results" / "sharing.jsonl"


@click.command(help=__doc__)
@click.option("--amplitudes", multiple=True, default=["none"], show_default=True)
@click.option("--criterion", multiple=True, default=["bic"], show_default=True)
@click.option("--averaging", multiple=True, default=["none"], show_default=True)
@click.option("--design", multiple=True, default=list(DESIGNS), help='Also "demo".')
@click.option("--heights", multiple=True, default=list(HEIGHTS), show_default=True)
@click.option("--seeds", default=5, show_default=True, help="Tables of each design.")
@click.option("--jobs", type=int, help="Processes.  [default: the processors]")
@click.option("--out", type=click.Path(path_type=Path), default=RESULTS, help="Output file.")
def main(
    amplitudes: tuple[str, ...],
    criterion: tuple[str, ...],
    averaging: tuple[str, ...],
    design: tuple[str, ...],
    heights: tuple[str, ...],
    seeds: int,
    jobs: int | None,
    out: Path,
) -> None:
    """Search the tables that the output file has not, and print the summary of all it has."""
    out.parent.mkdir(parents=True, exist_ok=True)
    journal = Journal(out, "sharing", {"designs": DESIGNS, "bases": BASES, "depth": 1})
    records = list(journal.records)
    done = {(named(r["options"]), r["design"], r["heights"], r["seed"]) for r in records}
    todo = {}
    for *values, seed, name, kind in itertools.product(
        amplitudes, criterion, averaging, range(seeds), design, heights
    ):
        named_values = zip(("amplitudes", "criterion", "averaging"), values, strict=True)
        options = {key: value for key, value in named_values if value != PUBLISHED[key]}
        if not (name == "demo" and kind != "equal"):
            todo[named(TOLD), name, kind, seed] = partial(best_possible, name, kind, seed)
            todo[named(options), name, kind, seed] = partial(search, name, kind, seed, options)
    todo = {key: job for key, job in todo.items() if key not in done}
    with process_pool(jobs) as pool, tqdm(total=len(todo), unit="table") as bar:
        for _, record in run_all(todo, pool):
            journal.append(record)
            records.append(record)
            bar.update()
    click.echo(summary(records).round(1).to_string())


if __name__ == "__main__":
    main()

"""Plant cycles and slow movements, and count what reports say of them that is true.

What is done is kept in the output file: a run that was stopped goes on where it was.

    python paper_experiments/families.py --tables 60
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import click
from tqdm.auto import tqdm

from lkm_gpflow import process_pool
from lkm_gpflow.experiments.families import report_on, summary
from lkm_gpflow.runtime.executors import run_all
from lkm_gpflow.runtime.journal import Journal

RESULTS = Path(__file__).parent / "results" / "families.jsonl"


@click.command(help=__doc__)
@click.option("--tables", default=60, show_default=True, help="How many are planted.")
@click.option("--jobs", type=int, help="Processes.  [default: the processors]")
@click.option("--out", type=click.Path(path_type=Path), default=RESULTS, help="Output file.")
def main(tables: int, jobs: int | None, out: Path) -> None:
    """Make the searches that the output file has not, and print the summary of all it has."""
    out.parent.mkdir(parents=True, exist_ok=True)
    journal = Journal(out, "families", {})
    records = list(journal.records)
    done = {record["seed"] for record in records}
    todo = {seed: partial(report_on, seed) for seed in range(tables) if seed not in done}
    with process_pool(jobs) as pool, tqdm(total=len(todo), unit="table") as bar:
        for _, record in run_all(todo, pool):
            journal.append(record)
            records.append(record)
            bar.update()
    click.echo(summary(records).to_string())


if __name__ == "__main__":
    main()

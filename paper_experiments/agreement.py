"""Search data sets with ten seeds each, and say on how much of Z the searches agree.

What is done is kept in the output file: a run that was stopped goes on where it was.

    python paper_experiments/agreement.py --seeds 10
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import click
from tqdm.auto import tqdm

from lkm_gpflow import process_pool
from lkm_gpflow.experiments.agreement import DATASETS, search, summary
from lkm_gpflow.runtime.executors import run_all
from lkm_gpflow.runtime.journal import Journal

RESULTS = Path(__file__).parent / "results" / "agreement.jsonl"


@click.command(help=__doc__)
@click.option("--dataset", multiple=True, default=DATASETS, show_default=True)
@click.option("--seeds", default=10, show_default=True, help="Searches of each data set.")
@click.option("--jobs", type=int, help="Processes.  [default: the processors]")
@click.option("--out", type=click.Path(path_type=Path), default=RESULTS, help="Output file.")
def main(dataset: tuple[str, ...], seeds: int, jobs: int | None, out: Path) -> None:
    """Make the searches that the output file has not, and print the summary of all it has."""
    out.parent.mkdir(parents=True, exist_ok=True)
    journal = Journal(out, "agreement", {})
    records = list(journal.records)
    done = {(record["dataset"], record["seed"]) for record in records}
    todo = {
        (name, seed): partial(search, name, seed)
        for seed in range(seeds)
        for name in dataset
        if (name, seed) not in done
    }
    with process_pool(jobs) as pool, tqdm(total=len(todo), unit="search") as bar:
        for _, record in run_all(todo, pool):
            journal.append(record)
            records.append(record)
            bar.update()
    click.echo(summary(records).round(3).to_string())


if __name__ == "__main__":
    main()

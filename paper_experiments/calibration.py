"""Run the calibration of probabilities on planted data; `calibration.ipynb` shows the results.

Tables of the first 200 seeds chose something (see `NUM_CHOSEN`), so those after them judge it; of
these only the search is run.  Some of these judge the 90% intervals of hyperparameters, too.
What is done is kept in three files: a run that was stopped goes on where it was.

    python paper_experiments/calibration.py --count 450
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import click
from tqdm.auto import tqdm

from lkm_gpflow import process_pool
from lkm_gpflow.experiments.calibration import (
    ALPHA,
    NUM_CHOSEN,
    STRUCTURES,
    calibrate_intervals,
    calibrate_one,
    calibrate_search,
    held,
)
from lkm_gpflow.runtime.executors import run_all
from lkm_gpflow.runtime.journal import Journal

RESULTS = Path(__file__).parent / "results"

FIRST = 300
"""Seed from which on tables judge intervals."""


@click.command(help=__doc__)
@click.option("--count", default=450, show_default=True, help="Planted data sets.")
@click.option("--intervals", default=50, show_default=True, help="Of them, for hyperparameters.")
@click.option("--jobs", type=int, help="Processes.  [default: the processors]")
@click.option("--out", type=click.Path(path_type=Path), default=RESULTS, help="Output folder.")
def main(count: int, intervals: int, jobs: int | None, out: Path) -> None:
    """Calibrate the planted data sets that the output files have not."""
    out.mkdir(parents=True, exist_ok=True)
    header = {"structures": STRUCTURES, "alpha": ALPHA}
    parts = (
        ("calibration.jsonl", range(min(count, NUM_CHOSEN)), partial(calibrate_one, search=True)),
        ("calibration_judging.jsonl", range(NUM_CHOSEN, count), calibrate_search),
        ("calibration_intervals.jsonl", range(FIRST, FIRST + intervals), calibrate_intervals),
    )
    with process_pool(jobs) as pool:
        for name, seeds, calibrate in parts:
            journal = Journal(out / name, "calibration", header)
            done = {record["seed"] for record in journal.records}
            todo = {seed: partial(calibrate, seed) for seed in seeds if seed not in done}
            with tqdm(total=len(todo), unit="data set", desc=name) as bar:
                for _, record in run_all(todo, pool):
                    journal.append(record)
                    bar.update()
    records = Journal(out / "calibration_intervals.jsonl", "calibration", header).records
    if told := [each for record in records for each in record["intervals"]]:
        click.echo(f"What 90% intervals hold:\n{held(told).round(2)}")


if __name__ == "__main__":
    main()

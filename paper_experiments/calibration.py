"""Run the calibration of probabilities on planted data; `calibration.ipynb` shows the results.

What is done is kept in the output file: a run that was stopped goes on where it was.

    python paper_experiments/calibration.py --count 200
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import click
from tqdm.auto import tqdm

from lkm_gpflow import process_pool
from lkm_gpflow.experiments.calibration import ALPHA, STRUCTURES, calibrate_one
from lkm_gpflow.runtime.executors import run_all
from lkm_gpflow.runtime.journal import Journal

RESULTS = Path(__file__).parent / "results" / "calibration.jsonl"


@click.command(help=__doc__)
@click.option("--count", default=200, show_default=True, help="Planted data sets.")
@click.option("--jobs", type=int, help="Processes.  [default: the processors]")
@click.option("--out", type=click.Path(path_type=Path), default=RESULTS, help="Output file.")
def main(count: int, jobs: int | None, out: Path) -> None:
    """Calibrate the planted data sets that the output file has not."""
    out.parent.mkdir(parents=True, exist_ok=True)
    journal = Journal(out, "calibration", {"structures": STRUCTURES, "alpha": ALPHA})
    done = {record["seed"] for record in journal.records}
    todo = {
        seed: partial(calibrate_one, seed, search=True) for seed in range(count) if seed not in done
    }
    with process_pool(jobs) as pool, tqdm(total=len(todo), unit="data set") as bar:
        for _, record in run_all(todo, pool):
            journal.append(record)
            bar.update()


if __name__ == "__main__":
    main()

"""Learn from all 11,500 pieces of EEG; `notebooks/09_many_series.ipynb` shows the results.

`learn` learns the paper's six kernels, `search` searches for kernels on a subset; both end on all
series. What is done is kept in the ledger: a run that was stopped goes on where it was.

    python paper_experiments/many_series.py learn --ledger seizure_learn.jsonl
    python paper_experiments/many_series.py search --ledger seizure_search.jsonl
"""

from __future__ import annotations

import json
import resource
import time
from pathlib import Path

import click

import lkm_gpflow as lkm
from lkm_gpflow.experiments.many_series import keep
from lkm_gpflow.experiments.seizure import STRUCTURE

RESULTS = Path(__file__).parent / "results"


@click.command(help=__doc__)
@click.argument("what", type=click.Choice(["learn", "search"]))
@click.option("--subset", type=int, help="Series drawn to begin with.  [default: 100, search: 25]")
@click.option("--restarts", default=2, show_default=True, help="Fits of each structure.")
@click.option("--depth", default=1, show_default=True, help="Of the search.")
@click.option(
    "--bases",
    default="SE,PER",
    show_default=True,
    help="Of the search: those of the paper's six kernels; a second of EEG has no trend.",
)
@click.option("--seed", default=0, show_default=True, help="Everything random follows from it.")
@click.option("--jobs", default=2, show_default=True, help="Processes.")
@click.option(
    "--ledger", required=True, type=click.Path(path_type=Path), help="File that keeps every fit."
)
@click.option("--out", type=click.Path(path_type=Path), help="File of the result.")
def main(
    what: str,
    subset: int | None,
    restarts: int,
    depth: int,
    bases: str,
    seed: int,
    jobs: int,
    ledger: Path,
    out: Path | None,
) -> None:
    """Learn or search, keep the result, say what it took."""
    began = time.perf_counter()
    out = out or RESULTS / f"seizure_all_{what}.json"
    out.parent.mkdir(parents=True, exist_ok=True)
    frame = lkm.datasets.load("seizure").frame
    subset = subset or {"learn": 100, "search": 25}[what]
    with lkm.process_pool(jobs) as pool:
        if what == "learn":
            found = lkm.learn(
                frame, STRUCTURE, subset=subset, restarts=restarts, seed=seed, ledger=ledger,
                executor=pool,
            )  # fmt: skip
        else:
            found = lkm.discover(
                frame, bases=bases.split(","), depth=depth, subset=subset, restarts=restarts,
                seed=seed, ledger=ledger, executor=pool,
            )  # fmt: skip
    command = f"many_series.py {what} --subset {subset} --restarts {restarts} --seed {seed}"
    if what == "search":
        command += f" --depth {depth} --bases {bases}"
    keep(found, out, command, ledger)
    click.echo(found)
    click.echo(found.ledger[["found", "bic", "elbo", "seconds", "decision"]].to_string())
    own, workers = (
        resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    took = {
        "wall seconds": time.perf_counter() - began,
        "processor seconds": sum(u.ru_utime + u.ru_stime for u in (own, workers)),
        "largest process, GB": max(own.ru_maxrss, workers.ru_maxrss) / 1e6,
    }
    click.echo(json.dumps({key: round(value, 2) for key, value in took.items()}))


if __name__ == "__main__":
    main()

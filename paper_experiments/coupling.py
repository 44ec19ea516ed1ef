"""Fill gaps and missing ends of the benchmark's tables, coupled and uncoupled.

What is done is kept in the output file: a run that was stopped goes on where it was.  The smallest
tables come first.

    python paper_experiments/coupling.py --task gaps --method lkm
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from lkm_gpflow.experiments import coupling
from lkm_gpflow.experiments.benchmark import tables
from lkm_gpflow.runtime.journal import Journal

RESULTS = Path(__file__).parent / "results" / "coupling.jsonl"
METHODS = ("lines", "neighbours", "lkm", "lmc")
RIVALS = ("uncoupled", "refitted", "lmc", "neighbours", "lines")


@click.command(help=__doc__)
@click.option(
    "--task", "tasks", multiple=True, type=click.Choice(["gaps", "ends"]), default=["gaps", "ends"]
)
@click.option("--method", "methods", multiple=True, type=click.Choice(METHODS), default=METHODS)
@click.option(
    "--table",
    "chosen",
    metavar="TABLE",
    multiple=True,
    type=click.Choice(tables("choosing")),
    help="A table that is not held back.  [default: all]",
)
@click.option("--out", type=click.Path(path_type=Path), default=RESULTS, help="Output file.")
def main(tasks: Sequence[str], methods: Sequence[str], chosen: Sequence[str], out: Path) -> None:
    """Run what the output file has not, and show medians."""
    out.parent.mkdir(parents=True, exist_ok=True)
    header = {"structure": coupling.STRUCTURE, "lmc": dict(coupling.LMC_SETTINGS)}
    journal = Journal(out, "coupling", header)
    records = list(journal.records)
    done = {(record["table"], record["task"], record["method"]) for record in records}
    for method in methods:
        for task in tasks:
            for table in chosen or coupling.smallest_first():
                last = "coupled" if method == "lkm" else method
                if (table, task, last) in done:
                    continue
                for record in coupling.run(table, task, method):  # type: ignore[arg-type]
                    journal.append(record)
                    records.append(record)
                    click.echo(" ".join(f"{value}" for value in record.values()))
    click.echo(coupling.overview(records).round(3).to_string())
    click.echo("\nCoupled against the others: medians of ratios, and how often it is lower")
    click.echo(coupling.against(records, RIVALS).round(3).to_string())


if __name__ == "__main__":
    main()

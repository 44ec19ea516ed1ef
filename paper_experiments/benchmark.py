"""Run methods on the tables of the benchmark; `benchmark.ipynb` shows the results.

What is done is kept in a journal for each method: a run that was stopped goes on where it was.
A window that a method failed at is done, too: delete its line to try again.

    python paper_experiments/benchmark.py --method auto-arima --method lkm
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from lkm_gpflow import process_pool
from lkm_gpflow.experiments import benchmark

RESULTS = Path(__file__).parent / "results" / "benchmark"


@click.command(help=__doc__)
@click.option(
    "--method",
    "methods",
    multiple=True,
    type=click.Choice(list(benchmark.METHODS)),
    help="A method; may be given several times.  [default: all rivals]",
)
@click.option("--table", "chosen", multiple=True, help="A table of the part.  [default: all]")
@click.option(
    "--origin",
    "origins",
    multiple=True,
    type=click.Choice(["1", "2"]),
    default=["1", "2"],
    show_default=True,
    help="1 forecasts the last rows, 2 those before them.",
)
@click.option(
    "--part",
    type=click.Choice(["choosing", "held"]),
    default="choosing",
    show_default=True,
    help="Tables that choose defaults, or those that judge them, which are meant to be "
    "looked at once a release.",
)
@click.option("--jobs", default=1, show_default=True, help="Processes.")
@click.option("--out", type=click.Path(path_type=Path), default=RESULTS, help="Folder.")
def main(
    methods: Sequence[str],
    chosen: Sequence[str],
    origins: Sequence[str],
    part: str,
    jobs: int,
    out: Path,
) -> None:
    """Run what the journals have not."""
    known = benchmark.tables(part)  # type: ignore[arg-type]
    if others := [table for table in chosen if table not in known]:
        raise click.BadParameter(
            f"expected tables of the part {part!r} ({', '.join(known)}), got {', '.join(others)}",
            param_hint="--table",
        )
    tables = list(chosen) or known
    named = list(methods) or list(benchmark.RIVALS)
    which = [int(origin) for origin in origins]
    if jobs == 1:
        benchmark.run(named, tables, out, origins=which)
        return
    with process_pool(jobs) as pool:
        benchmark.run(named, tables, out, origins=which, executor=pool)


if __name__ == "__main__":
    main()

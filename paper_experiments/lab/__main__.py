"""Make the committed results of long experiments anew, in hours.

What is done is kept in `paper_experiments/results`, or the folder --results: a run that was stopped
goes on where it was.

    python -m paper_experiments.lab bench --method auto-arima --method lkm
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

from lkm_gpflow import process_pool

from . import (
    RESULTS,
    agreement,
    article,
    bench_tables,
    benchmark,
    calibration,
    coupling,
    gonu,
    many_series,
    planted,
    sharing,
)
from . import foreign as foreigners


def _command(**options: Any) -> Callable[[Callable[..., None]], click.Command]:
    """Make a command of a function, with --results, --jobs and options by their defaults.

    A default that is a tuple makes an option that may be given several times.
    """

    def command(function: Callable[..., None]) -> click.Command:
        for name, default in options.items():
            flag = f"--{name.replace('_', '-')}"
            several = isinstance(default, tuple)
            option = click.option(flag, name, default=default, multiple=several, show_default=True)
            function = option(function)
        function = click.option("--jobs", type=int, help="Processes.  [default: all]")(function)
        where = click.option("--results", type=click.Path(path_type=Path), default=RESULTS)
        return main.command(function.__name__.replace("_", "-"))(where(function))

    return command


@click.group(help=__doc__)
def main() -> None:
    """See the module."""


@_command(dataset=agreement.DATASETS, seeds=10)
def agree(dataset: Sequence[str], seeds: int, jobs: int | None, results: Path) -> None:
    """On how much of Z searches of one table from different seeds agree."""
    with process_pool(jobs) as pool:
        click.echo(agreement.run(dataset, seeds, results, pool).round(3).to_string())


@_command(method=benchmark.RIVALS, table=(), origin=(1, 2), part="choosing")
def bench(
    method: Sequence[str],
    table: Sequence[str],
    origin: Sequence[int],
    part: bench_tables.Part,
    jobs: int | None,
    results: Path,
) -> None:
    """Forecasts of the benchmark's tables; tables of the part "held" judge, once a release."""
    known = bench_tables.tables_of(part)
    if others := [name for name in table if name not in known]:
        raise click.BadParameter(f"expected tables of {part!r} ({', '.join(known)}), got {others}")
    with process_pool(jobs) as pool:
        benchmark.run(method, table or known, results, origins=origin, executor=pool)


@_command(count=250)
def calibrate(count: int, jobs: int | None, results: Path) -> None:
    """Whether probabilities and intervals can be believed, on planted tables."""
    with process_pool(jobs) as pool:
        records = calibration.run(count, results, pool)
    told = [each for record in records for each in record.get("intervals", [])]
    click.echo(f"What 90% intervals hold:\n{calibration.held(told).round(2)}")


@_command(task=("gaps", "ends"), method=coupling.METHODS, table=())
def couple(
    task: Sequence[coupling.Task],
    method: Sequence[str],
    table: Sequence[str],
    jobs: int | None,
    results: Path,
) -> None:
    """What coupling is worth: gaps and missing ends of the open tables, one after the other."""
    records = coupling.run(task, method, table, results)
    click.echo(coupling.overview(records).round(3).to_string())
    click.echo(coupling.against(records, coupling.RIVALS).round(3).to_string())


@main.command("article")
@click.option("--results", type=click.Path(path_type=Path), default=RESULTS)
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
def article_command(results: Path, file: Path) -> None:
    """The article on the reproduction, in Markdown, with the numbers of the results."""
    file.write_text(article.build(results), encoding="utf-8")


@main.command("gonu")
@click.option("--learner", multiple=True, default=tuple(gonu.LEARNERS), show_default=True)
@click.option("--seeds", default=len(gonu.SEEDS), show_default=True)
@click.option("--results", type=click.Path(path_type=Path), default=RESULTS)
def gonu_command(learner: Sequence[str], seeds: int, results: Path) -> None:
    """Figures 6 and Oil/USD: searches of GONU by the paper's learner and by ours."""
    click.echo(gonu.of_seeds(gonu.run(learner, range(seeds), results)).to_string())


@_command(generator=tuple(foreigners.GENERATORS), first=foreigners.FIRST_JUDGED, tables=10)
def foreign(
    generator: Sequence[str],
    first: int,
    tables: int,
    jobs: int | None,
    results: Path,
) -> None:
    """Whether what is said is true on tables of others, so many of each generator."""
    with process_pool(jobs) as pool:
        records = foreigners.run(generator, range(first, first + tables), results, pool)
    click.echo(foreigners.statements(records).round(3).to_string())
    click.echo(foreigners.held(records).round(3).to_string())


@_command(
    likelihood=("gaussian",), criterion=("bic",), averaging=("none",), seeds=5,
    design=tuple(planted.DESIGNS), heights=tuple(planted.HEIGHTS),
)  # fmt: skip
def share(
    likelihood: Sequence[str],
    criterion: Sequence[str],
    averaging: Sequence[str],
    design: Sequence[str],
    heights: Sequence[str],
    seeds: int,
    jobs: int | None,
    results: Path,
) -> None:
    """How much of a planted Z is wrong after a search, by settings of the search."""
    names = ("likelihood", "criterion", "averaging")
    variants = [
        {k: v for k, v in zip(names, values, strict=True) if v != sharing.PUBLISHED[k]}
        for values in itertools.product(likelihood, criterion, averaging)
    ]
    with process_pool(jobs) as pool:
        found = sharing.run(variants, design, heights, seeds, results, pool)
    click.echo(found.round(1).to_string())


@_command(what="learn", subset=0, restarts=2, seed=0, ledger="seizure.jsonl")
def all_seizure(
    what: str, subset: int, restarts: int, seed: int, ledger: str, jobs: int | None, results: Path
) -> None:
    """All 11,500 pieces of EEG: "learn" the paper's six kernels, or "search" for kernels."""
    options: dict[str, Any] = {"restarts": restarts, "seed": seed}
    options["subset"] = subset or {"learn": 100, "search": 25}[what]
    if what == "search":
        options |= {"depth": 1, "bases": ["SE", "PER"]}  # a second of EEG has no trend
    found = many_series.learn_all(what, Path(ledger), jobs, results, **options)
    click.echo(found)
    click.echo(found.ledger[["found", "bic", "elbo", "seconds", "decision"]].to_string())


if __name__ == "__main__":
    main()

"""``lkm-gpflow discover``: from a table of series to a folder of results."""

from __future__ import annotations

import multiprocessing
import os
import sys
import warnings
from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Any

import click
import pandas as pd

from .. import datasets
from ..coupling.density import check_number_of_cells
from ..data.files import TAB, read_table
from ..data.reading import Dialect
from ..data.tables import Suspicious, Table
from ..discovery.keywords import DiscoverSettings
from ..discovery.thinning import thin as thinned
from ..runtime.arguments import check_level
from ..runtime.budget import Guard
from ..runtime.executors import process_pool, start_workers
from ..runtime.loading import loading
from ..runtime.replacing import replacing
from ..runtime.text import counted, did_you_mean
from ..runtime.threads import single_threaded
from ..runtime.warn import TableNote, warn
from ..search.settings import check_size, draw, ledger_header
from .common import Stopped, said_plainly, signals_stop
from .folder import SUSPICIOUS, OutputFolder
from .options import Spreading, bases, by_series, long_columns


@click.command("discover", cls=Spreading, context_settings={"show_default": True})
@click.argument("source")
@click.option(
    "--separator",
    help="Character between the cells of a CSV file, or tab.  [default: the one that is found]",
)
@click.option("--decimal", help="Decimal mark.  [default: the one that reads all numbers]")
@click.option(
    "--dates",
    metavar="FORMAT",
    help="How dates are written, such as %d/%m/%Y, or %Y-Q%q for quarters; excel, s, ms, us or ns "
    "for numbers that count days or seconds, number for times that are no dates.  [default: the "
    "one that reads all dates]",
)
@click.option("--sheet", help="Sheet of an Excel file.  [default: the first that is a table]")
@click.option("--series", multiple=True, metavar="NAME ...", help="Read these series only.")
@click.option("--without", multiple=True, metavar="NAME ...", help="Leave out these columns.")
@click.option(
    "--thin",
    type=click.IntRange(min=3),
    help="Learn from at most so many rows, at random distances: for thousands of rows.",
)
@click.option(
    "--drop-suspicious",
    is_flag=True,
    help="Treat values that look wrong as missing: suspicious.csv lists them.",
)
@click.option(
    "--unit",
    "units",
    multiple=True,
    metavar="[SERIES=]UNIT",
    help="Unit of all series, or of one (may be given several times).",
)
@click.option("--title", help="Title of the report.")
@click.option(
    "--long",
    metavar="SERIES,TIME,VALUE",
    help="Columns of a file in long format, such as unique_id,ds,y: a row for each observation.  "
    "[default: a column for each series]",
)
@click.option(
    "--transform",
    "transforms",
    metavar="[SERIES=]auto|log|none",
    multiple=True,
    help="log: model the logarithms of the series, which must be positive; Gold=log: of that "
    "series (may be given several times); auto: of the series whose swings grow with their level.  "
    "Results are in the units of the data.  [default: auto]",
)
@click.option(
    "--likelihood",
    "likelihoods",
    metavar="[SERIES=]auto|scaled|gaussian|student|poisson|negative-binomial|binomial|share",
    multiple=True,
    help="How values scatter: counts (poisson, negative-binomial), yes or no (binomial), shares of "
    "1 or 100 (share), measurements with outliers (student) or without (scaled, gaussian); "
    "visits=poisson: those of that series (may be given several times).  [default: auto, what the "
    "values show]",
)
@click.option(
    "--horizon",
    type=click.IntRange(min=1),
    help="Steps to forecast after the last row.  [default: a tenth of the rows]",
)
@click.option(
    "--out",
    metavar="FOLDER",
    help="Folder for the results.  [default: NAME-lkm in the working folder]",
)
@click.option(
    "--depth", type=click.IntRange(min=0), default=2, help="Rounds of expanding components."
)
@click.option(
    "--restarts",
    type=click.IntRange(min=1),
    default=3,
    help="Fits of each structure, each from new random numbers; fewer from 300 rows on.",
)
@click.option(
    "--bases",
    default="extended",
    help="Base kernels: paper (WN,C,LIN,SE,PER), extended (and RW, IOU), or a list such as SE,PER; "
    "in a list, such as extended,OU,CP, OU adds walks that return to their mean, and CP change "
    "points.",
)
@click.option(
    "--strategy",
    type=click.Choice(["partial", "full"]),
    default="partial",
    help="Expand one component at a time, or all at once.",
)
@click.option("--seed", type=click.IntRange(min=0), default=0, help="Seed of all random numbers.")
@click.option(
    "--jobs",
    type=click.IntRange(min=1),
    help="Fits to run at a time, each in its own process.  [default: one per processor, at most "
    "--restarts]",
)
@click.option(
    "--subset",
    type=click.IntRange(min=1),
    help="Search on this many series, drawn at random, then learn the result on all: for fifty "
    "series or more.  [default: all]",
)
@click.option(
    "--averaging",
    type=click.Choice(["stacked", "tempered", "none"]),
    help="Forecast with draws or the best fits and random walks, weighted by held-out windows "
    "(stacked); with the best fits, weighted by BIC (tempered); or with the best fit alone (none). "
    " [default: stacked; with a subset tempered]",
)
@click.option(
    "--time-budget",
    metavar="TIME",
    help="Stop the search after this time, such as 90s, 10m or 1h30m, and keep the best result so "
    "far; report and pictures take extra time.  [default: no limit]",
)
@click.option(
    "--memory-budget",
    metavar="MEMORY",
    help="Stop in the same way when all processes together use this much memory, such as 500MB "
    "or 4GB.  "
    "[default: no limit]",
)
@click.option(
    "--level",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.9,
    help="Probability of the intervals.",
)
@click.option(
    "--update",
    is_flag=True,
    help="Take the new rows of a longer table into the finished result that the folder holds, "
    "without a new search: options of the search do not count.",
)
@click.option(
    "--couple",
    is_flag=True,
    help="Also learn how series go together, which takes seconds for 500 values and minutes for "
    "3,000: coupled.csv has the forecast, narrowing.csv what knowing one series is worth for "
    "another.",
)
@click.option("--force", is_flag=True, help="Start over and overwrite what the folder holds.")
@click.option("--quiet", is_flag=True, help="Print warnings and errors only.")
def discover_command(
    source: str,
    thin: int | None,
    drop_suspicious: bool,
    units: tuple[str, ...],
    title: str | None,
    transforms: tuple[str, ...],
    likelihoods: tuple[str, ...],
    horizon: int | None,
    out: str | None,
    jobs: int | None,
    level: float,
    couple: bool,
    update: bool,
    force: bool,
    quiet: bool,
    **keywords: Any,
) -> None:
    """Discover the components of the series in SOURCE and forecast them.

    SOURCE is a data set (see `lkm-gpflow data`) or a file: CSV, Parquet (.parquet) or Excel
    (.xlsx).  It has names in the first row, dates or numbers in the first column, one series in
    every other column; empty cells are missing.  How dates and numbers are written is found out and
    said.  To read a file named like a data set, give its suffix or write ./ before it.

    The output folder holds report.html (what the series do and share, in words and pictures: one
    file for any browser), forecast.csv, patterns.csv, components.csv, probabilities.csv,
    kernels.csv, figures, the model (lkm_gpflow.load reads it) and the ledger of the search.  To
    continue a search that was stopped, by you or by a budget, give the same command again.  Another
    --horizon or --level needs no new search, either, nor do new rows with --update:
    changes.txt says what they changed.
    """
    with said_plainly(), signals_stop():
        if quiet:
            warnings.simplefilter("ignore", TableNote)
        # All that can be wrong is found before anything is made or deleted.
        if out is not None and not out.strip():
            raise ValueError(f"--out: expected the name of a folder, got {out!r}")
        written = {each.name: keywords.pop(each.name) for each in fields(Dialect)}
        if written["separator"] in ("tab", r"\t"):
            written["separator"] = TAB
        if written["long"] is not None:
            written["long"] = long_columns(written["long"])
        name, frame, told_units = _read_source(source, Dialect(**written))
        columns = list(frame.columns)
        unit = by_series("--unit", units, columns) or {}
        told_units |= dict.fromkeys(map(str, columns), unit) if isinstance(unit, str) else unit
        suspicious: Suspicious = "missing" if drop_suspicious else "listed"
        keywords |= {
            "transform": by_series("--transform", transforms, columns),
            "likelihood": by_series("--likelihood", likelihoods, columns),
            "bases": bases(keywords["bases"]), "suspicious": suspicious, "progress": not quiet,
        }  # fmt: skip
        settings = DiscoverSettings(**keywords)
        whole = frame
        if update and (force or thin is not None):
            other = "--force" if force else "--thin"
            raise ValueError(f"expected --update or {other}, got both")
        if thin is not None:
            frame = thinned(frame, thin, seed=settings.seed)
        table = Table.of(frame, settings.transforms, suspicious, settings.points)
        frame = table.frame
        steps = table.steps(horizon)
        table.after(steps)
        check_level(level)
        if couple:
            check_number_of_cells(int(whole.notna().to_numpy().sum()))
        if settings.memory_budget is not None:
            with loading():  # libraries take memory, too
                from . import output
        Guard(settings.time_budget, settings.memory_budget)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # discover warns, too
            check_size(table.observations, settings.search.fit, settings.subset)
        if settings.subset is not None:
            draw(frame.shape[1], settings.subset, settings.seed)
        folder = OutputFolder(Path(out or f"{name}-lkm"))
        if update:
            folder.claim_update()
        else:
            folder.claim(steps, level, table.checksum, couple=couple, force=force)
            folder.check_ledger(ledger_header(settings.search, table, settings.subset))
        say = (lambda line: None) if quiet else click.echo
        say(f"{name}: {frame.shape[1]} series of {len(frame)} times")
        fits = folder.num_fits()
        processes = min(jobs or os.cpu_count() or 1, settings.restarts)
        with _telling_what_is_kept(folder, force=force), _workers(processes) as executor:
            if executor is not None and not fits and settings.memory_budget is None:
                # Where there is something to learn they will be needed.
                start_workers(executor, "lkm_gpflow.fit.training")
            # Loaded when nothing is left to complain of.
            with loading():
                from ..discovery.discover import discover
                from ..discovery.result import load
                from ..runtime.progress import Progress
                from ..sharing.sampler import expected_seconds_of_chains
                from . import output

            before = load(folder.model) if update else None
            if fits and before is None:
                say(f"going on from {counted(fits, 'fit')} in {folder.ledger}")
            with Progress(shown=not quiet) as bar, folder.going_on():
                bar.later = expected_seconds_of_chains(table.observations, processes)
                if before is not None:
                    found = before.update(frame, executor=executor, progress=bar)
                else:
                    # The table has no suspicious values any more; logarithms and counts are chosen.
                    keywords |= {"transform": table.transform, "suspicious": "listed"}
                    for note in table.notes:
                        warn(note)
                    if settings.points != "none":
                        keywords["likelihood"] = table.kinds or "scaled"
                    keywords |= {"progress": bar, "ledger": folder.ledger}
                    found = discover(frame, **keywords, executor=executor)
                if thin is not None:
                    say(f"learning the result on all {len(whole)} times ...")
                    found = found.update(whole, executor=executor, progress=bar)
                bar.later = 0.0
                if not found.says_by_fits:
                    if not found.forecasts_by_draws:
                        output.write_forecast(folder, found, steps, level)
                        bar.write(f"{folder.path / 'forecast.csv'} has the forecast")
                    found.sample(executor=executor, progress=bar)
            if couple:
                say(f"learning how the {frame.shape[1]} series go together ...")
            with single_threaded():
                files = output.write(
                    folder, found, steps, level, told_units, say, executor, title or "", before,
                    found.couple(executor=executor, progress=not quiet) if couple else None,
                )  # fmt: skip
            looked_at = table.with_suspicious
            if len(looked_at):
                with replacing(folder.path / SUSPICIOUS) as unfinished:
                    looked_at.to_csv(unfinished, index=False)
                files.append(SUSPICIOUS)
        if found.stopped:
            say(
                f"the same command continues from {folder.ledger}, also with larger budgets or none"
            )
        if frame.shape[1] > output.MOST_SHOWN:
            say(f"report, figures and components.csv have the first {output.MOST_SHOWN} series")
        say(f"{steps} steps forecast; {folder.path} holds {', '.join(files)}")


def _read_source(source: str, dialect: Dialect) -> tuple[str, pd.DataFrame, dict[str, str]]:
    """Return the name of the table, the table, and the units of its series."""
    if source in datasets.names():
        dataset = datasets.load(source)
        chosen = dialect.chosen([str(name) for name in dataset.frame.columns])
        return source, dataset.frame[chosen], dict(dataset.units)
    path = Path(source)
    if not source or not path.exists():
        raise ValueError(
            f"there is no file {source!r}, and no data set of that name"
            f"{did_you_mean(source, datasets.names())} (data sets: {', '.join(datasets.names())})"
        )
    return path.stem, read_table(path, dialect), {}


@contextmanager
def _telling_what_is_kept(folder: OutputFolder, *, force: bool) -> Iterator[None]:
    """Exit if a signal stops what is done here, and say what the folder holds by then."""
    try:
        yield
    except Stopped as stopped:
        again = "the same command without --force" if force else "the same command"
        click.echo(
            f"stopped: {folder.kept()}; {again} continues from there"
            if folder.num_fits()
            else "stopped before the first fit: nothing is kept",
            err=True,
        )
        sys.exit(128 + stopped.number)
    finally:
        folder.remove_unfinished()


@contextmanager
def _workers(jobs: int) -> Iterator[Executor | None]:
    """Run fits in this many processes; None stands for this process."""
    if jobs == 1:
        yield None
        return
    pool = process_pool(jobs)
    try:
        yield pool
    finally:
        # Or the shutdown would wait for fits that are under way when a signal or a budget ends it.
        for child in multiprocessing.active_children():
            child.terminate()
        pool.shutdown(cancel_futures=True)

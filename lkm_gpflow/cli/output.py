"""The results that ``lkm-gpflow discover`` writes to its folder."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import BrokenExecutor, Executor
from contextlib import contextmanager
from functools import partial
from typing import cast

import click
import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from .. import plotting
from ..coupling.coupled_discovery import CoupledDiscovery
from ..discovery.result import Discovery
from ..plotting.style import save_figure
from ..runtime.replacing import replacing
from ..runtime.threads import single_threaded
from .folder import CHANGES, COUPLED, TABLES, OutputFolder

MOST_SHOWN = 50
"""Of more series the report, the pictures and the table of components have the first ones."""

_WIDTH = 100  # letters in a line of the gist

_DPI = 120
_MOST_PIXELS = 30_000  # Matplotlib refuses pictures of twice this height


def write(
    folder: OutputFolder,
    found: Discovery,
    horizon: int,
    level: float,
    units: Mapping[str, str],
    say: Callable[[str], object],
    executor: Executor | None = None,
    title: str = "",
    before: Discovery | None = None,
    coupled: CoupledDiscovery | None = None,
) -> list[str]:
    """Write everything, and say what is being written, and at last the gist of the report.

    A worker of the executor, if there is one, draws the pictures meanwhile.  `before` is the
    discovery that was updated, if one was.  Returns the names of
    files and folders; an OSError, for example because the disk is full, says what to do.
    """
    with _fits_kept(folder):
        write_forecast(folder, found, horizon, level)

        def write_table(name: str, table: pd.DataFrame) -> None:
            with replacing(folder.path / name) as unfinished:
                table.to_csv(unfinished)

        _, *others = TABLES
        names = [folder.report.name, *TABLES]
        if before is not None and before is not found:
            with replacing(folder.path / CHANGES) as unfinished:
                unfinished.write_text(
                    "\n".join([found.news, str(found.changes_since(before))]), encoding="utf-8"
                )
            names.append(CHANGES)
        for line in filter(None, [found.stopped, found.changes]):
            say(line)
        columns = list(found.table.frame.columns)
        shown = found if len(columns) <= MOST_SHOWN else found.select(columns[:MOST_SHOWN])
        say("drawing the pictures ...")
        drawn = _begun(executor, partial(_draw, folder, shown, horizon, level, units))
        say("writing the tables ...")
        tables = (
            shown.patterns(level, units),
            _component_table(shown, horizon),
            found.probabilities.rename_axis("series"),
            pd.DataFrame(
                {"kernel": [f"{kernel:.6g}" for kernel in found.kernels]},
                index=pd.Index(found.names, name="component"),
            ),
        )
        for name, table in zip(others, tables, strict=True):
            write_table(name, table)
        if coupled is not None:
            model, ahead, worth = COUPLED
            coupled.save(folder.path / model)
            write_table(ahead, coupled.forecast(horizon, level))
            write_table(worth, coupled.narrowing())
            say(repr(coupled))
        say("weighing the evidence for the report ...")
        report = shown.report(
            horizon,
            level=level,
            units=units,
            title=title,
            coupled=coupled if shown is found else None,
        )
        say("writing the report ...")
        folder.note_report(horizon, level, found.table.checksum, stopped=bool(found.stopped))
        with replacing(folder.report) as page:
            report.to_html(page)
            drawn()  # where a report is, there are the pictures, too
        for said in filter(None, [*report.statements, report.caution]):
            say(click.wrap_text(said, _WIDTH, "* ", "  "))
        names += () if coupled is None else COUPLED
        return [*names, *(path.name for path in (folder.figures, folder.ledger, folder.model))]


def write_forecast(folder: OutputFolder, found: Discovery, horizon: int, level: float) -> None:
    """Write the model, of which all else can be made, and the forecast."""
    folder.remove_unfinished()
    for old in (folder.report, folder.model):  # from here on old and new are mixed
        old.unlink(missing_ok=True)
    found.save(folder.model)
    with replacing(folder.path / TABLES[0]) as unfinished:
        found.forecast(horizon, level).to_csv(unfinished)


@contextmanager
def _fits_kept(folder: OutputFolder) -> Iterator[None]:
    """Say what to do when the results cannot be written."""
    try:
        yield
    except BrokenPipeError:  # of what is said, not of a file
        raise
    except OSError as error:
        raise OSError(
            f"cannot write the results to {folder.path} ({error.strerror or error}); "
            f"{folder.kept()}: free some space or repair the folder, then give the same command "
            "(without --force) to write the results"
        ) from error


def _begun(executor: Executor | None, job: Callable[[], None]) -> Callable[[], None]:
    """Do a job, or let a worker begin it; what is returned waits for its end."""
    if executor is None:
        job()
        return lambda: None
    future = executor.submit(job)

    def wait() -> None:
        try:
            future.result()
        except BrokenExecutor:  # the worker died: it may have been short of memory
            job()

    return wait


@single_threaded()
def _draw(
    folder: OutputFolder, found: Discovery, horizon: int, level: float, units: Mapping[str, str]
) -> None:
    folder.figures.mkdir(exist_ok=True)
    panels = plotting.plot_forecasts(found, horizon, level=level, units=units)
    _save(folder, panels[0], "forecasts")
    _save(folder, plotting.plot_structure(found), "structure")
    _save(folder, plotting.plot_ledger(found), "search")
    for n, series in enumerate(found.table.frame.columns, start=1):
        unit = units.get(str(series))
        panels = plotting.plot_components(found, series, horizon, level=level, unit=unit)
        _save(folder, panels[0], f"components-{n:02d}{_safe(series)}")


def _save(folder: OutputFolder, ax: Axes, name: str) -> None:
    figure = cast(Figure, ax.figure)
    dpi = min(_DPI, _MOST_PIXELS / max(figure.get_size_inches()))
    with replacing(folder.figures / f"{name}.png", folder.path) as unfinished:
        save_figure(figure, unfinished, dpi)
    plt.close(figure)


def _component_table(found: Discovery, horizon: int) -> pd.DataFrame:
    """Return mean and sd by series, time and component."""
    parts = {
        series: found.components(series, horizon)
        .rename_axis("time")
        .stack("component", future_stack=True)
        for series in found.table.frame.columns
    }
    return pd.concat(parts, names=["series"]).reindex(columns=["mean", "sd"])


def _safe(name: object) -> str:
    """Return what a file system takes of a name, after a hyphen; nothing if that is nothing."""
    letters = re.sub(r"[^\w.-]+", "_", str(name)).strip("_.")[:60]
    return f"-{letters}" if letters else ""

"""The folder of results that ``lkm-gpflow discover`` writes."""

from __future__ import annotations

import re
import tempfile
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from . import plotting
from .discovery import Discovery
from .files import UNFINISHED, replacing
from .storage import load

MOST_SHOWN = 50
"""Of more series the report, the pictures and the table of components have the first ones."""

_TABLES = ("forecast.csv", "components.csv", "probabilities.csv", "kernels.csv")
_DIGITS = "%.10g"
_DPI = 120
_MOST_PIXELS = 30_000
"""Matplotlib refuses pictures of twice this height."""


@dataclass(frozen=True)
class OutputFolder:
    """A folder that holds one discovery: tables, figures, model and ledger.

    The model is written last, so that a folder with a model is complete.
    """

    path: Path

    @property
    def ledger(self) -> Path:
        """The ledger of the search, which is written as it goes."""
        return self.path / "ledger.jsonl"

    @property
    def model(self) -> Path:
        """The saved discovery."""
        return self.path / "model.lkm"

    @property
    def report(self) -> Path:
        """The report: one file that opens in any browser."""
        return self.path / "report.html"

    @property
    def figures(self) -> Path:
        """The folder of pictures."""
        return self.path / "figures"

    def claim(self, *, force: bool) -> None:
        """Make the folder ready to be written to, without losing what is there.

        Parameters
        ----------
        force
            Whether the results that are there may be deleted.

        Raises
        ------
        ValueError
            If the folder holds results already (an unfinished search may go on), or cannot be
            written to.
        """
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=self.path):
                pass
        except OSError as error:
            raise ValueError(
                f"expected an output folder that can be written to, got {self.path} "
                f"({error.strerror})"
            ) from error
        if force:
            for file in self._results():
                file.unlink()
        elif self.model.exists() and not self._was_stopped():
            raise ValueError(
                f"{self.path} holds a finished result already: name another folder with --out, "
                "or overwrite it with --force"
            )
        elif not self.ledger.exists() and (there := self._results()):
            raise ValueError(
                f"{there[0]} exists already and no ledger says that it may be replaced: name "
                "another folder with --out, or overwrite it with --force"
            )

    def _was_stopped(self) -> bool:
        """Whether a budget ended the search, which may go on from its ledger."""
        try:
            return self.ledger.exists() and bool(load(self.model).stopped)
        except ValueError:  # damaged: nothing that may be replaced unasked
            return False

    def _results(self) -> list[Path]:
        files = [self.ledger, self.model, self.report, *(self.path / name for name in _TABLES)]
        return [file for file in files if file.exists()] + sorted(self.figures.glob("*.png"))

    def num_fits(self) -> int:
        """Count the fits in the ledger."""
        if not self.ledger.is_file():
            return 0
        with self.ledger.open("rb") as file:
            return sum(line.startswith(b'{"fit"') and line.endswith(b"\n") for line in file)

    def write(
        self, found: Discovery, horizon: int, level: float, units: Mapping[str, str]
    ) -> list[str]:
        """Write everything; returns the names of the files and folders.

        Raises
        ------
        OSError
            If that fails, for example because the disk is full: what to do.
        """
        try:
            return self._write(found, horizon, level, units)
        except OSError as error:
            raise OSError(
                f"cannot write the results to {self.path} ({error.strerror or error}); all "
                f"{self.num_fits()} fits are kept in {self.ledger}: make room or mend it, then "
                "the same command (without --force) writes them"
            ) from error

    def _write(
        self, found: Discovery, horizon: int, level: float, units: Mapping[str, str]
    ) -> list[str]:
        for cut_off in self.path.glob(f"{UNFINISHED}*"):
            cut_off.unlink()
        self.model.unlink(missing_ok=True)  # from here on old and new are mixed
        columns = list(found.table.frame.columns)
        shown = found if len(columns) <= MOST_SHOWN else found.select(columns[:MOST_SHOWN])
        tables = (
            found.forecast(horizon, level),
            _component_table(shown, horizon),
            found.probabilities.rename_axis("series"),
            pd.DataFrame(
                {"kernel": [f"{kernel:.6g}" for kernel in found.kernels]},
                index=pd.Index(found.names, name="component"),
            ),
        )
        for name, table in zip(_TABLES, tables, strict=True):
            with replacing(self.path / name) as unfinished:
                table.to_csv(unfinished, float_format=_DIGITS)
        self._draw(shown, horizon, level, units)
        shown.report(horizon, level=level, units=units).to_html(self.report)
        found.save(self.model)
        names = (self.figures, self.ledger, self.model)
        return [self.report.name, *_TABLES, *(path.name for path in names)]

    def _draw(self, found: Discovery, horizon: int, level: float, units: Mapping[str, str]) -> None:
        self.figures.mkdir(exist_ok=True)
        panels = plotting.plot_forecasts(found, horizon, level=level, units=units)
        self._save(panels[0], "forecasts")
        self._save(plotting.plot_structure(found), "structure")
        self._save(plotting.plot_ledger(found), "search")
        for n, series in enumerate(found.table.frame.columns, start=1):
            panels = plotting.plot_components(
                found, series, horizon, level=level, unit=units.get(series)
            )
            self._save(panels[0], f"components-{n:02d}{_safe(series)}")

    def _save(self, ax: Axes, name: str) -> None:
        figure = cast(Figure, ax.figure)
        dpi = min(_DPI, _MOST_PIXELS / max(figure.get_size_inches()))
        with warnings.catch_warnings():
            # A name in a script that the font does not have is drawn with boxes.
            warnings.filterwarnings("ignore", message="Glyph")
            with replacing(self.figures / f"{name}.png", self.path) as unfinished:
                figure.savefig(unfinished, dpi=dpi)
        plt.close(figure)


def _component_table(found: Discovery, horizon: int) -> pd.DataFrame:
    """Return mean and sd by series, time and component."""
    parts = {
        series: found.components(series, horizon)
        .rename_axis("time")
        .stack("component", future_stack=True)
        for series in found.table.frame.columns
    }
    return pd.concat(parts, names=["series"])[["mean", "sd"]]


def _safe(name: object) -> str:
    """Return what a file system takes of a name, after a hyphen; nothing if that is nothing."""
    letters = re.sub(r"[^\w.-]+", "_", str(name)).strip("_.")[:60]
    return f"-{letters}" if letters else ""

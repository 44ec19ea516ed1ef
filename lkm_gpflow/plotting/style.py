"""What all pictures share: colours, new figures, readable dates, names drawn as they are."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from datetime import tzinfo
from pathlib import Path
from typing import IO, Any
from unicodedata import bidirectional

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter, num2date
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties, findfont, get_font
from matplotlib.ticker import ScalarFormatter
from numpy.typing import ArrayLike, NDArray

from ..coupling.coupled_discovery import CoupledDiscovery
from ..discovery.result import Discovery
from ..gp.types import Floats
from ..runtime.text import did_you_mean, listed

AxesArray = NDArray[np.object_]

# Okabe and Ito, then Tol: told apart with every kind of colour blindness.
COMPONENT_COLOURS = (
    "#E69F00",
    "#009E73",
    "#CC79A7",
    "#56B4E9",
    "#D55E00",
    "#332288",
    "#999933",
    "#882255",
)
"""The colours of components 0, 1, ...; they start again after the last."""

FORECAST_COLOUR = "#0072B2"
"""Means, bands and all else that comes from the model."""

HISTORY_COLOUR = "#333333"
"""What was observed."""

PRESENCE_COLOURS = "Blues"  # colour map of who has what, from 0 to 1: dark means has

FAINT_COLOUR = "#999999"
"""What was rejected, and lines that only guide the eye."""

MUTED_COLOUR = "#666666"
"""Formulas and notes."""

ABSENT = "not in this series,\nor it cannot be told"
"""Stands where nothing is drawn of a component: also of series that may have it."""

_LONGEST_NAME = 36

_SHORT = 1e-3
"""Matplotlib writes "+1e6" beside an axis that is shorter than about this share of its numbers."""


def component_colour(k: int) -> str:
    """Return the colour of component k."""
    return COMPONENT_COLOURS[k % len(COMPONENT_COLOURS)]


def new_axes(size: tuple[float, float]) -> Axes:
    """Return the Axes of a new figure."""
    return plt.subplots(figsize=size, layout="constrained")[1]


def panel_axes(
    axes: AxesArray | None,
    count: int,
    columns: int,
    size: tuple[float, float],
    *,
    sharey: bool = False,
) -> AxesArray:
    """Return `count` Axes: those given, or new ones in a grid of so many columns at most."""
    if axes is not None:
        return given_axes(axes, count, "one per panel")
    rows = -(-count // columns)
    columns = -(-count // rows)  # four panels of three columns: two and two, not three and one
    figure, grid = plt.subplots(
        rows,
        columns,
        figsize=(size[0] * columns, size[1] * rows + 0.4),
        layout="constrained",
        squeeze=False,
        sharey=sharey,
    )
    flat = np.asarray(grid, dtype=object).ravel()
    for ax in flat[count:]:
        ax.remove()
    return flat[:count]


def given_axes(axes: AxesArray, count: int, which: str) -> AxesArray:
    """Return the Axes that somebody gives, in a row; a ValueError says if there are not so many."""
    given = np.asarray(axes, dtype=object).ravel()
    if len(given) != count:
        raise ValueError(f"expected {count} Axes, {which}, got {len(given)}")
    return given


def draw_band(
    ax: Axes, times: pd.Index, mean: ArrayLike, lower: ArrayLike, upper: ArrayLike, colour: str,
    linewidth: float = 1.5, label: str | None = None,
) -> None:  # fmt: skip
    """Draw a curve with its band."""
    ax.fill_between(times, lower, upper, color=colour, alpha=0.25, linewidth=0)
    ax.plot(times, mean, color=colour, linewidth=linewidth, label=label)


def draw_cells(ax: Axes, rows: int, columns: int, colour: str, width: float) -> None:
    """Draw the borders of the cells of a heat map, which has no others."""
    ax.set_xticks(np.arange(columns + 1) - 0.5, minor=True)
    ax.set_yticks(np.arange(rows + 1) - 0.5, minor=True)
    ax.grid(which="minor", color=colour, linewidth=width)
    ax.tick_params(which="minor", length=0)


def write_numbers(ax: Axes, cells: Floats, form: str = ".2f", size: float = 8) -> None:
    """Write the finite numbers of a heat map, white where it is dark."""
    for (row, column), value in np.ndenumerate(cells):
        if np.isfinite(value):
            colour = "white" if abs(value) > 0.6 else HISTORY_COLOUR
            told = format(value, form)
            ax.text(column, row, told, ha="center", va="center", color=colour, fontsize=size)


def write_at(
    ax: Axes, text: str, at: tuple[float, float], points: tuple[float, float], *,
    ha: str = "center", va: str = "bottom", size: float = 8, colour: str = MUTED_COLOUR,
    axes: str = "data",
) -> None:  # fmt: skip
    """Write a text so many points away from a place, in coordinates of the data or of `axes`."""
    ax.annotate(
        text, at, points, xycoords=axes, textcoords="offset points", ha=ha, va=va,
        fontsize=size, color=colour,
    )  # fmt: skip


def write_inside(ax: Axes, text: str) -> None:
    """Write in the middle of a panel why nothing is drawn there."""
    ax.annotate(
        text, (0.5, 0.5), xycoords="axes fraction", ha="center", va="center", color=FAINT_COLOUR
    )


def units_by_name(units: Mapping[Any, str] | None, series: Iterable[object] = ()) -> dict[str, str]:
    """Return the units of series by their names as text.

    They may be of other series, too, as those of a larger table; but if one of the series that are
    drawn has no unit, a unit of an unknown one raises a ValueError, as does a unit that is no text.
    """
    if units is not None and not isinstance(units, Mapping):
        raise ValueError(f"expected units by series such as {{'a': 'm'}}, got {units!r}")
    by_name = {str(name): unit for name, unit in (units or {}).items()}
    for name, unit in by_name.items():
        if not isinstance(unit, str):
            raise ValueError(f"expected the unit of {name!r} as a text such as 'm', got {unit!r}")
    known = [str(name) for name in series]
    unknown = [name for name in by_name if name not in known]
    if unknown and not by_name.keys() >= set(known):
        raise ValueError(
            f"expected units of the series {listed(list(map(repr, known)), 12)}, got one of "
            f"{unknown[0]!r}{did_you_mean(unknown[0], known)}"
        )
    return by_name


def mark_start(ax: Axes, history: pd.Index) -> None:
    """Draw a line at the last observed time, where the forecast begins."""
    ax.axvline(history[-1], color=HISTORY_COLOUR, linewidth=0.8, ls="--")


class _ConciseDates(ConciseDateFormatter):
    """Matplotlib's short dates; of months of several years the first says its year, too."""

    def __init__(self, ax: Axes, locator: AutoDateLocator, tz: tzinfo | None) -> None:
        super().__init__(locator, tz=tz)
        self.ax, self.tz = ax, tz

    def format_ticks(self, values: Sequence[float]) -> list[str]:
        """Return the labels of ticks; those out of sight are not the first."""
        shown: list[str] = super().format_ticks(values)
        begin, end = sorted(self.ax.get_xlim())
        seen = [k for k, value in enumerate(values) if begin <= value <= end]
        if seen and not self.get_offset():
            year = str(num2date(values[seen[0]], self.tz).year)
            if year not in shown[seen[0]]:
                shown[seen[0]] += f"\n{year}"
        return shown


def readable_dates(ax: Axes, index: pd.Index) -> None:
    """Label an axis of times with few labels: short dates, and numbers without an offset."""
    if isinstance(index, pd.DatetimeIndex):
        locator = AutoDateLocator(tz=index.tz, minticks=3, maxticks=7)
        ax.xaxis.set_major_locator(locator)
        ax.xaxis.set_major_formatter(_ConciseDates(ax, locator, index.tz))
    elif isinstance(ax.xaxis.get_major_formatter(), ScalarFormatter):
        times = index.to_numpy(np.float64)
        if np.ptp(times) < _SHORT * np.abs(times).max():  # long labels
            ax.ticklabel_format(axis="x", style="plain", useOffset=False)
            ax.locator_params(axis="x", nbins=4)
    ax.tick_params(labelsize=8)
    ax.xaxis.get_offset_text().set_fontsize(8)  # the year that belongs to all dates


def plain(text: object, longest: int | None = _LONGEST_NAME) -> str:
    r"""Return a text that Matplotlib shows as it is: no formula in it, one line, not too long.

    What is too long loses its middle, because names of related series often begin alike.
    """
    line = str(text)
    if longest is not None:
        line = " ".join(line.split())
        if len(line) > longest:
            line = f"{line[: longest // 2]}…{line[longest // 2 + 1 - longest :]}"
    return line.replace("$", r"\$")


def save_figure(figure: Figure, file: str | Path | IO[bytes], dpi: float) -> None:
    """Write a PNG of a figure whose layout is constrained, and leave it with this layout.

    `Figure.savefig` draws such a figure twice, the first time for its layout alone, which needs no
    drawing.  A sign that the font does not have is drawn as a box.
    """
    figure.set_dpi(dpi)
    canvas, engine = FigureCanvasAgg(figure), figure.get_layout_engine()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph")
        if engine is not None:
            engine.execute(figure)
            figure.set_layout_engine("none")
        canvas.print_png(file)


def labels(names: Sequence[object]) -> list[str]:
    """Return what stands for series in pictures: their names as `plain` gives them.

    A sign that the font cannot draw is left out.  A name of such letters (of another script, or of
    one that runs from right to left), or that is then another's, is replaced by its number: "series
    3".  So that a series is called the same in all pictures, the names are those of all series, in
    the order of the table.
    """
    font = get_font(findfont(FontProperties()))

    def is_drawable(sign: str) -> bool:
        return bool(font.get_char_index(ord(sign))) and bidirectional(sign) not in ("R", "AL")

    def drawn(name: str) -> str:
        if any(sign.isalpha() and not is_drawable(sign) for sign in name):
            return ""
        return " ".join("".join(filter(is_drawable, name)).split())

    texts = [drawn(plain(name)) for name in names]
    return [
        text if text and texts.count(text) == 1 else f"series {n}"
        for n, text in enumerate(texts, start=1)
    ]


def labels_by_name(found: Discovery | CoupledDiscovery) -> dict[Any, str]:
    """Return what stands for each series in pictures, see `labels`, by its name.

    Of a selection series are called as they are in the whole.
    """
    columns = list(getattr(found, "whole", found).table.frame.columns)
    return dict(zip(columns, labels(columns), strict=True))


def legend_of_figure(ax: Axes, columns: int = 4) -> None:
    """Write the legend of Axes below their figure."""
    ax.figure.legend(
        *ax.get_legend_handles_labels(), loc="outside lower center", ncols=columns, frameon=False
    )

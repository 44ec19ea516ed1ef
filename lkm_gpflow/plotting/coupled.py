"""Series that know of each other: which go together, gaps that were filled, and what-if."""

from __future__ import annotations

from collections.abc import Mapping
from textwrap import wrap

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from ..coupling.coupled_discovery import CoupledDiscovery
from .style import (
    COMPONENT_COLOURS,
    FAINT_COLOUR,
    FORECAST_COLOUR,
    HISTORY_COLOUR,
    draw_band,
    draw_cells,
    labels,
    labels_by_name,
    mark_start,
    new_axes,
    plain,
    readable_dates,
    write_numbers,
)


def plot_narrowing(
    coupled: CoupledDiscovery, horizon: int | pd.Index = 1, ax: Axes | None = None
) -> Axes:
    """Draw by how much knowing each series narrows the forecast of each, as a heat map.

    Numbers are shares of the width of intervals, see `CoupledDiscovery.narrowing`; those below 1%
    are blank.
    """
    columns = list(coupled.table.frame.columns)
    N = len(columns)
    ax = new_axes((2.2 + 0.6 * N, 1.4 + 0.45 * N)) if ax is None else ax
    width = coupled.narrowing(horizon)["now"].unstack().reindex(index=columns, columns=columns)
    values = 1.0 - width.to_numpy()
    values[~(values >= 0.01)] = np.nan
    ax.imshow(values, cmap="Blues", vmin=0.0, vmax=1.0, aspect="auto")
    write_numbers(ax, values, ".0%", 9)
    shown = labels(coupled.table.names)
    ax.set_xticks(range(N), labels=shown, rotation=30, ha="right", rotation_mode="anchor")
    ax.set_yticks(range(N), labels=shown)
    draw_cells(ax, N, N, "#DDDDDD", 0.8)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    ax.set_title("how much narrower the row's forecast is if the column is known", fontsize=9)
    return ax


def plot_filled(
    history: pd.Series,
    fills: Mapping[str, pd.DataFrame],
    ax: Axes | None = None,
    *,
    unit: str | None = None,
    truth: pd.Series | None = None,
) -> Axes:
    """Draw a series with its gaps, and with what one or several methods fill them.

    `history` is NaN where the series was not observed; `fills` are tables by time with columns
    mean, lower and upper, by the names of the methods; `truth` is what happened in the gaps.
    """
    ax = new_axes((8.0, 3.2)) if ax is None else ax
    ax.plot(history.index, history, color=HISTORY_COLOUR, linewidth=1.0, label="observed")
    colours = (FORECAST_COLOUR, *COMPONENT_COLOURS)
    for colour, (name, told) in zip(colours, fills.items(), strict=False):
        _draw_told(ax, told, colour, name)
    if truth is not None:
        ax.plot(truth.index, truth, "o", color=HISTORY_COLOUR, mfc="none", ms=3.5, label="happened")
    return _finished(ax, history, unit)


def plot_what_if(
    coupled: CoupledDiscovery,
    series: object,
    horizon: int | pd.Index,
    given: Mapping[object, float],
    ax: Axes | None = None,
    *,
    level: float = 0.9,
    unit: str | None = None,
    last: int = 40,
) -> Axes:
    """Draw the forecast of a series, and what it is given the future of others.

    `given` is as of `CoupledDiscovery.forecast`; the `last` rows of history are shown.  What the
    second forecast assumes stands below.
    """
    ax = new_axes((8.0, 3.2)) if ax is None else ax
    ahead = coupled.ahead(horizon)
    history = coupled.table.frame[series].iloc[-last:]
    ax.plot(history.index, history, color=HISTORY_COLOUR, linewidth=1.0, label="observed")
    label_of = labels_by_name(coupled)
    known = ahead.given(given)
    scenario = f"given {', '.join(label_of[name] for name in given)}"
    both = (("forecast", ahead, FAINT_COLOUR), (scenario, known, FORECAST_COLOUR))
    for name, joint, colour in both:
        told = pd.DataFrame(joint.frame(level).xs(series, level="series"))
        _draw_told(ax, told, colour, name)
    mark_start(ax, history.index)
    ax.set_title(label_of[series], fontsize=10)
    assumed = coupled.what_follows(horizon, given)
    ax.set_xlabel("\n".join(wrap(plain(assumed, None), 100)), fontsize=8, loc="left")
    return _finished(ax, history, unit)


def _draw_told(ax: Axes, told: pd.DataFrame, colour: str, name: str) -> None:
    mean, lower, upper = (told[column] for column in ("mean", "lower", "upper"))
    draw_band(ax, told.index, mean, lower, upper, colour, 1.4, plain(name))


def _finished(ax: Axes, history: pd.Series, unit: str | None) -> Axes:
    readable_dates(ax, history.index)
    if unit:
        ax.set_ylabel(plain(unit), fontsize=9)
    ax.legend(fontsize=8, frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    ax.spines[["top", "right"]].set_visible(False)
    return ax

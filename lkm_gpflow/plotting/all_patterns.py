"""All series and what every pattern contributes to them, in one picture."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from ..discovery.result import Discovery
from ..explain.comparison import curves, holders
from ..explain.stories import Story, stories
from ..gp.likelihoods import unit_quantile
from ..gp.types import Booleans, Floats
from ..runtime.arguments import check_level
from .style import (
    FAINT_COLOUR,
    FORECAST_COLOUR,
    HISTORY_COLOUR,
    AxesArray,
    component_colour,
    draw_band,
    given_axes,
    labels_by_name,
    mark_start,
    plain,
    readable_dates,
    write_inside,
)

_HEIGHT = 0.42  # of the largest departure from the middle of a row, in rows
_SERIES_COLUMN = 1.6  # width of the first column, in those of components


def plot_decomposition(
    discovery: Discovery,
    horizon: int | pd.Index = 0,
    axes: AxesArray | None = None,
    *,
    level: float = 0.9,
    told: Sequence[Story] | None = None,
) -> AxesArray:
    """Draw one row per series and one column per pattern, after the paper's picture of seizures.

    The first column has the observations and the model's interval for new ones.  A place is blank
    where the series does not have the pattern, or that cannot be told; a column that is blank says
    so.  All curves of a row have one scale.  There are P + 1 Axes, one per column.  `told` is
    `explain.stories.stories`, if it is there already.  A ValueError is raised if the level is not
    between 0 and 1.
    """
    check_level(level)
    told = stories(discovery, level) if told is None else told
    times, names = discovery.table.frame.index, discovery.table.names
    N = len(names)
    columns = _columns(axes, N, len(told))
    shown, mean, told_half, observed = _scaled(discovery, horizon, level)
    # Within a row all curves share one scale, which holds them all.
    reach = np.maximum(np.nanmax(np.abs(observed), axis=0), (np.abs(mean) + told_half).max(axis=0))
    row_scale = _HEIGHT / reach
    ends = mean - told_half, mean + told_half
    _draw_rows(columns[0], shown, mean, *ends, row_scale, FORECAST_COLOUR, np.ones(N, bool))
    columns[0].plot(
        times, observed * row_scale - np.arange(N), ".", color=HISTORY_COLOUR, markersize=1.5
    )
    if len(shown) > len(times):
        mark_start(columns[0], times)
    looked_at, functions = curves(discovery, level)
    for p, (story, ax) in enumerate(zip(told, columns[1:], strict=True)):
        has = np.isin(names, holders(story))
        middle, lower, upper = (each[:, p].T for each in functions)  # [D, N]
        colour = component_colour(story.number - 1)
        _draw_rows(ax, looked_at, middle, lower, upper, row_scale, colour, has)
        if not has.any():
            write_inside(ax, "no series\nfor sure")
    _label(columns, discovery, shown, told)
    return columns


def _scaled(
    discovery: Discovery, horizon: int | pd.Index, level: float
) -> tuple[pd.Index, Floats, Floats, Floats]:
    """Return times, mean and half interval of the model, and the observations, in sds."""
    table = discovery.table
    times = table.frame.index
    if isinstance(horizon, pd.Index) or horizon:
        times = times.append(discovery.times(horizon))
    prediction = discovery.predict_modelled(times)
    N = table.frame.shape[1]
    moments = ("mean", "sd", "degrees")
    mean, sd, degrees = (prediction[c].to_numpy().reshape(N, -1).T for c in moments)
    half = unit_quantile(0.5 + 0.5 * level, degrees) * sd / table.scale
    observed = (table.modelled - table.location) / table.scale
    return times, (mean - table.location) / table.scale, half, observed


def _draw_rows(
    ax: Axes,
    times: pd.Index,
    middle: Floats,
    lower: Floats,
    upper: Floats,
    scale: Floats,
    colour: str,
    has: Booleans,
) -> None:
    """Draw a curve with its band in every row that has one."""
    for n in np.flatnonzero(has):
        curve, low, high = (scale[n] * each[:, n] - n for each in (middle, lower, upper))
        ax.axhline(-n, color=FAINT_COLOUR, linewidth=0.3)
        draw_band(ax, times, curve, low, high, colour, 0.9)


def _columns(axes: AxesArray | None, N: int, K: int) -> AxesArray:
    if axes is not None:
        return given_axes(axes, K + 1, "one per column")
    height = 0.9 + N * float(np.clip(9.0 / N, 0.34, 0.9))
    _, grid = plt.subplots(
        1,
        K + 1,
        figsize=(2.2 + 1.75 * (K + _SERIES_COLUMN), height),
        layout="constrained",
        sharey=True,
        squeeze=False,
        width_ratios=[_SERIES_COLUMN] + [1.0] * K,
    )
    return np.asarray(grid[0], dtype=object)


def _label(
    columns: AxesArray, discovery: Discovery, shown: pd.Index, told: Sequence[Story]
) -> None:
    label_of, series = labels_by_name(discovery), discovery.table.frame.columns
    N = len(series)
    # The first series stands on top.
    columns[0].set_yticks(-np.arange(N), [label_of[name] for name in series])
    columns[0].set_ylim(0.4 - N, 0.6)
    titles = ["data and model", *(textwrap.fill(plain(each.title), 20) for each in told)]
    colours = [HISTORY_COLOUR, *(component_colour(each.number - 1) for each in told)]
    for k, (ax, title) in enumerate(zip(columns, titles, strict=True)):
        ax.set_title(title, color=colours[k], fontsize=9, weight="bold")
        ax.spines[["top", "right", "left"]].set_visible(False)
        times = shown if k == 0 else discovery.table.frame.index
        if not ax.lines:  # no series has it: the axis is of these times all the same
            ax.plot(times[[0, -1]], [0.0, 0.0], linestyle="none")
        readable_dates(ax, times)
        ax.tick_params(axis="x", labelsize=7)
        ax.tick_params(axis="y", length=0, labelsize=9 if N <= 25 else 7)
        ax.margins(x=0.02)

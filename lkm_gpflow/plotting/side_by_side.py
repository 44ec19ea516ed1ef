"""Two series side by side, and how alike all of them are."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from ..discovery.result import Discovery
from ..explain.comparison import curves, holders, pair_stories
from .forecasts import plot_forecast
from .style import (
    ABSENT,
    FAINT_COLOUR,
    HISTORY_COLOUR,
    AxesArray,
    component_colour,
    draw_band,
    given_axes,
    labels,
    labels_by_name,
    new_axes,
    plain,
    readable_dates,
    units_by_name,
    write_inside,
    write_numbers,
)

_WIDTH = 96  # signs in a line of description


def plot_comparison(
    discovery: Discovery,
    a: object,
    b: object,
    horizon: int | pd.Index,
    axes: AxesArray | None = None,
    *,
    level: float = 0.9,
    units: Mapping[Any, str] | None = None,
) -> AxesArray:
    """Draw two series, and below them their patterns, as the paper's figure 6 does.

    On top are both series and their forecasts; then the patterns that both have, side by side;
    then those that are certain or likely in one series alone.  Patterns are in standard deviations
    of their series, with one scale per row.  There are two Axes for each row.  A ValueError is
    raised if there is no such series, the two are one, or a unit is of no series.
    """
    units = units_by_name(units, discovery.whole.table.names)
    discovery = discovery.select([a, b])
    rows = pair_stories(discovery, level, units)
    panels = _panels(axes, len(rows) + 1)
    for ax, series in zip(panels[0], (a, b), strict=True):
        unit = units.get(str(series), "")
        plot_forecast(discovery, series, horizon, ax, level=level, unit=unit)
        ax.get_legend().remove()
        ax.set_title(ax.get_title(), fontsize=11, weight="bold")
    times, functions = curves(discovery, level)
    for story, pair in zip(rows, panels[1:], strict=True):
        colour = component_colour(story.number - 1)
        for n, ax in enumerate(pair):
            if discovery.table.names[n] not in holders(story):
                _leave_blank(ax)
                continue
            ax.axhline(0.0, color=FAINT_COLOUR, linewidth=0.6)
            middle, lower, upper = functions[:, n, story.number - 1]
            draw_band(ax, times, middle, lower, upper, colour)
            readable_dates(ax, times)
            ax.margins(x=0.01)
        text = textwrap.fill(plain(story.sentence, longest=None), _WIDTH)
        pair[0].set_title(text, loc="left", fontsize=8, color=HISTORY_COLOUR)
        label = textwrap.fill(plain(story.title), 20)
        pair[0].set_ylabel(f"{label}\n(sd)", fontsize=8, color=colour)
    return panels


def _leave_blank(ax: Axes) -> None:
    """Say why nothing is drawn of the component; the label of the row stays."""
    ax.spines[:].set_visible(False)
    ax.tick_params(which="both", left=False, bottom=False, labelleft=False, labelbottom=False)
    write_inside(ax, ABSENT)


def _panels(axes: AxesArray | None, rows: int) -> AxesArray:
    if axes is not None:
        return given_axes(axes, 2 * rows, "two per row").reshape(rows, 2)
    figure, grid = plt.subplots(
        rows,
        2,
        figsize=(9.0, 2.4 + 1.75 * (rows - 1)),
        layout="constrained",
        squeeze=False,
        height_ratios=[1.3] + [1.0] * (rows - 1),
    )
    for row in grid[1:]:
        row[1].sharey(row[0])
        for top, ax in zip(grid[0], row, strict=True):
            ax.sharex(top)
    figure.align_ylabels(grid[:, 0])
    return np.asarray(grid, dtype=object)


def plot_likeness(
    likeness: pd.DataFrame, ax: Axes | None = None, *, discovery: Discovery | None = None
) -> Axes:
    """Draw how much of their variance every two series share, as a heat map in their order.

    In the order of the `discovery`, if it is given, nameless series are numbered; see
    `style.labels`.
    """
    N = len(likeness)
    side = 2.2 + max(1.6, min(0.42 * N, 9.0))
    ax = new_axes((side + 0.8, side)) if ax is None else ax
    image = ax.imshow(likeness.to_numpy(), cmap="Blues", vmin=0.0, vmax=1.0)
    names = labels(list(likeness.columns))
    if discovery is not None:
        label_of = labels_by_name(discovery)
        names = [label_of[name] for name in likeness.columns]
    size = 9 if N <= 20 else 6
    ax.set_xticks(range(N), names, rotation=45, ha="right", rotation_mode="anchor", fontsize=size)
    ax.set_yticks(range(N), names, fontsize=size)
    if N <= 20:
        write_numbers(ax, likeness.to_numpy())
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    ax.figure.colorbar(image, ax=ax, label="shared variance", shrink=0.8)
    return ax

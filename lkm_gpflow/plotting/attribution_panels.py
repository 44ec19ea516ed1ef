"""Where forecasts come from."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.artist import Artist

from ..discovery.result import Discovery
from ..explain.attribution import (
    AUTOREGRESSION,
    DISAGREEMENT,
    LEVEL,
    NOISE,
    OTHER_TITLES,
    WALKS,
    attribute,
    folded,
    part_order,
)
from ..sharing.consensus import OTHERS
from .style import (
    HISTORY_COLOUR,
    AxesArray,
    component_colour,
    labels,
    panel_axes,
    readable_dates,
)

_OTHER_COLOURS = {
    LEVEL: "#DDDDDD",
    OTHERS: "#F0E442",
    WALKS: "#CCBB44",
    AUTOREGRESSION: "#AA7744",
    NOISE: "#BBBBBB",
    DISAGREEMENT: "#777777",
}
"""Of parts that are no component."""

_LEGEND_COLUMN = 2.1  # inches that the longest name of a part takes in a legend


def part_colours(discovery: Discovery, parts: Sequence[str]) -> dict[str, str]:
    """Return the colours of parts of forecasts: those of components where they are components."""
    own = {name: component_colour(k) for k, name in enumerate(discovery.names)}
    colours = own | _OTHER_COLOURS
    return {part: colours[part] for part in parts}


def plot_attribution(
    discovery: Discovery,
    horizon: int | pd.Index,
    axes: AxesArray | None = None,
    *,
    attribution: pd.DataFrame | None = None,
) -> AxesArray:
    """Draw what the forecast variance of every series consists of, over the horizon.

    One panel per series: areas add up to the variance of a new observation.  Parts that offset
    others lie below zero.  `attribution` is that of `explain.attribution.attribute`, if it is there
    already.
    """
    table = folded(attribute(discovery, horizon) if attribution is None else attribution)
    columns = discovery.table.frame.columns
    panels = panel_axes(axes, len(columns), columns=3, size=(3.6, 2.2))
    variance = pd.DataFrame(table["variance"])
    order = part_order(discovery, list(variance.columns))
    colours = part_colours(discovery, order)
    for ax, series, label in zip(panels, columns, labels(list(columns)), strict=True):
        parts = pd.DataFrame(variance.loc[series])[order]
        times = parts.index
        for sign in (1.0, -1.0):
            pieces = np.maximum(sign * parts.to_numpy(), 0.0)
            edges = sign * np.column_stack([np.zeros(len(parts)), np.cumsum(pieces, axis=1)])
            for i, part in enumerate(order):
                if pieces[:, i].any():
                    ax.fill_between(
                        times, edges[:, i], edges[:, i + 1], color=colours[part], lw=0, label=part
                    )
        ax.plot(times, parts.sum(axis=1), color=HISTORY_COLOUR, linewidth=1.0, label="variance")
        ax.set_title(label, fontsize=10)
        ax.set_ylabel("variance", fontsize=8)
        ax.margins(x=0.0)
        readable_dates(ax, times)
    if axes is None:
        _legend(panels, order)
    return panels


def _legend(panels: AxesArray, order: Sequence[str]) -> None:
    """Put one legend below the figure, in the order of the parts."""
    handles: dict[str, Artist] = {}
    for ax in panels:
        drawn, names = ax.get_legend_handles_labels()
        handles |= dict(zip(names, drawn, strict=True))
    shown = [part for part in [*order, "variance"] if part in handles]
    figure = panels[0].figure
    columns = int(figure.bbox.width / figure.dpi / _LEGEND_COLUMN)
    figure.legend(
        [handles[part] for part in shown],
        [OTHER_TITLES.get(part, part) for part in shown],
        loc="outside lower center",
        ncols=min(len(shown), max(columns, 1)),
        frameon=False,
        fontsize=8,
    )

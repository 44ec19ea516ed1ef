"""Who has which component, of learnt and of true assignments: pictures of the paper."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
from matplotlib.axes import Axes

from lkm_gpflow.gp.types import Floats
from lkm_gpflow.plotting.style import (
    FAINT_COLOUR,
    PRESENCE_COLOURS,
    AxesArray,
    draw_cells,
    labels,
    new_axes,
    panel_axes,
    plain,
)


def plot_assignment(Z: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Draw a table of zeros and ones: a cell is dark where a series has the component.

    Index and columns of Z are the labels; series may be either.
    """
    rows, columns = Z.shape
    ax = new_axes((1.6 + 0.5 * columns, 0.8 + 0.28 * rows)) if ax is None else ax
    # One is not the darkest blue, so that a mark on it is seen.
    ax.imshow(Z.to_numpy(float), cmap=PRESENCE_COLOURS, vmin=0.0, vmax=1.15, aspect="auto")
    ax.set_xticks(range(columns), labels(list(Z.columns)))
    ax.set_yticks(range(rows), labels(list(Z.index)))
    draw_cells(ax, rows, columns, FAINT_COLOUR, 0.5)
    ax.tick_params(length=0)
    return ax


def plot_probability_snapshots(
    history: Floats,
    steps: Sequence[int],
    axes: AxesArray | None = None,
    *,
    series: Sequence[object] | None = None,
    components: Sequence[str] | None = None,
) -> AxesArray:
    """Draw nu at some steps of training as heat maps: columns are series, rows components.

    `history` has the values of nu, [T, N, K], and `steps` are those of the T to show, a panel each;
    `series` and `components` are names, [N] and [K].
    """
    _, N, K = history.shape
    names = labels(series) if series is not None else [str(n + 1) for n in range(N)]
    parts = list(components) if components is not None else [f"C{k + 1}" for k in range(K)]
    panels = panel_axes(axes, len(steps), columns=6, size=(1.75, 0.8 + 0.22 * K), sharey=True)
    for ax, step in zip(panels, steps, strict=True):
        image = ax.imshow(history[step].T, cmap=PRESENCE_COLOURS, vmin=0.0, vmax=1.0, aspect="auto")
        ax.set_title(f"step {step + 1}", fontsize=9)
        ax.set_xticks(range(N), names, rotation=90, fontsize=7)
        ax.set_yticks(range(K), [plain(part) for part in parts], fontsize=8)
        ax.tick_params(length=0)
    if axes is None:
        bar = panels[0].figure.colorbar(image, ax=list(panels), pad=0.01)
        bar.set_label("probability", fontsize=8)
        bar.ax.tick_params(labelsize=7)
    return panels

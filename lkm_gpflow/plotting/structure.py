"""Who has which component: the probabilities found, and how they settled in training."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from numpy.typing import ArrayLike

from ..discovery.result import Discovery
from ..gp.types import Floats
from .style import (
    FAINT_COLOUR,
    PRESENCE_COLOURS,
    AxesArray,
    component_colour,
    draw_cells,
    labels,
    new_axes,
    panel_axes,
    plain,
    write_inside,
    write_numbers,
)


def plot_structure(discovery: Discovery, ax: Axes | None = None) -> Axes:
    """Draw P(z_nk = 1) as a heat map: one row per series, one column per component."""
    probabilities = discovery.probabilities
    N, K = probabilities.shape
    ax = new_axes((max(2.6 + 1.1 * K, 4.8), 1.2 + 0.34 * N)) if ax is None else ax
    if K:
        cells = probabilities.to_numpy()
        ax.imshow(cells, cmap=PRESENCE_COLOURS, vmin=0.0, vmax=1.0, aspect="auto")
    else:
        ax.set(xlim=(-0.5, 0.5), ylim=(N - 0.5, -0.5))
        write_inside(ax, "no component")
    size = 9 if N <= 25 else 6
    write_numbers(ax, probabilities.to_numpy(), size=size)
    rotation = 30 if max(map(len, probabilities.columns), default=0) > 9 else 0
    ax.set_xticks(
        range(K),
        labels=[plain(name) for name in probabilities.columns],
        rotation=rotation,
        ha="left" if rotation else "center",
        rotation_mode="anchor",
    )
    ax.set_yticks(range(N), labels=labels(list(probabilities.index)), fontsize=size)
    ax.tick_params(top=True, labeltop=True, bottom=False, labelbottom=False, length=0)
    for k, label in enumerate(ax.get_xticklabels()):
        label.set_color(component_colour(k))
        label.set_fontweight("bold")
    draw_cells(ax, N, K, "white", 2)
    ax.spines[:].set_visible(False)
    ax.set_xlabel("probability that the series has the component")
    return ax


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


def plot_probabilities_over_time(
    history: ArrayLike,
    axes: AxesArray | None = None,
    *,
    series: Sequence[object] | None = None,
    components: Sequence[str] | None = None,
    steps: ArrayLike | None = None,
) -> AxesArray:
    """Draw how nu settles during training, one panel per series and one line per component.

    `history` has the values of nu, [T, N, K], one [N, K] for each of the `steps` [T] (0, 1, ... by
    default); `series` and `components` are names, [N] and [K].  A ValueError says if `history` has
    not three axes.
    """
    nu = _checked(history)
    T, N, K = nu.shape
    titles = labels(series) if series is not None else [f"series {n + 1}" for n in range(N)]
    parts = list(components) if components is not None else [f"component {k + 1}" for k in range(K)]
    at = np.arange(T) if steps is None else np.asarray(steps)
    panels = panel_axes(axes, N, columns=4, size=(2.6, 2.0), sharey=True)
    for n, (ax, title) in enumerate(zip(panels, titles, strict=True)):
        for k in range(K):
            ax.plot(at, nu[:, n, k], color=component_colour(k), label=plain(parts[k]))
        ax.set_title(title, fontsize=10)
        ax.set_ylim(-0.05, 1.05)
    panels[0].set_ylabel("probability")
    panels[-1].set_xlabel("step")
    if axes is None:
        handles, shown = panels[0].get_legend_handles_labels()
        panels[0].figure.legend(
            handles, shown, loc="outside lower center", ncols=min(K, 4), frameon=False
        )
    return panels


def plot_probability_snapshots(
    history: ArrayLike,
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
    nu = _checked(history)
    _, N, K = nu.shape
    names = labels(series) if series is not None else [str(n + 1) for n in range(N)]
    parts = list(components) if components is not None else [f"C{k + 1}" for k in range(K)]
    panels = panel_axes(axes, len(steps), columns=6, size=(1.75, 0.8 + 0.22 * K), sharey=True)
    for ax, step in zip(panels, steps, strict=True):
        image = ax.imshow(nu[step].T, cmap=PRESENCE_COLOURS, vmin=0.0, vmax=1.0, aspect="auto")
        ax.set_title(f"step {step + 1}", fontsize=9)
        ax.set_xticks(range(N), names, rotation=90, fontsize=7)
        ax.set_yticks(range(K), [plain(part) for part in parts], fontsize=8)
        ax.tick_params(length=0)
    if axes is None:
        bar = panels[0].figure.colorbar(image, ax=list(panels), pad=0.01)
        bar.set_label("probability", fontsize=8)
        bar.ax.tick_params(labelsize=7)
    return panels


def _checked(history: ArrayLike) -> Floats:
    """Return a history of nu as an array [T, N, K]."""
    nu = np.asarray(history, np.float64)
    if nu.ndim != 3:
        raise ValueError(f"expected a history of shape [T, N, K], got shape {nu.shape}")
    return nu

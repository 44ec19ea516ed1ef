"""Who has which component: the probabilities found, and how they settled in training."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import ArrayLike

from ..discovery.result import Discovery
from .style import (
    PRESENCE_COLOURS,
    AxesArray,
    component_colour,
    draw_cells,
    labels,
    legend_of_figure,
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
    nu = np.asarray(history, np.float64)
    if nu.ndim != 3:
        raise ValueError(f"expected a history of shape [T, N, K], got shape {nu.shape}")
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
        legend_of_figure(panels[0], min(K, 4))
    return panels

"""Pictures of the paper alone: kernels, and who has which component, learnt or true."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from lkm_gpflow.fit.engine import components
from lkm_gpflow.gp.types import Floats
from lkm_gpflow.kernels.grammar import Product
from lkm_gpflow.plotting.style import (
    FAINT_COLOUR,
    PRESENCE_COLOURS,
    AxesArray,
    component_colour,
    draw_cells,
    labels,
    new_axes,
    panel_axes,
    plain,
)

_JITTER = 1e-8  # of the largest variance, added to the diagonal: without effect that one could see


def draw_functions(product: Product, x: Floats, count: int = 3, seed: int = 0) -> Floats:
    """Draw functions from the Gaussian process of a complete kernel at times x, [count, D]."""
    [covariance] = components([product], np.asarray(x, np.float64))
    jitter = _JITTER * float(covariance.diagonal().max())
    root = np.linalg.cholesky(covariance + jitter * np.eye(len(covariance)))
    return np.asarray(np.random.default_rng(seed).standard_normal((count, len(root))) @ root.T)


def plot_kernel(
    product: Product,
    x: Floats,
    axes: AxesArray | None = None,
    *,
    count: int = 3,
    seed: int = 0,
    unit: str = "",
) -> AxesArray:
    """Draw the covariance matrix of a complete kernel as a heat map and, beside it, some draws.

    The times x [D] are regular, and `unit` is theirs.  A ValueError says if a number of the kernel
    is absent.
    """
    panels = panel_axes(axes, 2, columns=2, size=(3.2, 2.8))
    [covariance] = components([product], np.asarray(x, np.float64))
    label = f"time ({unit})" if unit else "time"
    largest = float(np.abs(covariance).max())
    image = panels[0].imshow(
        covariance, cmap="RdBu_r", vmin=-largest, vmax=largest, origin="lower",
        extent=(x[0], x[-1], x[0], x[-1]), aspect="auto", interpolation="nearest",
    )  # fmt: skip
    panels[0].figure.colorbar(image, ax=panels[0], pad=0.02).ax.tick_params(labelsize=7)
    panels[0].set(xlabel=label, ylabel=label)
    for i, function in enumerate(draw_functions(product, x, count, seed)):
        panels[1].plot(x, function, color=component_colour(i), linewidth=1.2)
    panels[1].set(xlabel=label, ylabel="value")
    panels[0].set_title(plain(f"{product:.3g}", longest=60), fontsize=9)
    panels[1].set_title(f"{count} draws", fontsize=9)
    return panels


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
    patterns: Sequence[str] | None = None,
) -> AxesArray:
    """Draw nu at some steps of training as heat maps: columns are series, rows components.

    `history` has the values of nu, [T, N, K], and `steps` are those of the T to show, a panel each;
    `series` and `patterns` are names, [N] and [K].
    """
    _, N, K = history.shape
    names = labels(series) if series is not None else [str(n + 1) for n in range(N)]
    parts = list(patterns) if patterns is not None else [f"C{k + 1}" for k in range(K)]
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

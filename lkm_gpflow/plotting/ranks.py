"""Average ranks of methods, and which differences chance alone explains."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from .style import FAINT_COLOUR, FORECAST_COLOUR, HISTORY_COLOUR, new_axes, plain


def plot_ranks(
    ranks: pd.Series,
    critical_difference: float,
    ours: Collection[str] = (),
    ax: Axes | None = None,
) -> Axes:
    """Draw the average rank of every method, the best on top.

    Methods inside the band differ from the best by less than the critical difference.

    Parameters
    ----------
    ranks
        Average ranks by the names of methods; lower is better.
    critical_difference
        Width of the band.
    ours
        Methods that are drawn in another colour.
    ax
        Where to draw; by default a new figure.
    """
    ordered = ranks.sort_values(ascending=False)
    height = 0.9 + 0.27 * len(ordered)
    ax = new_axes((7.0, height)) if ax is None else ax
    best = float(ordered.iloc[-1])
    ax.axvspan(best, best + critical_difference, color=FAINT_COLOUR, alpha=0.35, linewidth=0)
    places = np.arange(len(ordered))
    colours = [FORECAST_COLOUR if name in ours else HISTORY_COLOUR for name in ordered.index]
    ax.hlines(places, 1.0, ordered, color=FAINT_COLOUR, linewidth=0.8)
    ax.scatter(ordered, places, color=colours, zorder=3)
    ax.set_yticks(places, [plain(str(name)) for name in ordered.index])
    ax.set_xlim(1.0, max(float(ordered.max()), best + critical_difference) + 0.4)
    ax.set_xlabel("average rank (band: within the critical difference of the best)")
    return ax

"""Scores of many methods beside those that a paper printed."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from .style import FAINT_COLOUR, FORECAST_COLOUR, new_axes, plain


def plot_beside_published(
    ours: pd.DataFrame, published: pd.DataFrame, label: str, ax: Axes | None = None
) -> Axes:
    """Draw one bar per method, with whiskers of one standard deviation, and the published score.

    Parameters
    ----------
    ours
        Index: methods, drawn from top to bottom; columns mean and sd.  NaN is marked as missing.
    published
        The same for methods that were published.
    label
        Of the score, with its unit.
    ax
        Where to draw; by default a new figure.
    """
    ax = new_axes((4.0, 1.0 + 0.3 * len(ours))) if ax is None else ax
    heights = np.arange(len(ours))[::-1].astype(float)
    ax.barh(
        heights, ours["mean"].fillna(0.0), 0.6, xerr=ours["sd"], color=FORECAST_COLOUR,
        ecolor="black", capsize=2, label="ours, mean and sd of the seeds",
    )  # fmt: skip
    theirs = published.reindex(ours.index)
    ax.errorbar(
        theirs["mean"], heights, xerr=theirs["sd"], fmt="D", ms=4, mfc="white", mec="black",
        ecolor=FAINT_COLOUR, capsize=2, linestyle="none", label="published",
    )  # fmt: skip
    for height, mean in zip(heights, ours["mean"], strict=True):
        if np.isnan(mean):
            ax.annotate("missing", (0.0, height), (3, 0), textcoords="offset points",
                        va="center", fontsize=7, color=FAINT_COLOUR)  # fmt: skip
    ax.set_yticks(heights, [plain(method) for method in ours.index], fontsize=8)
    ax.tick_params(axis="x", labelsize=8)
    ax.set_xlabel(label, fontsize=9)
    return ax

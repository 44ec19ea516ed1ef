"""How methods compare in backtests: their scores, and whether their intervals are calibrated."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from ..runtime.text import level_in_percent
from .style import (
    FAINT_COLOUR,
    FORECAST_COLOUR,
    HISTORY_COLOUR,
    component_colour,
    new_axes,
    plain,
    write_at,
)

_UNITS = {
    "rmse": "RMSE (standard deviations of the series)",
    "crps": "CRPS (standard deviations of the series)",
    "mnlp": "MNLP (nats)",
    "mase": "MASE (mean steps of the series)",
}


class Scored(Protocol):
    """What is drawn of a backtest; see `lkm_gpflow.Backtest`."""

    @property
    def label(self) -> str:
        """The name of the method."""

    @property
    def scores(self) -> pd.DataFrame:
        """One row per origin, one column per score; coverage90 is that of the 90% intervals."""


def plot_scores(backtests: Sequence[Scored], score: str = "crps", ax: Axes | None = None) -> Axes:
    """Draw a score of several methods: a small dot for each origin, a large one for their mean.

    The score is one of rmse, mnlp, crps and mase; a ValueError lists them.  Lower is better: the
    method with the lowest mean stands on top.
    """
    if score not in _UNITS:
        raise ValueError(f"expected a score among {list(_UNITS)}, got {score!r}")
    ax = new_axes((7.0, 1.2 + 0.32 * len(backtests))) if ax is None else ax
    ordered = sorted(backtests, key=lambda each: -each.scores[score].mean())
    for height, each in enumerate(ordered):
        values = each.scores[score].to_numpy()
        ax.plot(values, np.full(len(values), height), "o", color=FAINT_COLOUR, ms=3, alpha=0.7)
        ax.plot(values.mean(), height, "o", color=FORECAST_COLOUR, ms=7)
        said, place = f"{values.mean():.3f}", (values.mean(), height)
        write_at(ax, said, place, (0, 6), va="baseline", size=7, colour=FORECAST_COLOUR)
    ax.set_yticks(range(len(ordered)), [plain(each.label) for each in ordered])
    ax.set_ylim(-0.6, len(ordered) - 0.2)
    ax.set_xlabel(_UNITS[score])
    ax.grid(axis="x", linewidth=0.3)
    return ax


def plot_coverage(backtests: Sequence[Scored], ax: Axes | None = None) -> Axes:
    """Draw how many observations the intervals held, against how many they should.

    Below the diagonal intervals are too narrow.
    """
    ax = new_axes((4.6, 4.4)) if ax is None else ax
    ax.plot(
        [0.4, 1.0], [0.4, 1.0], color=HISTORY_COLOUR, linewidth=0.8, ls="--", label="calibrated"
    )
    for k, each in enumerate(backtests):
        coverage = each.scores.filter(regex=r"^coverage[\d.]+$").mean()
        levels = [float(name.removeprefix("coverage")) / 100 for name in coverage.index]
        ax.plot(levels, coverage, "o-", ms=4, color=component_colour(k), label=plain(each.label))
    ax.set_xticks(levels, [level_in_percent(level) for level in levels])
    ax.set_xlabel("probability of the interval")
    ax.set_ylabel("share of observations inside it")
    ax.legend(fontsize=8, frameon=False)
    return ax

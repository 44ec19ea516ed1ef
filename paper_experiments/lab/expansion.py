"""One step of partial set expansion as the paper draws it (figure 3)."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.patches import FancyBboxPatch

from lkm_gpflow.discovery.result import Discovery
from lkm_gpflow.plotting.search_tree import best_restarts
from lkm_gpflow.plotting.style import (
    FAINT_COLOUR,
    FORECAST_COLOUR,
    component_colour,
    new_axes,
    plain,
)
from lkm_gpflow.search.ledger import EVERY, REGROUPED, START

_NEW_COLOUR = component_colour(4)


def plot_expansion(ledger: Discovery | pd.DataFrame, step: int, ax: Axes | None = None) -> Axes:
    """Draw the set that a step of a search tried, beside the one before, and the result.

    Above is the set before, below the set that was tried: members that were kept are blue, those
    derived from the expanded member orange, with arrows.  Members that no series uses after
    learning have a dashed border.

    Raises
    ------
    ValueError
        If the ledger has no such step or not the one before, or the step expands nothing.
    """
    frame = ledger.ledger if isinstance(ledger, Discovery) else ledger
    rows = best_restarts(frame).to_dict("index")
    partial = [s for s, row in rows.items() if row["expanded"] not in (START, EVERY, REGROUPED)]
    if step not in partial:
        raise ValueError(f"expected a step that expands one member, among {partial}, got {step}")
    tried = rows[step]
    if tried["parent"] not in rows:
        raise ValueError(
            f"expected a step whose parent is in the ledger, got step {step} without its parent "
            f"{tried['parent']}: discover(..., subset=None) keeps every step"
        )
    parent = rows[tried["parent"]]
    before, after = parent["found"].split(", "), tried["tried"].split(", ")
    num_kept = len(before) - 1
    used = tried["found"].split(", ")
    width = max(len(after), len(before), 4)
    ax = new_axes((1.25 * width, 2.9)) if ax is None else ax
    source = before.index(tried["expanded"])
    above = _centres(len(before), width)
    below = _centres(len(after), width)
    for i, (x, name) in enumerate(zip(above, before, strict=True)):
        _box(ax, x, 1.0, name, _NEW_COLOUR if i == source else FORECAST_COLOUR, True)
    for i, (x, name) in enumerate(zip(below, after, strict=True)):
        is_new = i >= num_kept
        is_used = name in used
        if is_used:
            used.remove(name)
        _box(ax, x, 0.0, name, _NEW_COLOUR if is_new else FORECAST_COLOUR, is_used)
        if is_new:
            ax.annotate(
                "", (x, 0.2), (above[source], 0.8),
                arrowprops={"arrowstyle": "->", "color": FAINT_COLOUR},
            )  # fmt: skip
    change = round(tried["bic"] - parent["bic"], 1) + 0.0  # no minus before zero
    verdict = "accepted" if tried["decision"] == "accepted" else "rolled back"
    title = f"step {step}: expand {tried['expanded']}, BIC changes by {change:+.1f}, {verdict}"
    ax.set_title(plain(title, longest=None), fontsize=10)
    ax.set_xlim(-0.1, width + 0.1)
    ax.set_ylim(-0.35, 1.35)
    ax.set_axis_off()
    return ax


def _centres(count: int, width: int) -> list[float]:
    return [(i + 0.5) * width / count for i in range(count)]


def _box(ax: Axes, x: float, y: float, name: str, colour: str, is_used: bool) -> None:
    box = FancyBboxPatch(
        (x - 0.38, y - 0.16), 0.76, 0.32, boxstyle="round,pad=0.02",
        facecolor=(colour + "33") if is_used else "white", edgecolor=colour,
        linestyle="-" if is_used else "--",
    )  # fmt: skip
    ax.add_patch(box)
    text = plain(name).replace(" x ", "\nx ")
    ax.text(x, y, text, ha="center", va="center", fontsize=8, color="black")

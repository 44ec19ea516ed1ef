"""A search as a tree."""

from __future__ import annotations

from typing import Any

import pandas as pd
from matplotlib.axes import Axes

from ..discovery.result import Discovery
from ..search.ledger import REGROUPED, START
from .style import (
    FAINT_COLOUR,
    FORECAST_COLOUR,
    HISTORY_COLOUR,
    MUTED_COLOUR,
    new_axes,
    plain,
    write_at,
)

_ACTIONS = {START: "start", REGROUPED: "regroup"}  # what a step does that expands no member


def best_restarts(ledger: pd.DataFrame) -> pd.DataFrame:
    """Return the fit of every step that the search went by, with the step as index.

    Where the search did not get to a decision, it is the one with the lowest criterion.
    """
    is_other = ledger["decision"].str.startswith("another ")
    ordered = ledger.assign(is_other=is_other).sort_values(["step", "is_other", "criterion"])
    return ordered.drop_duplicates("step").set_index("step")


def plot_ledger(ledger: Discovery | pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Draw a search as a tree: one line per structure, below and to the right of its parent.

    Filled circles were accepted, crosses rolled back; the number is the BIC of the best restart
    and, in brackets, its change from the parent's.  A structure whose parent is not in the ledger
    (``discover(..., subset=)`` keeps few of them) begins a tree of its own.
    """
    frame = ledger.ledger if isinstance(ledger, Discovery) else ledger
    best = best_restarts(frame)
    rows = {step: row for row, step in enumerate(best.index)}
    levels: dict[Any, int] = {}
    for step, parent in best["parent"].items():
        levels[step] = levels.get(parent, -1) + 1
    ax = new_axes((9.0, 0.8 + 0.42 * len(best))) if ax is None else ax
    for step, tried in best.iterrows():
        x, y = levels[step], rows[step]
        accepted = tried["decision"] == "accepted"
        change = ""
        if tried["parent"] in rows:
            up = rows[tried["parent"]]
            ax.plot([x - 1, x - 1, x], [up, y, y], color=FAINT_COLOUR, linewidth=1, zorder=1)
            difference = round(tried["bic"] - best.loc[tried["parent"], "bic"], 1)
            change = f" ({difference + 0.0:+.1f})"
        colour = FORECAST_COLOUR if accepted else FAINT_COLOUR
        ax.scatter(x, y, color=colour, marker="o" if accepted else "x", s=45, zorder=2)
        action = _ACTIONS.get(tried["expanded"], f"expand {tried['expanded']}")
        text = f"{action}: BIC {tried['bic']:.1f}{change}"
        if accepted:
            text += f"\n{tried['found']}"
        shade = HISTORY_COLOUR if accepted else MUTED_COLOUR
        said = plain(text, longest=None)
        write_at(ax, said, (x, y), (9, 0), ha="left", va="center", colour=shade)
    for depth, steps in best.groupby("depth").groups.items():
        first = rows[steps[0]]
        if first:
            ax.axhline(first - 0.5, color=FAINT_COLOUR, linewidth=0.6, linestyle=":")
        ax.annotate(
            f"depth {depth}", (1.0, first - 0.45), xycoords=("axes fraction", "data"),
            ha="right", va="top", fontsize=8, color=MUTED_COLOUR,
        )  # fmt: skip
    kinds = (("accepted", "o", FORECAST_COLOUR), ("rolled back", "x", FAINT_COLOUR))
    for label, marker, colour in kinds:
        ax.scatter([], [], marker=marker, color=colour, s=45, label=label)
    # Room on the right for the text of the deepest node.
    ax.set_xlim(-0.3, max(levels.values()) + 4.0)
    ax.set_ylim(len(best) - 0.4, -0.6)
    ax.set_axis_off()
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, 0.0), ncols=2, frameon=False)
    return ax

"""Graphical models in plate notation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.patches import Circle, FancyArrowPatch, FancyBboxPatch

from lkm_gpflow.plotting.style import HISTORY_COLOUR, new_axes

_RADIUS = 0.3


@dataclass(frozen=True)
class Variable:
    """A node of a graphical model: shaded if observed, a dot if it is a fixed number."""

    label: str
    x: float
    y: float
    observed: bool = False
    fixed: bool = False


@dataclass(frozen=True)
class Plate:
    """A rectangle around variables that are repeated; nested plates want different margins."""

    label: str
    members: tuple[str, ...]
    margin: float = 0.45


def plot_plates(
    variables: Mapping[str, Variable],
    edges: Sequence[tuple[str, str]],
    plates: Sequence[Plate],
    ax: Axes | None = None,
) -> Axes:
    """Draw a graphical model: circles, arrows from cause to effect, plates.

    Raises
    ------
    ValueError
        If an edge or a plate names a variable that is not there.
    """
    named = {name for edge in edges for name in edge} | {m for p in plates for m in p.members}
    if unknown := named - set(variables):
        raise ValueError(f"expected variables among {sorted(variables)}, got {sorted(unknown)}")
    ax = new_axes((4.5, 4.0)) if ax is None else ax
    for plate in plates:
        inside = [variables[name] for name in plate.members]
        left, right = min(v.x for v in inside), max(v.x for v in inside)
        low, high = min(v.y for v in inside), max(v.y for v in inside)
        m = plate.margin
        ax.add_patch(
            FancyBboxPatch(
                (left - m, low - m - 0.15), right - left + 2 * m, high - low + 2 * m + 0.15,
                boxstyle="round,pad=0.0,rounding_size=0.1", fill=False, edgecolor=HISTORY_COLOUR,
            )
        )  # fmt: skip
        ax.text(right + m - 0.08, low - m - 0.08, plate.label, ha="right", va="bottom", fontsize=9)
    for first, second in edges:
        a, b = variables[first], variables[second]
        ax.add_patch(
            FancyArrowPatch(
                (a.x, a.y), (b.x, b.y), arrowstyle="-|>", mutation_scale=12, color=HISTORY_COLOUR,
                shrinkA=3 if a.fixed else 18, shrinkB=18,
            )
        )  # fmt: skip
    for variable in variables.values():
        if variable.fixed:
            ax.plot(variable.x, variable.y, "o", color=HISTORY_COLOUR, markersize=4)
            ax.text(variable.x, variable.y + 0.16, variable.label, ha="center", va="bottom")
            continue
        colour = "#CCCCCC" if variable.observed else "white"
        ax.add_patch(
            Circle((variable.x, variable.y), _RADIUS, facecolor=colour, edgecolor=HISTORY_COLOUR)
        )
        ax.text(variable.x, variable.y, variable.label, ha="center", va="center")
    ax.set_aspect("equal")
    ax.autoscale_view()
    ax.margins(0.05)
    ax.set_axis_off()
    return ax

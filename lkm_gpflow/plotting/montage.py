"""Many series and their components at a glance: a column a component, a line a series."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..numerics.types import Floats
from .style import (
    FORECAST_COLOUR,
    HISTORY_COLOUR,
    AxesArray,
    component_colour,
    panel_axes,
    plain,
)


def plot_montage(
    times: Floats,
    observed: Floats,
    parts: Floats,
    axes: AxesArray | None = None,
    *,
    series: Sequence[object] | None = None,
    components: Sequence[str] | None = None,
    colours: Sequence[str] | None = None,
    unit: str = "",
) -> AxesArray:
    """Draw series above each other, and beside them what each component contributes.

    A component that a series lacks, zero throughout, is left out.

    Parameters
    ----------
    times
        [D].
    observed
        [N, D], z-scored.
    parts
        Posterior means of the components, [K, N, D]; their sum is drawn over the data.
    axes
        K + 1 Axes, side by side; by default a new figure.
    series, components
        Their names, [N] and [K].
    colours
        Of the series' names, [N].
    unit
        Of time, for the labels.

    Raises
    ------
    ValueError
        If the shapes do not fit together.
    """
    K, N, D = parts.shape
    if observed.shape != (N, D) or len(times) != D:
        raise ValueError(
            f"expected observed [N, D] and times [D] for parts {parts.shape}, got "
            f"{observed.shape} and {len(times)} times"
        )
    panels = panel_axes(axes, K + 1, columns=K + 1, size=(1.6, 0.6 + 0.33 * N), sharey=True)
    offsets = -4.0 * np.arange(N)
    labels = list(components) if components is not None else [f"C{k + 1}" for k in range(K)]
    for n, offset in enumerate(offsets):
        panels[0].plot(times, observed[n] + offset, ".", color=HISTORY_COLOUR, markersize=1)
        total = parts[:, n].sum(axis=0)
        panels[0].plot(times, total + offset, color=FORECAST_COLOUR, linewidth=0.7)
        for k in range(K):
            if np.any(parts[k, n]):
                panels[k + 1].plot(
                    times, parts[k, n] + offset, color=component_colour(k), linewidth=0.7
                )
    names = list(series) if series is not None else [str(n + 1) for n in range(N)]
    panels[0].set_yticks(offsets, [plain(name) for name in names], fontsize=7)
    for n, colour in enumerate(colours or ()):
        panels[0].get_yticklabels()[n].set_color(colour)
    panels[0].set_ylim(offsets[-1] - 4.0, 4.0)
    panels[0].set_title("data and mean", fontsize=8)
    for k, label in enumerate(labels):
        panels[k + 1].set_title(plain(label), fontsize=8, color=component_colour(k))
    for ax in panels:
        ax.set_xlim(panels[0].get_xlim())  # a component that nobody has leaves its panel empty
        ax.tick_params(labelsize=7, left=False)
        ax.set_xlabel(f"time ({unit})" if unit else "time", fontsize=8)
    return panels

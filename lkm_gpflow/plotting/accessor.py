"""``found.plot``: the pictures of a discovery, as pandas has those of a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd
from matplotlib.axes import Axes

from ..discovery.result import Discovery
from .all_patterns import plot_decomposition
from .explorer import Explorer
from .forecasts import plot_components, plot_forecast, plot_forecasts
from .structure import plot_structure
from .style import AxesArray


@dataclass(frozen=True, repr=False)
class DiscoveryPlots:
    """Pictures of a discovery; a call draws all series and what every pattern contributes."""

    found: Discovery

    def __call__(
        self,
        horizon: int | pd.Index | None = None,
        axes: AxesArray | None = None,
        *,
        level: float = 0.9,
    ) -> AxesArray:
        """Draw a row for each series and a column for each pattern; see `plot_decomposition`.

        The default horizon is a tenth of the rows.
        """
        return plot_decomposition(self.found, self._horizon(horizon), axes, level=level)

    def structure(self, ax: Axes | None = None) -> Axes:
        """Draw who has which component; see `plot_structure`."""
        return plot_structure(self.found, ax)

    def forecast(
        self, horizon: int | pd.Index | None = None, series: object = None, **options: Any
    ) -> AxesArray | Axes:
        """Draw the forecast of all series (`plot_forecasts`), or of one (`plot_forecast`).

        The default horizon is a tenth of the rows; `options` are those of that function.
        """
        horizon = self._horizon(horizon)
        if series is None:
            return plot_forecasts(self.found, horizon, **options)
        return plot_forecast(self.found, series, horizon, **options)

    def components(
        self, series: object = None, horizon: int | pd.Index = 0, **options: Any
    ) -> AxesArray:
        """Draw what every component contributes to a series; see `plot_components`.

        Without a series all are drawn with their patterns, in rows (`plot_decomposition`);
        `options` are those of that function.
        """
        if series is None:
            return plot_decomposition(self.found, horizon, **options)
        return plot_components(self.found, series, horizon, **options)

    def explore(
        self, horizon: int | None = None, units: Mapping[Any, str] | None = None
    ) -> Explorer:
        """Return controls for JupyterLab that draw the pictures one asks for; see `Explorer`."""
        return Explorer(self.found, horizon, units)

    def _horizon(self, horizon: int | pd.Index | None) -> int | pd.Index:
        return horizon if isinstance(horizon, pd.Index) else self.found.table.steps(horizon)

    def __repr__(self) -> str:
        return (
            "plot(horizon), plot.structure(), plot.forecast(horizon, series), "
            "plot.components(series, horizon), plot.explore()"
        )

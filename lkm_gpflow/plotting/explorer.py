"""``found.explore()``: the pictures of a discovery behind controls, for JupyterLab."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from html import escape
from importlib import import_module
from io import BytesIO
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from ..discovery.result import Discovery
from .all_patterns import plot_decomposition
from .forecasts import plot_components, plot_forecast
from .side_by_side import plot_comparison
from .structure import plot_structure
from .style import units_by_name

ALL = "all components"  # the first choice of components

VIEWS: Mapping[str, tuple[str, ...]] = {
    "forecast": ("series", "horizon"),
    "components": ("series", "component", "horizon"),
    "two series": ("series", "other", "horizon"),
    "who has what": (),
    "everything": ("horizon",),
}
"""What can be looked at, and which of the controls it needs."""

_DPI = 192  # twice that of a page, for screens with fine pixels
_MOST_KEPT = 8  # discoveries of one or two series that are kept, with what they have predicted


class Explorer:
    """Controls, and below them the picture that they ask for.

    In a notebook an explorer shows itself as the last line of a cell.  Whoever has no mouse sets
    the values of the controls: ``explorer.series.value = "Gold"``.  The horizon begins with a tenth
    of the rows by default.

    Attributes
    ----------
    view : ipywidgets.Widget
        The control of which picture is drawn.
    series : ipywidgets.Widget
        Of which series.
    other : ipywidgets.Widget
        Which series stands beside it, in the picture of two.
    component : ipywidgets.Widget
        Which component, in the picture of one.
    horizon : ipywidgets.Widget
        How many steps ahead it goes.
    figure : matplotlib.figure.Figure
        What is drawn, for ``explorer.figure.savefig("gold.png")``.

    Raises
    ------
    ModuleNotFoundError
        If ipywidgets (the extra ``explorer``) is not installed.
    """

    def __init__(
        self, found: Discovery, horizon: int | None = None, units: Mapping[Any, str] | None = None
    ) -> None:
        widgets = _ipywidgets()
        self.found = found
        self.figure: Figure
        self._units = units_by_name(units, found.whole.table.names)
        frame, steps = found.table.frame, found.table.steps(horizon)
        # The discoveries that are drawn are of one or two series, and predict no others.
        self._of = lru_cache(_MOST_KEPT)(lambda *series: found.select(series))
        series = [(str(name), name) for name in frame.columns]
        views = [view for view in VIEWS if len(series) > 1 or "other" not in VIEWS[view]]
        parts = [(ALL, ALL), *((f"{k + 1}. {name}", k) for k, name in enumerate(found.names))]
        self.view = widgets.Dropdown(options=views, description="picture")
        self.series = widgets.Dropdown(options=series, description="series")
        self.other = widgets.Dropdown(options=series, description="beside")
        self.other.index = min(1, len(series) - 1)
        self.component = widgets.Dropdown(options=parts, description="component")
        self.horizon = widgets.IntSlider(
            value=steps, min=1, max=max(steps, len(frame) // 2), description="horizon",
            continuous_update=False,
        )  # fmt: skip
        self._controls = {
            name: getattr(self, name) for name in ("series", "other", "component", "horizon")
        }
        # Any margin would be scrolled for.
        fitting = widgets.Layout(max_width="100%", margin="0")
        self._image = widgets.Image(format="png", layout=fitting)
        self._message = widgets.HTML()
        every = [self.view, *self._controls.values()]
        rows = widgets.HBox(every, layout=widgets.Layout(flex_flow="row wrap"))
        self.box = widgets.VBox([rows, self._message, self._image])
        for control in every:
            control.observe(self._redraw, "value")
        self._redraw()

    def _redraw(self, _: object = None) -> None:
        """Draw what the controls say, or say why that cannot be."""
        needed = VIEWS[self.view.value]
        for name, control in self._controls.items():
            control.layout.display = None if name in needed else "none"
        try:
            self.figure = self._draw()
        except ValueError as error:
            self._message.value, self._image.value = f"<p>{escape(str(error))}</p>", b""
            return
        picture = BytesIO()
        self.figure.savefig(picture, dpi=_DPI)
        plt.close(self.figure)  # or the notebook would show it a second time
        self._message.value, self._image.value = "", picture.getvalue()
        self._image.layout.width = f"{96.0 * self.figure.get_size_inches()[0]:.0f}px"

    def _draw(self) -> Figure:
        a, b, k = self.series.value, self.other.value, self.component.value
        view, steps = self.view.value, self.horizon.value
        unit = self._units.get(str(a), "")
        drawn: Any
        if view == "forecast":
            drawn = plot_forecast(self._of(a), a, steps, unit=unit)
        elif view == "components":
            names = None if k == ALL else [self._of(a).names[k]]
            drawn = plot_components(self._of(a), a, steps, names=names, unit=unit)
        elif view == "two series":
            drawn = plot_comparison(self._of(a, b), a, b, steps, units=self._units)
        elif view == "who has what":
            drawn = plot_structure(self.found)
        else:
            drawn = plot_decomposition(self.found, steps)
        figure: Figure = np.ravel(np.array(drawn, dtype=object))[0].figure
        return figure

    def _repr_mimebundle_(self, **options: Any) -> Any:
        return self.box._repr_mimebundle_(**options)

    def __repr__(self) -> str:
        chosen = {name: self._controls[name].value for name in VIEWS[self.view.value]}
        said = ", ".join(f"{name}={value!r}" for name, value in chosen.items())
        return f"Explorer: {self.view.value}" + (f" ({said})" if said else "")


def _ipywidgets() -> Any:
    try:
        return import_module("ipywidgets")
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "expected the library ipywidgets, which draws the controls: "
            "pip install '.[explorer]' in a clone of lkm_gpflow, then restart JupyterLab"
        ) from error

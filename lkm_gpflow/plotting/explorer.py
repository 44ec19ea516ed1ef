"""``found.explore()``: the pictures of a discovery behind controls, for JupyterLab."""

from __future__ import annotations

from collections.abc import Callable, Mapping
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
from .style import labels_by_name, units_by_name

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
        self._selected: dict[tuple[object, ...], Discovery] = {}
        frame, names = found.table.frame, found.names
        # Of all series: the discoveries that are drawn are of one or two.
        self._labels = labels_by_name(frame)
        series = [(str(name), name) for name in frame.columns]
        is_alone = len(series) == 1
        steps = found.table.steps(horizon)
        views = [view for view in VIEWS if not (is_alone and "other" in VIEWS[view])]
        self.view = widgets.Dropdown(options=views, description="picture")
        self.series = widgets.Dropdown(options=series, description="series")
        self.other = widgets.Dropdown(options=series[1:], description="beside")
        parts = [(ALL, ALL), *((f"{k}. {name}", k - 1) for k, name in enumerate(names, start=1))]
        self.component = widgets.Dropdown(options=parts, description="component")
        self.horizon = widgets.IntSlider(
            value=steps,
            min=1,
            max=max(steps, len(frame) // 2),
            description="horizon",
            continuous_update=False,
        )
        self._controls = {name: getattr(self, name) for name in ("series", "other", "component")}
        self._controls["horizon"] = self.horizon
        # Any margin would be scrolled for.
        fitting = widgets.Layout(max_width="100%", margin="0")
        self._image = widgets.Image(format="png", layout=fitting)
        self._message = widgets.HTML()
        rows = widgets.HBox(
            [self.view, *self._controls.values()], layout=widgets.Layout(flex_flow="row wrap")
        )
        self.box = widgets.VBox([rows, self._message, self._image])
        self._is_busy = False
        for control in (self.view, *self._controls.values()):
            control.observe(self._changed, "value")
        self._redraw()

    def _changed(self, change: Any) -> None:
        """Draw anew, once, unless the picture does not depend on the control."""
        if self._is_busy:
            return
        if change["owner"] is self.series:
            self._is_busy = True  # the list of others changes, too
            self._leave_out(change["old"], change["new"])
            self._is_busy = False
        needed = [self.view, *(self._controls[name] for name in VIEWS[self.view.value])]
        if any(change["owner"] is control for control in needed):
            self._redraw()

    def _leave_out(self, old: object, new: object) -> None:
        """Offer all others to stand beside a series; the one that stood there stays if it can."""
        before = self.other.value
        self.other.options = [option for option in self.series.options if option[1] != new]
        if len(self.other.options):
            self.other.value = before if before != new else old

    def _redraw(self) -> None:
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
        draw: Mapping[str, Callable[[], Any]] = {
            "forecast": self._draw_forecast,
            "components": self._draw_components,
            "two series": self._draw_pair,
            "who has what": lambda: plot_structure(self.found),
            "everything": lambda: plot_decomposition(self.found, self.horizon.value),
        }
        first = np.ravel(np.array(draw[self.view.value](), dtype=object))[0]
        figure: Figure = first.figure
        return figure

    def _draw_forecast(self) -> Any:
        series, found = self.series.value, self._of(self.series.value)
        unit = self._units.get(str(series), "")
        title = self._labels[series]
        return plot_forecast(found, series, self.horizon.value, unit=unit, title=title)

    def _draw_components(self) -> Any:
        series, found, k = self.series.value, self._of(self.series.value), self.component.value
        names = None if k == ALL else [found.names[k]]
        unit = self._units.get(str(series), "")
        return plot_components(
            found, series, self.horizon.value, unit=unit, names=names, title=self._labels[series]
        )

    def _draw_pair(self) -> Any:
        a, b = self.series.value, self.other.value
        found, steps, titles = (
            self._of(a, b),
            self.horizon.value,
            [self._labels[a], self._labels[b]],
        )
        return plot_comparison(found, a, b, steps, units=self._units, titles=titles)

    def _of(self, *series: object) -> Discovery:
        """Return the discovery of these series, which does not predict all the others."""
        if series not in self._selected:
            if len(self._selected) >= _MOST_KEPT:
                self._selected.clear()
            self._selected[series] = self.found.select(series)
        return self._selected[series]

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

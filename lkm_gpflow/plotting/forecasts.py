"""A series and its forecast, and what every component contributes to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from scipy.stats import norm

from ..discovery.result import Discovery
from ..runtime.arguments import check_level
from ..runtime.text import did_you_mean, level_in_percent, listed
from .style import (
    ABSENT,
    COMPONENT_COLOURS,
    FAINT_COLOUR,
    FORECAST_COLOUR,
    HISTORY_COLOUR,
    AxesArray,
    component_colour,
    draw_band,
    labels_by_name,
    legend_of_figure,
    mark_start,
    new_axes,
    panel_axes,
    plain,
    readable_dates,
    units_by_name,
    write_at,
    write_inside,
)


def plot_forecast(
    discovery: Discovery,
    series: object,
    horizon: int | pd.Index,
    ax: Axes | None = None,
    *,
    level: float = 0.9,
    unit: str | None = None,
    truth: pd.DataFrame | None = None,
) -> Axes:
    """Draw the history of one series, the fit of the model, and the forecast.

    The band is that of a new observation.  It raises a ValueError if there is no such series, and
    where `Discovery.forecast` does.
    """
    discovery.places(series)
    ax = new_axes((8.0, 3.2)) if ax is None else ax
    shown = pd.DataFrame(told(discovery, horizon, level).xs(series, level="series"))
    happened = None if truth is None else truth[series]
    _draw_forecast(ax, discovery.table.frame[series], shown, level, unit, happened)
    ax.set_title(labels_by_name(discovery)[series], fontsize=10)
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.1), ncols=4, frameon=False, fontsize=8)
    return ax


def plot_forecasts(
    discovery: Discovery,
    horizon: int | pd.Index,
    axes: AxesArray | None = None,
    *,
    level: float = 0.9,
    units: Mapping[Any, str] | None = None,
    truth: pd.DataFrame | None = None,
) -> AxesArray:
    """Draw all series as `plot_forecast` does, one panel each; returns the Axes, one per series."""
    frame = discovery.table.frame
    units = units_by_name(units, discovery.whole.table.names)
    few = frame.shape[1] <= 4
    columns, size = (2, (4.8, 2.4)) if few else (3, (3.5, 2.0))
    panels = panel_axes(axes, frame.shape[1], columns=columns, size=size)
    prediction = told(discovery, horizon, level)
    label_of = labels_by_name(discovery)
    for ax, series in zip(panels, frame.columns, strict=True):
        happened = None if truth is None else truth[series]
        shown = pd.DataFrame(prediction.loc[series])
        _draw_forecast(ax, frame[series], shown, level, units.get(str(series), ""), happened)
        ax.set_title(label_of[series], fontsize=10)
    if axes is None:
        legend_of_figure(panels[0])
    return panels


def plot_methods(
    history: pd.Series,
    forecasts: Mapping[str, pd.DataFrame],
    axes: AxesArray | None = None,
    *,
    level: float = 0.9,
    unit: str | None = None,
    truth: pd.Series | None = None,
) -> AxesArray:
    """Draw the forecasts of one series by several methods, a panel each, on one scale.

    `forecasts` are tables by time with columns mean and sd, by the names of the methods.
    """
    check_level(level)
    panels = panel_axes(axes, len(forecasts), columns=4, size=(3.1, 2.1), sharey=True)
    half = norm.ppf(0.5 + 0.5 * level)
    for ax, (method, forecast) in zip(panels, forecasts.items(), strict=True):
        lower, upper = (forecast["mean"] + sign * half * forecast["sd"] for sign in (-1.0, 1.0))
        shown = forecast.assign(lower=lower, upper=upper)
        # The others share its axis.
        _draw_forecast(ax, history, shown, level, unit if ax is panels[0] else None, truth)
        ax.set_title(plain(method), fontsize=10)
    if axes is None:
        legend_of_figure(panels[0])
    return panels


def plot_components(
    discovery: Discovery,
    series: object,
    horizon: int | pd.Index = 0,
    axes: AxesArray | None = None,
    *,
    level: float = 0.9,
    unit: str | None = None,
    names: Sequence[str] | None = None,
) -> AxesArray:
    """Draw what every component contributes to one series, a panel each.

    `names` are the components to draw, by default all; if there is none, the only panel says so.  A
    panel is blank where the series does not have the component, or that cannot be told.  All panels
    share the vertical axis; the contributions add up to the series minus its average.  Those to a
    series that is modelled by its logarithm are in percent, and multiply.
    """
    parts = discovery.components(series, horizon, level)
    n = discovery.table.frame.columns.get_loc(series)
    has = discovery.structure.to_numpy()[n]
    if discovery.table.transforms.multiplies[n]:
        unit = "%"
    shown = _numbers(discovery, names)
    panels = panel_axes(axes, max(len(shown), 1), columns=3, size=(3.6, 2.3), sharey=True)
    title = labels_by_name(discovery)[series]
    panels[0].set_ylabel(title + (f"\n({plain(unit)})" if unit else ""), fontsize=9)
    if not shown:
        write_inside(panels[0], "no component")
        panels[0].tick_params(left=False, bottom=False, labelleft=False, labelbottom=False)
        return panels
    kernels = discovery.kernels
    for k, ax in zip(shown, panels, strict=True):
        name = discovery.names[k]
        formula = f"{kernels[k]:.3g}".replace(") x ", ")\nx ")  # a factor a line
        above = 6 + 10 * len(formula.splitlines())
        ax.set_title(
            plain(name), color=component_colour(k), fontsize=10, fontweight="bold", pad=above
        )
        write_at(ax, formula, (0.5, 1.0), (0, 3), size=7, axes="axes fraction")
        if not has[k]:
            write_inside(ax, ABSENT)
            # The numbers of the vertical axis are also those of the panels to the right.
            ax.tick_params(bottom=False, labelbottom=False, labelsize=8)
            continue
        ax.axhline(0.0, color=FAINT_COLOUR, linewidth=0.6)
        mean, lower, upper = (parts[name, column] for column in ("mean", "lower", "upper"))
        draw_band(ax, parts.index, mean, lower, upper, component_colour(k))
        if len(parts) > len(discovery.table.frame):
            mark_start(ax, discovery.table.frame.index)
        readable_dates(ax, parts.index)
    return panels


def _numbers(discovery: Discovery, names: Sequence[str] | None) -> list[int]:
    """Return the numbers of components; a ValueError says which are known."""
    known = discovery.names
    for name in names or []:
        if name not in known:
            hint = did_you_mean(name, known)
            raise ValueError(f"expected components among {listed(known)}, got {name!r}{hint}")
    return [known.index(name) for name in (known if names is None else names)]


def told(discovery: Discovery, horizon: int | pd.Index, level: float) -> pd.DataFrame:
    """Return what the model says of the history and after it, index (series, time)."""
    times = discovery.table.frame.index.append(discovery.times(horizon))
    return discovery.predict(times, level)


def _draw_forecast(
    ax: Axes,
    history: pd.Series,
    shown: pd.DataFrame,
    level: float,
    unit: str | None,
    truth: pd.Series | None,
) -> None:
    """Draw a history and what a model says, columns mean, lower and upper."""
    ax.fill_between(
        shown.index, shown["lower"], shown["upper"], color=FORECAST_COLOUR, alpha=0.22, linewidth=0,
        label=f"{level_in_percent(level)} of new observations",
    )  # fmt: skip
    ax.plot(shown.index, shown["mean"], color=FORECAST_COLOUR, linewidth=1.2, label="model's mean")
    ax.plot(history.index, history, ".", color=HISTORY_COLOUR, markersize=3, label="observed")
    if truth is not None:
        ax.plot(
            truth.index, truth, "o", markersize=4, markerfacecolor="none",
            markeredgecolor=COMPONENT_COLOURS[4], label="what happened then",
        )  # fmt: skip
    mark_start(ax, history.index)
    if unit:
        ax.set_ylabel(plain(unit), fontsize=8)
    ax.margins(x=0.01)
    readable_dates(ax, shown.index)

"""A discovery for other tools: xarray."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ..forecast.columns import SIDES, interval_columns

if TYPE_CHECKING:
    from .result import Discovery


def to_xarray(
    found: Discovery,
    horizon: int | pd.Index,
    levels: Sequence[float] = (0.5, 0.9),
    *,
    samples: int = 0,
    seed: int = 0,
) -> Any:
    """Return what was found as an xarray `Dataset`, which ``.to_netcdf(path)`` writes.

    Parameters
    ----------
    found
        The discovery.
    horizon
        Steps of forecast, or their times.
    levels
        Probabilities of the intervals.
    samples
        How many paths; see `Discovery.samples`.
    seed
        Of the paths.

    Returns
    -------
    Dataset
        Times of a time zone are in UTC, and the attribute `time_zone` names the zone.
        Variables: observed (series, time); transform (series); probability and structure (series,
        component); kernel (component); component_mean and component_sd (series, part, all_times),
        on the history and the forecast, where a part is a component (or what components of little
        weight add up to), in percent of series whose transform is "log";
        forecast_mean and forecast_sd (series, ahead); interval (level, side, series, ahead); if
        asked for, sample (draw, series, ahead).

    Raises
    ------
    ModuleNotFoundError
        If xarray is not installed.
    ValueError
        If a level is not between 0 and 1, or there is none.
    """
    if np.ndim(levels) == 0 or not len(levels):
        raise ValueError(f"expected a list of levels such as [0.5, 0.9], got {levels!r}")
    try:
        xarray = import_module("xarray")
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "expected the library xarray: pip install '.[files]' in a clone of lkm_gpflow"
        ) from error
    frame, times = found.table.frame, found.times(horizon)
    N = frame.shape[1]
    told = found.ensemble.at(times).frame(levels)
    mean, sd = (told[moment].to_numpy().reshape(N, -1) for moment in ("mean", "sd"))
    interval = np.stack(
        [
            np.stack([told[end].to_numpy().reshape(N, -1) for end in interval_columns(level)])
            for level in levels
        ]
    )
    components = [found.components(series, horizon) for series in frame.columns]
    names = list(components[0].columns.unique(level=0))
    heights = np.stack([own.to_numpy().T.reshape(len(names), 2, len(own)) for own in components])
    variables = {
        "observed": (("series", "time"), frame.to_numpy().T),
        "transform": ("series", found.table.transforms.names),
        "probability": (("series", "component"), found.probabilities.to_numpy()),
        "structure": (("series", "component"), found.structure.to_numpy()),
        "kernel": ("component", [str(kernel) for kernel in found.kernels]),
        **{
            f"component_{moment}": (("series", "part", "all_times"), heights[:, :, i])
            for i, moment in enumerate(("mean", "sd"))
        },
        "forecast_mean": (("series", "ahead"), mean),
        "forecast_sd": (("series", "ahead"), sd),
        "interval": (("level", "side", "series", "ahead"), interval),
    }
    if samples:
        paths = found.samples(times, samples, seed=seed).to_numpy().T.reshape(samples, N, -1)
        variables["sample"] = (("draw", "series", "ahead"), paths)
    zone = getattr(frame.index, "tz", None)
    return xarray.Dataset(
        variables,
        coords={
            "series": found.table.names,
            "component": found.names,
            "part": names,
            "time": _in_utc(frame.index),
            "ahead": _in_utc(times),
            "all_times": _in_utc(frame.index.append(times)),
            "level": list(levels),
            "side": list(SIDES),
        },
        attrs={
            "bic": found.bic,
            "averaging": found.averaging,
            **({} if zone is None else {"time_zone": str(zone)}),
        },
    )


def _in_utc(times: pd.Index) -> Any:
    """Return an array of times without a zone, which files of netCDF do not know."""
    if isinstance(times, pd.DatetimeIndex) and times.tz is not None:
        times = times.tz_convert("UTC").tz_localize(None)
    return times.to_numpy()

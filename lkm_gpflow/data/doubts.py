"""Tables that can be learnt from, but that promise little, or that may be misread."""

from __future__ import annotations

import numpy as np
import pandas as pd

from ..gp.types import Floats
from ..runtime.text import counted, listed
from .date_formats import NUMBER, SINCE_1970, dates_in_numbers
from .grids import grids_of, is_even, outside
from .reading import shown
from .suspicious import VERY_FAR
from .timetable import Timetable

FEW_VALUES = 20  # with fewer values a search finds next to nothing but noise and levels

_MOST_NAMED = 4

_YEARS, _WHOLE_YEARS = 2, 0.9
"""Months without rows in more years, in a table that lacks a tenth of its times, are closed."""


def doubts(frame: pd.DataFrame, suspicious: pd.DataFrame | None = None) -> list[str]:
    """Return doubts about a checked table and its suspicious values, a sentence each."""
    found = [*_of_size(frame), *_of_numbers(frame.index)]
    if isinstance(frame.index, pd.DatetimeIndex):
        found += _of_grid(frame.index)
        if (change := _clock_change(frame.index)) is not None:
            found.append(
                f"the clock changes on {change:%Y-%m-%d}: what people do by the clock shifts by an "
                "hour there, while a cycle has a fixed length"
            )
    elif len(frame) > 2 and not _is_lattice(frame.index.to_numpy(np.float64)):
        step = float(np.median(np.diff(frame.index.to_numpy(np.float64))))
        found.append(
            f"the times are uneven: forecasts are {step:g} apart, the typical distance of rows; "
            "name other times with found.forecast(times)"
        )
    return found + ([] if suspicious is None else _of_values(suspicious))


def _of_size(frame: pd.DataFrame) -> list[str]:
    """Doubt tables and series of few values."""
    found = []
    counts = frame.notna().sum()
    few = counts[counts < FEW_VALUES]
    if len(frame) < FEW_VALUES:
        found.append(
            f"expected at least {FEW_VALUES} rows (time points) to find patterns in, got "
            f"{len(frame)}: treat components and probabilities with caution"
        )
    elif len(few):
        names = listed([f"{name!r} ({count})" for name, count in few.items()], _MOST_NAMED)
        found.append(
            f"expected at least {FEW_VALUES} values of each series to find patterns in, got fewer "
            f"of {names}: treat their components, probabilities and intervals with caution, or "
            "leave them out (--without)"
        )
    if frame.shape[1] == 1:
        found.append(
            f"expected at least 2 series, got {frame.columns[0]!r} alone: its components are found "
            "and forecast, but there is nothing to share them with"
        )
    return found


def _of_numbers(index: pd.Index) -> list[str]:
    """Doubt numbers that look like dates."""
    if isinstance(index, pd.DatetimeIndex):
        return []
    numbers = index.to_numpy(np.float64)
    dates = dates_in_numbers(numbers, "" if index.name is None else str(index.name))
    if dates is None or dates.form == NUMBER:
        return []
    example = f"{numbers[0]:.15g}"
    if dates.form in SINCE_1970:
        return [
            f"times such as {example} are read as numbers: if they are {SINCE_1970[dates.form]} "
            f"since 1970, frame.index = pd.to_datetime(frame.index, unit={dates.form!r}), at the "
            f"command line --dates {dates.form}"
        ]
    return [
        f"times such as {example} are read as numbers: if they are dates, write them as such "
        f"({dates.index[0]:%Y-%m-%d} and so on), at the command line --dates {dates.form}"
    ]


def _of_grid(index: pd.DatetimeIndex) -> list[str]:
    """Doubt times of forecasts: no grid, rows outside of it, few of its slots, or two grids."""
    share, grids = grids_of(index)
    if not grids:
        if len(index) < 3 or is_even(index.as_unit("ns").asi8):
            return []
        step = pd.Timedelta(int(np.median(np.diff(index.as_unit("ns").asi8))), unit="ns")
        shown = str(step).removesuffix(" 00:00:00").removeprefix("0 days ")
        shown = "a day" if shown == "1 days" else shown
        return [
            f"the dates follow no grid that is known: forecasts are {shown} apart, the typical "
            "distance of rows; name other times with found.forecast(times)"
        ]
    best = grids[0]
    if len(others := outside(index, best)):
        days = listed([f"{time:%a %Y-%m-%d %H:%M}".removesuffix(" 00:00") for time in others], 3)
        rows = "row lies" if len(others) == 1 else "rows lie"
        return [
            f"{len(others)} {rows} outside of the usual times, {best.name}: {days}; forecasts are "
            "at the usual times only"
        ]
    if isinstance(best, Timetable):
        return []
    found = []
    if share < 0.5:
        found.append(
            f"only {share:.0%} of the times have rows, if they are {best.name}: forecasts are at "
            "each of them; name other times with found.forecast(times)"
        )
    ahead = [list(grid.after(index[-1], max(12, best.season))) for grid in grids]
    rivals = [grid for grid, times in zip(grids, ahead, strict=True) if times != ahead[0]]
    if rivals:
        found.append(
            f"the dates are {best.name}, and {rivals[0].name}, too: forecasts go on with the "
            "first; name other times with found.forecast(times)"
        )
    closed = sorted({time.month for time in ahead[0]} - set(index.month))
    if len(closed) > 1 and index.year.nunique() > _YEARS and share < _WHOLE_YEARS:
        months = listed([str(pd.Timestamp(2000, month, 1).month_name()) for month in closed])
        found.append(
            f"no row is in {months}, of {index.year.nunique()} years: forecasts are there, too; "
            "name other times with found.forecast(times)"
        )
    return found


def _is_lattice(times: Floats) -> bool:
    """Whether numbers are multiples of a step, half of which or more are there."""
    if is_even(times):
        return True
    steps = np.diff(times)
    ratios = steps / steps.min()
    return bool(
        np.all(np.abs(ratios - ratios.round()) < 0.01) and len(steps) >= 0.5 * ratios.round().sum()
    )


def _clock_change(index: pd.DatetimeIndex) -> pd.Timestamp | None:
    """Return the first day of another distance to UTC in a table of several rows a day."""
    if index.tz is None:
        return None
    if np.median(np.diff(index.as_unit("ns").asi8)) >= pd.Timedelta(days=1).as_unit("ns").value:
        return None
    offsets = index.tz_localize(None) - index.tz_convert(None)
    others = np.flatnonzero(offsets != offsets[0])
    return index[others[0]] if len(others) else None


def _of_values(suspicious: pd.DataFrame) -> list[str]:
    """Doubt sentinels and far outliers, a sentence for each series and kind."""
    found = []
    cure = (
        'if they are errors or stand for missing values, suspicious="missing", at the command line '
        "--drop-suspicious"
    )
    is_far = suspicious["how_far"] > VERY_FAR
    worth = suspicious[
        (suspicious["kind"] == "sentinel") | (suspicious["kind"] == "outlier") & is_far
    ]
    for (series, kind), rows in worth.groupby(["series", "kind"], sort=False):
        first = rows.iloc[0]
        if kind == "sentinel":
            found.append(
                f"column {series!r}: {first['value']:g} stands {counted(len(rows), 'time')}, first "
                f"at {shown(first['time'])}, far from all other values: {cure}"
            )
            continue
        named = [f"{row['value']:g} at {shown(row['time'])}" for _, row in rows.iterrows()]
        found.append(
            f"column {series!r}: {listed(named, _MOST_NAMED)}, {rows['how_far'].max():.0f} "
            f"standard deviations away from the other values: {cure}"
        )
    if (more := len(found) - _MOST_NAMED) > 0:
        found[_MOST_NAMED:] = [f"{counted(more, 'other column')}: see found.suspicious"]
    return found

"""Tables that can be learnt from, but that promise little."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd

from ..gp.types import Floats

FEW_ROWS = 20
"""With fewer rows a search finds next to nothing but noise and levels."""

_FAR = 1e3
"""A value is an outlier if it is so many standard deviations of the others from their median."""

_MOST_OUTLIERS = 0.01
"""Share of the values of a series that may be outliers, and one more."""

_DIGITS_OF_A_DATE = re.compile(r"(19|20)\d\d(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01])?")
"""Such as 20240131 or 202401."""


def doubts(frame: pd.DataFrame) -> list[str]:
    """Return doubts about a checked table, a sentence each; an empty list if all is well."""
    found = []
    if len(frame) < FEW_ROWS:
        found.append(
            f"expected at least {FEW_ROWS} rows (time points) to find patterns in, got "
            f"{len(frame)}: treat components and probabilities with caution"
        )
    if frame.shape[1] == 1:
        found.append(
            f"expected at least 2 series, got {frame.columns[0]!r} alone: its components are found "
            "and forecast, but there is nothing to share them with"
        )
    if (form := _format_of_dates(frame.index)) is not None:
        found.append(
            f"times such as {frame.index[0]:.0f} are read as numbers: if they are dates, "
            f"frame.index = pd.to_datetime(frame.index.astype(int).astype(str), format={form!r}), "
            f"at the command line --dates {form}"
        )
    if (unit := _unit_since_1970(frame.index)) is not None:
        found.append(
            f"times such as {frame.index[0]:.0f} are read as numbers: if they are {unit[1]} since "
            f"1970, frame.index = pd.to_datetime(frame.index, unit={unit[0]!r})"
        )
    if (change := _clock_change(frame.index)) is not None:
        found.append(
            f"the clock changes on {change:%Y-%m-%d}: what people do by the clock shifts by an "
            "hour there, while a cycle has a fixed length"
        )
    for name, column in frame.items():
        values = column.to_numpy()
        seen = np.flatnonzero(~np.isnan(values))
        place = _outlier(values[seen])
        if place is not None:
            row = int(seen[place])
            found.append(
                f"column {name!r} at {frame.index[row]}: {values[row]:g} lies more than "
                f"{_FAR:g} standard deviations of all other values away from them, so they look "
                "constant beside it: if it is an error, make it NaN"
            )
    return found


def _format_of_dates(index: pd.Index) -> str | None:
    """Return the format of times that are numbers with the digits of dates."""
    if isinstance(index, pd.DatetimeIndex):
        return None
    texts = [f"{time:.15g}" for time in index]
    if not all(map(_DIGITS_OF_A_DATE.fullmatch, texts)):
        return None
    return {6: "%Y%m", 8: "%Y%m%d"}[len(texts[0])]


def _unit_since_1970(index: pd.Index) -> tuple[str, str] | None:
    """Return the unit of times that look like those of a computer, from 1990 to 2100."""
    if isinstance(index, pd.DatetimeIndex):
        return None
    for unit, name, a_second in (("s", "seconds", 1.0), ("ms", "milliseconds", 1e3)):
        first, last = (pd.Timestamp(f"{year}-01-01").timestamp() for year in (1990, 2100))
        if first * a_second <= index[0] and index[-1] <= last * a_second:
            return unit, name
    return None


def _clock_change(index: pd.Index) -> pd.Timestamp | None:
    """Return the first day of another distance to UTC in a table of several rows a day."""
    if not isinstance(index, pd.DatetimeIndex) or index.tz is None:
        return None
    if np.median(index[1:] - index[:-1]) >= pd.Timedelta("1D"):
        return None
    offsets = index.tz_localize(None) - index.tz_convert(None)
    others = np.flatnonzero(offsets != offsets[0])
    return index[others[0]] if len(others) else None


def _outlier(values: Floats) -> int | None:
    """Return the place of the value that is furthest off, if it is an outlier."""
    distances = np.abs(values - np.median(values))
    most = 1 + int(_MOST_OUTLIERS * len(values))
    others = values[np.argsort(distances)[:-most]]
    spread = float(np.std(others))
    furthest = int(np.argmax(distances))
    return furthest if spread > 0.0 and distances[furthest] > _FAR * spread else None

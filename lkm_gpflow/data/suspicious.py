"""Values that look wrong: sentinels, outliers, stuck sensors, shifts of level, changes of spread.

Nothing is dropped unasked: `find` lists them, `without` makes single ones of the list missing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.ndimage import median_filter

from ..gp.types import Booleans, Floats
from .transforms import STRONG, log_gain

COLUMNS = ("series", "time", "value", "kind", "how_far")

_FEWEST_BEATS = 4

SINGLE = ("sentinel", "outlier", "flat")
"""Kinds of single values; the others begin at the time that is listed."""

_FAR = 12.0  # a value is an outlier so many robust standard deviations away, by all measures

VERY_FAR = 20.0  # outliers that far are worth a doubt

_FAR_FROM_ALL = 8.0
"""A sentinel is so many robust standard deviations away from the nearest other value."""

_MOST_WORDS = 3  # such as -777, -888 and -999

_RARE = 0.1
"""Share of the values that may be zeros or minus ones for missing: more are how a series is."""

_LONG = 12
"""Rows of the same value, in a series that else changes from row to row, are a stuck sensor."""

_TO_NORMAL = 1.4826  # of a normal distribution: standard deviation by median absolute deviation
_MOST = 0.03  # share of the values of a series that may be outliers: more are how it is

_PLACES = 400
"""Of a longer series so many places are looked at, and so many rows before and after a value."""

_WINDOW = 15  # a quarter of a series that may change its spread has as many values
_LEAST = 12  # fewer values have no typical spread


def find(frame: pd.DataFrame, season: int = 1) -> pd.DataFrame:
    """Return the suspicious values of a checked table; a season is taken off by its medians.

    One row for each: series, time, value, kind ("sentinel", "outlier", "flat", "level shift",
    "change of spread") and how far off it is, in robust standard deviations (of a flat stretch, its
    rows).
    """
    rows = [
        (name, frame.index[place], values[place], kind, far)
        for name, values in zip(frame.columns, frame.to_numpy().T, strict=True)
        for place, kind, far in sorted(_of_series(values, season))
    ]
    return pd.DataFrame(rows, columns=list(COLUMNS))


def without(frame: pd.DataFrame, found: pd.DataFrame) -> pd.DataFrame:
    """Return a table in which the single values of a list are missing."""
    cleaned = frame.copy()
    for series, time in found.loc[found["kind"].isin(SINGLE), ["series", "time"]].to_numpy():
        cleaned.loc[time, series] = np.nan
    return cleaned


def _of_series(values: Floats, season: int) -> Iterator[tuple[int, str, float]]:
    """Yield place, kind and distance."""
    seen = np.flatnonzero(np.isfinite(values))
    y = values[seen]
    if len(y) < _LEAST or np.ptp(y) == 0.0:
        return
    is_sentinel, gap = _sentinels(y)
    for place in np.flatnonzero(is_sentinel):
        yield int(seen[place]), "sentinel", gap
    seen, y = seen[~is_sentinel], y[~is_sentinel]
    if len(y) < _LEAST or np.ptp(y) == 0.0:
        return
    far = _distances(y, seen, season)
    # Prices and flows that grow by percentages: what is far off may be so in units alone.
    rest = np.where(far > _FAR, np.nan, y)
    if np.any(far > _FAR) and np.all(y > 0.0) and log_gain(rest) >= STRONG:
        far = np.minimum(far, _distances(np.log(y), seen, season))
    outlying = np.flatnonzero(far > _FAR)
    for place in () if _beats(seen[outlying]) else outlying:
        yield int(seen[place]), "outlier", float(far[place])
    begins = np.concatenate([[0], np.flatnonzero(np.diff(y)) + 1])  # of runs of equal values
    lengths = np.diff(np.append(begins, len(y)))
    usual = np.mean(lengths == 1) > 0.9
    for begin, length in zip(begins, lengths, strict=True):
        # Zeros between other values are counts of nothing.
        if usual and length >= _LONG and y[begin] != 0.0:
            for place in range(begin + 1, begin + length):
                yield int(seen[place]), "flat", float(length)
    rest = far <= _FAR
    yield from _changes(y[rest], seen[rest])


def _sentinels(y: Floats) -> tuple[Booleans, float]:
    """Return which values are words for missing, at the edges of the range and far from all others.

    They are repeated, or well known; up to `_MOST_WORDS` different ones at each edge.
    """
    is_word, far = np.zeros(len(y), np.bool_), 0.0
    ascending, counts = np.unique(y, return_counts=True)
    for way in (1, -1):
        values, times = ascending[::way], counts[::way]
        for k in range(1, min(_MOST_WORDS, len(values) - 2) + 1):
            words, count = values[:k], times[:k].sum()
            rest = y[~np.isin(y, words)]
            known = np.array([_is_known(float(word)) for word in words])
            if len(rest) < _LEAST or np.any((times[:k] < 2) & ~known):
                continue
            nearest, span = float(abs(values[k] - values[k - 1])), float(np.ptp(rest))
            gap = nearest / max(_spread(rest), 0.1 * span)
            if known.all():
                is_off = gap > 0.5 * _FAR_FROM_ALL or nearest > 0.75 * span
            elif np.isin(words, (0.0, -1.0)).all():
                is_off = nearest > span and count <= _RARE * len(y)
            else:  # other values may well be meant
                is_off = gap > _FAR_FROM_ALL and nearest > 1.5 * span
            if is_off and count <= 0.4 * len(y):
                is_word |= np.isin(y, words)
                far = max(far, gap)
    return is_word, far


def _is_known(value: float) -> bool:
    """Whether a value is one that stands for missing in many tables: -99, 9999, -1e20, -999.9."""
    digits = f"{abs(value):.10g}".replace(".", "").strip("0")
    return (len(digits) >= 2 and set(digits) == {"9"}) or abs(value) >= 1e19


def _distances(y: Floats, seen: NDArray[Any], season: int) -> Floats:
    """Return how far values are off: from the season, from their neighbours, and in steps."""
    level = median_filter(
        y, size=min(len(y), 2 * max(3, min(season, len(y) // 4)) + 1), mode="mirror"
    )
    smooth = y - level
    if 1 < season <= len(y) // 3:
        phase = seen % season
        for each in range(season):
            if (own := phase == each).any():
                smooth[own] -= np.median(smooth[own])
    near = y - median_filter(y, size=5, mode="mirror")
    steps = np.abs(np.diff(y))
    # A spike goes there and back; a step does not.
    both = np.minimum(np.append(steps, steps[-1]), np.insert(steps, 0, steps[0]))
    scale, least = max(_spread(np.diff(y)), 1e-3 * _spread(y)), 1e-9 * float(np.ptp(y))
    # Far from all values, from those of the same part of the series, or beyond nearly all.
    wide = y - np.median(y)
    part = y - median_filter(y, size=2 * min(len(y) // 4, _PLACES) + 1, mode="mirror")
    low, high = np.quantile(y, [_MOST, 1.0 - _MOST])
    beyond = np.maximum(0.0, np.maximum(low - y, y - high))
    wide_measures = [
        2.0 * np.abs(wide) / max(_spread(y), least),
        2.0 * np.abs(part) / max(_spread(part), least),
        0.5 * beyond / max(_spread(smooth), least),
    ]
    measures = [
        np.abs(smooth) / max(_spread(smooth), least),
        np.abs(near) / max(_spread(near), scale, least),
        np.max(wide_measures, axis=0),
        1.5 * both / max(scale, least),
    ]
    # In a series of bursts large values come together: spikes are rare.
    far = np.min(measures[:3], axis=0)
    lonely = np.minimum(far, np.maximum(measures[3], np.where(far > VERY_FAR, far, 0.0)))
    return lonely if np.sum(lonely > _FAR) <= max(2, _MOST * len(y)) else np.zeros(len(y))


def _spread(values: Floats) -> float:
    """Return a standard deviation that outliers do not move; of many equal values the usual one."""
    mad = _TO_NORMAL * float(np.median(np.abs(values - np.median(values))))
    if mad > 0.0:
        return mad
    low = np.quantile(values, 0.05, method="higher")
    high = np.quantile(values, 0.95, method="lower")
    return float(high - low) / 3.3 or float(np.std(values))


def _beats(places: NDArray[Any]) -> bool:
    """Whether four or more outliers are multiples of one distance apart, as heartbeats are."""
    apart = np.diff(places)
    apart = apart[apart > 1]
    if len(apart) < _FEWEST_BEATS - 1:
        return False
    ratio = apart / apart.min()
    return bool(apart.min() > 2 and np.all(np.abs(ratio - np.round(ratio)) <= 0.1))


def _changes(y: Floats, seen: NDArray[Any]) -> Iterator[tuple[int, str, float]]:
    """Yield the largest step of the level, and the largest change of the spread."""
    size = max(8, len(y) // 10)
    if len(y) < 4 * size:
        return
    steps = np.abs(np.diff(y))
    spread = max(_spread(np.diff(y)), 1e-9 * float(np.ptp(y)))
    step = int(np.argmax(steps))
    before, after = y[max(0, step - size + 1) : step + 1], y[step + 1 : step + 1 + size]
    if min(len(before), len(after)) == size:
        apart = np.abs(np.median(after) - np.median(before))
        within = max(_spread(before), _spread(after), 1e-9 * float(np.ptp(y)))
        if steps[step] > 8.0 * spread and apart > 8.0 * within:
            yield int(seen[step + 1]), "level shift", float(apart / within)
    size = len(y) // 4
    if size < _WINDOW:
        return
    # Rounded values are the same for a while.
    stride = max(1, len(y) // _PLACES)
    spreads = [
        _spread(np.diff(y[k : k + size])) + 0.02 * spread for k in range(0, len(y) - size, stride)
    ]
    lag = size // stride
    ratios = np.log(spreads[lag:]) - np.log(spreads[:-lag])
    place = int(np.argmax(np.abs(ratios)))
    if np.abs(ratios[place]) > np.log(8.0):
        begin = seen[place * stride + size]
        yield int(begin), "change of spread", float(np.exp(np.abs(ratios[place])))

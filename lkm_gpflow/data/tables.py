"""From a DataFrame of series to scaled arrays, and back.

Rows are times, columns are series, NaN is a missing observation.  Everything that can be wrong
with a table is found here and said with its row and column.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from ..numerics.types import Floats, Integers
from .observations import Observations

MIN_OBSERVED = 3
"""Fewer points than this cannot be standardised and described."""


@dataclass(frozen=True)
class TimeAxis:
    """How an index becomes numbers: days since its first date, or the numbers themselves.

    Parameters
    ----------
    origin
        The first date of a dated index, None for a numeric one.
    step
        The typical distance of two rows, in `unit`.
    frequency
        Pandas' name of a regular dated index ("W-SUN", "MS", "B"), where it has one.
    """

    origin: pd.Timestamp | None
    step: float
    frequency: str | None

    @classmethod
    def of(cls, index: pd.Index) -> TimeAxis:
        """Read the axis off a sorted index without duplicates."""
        if not isinstance(index, pd.DatetimeIndex):
            return cls(None, float(np.median(np.diff(index.to_numpy(np.float64)))), None)
        days = np.diff(_days(index, index[0]))
        frequency = pd.infer_freq(index) if len(index) >= 3 else None
        if frequency is None and np.median(days) == 1.0 and not np.any(index.dayofweek >= 5):
            frequency = "B"
        return cls(index[0], float(np.median(days)), frequency)

    @property
    def unit(self) -> str:
        """The unit of the numbers: "days", or nothing for a numeric index."""
        return "" if self.origin is None else "days"

    def to_numbers(self, index: pd.Index) -> Floats:
        """Times as numbers; a ValueError if the index is of another sort than that of the data."""
        index = index.to_timestamp() if isinstance(index, pd.PeriodIndex) else index
        if self.origin is None:
            if not pd.api.types.is_numeric_dtype(index.dtype):
                given = "dates" if isinstance(index, pd.DatetimeIndex) else f"{index.dtype} times"
                raise ValueError(f"expected numeric times as in the training data, got {given}")
            return index.to_numpy(np.float64)
        if not isinstance(index, pd.DatetimeIndex):
            raise ValueError(f"expected dates as in the training data, got {index.dtype} times")
        if (index.tz is None) != (self.origin.tz is None):
            raise ValueError(
                f"expected dates of the training data's time zone ({self.origin.tz}), "
                f"got {index.tz}"
            )
        return _days(index, self.origin)

    def after(self, last: object, horizon: int) -> pd.Index:
        """Return the `horizon` times that follow the last one."""
        if self.origin is None:
            return pd.Index(float(last) + self.step * np.arange(1, horizon + 1))  # type: ignore[arg-type]
        start = pd.Timestamp(last)  # type: ignore[arg-type]
        if self.frequency is not None:
            return pd.date_range(start, periods=horizon + 1, freq=self.frequency)[-horizon:]
        return start + pd.to_timedelta(self.step * np.arange(1, horizon + 1), unit="D")


def _days(index: pd.DatetimeIndex, origin: pd.Timestamp) -> Floats:
    return np.asarray((index - origin) / pd.Timedelta(days=1), np.float64)


@dataclass(frozen=True)
class Table:
    """A checked table and its scaling: times to a span of one, every series z-scored.

    Parameters
    ----------
    frame
        The sorted table, float64.
    axis
        How its index becomes numbers.
    start, span
        First time and length of the table, in the axis' numbers: ``x = (t - start) / span``.
    location, scale
        Mean and standard deviation of every series, [N].
    """

    frame: pd.DataFrame
    axis: TimeAxis
    start: float
    span: float
    location: Floats
    scale: Floats

    @classmethod
    def of(cls, frame: pd.DataFrame) -> Table:
        """Check a table and measure its scaling; a ValueError says what is wrong and where."""
        checked = _checked(frame)
        axis = TimeAxis.of(checked.index)
        times = axis.to_numbers(checked.index)
        values = checked.to_numpy()
        return cls(
            checked,
            axis,
            float(times[0]),
            float(times[-1] - times[0]),
            np.nanmean(values, axis=0),
            np.nanstd(values, axis=0),
        )

    @property
    def names(self) -> list[str]:
        """Names of the series."""
        return [str(name) for name in self.frame.columns]

    def of_series(self, places: Integers) -> Table:
        """Return the table of some of the series, with the scaling of all."""
        return replace(
            self,
            frame=self.frame.iloc[:, places],
            location=self.location[places],
            scale=self.scale[places],
        )

    def scaled_times(self, index: pd.Index) -> Floats:
        """Times in units of the span, zero at the first row."""
        return (self.axis.to_numbers(index) - self.start) / self.span

    @property
    def observations(self) -> Observations:
        """The scaled arrays that learning works on.

        Values are rounded to nine decimals, so that data in other units are the same to the last
        bit: searches and long optimisations magnify whatever differs.
        """
        values = ((self.frame.to_numpy() - self.location) / self.scale).round(9)
        mask = np.isfinite(values)
        return Observations(
            x=self.scaled_times(self.frame.index),
            Y=np.ascontiguousarray(np.where(mask, values, 0.0).T),
            mask=np.ascontiguousarray(mask.T.astype(np.float64)),
        )


def _checked(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the table as sorted float64, or say what is wrong with it."""
    if not isinstance(frame, pd.DataFrame):
        raise ValueError(f"expected a pandas DataFrame, got {type(frame).__name__}")
    if frame.empty:
        raise ValueError(f"expected a table with rows and columns, got shape {frame.shape}")
    if len(frame) < MIN_OBSERVED:
        raise ValueError(f"expected at least {MIN_OBSERVED} rows (time points), got {len(frame)}")
    names = frame.columns.map(str)
    if names.has_duplicates:
        twice = list(names[names.duplicated()].unique())
        raise ValueError(f"expected series of different names, got more than one named {twice}")
    index = _checked_index(frame.index)
    columns = {
        name: _numbers(frame.iloc[:, i], name, index) for i, name in enumerate(frame.columns)
    }
    checked = pd.DataFrame(columns, index=index, columns=frame.columns)
    if not index.is_monotonic_increasing:
        warnings.warn("the times are not in order: the rows are sorted", stacklevel=4)
        checked = checked.sort_index()
    for name, column in checked.items():
        observed = column.dropna()
        if len(observed) < MIN_OBSERVED:
            raise ValueError(
                f"series {name!r}: expected at least {MIN_OBSERVED} observed values, "
                f"got {len(observed)}"
            )
        if np.ptp(observed.to_numpy()) <= 1e-12 * np.abs(observed.to_numpy()).max():
            raise ValueError(
                f"series {name!r} is constant ({observed.iloc[0]:g}): "
                "expected a series that varies; leave it out"
            )
    return checked


def _checked_index(index: pd.Index) -> pd.Index:
    if isinstance(index, pd.PeriodIndex):
        index = index.to_timestamp()
    if isinstance(index, pd.DatetimeIndex):
        # Tables from different sources then have indices of one type.
        index = index.as_unit("ns")
    if not isinstance(index, pd.DatetimeIndex):
        if isinstance(index, pd.MultiIndex) or not pd.api.types.is_numeric_dtype(index.dtype):
            raise ValueError(f"expected an index of dates or numbers, got {index.dtype}")
        bad = ~np.isfinite(index.to_numpy(np.float64))
    else:
        bad = np.asarray(index.isna())
    if bad.any():
        raise ValueError(f"row {int(np.argmax(bad)) + 1}: expected a time, got {index[bad][0]}")
    if index.has_duplicates:
        twice = index[index.duplicated()]
        raise ValueError(
            f"row {int(np.argmax(index.duplicated())) + 1}: the time {twice[0]} stands there a "
            f"second time ({len(twice)} duplicates in all); expected different times"
        )
    return index


def _numbers(column: pd.Series, name: object, index: pd.Index) -> Floats:
    if column.dtype.kind in "mMc":  # pandas would take dates for nanoseconds
        values = np.full(len(column), np.nan)
    else:
        values = pd.to_numeric(column, errors="coerce").to_numpy(np.float64, na_value=np.nan)
    text = np.isnan(values) & column.notna().to_numpy()
    infinite = np.isinf(values)
    for bad, wanted in ((text, "a number"), (infinite, "a finite number")):
        if bad.any():
            row = int(np.argmax(bad))
            raise ValueError(
                f"row {row + 1} ({index[row]}), column {name!r}: expected {wanted}, "
                f"got {column.iloc[row]!r}"
            )
    return values

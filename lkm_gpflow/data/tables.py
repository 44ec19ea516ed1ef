"""From a DataFrame of series to scaled arrays, and back.

Rows are times, columns are series, NaN is a missing observation.  What can be wrong with a table
is found by `checks`.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import cast

import numpy as np
import pandas as pd

from ..gp.types import Floats, Integers
from .checks import checked
from .foreign import Tabular
from .observations import Observations
from .timetable import Timetable, in_zone
from .transforms import Transform, Transforms

_WINDOWS = 100
"""So many windows of three times are looked at for the frequency of an index with gaps."""

_TWICE_A_MONTH = ("SMS", "SME")

_MONTH = int(pd.Timedelta(days=31).value)
"""Of the steps of an index twice a month at least half exist if they are no longer on average."""

_MOST_STEPS = 1_000_000
"""Of a forecast: more are a slip, and their times alone may not fit into memory."""


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
        Pandas' name of a dated index that is regular ("W-SUN", "MS", "B") but for missing rows,
        where it has one.
    offset
        The step of a regular index without such a name: the same day of every k-th month, such as
        every 30th (in February the last).
    timetable
        The weekdays and times of day of an index that lacks some, without such a name: Monday to
        Saturday, or office hours.
    """

    origin: pd.Timestamp | None
    step: float
    frequency: str | None
    offset: pd.offsets.BaseOffset | None = None
    timetable: Timetable | None = None

    @classmethod
    def of(cls, index: pd.Index) -> TimeAxis:
        """Read the axis off a sorted index without duplicates."""
        if not isinstance(index, pd.DatetimeIndex):
            return cls(None, float(np.median(np.diff(index.to_numpy(np.float64)))), None)
        days = np.diff(_days(index, index[0]))
        step = float(np.median(days))
        if (timetable := Timetable.of(index)) is not None:
            name = timetable.name
            return cls(index[0], step, name, timetable=None if name else timetable)
        if len(index) >= 3 and (frequency := pd.infer_freq(index)):
            return cls(index[0], step, frequency)
        if step == 1.0 and not np.any(index.dayofweek >= 5):  # few weeks, or many gaps
            return cls(index[0], step, "B")
        frequency = _frequency_with_gaps(index)
        return cls(index[0], step, frequency, None if frequency else _day_of_months(index))

    @property
    def unit(self) -> str:
        """The unit of the numbers: "days", or nothing for a numeric index."""
        return "" if self.origin is None else "days"

    def to_numbers(self, index: pd.Index) -> Floats:
        """Times as numbers; a ValueError if the index is of another sort than that of the data."""
        if isinstance(index, pd.MultiIndex):
            raise ValueError(f"expected times, got a MultiIndex of {index.nlevels} levels")
        if not isinstance(index, pd.Index) or index.hasnans:
            wanted = "a pandas Index of times without missing ones"
            raise ValueError(f"expected {wanted}, got {index!r}")
        index = index.to_timestamp() if isinstance(index, pd.PeriodIndex) else index
        if self.origin is None:
            if getattr(index.dtype, "kind", "") not in "iuf":
                given = "dates" if isinstance(index, pd.DatetimeIndex) else f"{index.dtype} times"
                raise ValueError(f"expected numeric times as in the training data, got {given}")
            times = index.to_numpy(np.float64)
            if np.any(infinite := np.isinf(times)):
                raise ValueError(f"expected finite times, got {times[infinite][0]}")
            return times
        if not isinstance(index, pd.DatetimeIndex):
            raise ValueError(f"expected dates as in the training data, got {index.dtype} times")
        if (index.tz is None) != (self.origin.tz is None):
            raise ValueError(
                f"expected dates of the training data's time zone ({self.origin.tz}), "
                f"got {index.tz}"
            )
        return _days(index, self.origin)

    def after(self, last: object, horizon: int) -> pd.Index:
        """Return the `horizon` times that follow the last one; whole numbers stay whole.

        Raises
        ------
        ValueError
            If they are dates that a number of nanoseconds in eight bytes cannot tell.
        """
        if self.origin is None:
            whole = isinstance(last, int | np.integer) and self.step.is_integer()
            ahead = np.arange(1, horizon + 1) * (int(self.step) if whole else self.step)
            return pd.Index(cast(float, last) + ahead)
        start = pd.Timestamp(last).as_unit("ns")  # type: ignore[arg-type]
        try:
            if self.frequency is not None:
                return _on_grid(start, horizon, self.frequency)
            if self.timetable is not None:
                return self.timetable.after(start, horizon)
            if self.offset is not None:
                local = start.tz_localize(None)
                steps = (local + n * self.offset for n in range(1, horizon + 1))
                return in_zone(pd.DatetimeIndex(list(steps)), start.tz)
            step = pd.Timedelta(round(self.step * pd.Timedelta(days=1).value), unit="ns")
            return start + pd.timedelta_range(start=step, periods=horizon, freq=step)
        except (
            pd.errors.OutOfBoundsDatetime,
            pd.errors.OutOfBoundsTimedelta,
            OverflowError,
        ) as error:
            raise ValueError(
                f"expected a horizon that ends before {pd.Timestamp.max.year}, got {horizon} steps "
                f"after {start}"
            ) from error


def _on_grid(start: pd.Timestamp, horizon: int, frequency: str) -> pd.DatetimeIndex:
    """Return so many times of a frequency after `start`; days keep their time of day."""
    zone = None if frequency.islower() else start.tz  # hours go on when clocks change
    local = start if zone is None else start.tz_localize(None)
    ahead = pd.date_range(local, periods=horizon + 1, freq=frequency)[-horizon:]
    return ahead if zone is None else in_zone(ahead, zone)


def _days(index: pd.DatetimeIndex, origin: pd.Timestamp) -> Floats:
    day = pd.Timedelta(days=1)
    try:
        return np.asarray((index - origin) / day, np.float64)
    except (OverflowError, pd.errors.OutOfBoundsDatetime, pd.errors.OutOfBoundsTimedelta):
        # Nanoseconds in eight bytes end after 292 years.
        elapsed = index.as_unit("us") - origin.as_unit("us")
        return np.asarray(elapsed / day.as_unit("us"), np.float64)


def _frequency_with_gaps(index: pd.DatetimeIndex) -> str | None:
    """Return the frequency of some three neighbours if all times follow it and at least half exist.

    The first windows are asked: where a regular index has gaps, some of them have none.
    """
    ticks = index.asi8.tolist()  # Python's integers: multiples of centuries do not overflow
    most = ticks[-1] - ticks[0]
    windows = range(min(len(index) - 2, _WINDOWS))
    dense = (i for i in windows if most <= len(index) * (ticks[i + 2] - ticks[i]))
    candidates = dict.fromkeys(pd.infer_freq(index[i : i + 3]) for i in dense)
    if index.day.nunique() > 1 and most <= len(index) * _MONTH:
        candidates |= dict.fromkeys(_TWICE_A_MONTH)
    return next((name for name in candidates if name and _follows(index, name)), None)


def _day_of_months(index: pd.DatetimeIndex) -> pd.offsets.BaseOffset | None:
    """Return the step of an index on one day of every k-th month of which half or more exist.

    In months that end before that day it is the last one.
    """
    local = index.tz_localize(None)
    months = 12 * local.year + local.month
    k = int(np.gcd.reduce(np.diff(months)))
    day = int(local.day.max())
    is_one_day = np.all(local.day == np.minimum(day, local.days_in_month))
    is_one_time = (local - local.normalize()).nunique() == 1
    is_dense = k > 0 and len(index) >= 3 and months[-1] - months[0] <= 2 * k * len(index)
    return pd.DateOffset(months=k, day=day) if is_one_day and is_one_time and is_dense else None


def _follows(index: pd.DatetimeIndex, frequency: str) -> bool:
    """Whether all times lie on the grid of a frequency that begins with the first one."""
    if index.tz is not None:
        # Hours (in lower case) go on when clocks change, days keep their time of day.
        index = index.tz_convert(None) if frequency.islower() else index.tz_localize(None)
    return bool(index.isin(pd.date_range(index[0], index[-1], freq=frequency)).all())


@dataclass(frozen=True)
class Table:
    """A checked table and its scaling: times to a span of one, every series z-scored.

    Series may be modelled by their logarithms, which are then what is z-scored.

    Parameters
    ----------
    frame
        The sorted table, float64, in the units of the series.
    axis
        How its index becomes numbers.
    start, span
        First time and length of the table, in the axis' numbers: ``x = (t - start) / span``.
    location, scale
        Mean and standard deviation of every series on the modelled scale, [N].
    transforms
        Which series are modelled by their logarithms.
    """

    frame: pd.DataFrame
    axis: TimeAxis
    start: float
    span: float
    location: Floats
    scale: Floats
    transforms: Transforms

    @classmethod
    def of(cls, frame: Tabular, transform: Transform = "none") -> Table:
        """Check a table and measure its scaling; a ValueError says what is wrong and where."""
        sound = checked(frame)
        axis = TimeAxis.of(sound.index)
        times = axis.to_numbers(sound.index)
        transforms = Transforms.of(sound, transform)
        values = transforms.forward(sound.to_numpy())
        return cls(
            sound,
            axis,
            float(times[0]),
            float(times[-1] - times[0]),
            np.nanmean(values, axis=0),
            np.nanstd(values, axis=0),
            transforms,
        )

    @property
    def checksum(self) -> str:
        """Of values, times and names, in their units; `Observations.fingerprint` knows no units."""
        digest = hashlib.sha256(repr([*self.frame.columns]).encode())
        for numbers in (self.frame.to_numpy(np.float64), self.axis.to_numbers(self.frame.index)):
            digest.update(np.ascontiguousarray(numbers).tobytes())
        digest.update(str(self.axis.origin).encode())
        return digest.hexdigest()

    @property
    def names(self) -> list[str]:
        """Names of the series."""
        return [str(name) for name in self.frame.columns]

    def after(self, horizon: int | pd.Index) -> pd.Index:
        """Return so many times after the last row, or the times that are given."""
        if isinstance(horizon, pd.Index):
            self.axis.to_numbers(horizon)  # or say what is wrong with them
            return horizon
        if not _is_horizon(horizon):
            raise ValueError(
                f"expected a horizon of at least 1 step, got {horizon!r}; "
                "to forecast given times, pass a pandas Index"
            )
        return self.axis.after(self.frame.index[-1], _not_too_far(horizon))

    def steps(self, horizon: int | None) -> int:
        """Return how many steps to forecast: a tenth of the rows if it is not said."""
        if horizon is None:
            return max(1, round(0.1 * len(self.frame)))
        if not _is_horizon(horizon):
            raise ValueError(f"expected a horizon of at least 1 step, got {horizon!r}")
        return _not_too_far(horizon)

    @property
    def gaps(self) -> pd.MultiIndex:
        """The cells (series, time) without an observation, series after series."""
        series, rows = np.nonzero(self.frame.isna().to_numpy().T)
        cells = [self.frame.columns[series], self.frame.index[rows]]
        return pd.MultiIndex.from_arrays(cells, names=["series", "time"])

    def of_series(self, places: Integers) -> Table:
        """Return the table of some of the series, with the scaling of all."""
        return replace(
            self,
            frame=self.frame.iloc[:, places],
            location=self.location[places],
            scale=self.scale[places],
            transforms=self.transforms.of_series(places),
        )

    def scaled_times(self, index: pd.Index) -> Floats:
        """Times in units of the span, zero at the first row."""
        return (self.axis.to_numbers(index) - self.start) / self.span

    @property
    def transform(self) -> Transform:
        """The transformation of every series by name, as `of` takes it."""
        return dict(zip(self.frame.columns, self.transforms.names, strict=True))

    @property
    def modelled(self) -> Floats:
        """The values on the modelled scale, [D, N]: logarithms where these are modelled."""
        return self.transforms.forward(self.frame.to_numpy())

    @property
    def observations(self) -> Observations:
        """The scaled arrays that learning works on.

        Values are rounded to nine decimals, so that data in other units are the same to the last
        bit: searches and long optimisations magnify whatever differs.
        """
        values = ((self.modelled - self.location) / self.scale).round(9)
        mask = np.isfinite(values)
        return Observations(
            x=self.scaled_times(self.frame.index),
            Y=np.ascontiguousarray(np.where(mask, values, 0.0).T),
            mask=np.ascontiguousarray(mask.T.astype(np.float64)),
        )


def _is_horizon(value: object) -> bool:
    is_whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    return is_whole and bool(value >= 1)  # type: ignore[operator]


def _not_too_far(horizon: int) -> int:
    if horizon > _MOST_STEPS:
        raise ValueError(f"expected a horizon of 1 to {_MOST_STEPS} steps, got {horizon}")
    return int(horizon)

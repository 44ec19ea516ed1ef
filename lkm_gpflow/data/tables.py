"""From a DataFrame of series to scaled arrays, and back.

Rows are times, columns are series, NaN is a missing observation.  What can be wrong with a table
is found by `checks`.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias, cast, get_args

import numpy as np
import pandas as pd

from ..gp.likelihoods import PointLikelihood
from ..gp.types import Floats, Integers
from .checks import check_variation, checked
from .foreign import Tabular
from .grids import Grid, grid_of
from .observations import Observations
from .reading import without_blank_end
from .sites import PointChoice, Sites, kinds_of
from .suspicious import find as find_suspicious
from .suspicious import without
from .transforms import Transform, Transforms

Suspicious: TypeAlias = Literal["listed", "missing"]
"""What becomes of values that look wrong: they are listed, or missing, too."""

_MOST_LOOKED_AT = 200
"""Of more series the scale is chosen with all values: looking takes a second for a hundred."""

_MOST_STEPS = 1_000_000
"""Of a forecast: more are a slip, and their times alone may not fit into memory."""


@dataclass(frozen=True)
class TimeAxis:
    """How an index becomes numbers: days since its first date, or the numbers themselves."""

    origin: pd.Timestamp | None  # the first date; None if the index has numbers
    step: float  # the typical distance of two rows, in `unit`
    grid: Grid | None = None  # the times at which dates go on; None: at steps of that distance

    @classmethod
    def of(cls, index: pd.Index) -> TimeAxis:
        """Read the axis off a sorted index without duplicates."""
        if not isinstance(index, pd.DatetimeIndex):
            return cls(None, float(np.median(np.diff(index.to_numpy(np.float64)))))
        step = float(np.median(np.diff(_days(index, index[0]))))
        return cls(index[0], step, grid_of(index))

    @property
    def season(self) -> int:
        """Steps in a season by the grid of the dates, one where there is none."""
        return 1 if self.grid is None else self.grid.season

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

        A ValueError says if they are dates that nanoseconds in eight bytes cannot tell.
        """
        if self.origin is None:
            whole = isinstance(last, int | np.integer) and self.step.is_integer()
            ahead = np.arange(1, horizon + 1) * (int(self.step) if whole else self.step)
            return pd.Index(cast(float, last) + ahead)
        start = pd.Timestamp(last).as_unit("ns")  # type: ignore[arg-type]
        try:
            if self.grid is not None:
                return self.grid.after(start, horizon)
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


def _days(index: pd.DatetimeIndex, origin: pd.Timestamp) -> Floats:
    day = pd.Timedelta(days=1)
    try:
        return np.asarray((index - origin) / day, np.float64)
    except (OverflowError, pd.errors.OutOfBoundsDatetime, pd.errors.OutOfBoundsTimedelta):
        # Nanoseconds in eight bytes end after 292 years.
        elapsed = index.as_unit("us") - origin.as_unit("us")
        return np.asarray(elapsed / day.as_unit("us"), np.float64)


@dataclass(frozen=True)
class Table:
    """A checked table and its scaling: times to a span of one, every series z-scored.

    Series may be modelled by their logarithms, which are then what is z-scored.
    """

    frame: pd.DataFrame  # sorted, float64, in the units of the series
    axis: TimeAxis
    # First time and length of the table, in the axis' numbers: ``x = (t - start) / span``.
    start: float
    span: float
    location: Floats  # mean of every series on the modelled scale, [N], and standard deviation
    scale: Floats
    transforms: Transforms
    suspicious: pd.DataFrame | None = None  # see `suspicious.find`; None where nobody looked
    sites: Sites | None = None  # what is learnt from where some series are counts or shares
    notes: tuple[str, ...] = ()  # what was chosen for them here, a sentence each

    @classmethod
    def of(
        cls,
        frame: Tabular,
        transform: Transform = "none",
        suspicious: Suspicious | None = None,
        points: PointChoice = "none",
    ) -> Table:
        """Check a table and measure its scaling; a ValueError says what is wrong and where.

        Values that look wrong are "listed", or single ones "missing", too; None: nobody looks.  The
        transform "auto" looks at what is left without them.  For `points` see `sites`.
        """
        sound = checked(frame)
        if suspicious not in (None, *get_args(Suspicious)):
            raise ValueError(f"expected suspicious as 'listed' or 'missing', got {suspicious!r}")
        if suspicious is not None:
            sound = without_blank_end(sound)
        axis = TimeAxis.of(sound.index)
        found = None
        if suspicious is not None or (transform == "auto" and sound.shape[1] <= _MOST_LOOKED_AT):
            found = find_suspicious(sound, axis.season)
        left = sound if found is None else without(sound, found)
        if suspicious == "missing":
            sound = left
            for name, column in sound.items():
                check_variation(name, column.dropna().to_numpy())
        times = axis.to_numbers(sound.index)
        transforms = Transforms.of(sound, transform, left)
        logs = () if transform == "auto" else sound.columns[transforms.is_log]
        outliers = None if suspicious == "missing" else found
        kinds, notes = kinds_of(sound, left, outliers, points, list(logs))
        transforms = transforms.with_kinds(kinds, list(sound.columns), transform)
        values = transforms.forward(sound.to_numpy())
        table = cls(
            sound,
            axis,
            float(times[0]),
            float(times[-1] - times[0]),
            np.nanmean(values, axis=0),
            np.nanstd(values, axis=0),
            transforms,
            found if suspicious is not None else None,
        )
        if not any(transforms.kinds):
            return table
        period = axis.season * axis.step / table.span if axis.season > 1 else None
        x = (times - table.start) / table.span
        return table.sited(Sites.of(x, values, transforms.kinds, period), tuple(notes))

    def sited(self, sites: Sites, notes: tuple[str, ...] = ()) -> Table:
        """Return the table with sites, which say its scaling and what has little weight."""
        looked = self.suspicious
        if looked is not None and len(little := sites.little_weight(self.frame)):
            keys = ["series", "time"]
            listed = pd.MultiIndex.from_frame(looked[keys])
            new = ~pd.MultiIndex.from_frame(little[keys]).isin(listed)
            looked = pd.concat([looked, little[new]], ignore_index=True) if len(looked) else little
        return replace(
            self, sites=sites, notes=notes, suspicious=looked, location=sites.location,
            scale=sites.scale, transforms=replace(self.transforms, kinds=sites.kinds),
        )  # fmt: skip

    @property
    def with_suspicious(self) -> pd.DataFrame:
        """Values that look wrong, looked for now where nobody looked before."""
        if self.suspicious is None:
            return find_suspicious(self.frame, self.axis.season)
        return self.suspicious

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
        return self.axis.after(self.frame.index[-1], self.steps(horizon))

    def steps(self, horizon: int | None) -> int:
        """Return how many steps to forecast: a tenth of the rows if it is not said."""
        if horizon is None:
            return max(1, round(0.1 * len(self.frame)))
        is_whole = isinstance(horizon, int | np.integer) and not isinstance(horizon, bool)
        if not is_whole or not 1 <= horizon <= _MOST_STEPS:
            raise ValueError(
                f"expected a horizon of 1 to {_MOST_STEPS} steps, got {horizon!r}; "
                "to forecast given times, pass a pandas Index"
            )
        return int(horizon)

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
            suspicious=None,
            sites=None if self.sites is None else self.sites.of_series(places),
        )

    def scaled_times(self, index: pd.Index) -> Floats:
        """Times in units of the span, zero at the first row."""
        return (self.axis.to_numbers(index) - self.start) / self.span

    @property
    def transform(self) -> Transform:
        """The transformation of every series by name, as `of` takes it."""
        return dict(zip(self.frame.columns, self.transforms.names, strict=True))

    @property
    def kinds(self) -> dict[object, PointLikelihood]:
        """Likelihoods of the series that have one, by name, as `of` takes them."""
        every = zip(self.frame.columns, self.transforms.kinds, strict=False)
        return {name: kind for name, kind in every if kind is not None}

    @property
    def modelled(self) -> Floats:
        """The values on the modelled scale, [D, N]: logarithms or sites where they are modelled."""
        if self.sites is not None:
            return self.sites.values
        return self.transforms.forward(self.frame.to_numpy())

    @property
    def observations(self) -> Observations:
        """The scaled arrays that learning works on.

        Values are rounded to nine decimals, so that data in other units are the same to the last
        bit: searches and long optimisations magnify whatever differs.
        """
        values = ((self.modelled - self.location) / self.scale).round(9)
        mask = np.isfinite(values)
        known = None
        if self.sites is not None:
            known = np.ascontiguousarray((self.sites.variances / np.square(self.scale)).round(9).T)
        return Observations(
            x=self.scaled_times(self.frame.index),
            Y=np.ascontiguousarray(np.where(mask, values, 0.0).T),
            mask=np.ascontiguousarray(mask.T.astype(np.float64)),
            known=known,
        )

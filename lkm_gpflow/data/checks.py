"""What can be wrong with a table; messages name the time and column, and say what to do."""

from __future__ import annotations

import numpy as np
import pandas as pd

from ..gp.types import Floats
from ..runtime.warn import warn
from .foreign import Tabular, as_frame
from .reading import Dialect, cells_of, read
from .shapes import explain_columns, explain_index, has_dates

MIN_OBSERVED = 3  # fewer points than this cannot be standardised and described
LARGEST = 1e100  # larger values have no finite sum of squares, or leave no digit for the others


_IS_IT_A_SERIES = (
    "; if the first column (of a DataFrame the index) is a series and no times, put a column of "
    "times before it"
)


def checked(table: Tabular) -> pd.DataFrame:
    """Return a table as sorted float64, from whatever library it comes (see `foreign`).

    A ValueError says what was expected, what was given, where, and what to do; a UserWarning that
    its times are not in order.
    """
    frame = as_frame(table)
    if frame.empty:
        raise ValueError(f"expected a table with rows and columns, got shape {frame.shape}")
    if len(frame) < MIN_OBSERVED:
        raise ValueError(f"expected at least {MIN_OBSERVED} rows (time points), got {len(frame)}")
    _check_names(frame.columns)
    names = frame.columns.map(str)
    if names.has_duplicates:
        twice = list(names[names.duplicated()].unique())
        raise ValueError(f"expected series of different names, got more than one named {twice}")
    explain_columns(frame)
    if _is_to_be_read(frame):
        frame = read(
            cells_of(frame, with_index=not isinstance(frame.index, pd.RangeIndex)), Dialect()
        )
    index = _checked_index(frame)
    columns = {
        name: _numbers(frame.iloc[:, i], name, index) for i, name in enumerate(frame.columns)
    }
    sound = pd.DataFrame(columns, index=index, columns=frame.columns)
    if not index.is_monotonic_increasing:
        hint = "" if isinstance(index, pd.DatetimeIndex) else _IS_IT_A_SERIES
        warn(f"the times are not in order: the rows are sorted{hint}")
        sound = sound.sort_index()
    for name, column in sound.items():
        check_variation(name, column.dropna().to_numpy())
    return sound


def _is_to_be_read(frame: pd.DataFrame) -> bool:
    """Whether the times are texts, or in a column: see `reading`."""
    index = frame.index
    if isinstance(index, pd.RangeIndex):
        return frame.shape[1] > 1 and any(has_dates(frame[name]) for name in frame.columns)
    is_text = pd.api.types.is_object_dtype(index.dtype) or pd.api.types.is_string_dtype(index.dtype)
    return is_text and not isinstance(index, pd.MultiIndex)


def _check_names(columns: pd.Index) -> None:
    """Reject names by which pandas cannot look up a column, and those that no sentence can name."""
    for number, name in enumerate(columns, start=1):
        is_missing = pd.api.types.is_scalar(name) and pd.isna(name)
        is_blank = isinstance(name, str) and not name.strip()
        if is_missing or is_blank or isinstance(name, bool | np.bool_):
            raise ValueError(
                f"column {number}: expected a text or a number as the name of a series, "
                f"got {name!r}: set frame.columns"
            )


def check_variation(name: object, observed: Floats) -> None:
    """Reject a series that cannot be divided by its standard deviation."""
    if len(observed) < MIN_OBSERVED:
        raise ValueError(
            f"series {name!r}: expected at least {MIN_OBSERVED} observed values, "
            f"got {len(observed)}"
        )
    if np.ptp(observed) == 0.0:
        raise ValueError(
            f"series {name!r} is constant ({observed[0]:g}): "
            "expected a series that varies; leave it out"
        )
    if np.ptp(observed) <= 1e-12 * np.abs(observed).max():
        raise ValueError(
            f"series {name!r}: expected a series that varies by more than rounding, got "
            f"{observed.min()} to {observed.max()}: subtract an offset, or leave it out"
        )
    if np.ptp(observed) < 1.0 / LARGEST:
        raise ValueError(
            f"series {name!r}: expected values that differ by more than {1.0 / LARGEST:g}, got "
            f"{observed.min():g} to {observed.max():g}: give the series in another unit"
        )


def _checked_index(frame: pd.DataFrame) -> pd.Index:
    index = frame.index
    try:
        if isinstance(index, pd.PeriodIndex):
            index = index.to_timestamp()
        if isinstance(index, pd.DatetimeIndex):
            # Tables from different sources then have indices of one type.
            index = index.as_unit("ns")
    except pd.errors.OutOfBoundsDatetime as error:
        raise ValueError(
            f"expected dates from {pd.Timestamp.min.year} to {pd.Timestamp.max.year}, got "
            f"{index.min()} to {index.max()}"
        ) from error
    if isinstance(index, pd.DatetimeIndex):
        bad = np.asarray(index.isna())
    else:
        explain_index(index)
        bad = ~np.isfinite(index.to_numpy(np.float64))
    if bad.any():
        row = int(np.argmax(bad)) + 1
        raise ValueError(f"row {row} below the header: expected a time, got {index[bad][0]}")
    dated = isinstance(index, pd.DatetimeIndex)
    again = (index if dated else index.astype(np.float64)).duplicated()
    if again.any():
        cure = (
            ""
            if index.has_duplicates
            else " also after rounding to 64-bit floating point: frame.index -= frame.index[0]"
        )
        raise ValueError(
            f"the time {index[again][0]} appears a second time "
            f"({again.sum()} duplicates in all); expected different times{cure}"
        )
    return index


def _numbers(column: pd.Series, name: object, index: pd.Index) -> Floats:
    # Pandas would take dates for nanoseconds, and the real part of complex numbers.
    is_complex = np.zeros(len(column), np.bool_)
    if column.dtype.kind in "cO":
        is_complex = column.map(np.iscomplexobj).to_numpy(np.bool_)
    if column.dtype.kind in "mMc":
        values = np.full(len(column), np.nan)
    else:
        real = column.mask(is_complex)
        values = pd.to_numeric(real, errors="coerce").to_numpy(np.float64, na_value=np.nan)
    text = np.isnan(values) & column.notna().to_numpy()
    huge = np.isfinite(values) & (np.abs(values) > LARGEST)
    for bad, wanted, cure in (
        (is_complex, "a real number", ": give its real and its imaginary part a column each"),
        (text, "a number", ""),
        (np.isinf(values), "a finite number", ""),
        (
            huge,
            f"a number of at most {LARGEST:g} in size",
            ": if it stands for a missing observation, make it NaN, otherwise give the series in "
            "another unit",
        ),
    ):
        if bad.any():
            row = int(np.argmax(bad))
            raise ValueError(
                f"column {name!r} at {index[row]}: expected {wanted}, "
                f"got {column.iloc[[row]].tolist()[0]!r}{cure}"
            )
    return values

"""Tables of polars, PyArrow and xarray, turned into those of pandas."""

from __future__ import annotations

from typing import Any, Protocol, TypeAlias

import pandas as pd

from .reading import Dialect, cells_of, read


class HasToPandas(Protocol):
    """A table that can turn itself into one of pandas."""

    def to_pandas(self) -> Any:
        """Return the table as a DataFrame."""


Tabular: TypeAlias = "pd.DataFrame | HasToPandas"
"""A table of pandas, polars, PyArrow or xarray (and others with a method `to_pandas`)."""


def as_frame(table: Tabular) -> pd.DataFrame:
    """Return a table as a DataFrame with its times in the index; a DataFrame as it is.

    In a table without an index (polars, PyArrow) the times are in the only column of dates, or else
    in the first column.  In an xarray `Dataset` every variable is a series; in a `DataArray` one
    dimension is time, the other the series.  A ValueError says if it is no table or has other
    dimensions, a ModuleNotFoundError which library it needs to become one of pandas.
    """
    if isinstance(table, pd.DataFrame):
        return table
    given = type(table).__name__
    if isinstance(table, pd.Series) or not hasattr(table, "to_pandas"):
        hint = {
            "Series": ": .to_frame() makes a table of it",
            "LazyFrame": ": .collect() makes a table of it",
        }.get(given, "")
        raise ValueError(
            "expected a pandas DataFrame (or a table of polars, PyArrow or xarray), "
            f"got {given}{hint}"
        )
    if hasattr(table, "dims"):
        return _of_xarray(table)
    try:
        frame = table.to_pandas()
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"a {given} needs the library {error.name} to become a pandas DataFrame: "
            "pip install '.[files]' in a clone of lkm_gpflow"
        ) from error
    if not isinstance(frame, pd.DataFrame):
        raise ValueError(f"expected a table of rows and columns, got {given}")
    if has_times(frame) or not frame.columns.is_unique:
        return frame
    return read(cells_of(frame, with_index=False), Dialect())


def has_times(frame: pd.DataFrame) -> bool:
    """Whether the index has the times, and not the only column of dates, or else the first one."""
    return not isinstance(frame.index, pd.RangeIndex) or frame.shape[1] < 2


def _of_xarray(table: Any) -> pd.DataFrame:
    """Return the variables of a Dataset, or the matrix of a DataArray, by time."""
    sizes = dict(table.sizes)
    most = 1 if hasattr(table, "data_vars") else 2
    if len(sizes) != most:
        wanted = "one dimension, time" if most == 1 else "two dimensions, time and series"
        raise ValueError(
            f"expected an xarray {type(table).__name__} of {wanted}, got {sizes or 'none'}: "
            "select one entry of the others, table.sel(...)"
        )
    dated = [name for name in sizes if name in table.coords and table[name].dtype.kind == "M"]
    time = next(iter(dated or [name for name in sizes if name == "time"] or sizes))
    frame = table.transpose(time, ...).to_pandas()
    assert isinstance(frame, pd.DataFrame)
    return frame.rename_axis(columns=None)

"""Tables that are not rows of times and columns of series: what they are, and how to turn them."""

from __future__ import annotations

import re
from typing import NamedTuple

import pandas as pd

from ..runtime.text import counted

_LOOKED_AT = 50  # cells that say whether a column of texts has dates

_DATE = re.compile(r"\d{1,4}([-/.])\d{1,2}(\1\d{1,4})([T ].*)?|\d{4}-\d{2}")


class LongNames(NamedTuple):
    """Columns of a table in long format: one row for each observation of each series."""

    series: str
    time: str
    value: str

    @property
    def call(self) -> str:
        """The call that turns such a table."""
        return f"lkm_gpflow.from_long(frame, {self.series!r}, {self.time!r}, {self.value!r})"


def from_long(
    frame: pd.DataFrame, series: str = "unique_id", time: str = "ds", value: str = "y"
) -> pd.DataFrame:
    """Turn a table in long format into one with a column for each series.

    Parameters
    ----------
    frame
        One row for each observation of each series.
    series, time, value
        Its columns that name the series, have the times, and the values; by default as Nixtla's
        libraries call them.

    Returns
    -------
    DataFrame
        Rows are times in order, columns are series in the order of their first row, and NaN is
        where a series was not observed.

    Raises
    ------
    ValueError
        If it is no DataFrame, a column is absent or there twice, a row does not name its series or
        time, or a series has two values at one time.
    """
    if not isinstance(frame, pd.DataFrame):
        wrong = type(frame).__name__
        if hasattr(frame, "to_pandas"):
            wrong += f" of {type(frame).__module__.partition('.')[0]}: give frame.to_pandas()"
        raise ValueError(f"expected a pandas DataFrame, got {wrong}")
    given = frame if {series, time}.isdisjoint(frame.index.names) else frame.reset_index()
    if not given.columns.is_unique:
        twice = list(given.columns[given.columns.duplicated()].unique())
        raise ValueError(f"expected columns of different names, got more than one named {twice}")
    if len({series, time, value}) < 3:
        raise ValueError(
            f"expected three different columns, got {series!r}, {time!r} and {value!r}"
        )
    for name in (series, time, value):
        if name not in given.columns:
            found = long_names(given) or LongNames("SERIES", "TIME", "VALUE")
            raise ValueError(
                f"expected the columns {series!r}, {time!r} and {value!r}, "
                f"got {list(given.columns)}: name those of the series, the times and the values, "
                f"{found.call}"
            )
    for name in (series, time):
        if (absent := given[name].isna()).any():
            number = int(absent.to_numpy().argmax()) + 1
            raise ValueError(
                f"expected a series and a time in each row, got nothing in the column {name!r} of "
                f"row {number} below the header: fill it, or leave the row out, "
                f"frame.dropna(subset=[{name!r}])"
            )
    again = given.duplicated([series, time]).to_numpy()
    if again.any():
        number = int(again.argmax())
        row, pair = given.iloc[number], [series, time]
        many = counted(again.sum(), "such row")
        raise ValueError(
            f"expected one value for each series and time, got a second one for {row[series]!r} "
            f"at {row[time]} in row {number + 1} below the header ({many} in all): keep the first, "
            f"frame.drop_duplicates({pair}), or take their mean, "
            f"frame.groupby({pair}, as_index=False)[{value!r}].mean()"
        )
    wide = given.pivot(index=time, columns=series, values=value)
    return wide[list(dict.fromkeys(given[series]))].rename_axis(columns=None)


def to_long(frame: pd.DataFrame) -> pd.DataFrame:
    """Turn a table of index (series, time) into long format: columns unique_id, ds, and its own.

    Parameters
    ----------
    frame
        For example what `Discovery.forecast` returns.

    Raises
    ------
    ValueError
        If its index has another number of levels.
    """
    if frame.index.nlevels != 2:
        raise ValueError(
            f"expected an index of two levels, (series, time), got {frame.index.nlevels}: "
            "frame.unstack().to_frame('y') has them, of a table with a column for each series"
        )
    return frame.rename_axis(index=["unique_id", "ds"]).reset_index()


def explain_columns(frame: pd.DataFrame) -> None:
    """Reject tables in long format, or with several levels of names; say what turns them."""
    if isinstance(frame.columns, pd.MultiIndex):
        first = frame.columns[0]
        raise ValueError(
            f"expected one name for each column, got {frame.columns.nlevels} levels such as "
            f"{first!r}: choose one of the first level, frame[{first[0]!r}], or join them, "
            "frame.columns = ['/'.join(map(str, name)) for name in frame.columns]"
        )
    if (names := long_names(frame)) is not None:
        raise ValueError(
            f"expected a column for each series, got long format, a row for each observation of "
            f"each series in {names.series!r}: convert it with {names.call}, or at the command "
            f"line with --long {','.join(names)}"
        )


def explain_index(index: pd.Index) -> None:
    """Reject an index that is neither dates nor numbers; say what makes one of it."""
    if isinstance(index, pd.MultiIndex):
        levels = [str(name) for name in index.names]
        raise ValueError(
            f"expected an index of dates or numbers, got {index.nlevels} levels {levels}: "
            "frame.unstack(LEVEL), with the level of the series, makes a column of each series"
        )
    if pd.api.types.is_numeric_dtype(index.dtype) and index.dtype.kind not in "bc":
        return
    cure = ": frame.index /= pd.Timedelta(days=1)" if index.dtype.kind == "m" else ""
    raise ValueError(f"expected an index of dates or numbers, got {index.dtype}{cure}")


def long_names(frame: pd.DataFrame) -> LongNames | None:
    """Return the columns of a table in long format, or None if it is of another shape.

    Long format has a column of texts that name the series, a column (or an index) of times in which
    each time appears once for each series, and one column of numbers.
    """
    given = frame.reset_index() if isinstance(frame.index, pd.DatetimeIndex) else frame
    if given.shape[1] < 3:
        return None
    times = [name for name in given.columns if has_dates(given[name])]
    texts = [
        name for name in given.columns if name not in times and given[name].dtype.kind in "OTU"
    ]
    numbers = [name for name in given.columns if pd.api.types.is_numeric_dtype(given[name].dtype)]
    if not times and len(numbers) == 2:
        # Times are numbers: the ones that come again for every series.
        times = [name for name in numbers if given[name].duplicated().any()][:1]
        numbers = [name for name in numbers if name not in times]
    if not (len(times) == len(texts) == len(numbers) == 1):
        return None
    series, time = given[texts[0]], given[times[0]]
    if not (series.duplicated().any() and time.duplicated().any()):
        return None
    if pd.DataFrame({"series": series, "time": time}).duplicated().any():
        return None
    return LongNames(str(texts[0]), str(times[0]), str(numbers[0]))


def has_dates(column: pd.Series) -> bool:
    """Whether a column holds dates, or texts such as 2024-01-31, 31/12/2024 and 2024-01."""
    if column.dtype.kind == "M":
        return True
    texts = column.dropna().iloc[:_LOOKED_AT]
    return not texts.empty and all(
        isinstance(text, str) and _DATE.fullmatch(text.strip()) is not None for text in texts
    )

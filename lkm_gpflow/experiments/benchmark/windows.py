"""The windows of the benchmark: two rolling origins a table."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from ... import datasets
from ...datasets.benchmark import PREFIX, benchmark_tables

ORIGINS = (1, 2)
"""Origin 1 forecasts the last rows of a table, origin 2 those before them."""


@dataclass(frozen=True)
class Window:
    """What a method is given, and what it is to forecast.

    Parameters
    ----------
    table, domain
        Names.
    origin
        Among `ORIGINS`.
    season
        Rows in a season, one for none.
    train, test
        The rows before the origin, and as many after it as the table's horizon.
    """

    table: str
    domain: str
    origin: int
    season: int
    train: pd.DataFrame
    test: pd.DataFrame

    @property
    def location(self) -> pd.Series:
        """Mean of every series before the origin."""
        return self.train.mean()

    @property
    def scale(self) -> pd.Series:
        """Standard deviation of every series before the origin; scores are in these units."""
        return self.train.std(ddof=1)


def window(table: str, origin: int) -> Window:
    """Cut one window.

    Parameters
    ----------
    table
        Its name, without ``bench/``.
    origin
        Among `ORIGINS`.

    Raises
    ------
    ValueError
        If there is no such table or origin.
    """
    if table not in benchmark_tables():
        raise ValueError(f"expected a table of the benchmark, got {table!r}")
    if origin not in ORIGINS:
        raise ValueError(f"expected an origin among {ORIGINS}, got {origin!r}")
    entry = benchmark_tables()[table]
    frame = datasets.load(PREFIX + table).frame
    end = len(frame) - (origin - 1) * entry.horizon
    train, test = frame.iloc[: end - entry.horizon], frame.iloc[end - entry.horizon : end]
    return Window(table, entry.domain, origin, entry.season, train, test)

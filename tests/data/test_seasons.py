"""Seasons: which are asked for or seen."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from walks import walks

from lkm_gpflow.data.seasons import seasons_of
from lkm_gpflow.data.tables import Table


def months(values: np.ndarray) -> pd.DataFrame:
    index = pd.date_range("2001-01-01", periods=len(values), freq="MS")
    return pd.DataFrame(values, index=index)


def test_a_season_is_asked_for_or_seen_three_times() -> None:
    def table(rows: int) -> Table:
        return Table.of(months(walks(rows, 1)))

    assert seasons_of(table(36), None) == [12]
    assert seasons_of(table(35), None) == [1]
    assert seasons_of(table(35), 20) == [20]
    with pytest.raises(ValueError, match="season of 1 to 34 steps, got 35"):
        seasons_of(table(35), 35)


def partly_seen(num_seen: int) -> pd.DataFrame:
    """Four walks of eighty months, of the first one only the last rows."""
    Y = walks(80, 4)
    Y[: 80 - num_seen, 0] = np.nan
    return months(Y)


def test_every_series_must_have_seen_its_season() -> None:
    assert seasons_of(Table.of(partly_seen(36)), None) == [12, 12, 12, 12]
    assert seasons_of(Table.of(partly_seen(35)), None) == [1, 12, 12, 12]


def test_gaps_are_filled_by_lines() -> None:
    frame = pd.DataFrame({"a": [1.0, np.nan, 3.0, 5.0, np.nan], "b": [1.0, 2.0, 1.0, 4.0, 0.0]})
    table = Table.of(frame)
    in_units = table.observations.filled * table.scale + table.location
    np.testing.assert_allclose(in_units[:, 0], [1.0, 2.0, 3.0, 5.0, 5.0], atol=1e-8)

"""Comparators: the tests that every one passes, and what each promises."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from small import small_table

from lkm_gpflow.comparators import (
    Comparator,
    Drift,
    LastValue,
    SeasonalNaive,
    comparator,
    comparator_names,
    register,
)
from lkm_gpflow.comparators.protocol import ScaledForecast
from lkm_gpflow.data.seasons import season_length
from lkm_gpflow.data.tables import Table
from lkm_gpflow.evaluation.predictive import DEGREES
from paper_experiments.lab.table1 import SMOKE_SETTINGS

NEED_LIBRARY = dict.fromkeys(["auto-arima", "auto-ets", "auto-theta"], "statsforecast")

QUICK = SMOKE_SETTINGS
"""Settings with which methods that search pass the shared tests in seconds."""


TIMES = pd.date_range("2021-10-10", periods=5, freq="W")


@pytest.fixture(scope="module", params=comparator_names())
def name(request: pytest.FixtureRequest) -> str:
    if request.param in NEED_LIBRARY:
        pytest.importorskip(NEED_LIBRARY[request.param])
    return request.param


@pytest.fixture(scope="module")
def method(name: str) -> Comparator:
    return comparator(name, **QUICK.get(name, {}))


@pytest.fixture(scope="module")
def one(method: Comparator) -> pd.DataFrame:
    return method.fit(small_table(), seed=0).forecast(TIMES)


class TestEveryComparator:
    """The protocol."""

    def test_forecast_has_a_row_for_each_series_and_time(
        self, one: pd.DataFrame, name: str
    ) -> None:
        shape = (DEGREES,) if name == "lkm" else ()
        assert list(one.columns) == ["mean", "sd", *shape]
        assert list(one.loc["b"].index) == list(TIMES)
        assert np.isfinite(one.to_numpy()).all()
        assert (one["sd"] > 0.0).all()

    def test_forecast_is_in_the_units_of_the_series(
        self, one: pd.DataFrame, method: Comparator
    ) -> None:
        other = method.fit(100.0 * small_table() + 7.0, seed=0).forecast(TIMES)
        # Scaled tables differ in their last digits, and so does where an optimiser stops.
        np.testing.assert_allclose(other["mean"], 100.0 * one["mean"] + 7.0, rtol=1e-5)
        np.testing.assert_allclose(other["sd"], 100.0 * one["sd"], rtol=1e-5)

    def test_bad_tables_are_refused(self, method: Comparator) -> None:
        with pytest.raises(ValueError, match="'a' is constant"):
            method.fit(small_table().assign(a=1.0), seed=0)


def test_a_season_of_the_calendar_is_repeated() -> None:
    months = pd.date_range("2015-01-01", periods=62, freq="MS")
    values = np.random.default_rng(1).normal(size=48)
    frame = pd.DataFrame({"a": values}, index=months[:48])
    forecast = SeasonalNaive().fit(frame, seed=0).forecast(months[48:])
    np.testing.assert_allclose(forecast["mean"], [*values[-12:], *values[-12:-10]])


@pytest.mark.parametrize(
    ("frequency", "steps"),
    [("MS", 12), ("BME", 12), ("QS-FEB", 4), ("W-WED", 52), ("B", 5), ("h", 24)]
    + [("2MS", 6), ("2QS", 2), ("2W", 26), ("4W-TUE", 13), ("3h", 8), ("30min", 48), ("15s", 5760)]
    + [("YS", 1), ("BYE-DEC", 1), ("WOM-3FRI", 12), ("2D", 1), ("5W", 1), ("7min", 1), ("2ms", 1)],
)
def test_season_of_a_frequency(frequency: str, steps: int) -> None:
    index = pd.date_range("2020-01-01", periods=30, freq=frequency)
    frame = pd.DataFrame({"a": np.random.default_rng(0).normal(size=30)}, index=index)
    assert season_length(Table.of(frame)) == steps


def test_season_of_a_timetable() -> None:
    def of(index: pd.DatetimeIndex) -> int:
        return season_length(Table.of(pd.DataFrame({"a": np.arange(float(len(index)))}, index)))

    hours = pd.date_range("2024-01-01", periods=24 * 60, freq="h")
    days = pd.date_range("2024-01-01", periods=120)
    assert of(hours[(hours.hour >= 8) & (hours.hour < 18) & (hours.day_of_week < 5)]) == 10
    assert of(days[days.day_of_week != 6]) == 6
    assert of(days[days.day_of_week.isin([1, 3])]) == 2


GAPPY = {
    "inside": [*range(9, 14), 20, 21, 30],
    "late": list(range(17)),
    "early": list(range(33, 40)),
    "all": [*range(6), 12, 19, 20, *range(36, 40)],
}
"""Missing rows of a table of forty."""


def kriging(y: np.ndarray, season: int, drift: bool, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Means and sds of walks by generalised least squares from their covariance matrix."""

    def covariance(one: np.ndarray, other: np.ndarray) -> np.ndarray:
        same = one[:, None] % season == other[None, :] % season
        return same * (1 + np.minimum(one[:, None] // season, other[None, :] // season))

    def regressors(rows: np.ndarray) -> np.ndarray:
        levels = rows[:, None] % season == np.arange(season)
        return np.column_stack([levels, rows]) if drift else levels.astype(float)

    rows, ahead = np.flatnonzero(np.isfinite(y)), np.arange(len(y), len(y) + count)
    F, inverse = regressors(rows), np.linalg.inv(covariance(rows, rows))
    information = np.linalg.inv(F.T @ inverse @ F)
    beta = information @ F.T @ inverse @ y[rows]
    rest = y[rows] - F @ beta
    variance = rest @ inverse @ rest / (len(rows) - F.shape[1])
    weights = covariance(ahead, rows) @ inverse
    G = regressors(ahead) - weights @ F
    spread = covariance(ahead, ahead) - weights @ covariance(rows, ahead) + G @ information @ G.T
    return regressors(ahead) @ beta + weights @ rest, np.sqrt(variance * np.diag(spread))


@pytest.mark.parametrize("missing", GAPPY.values(), ids=GAPPY)
@pytest.mark.parametrize(
    ("method", "season", "drift"),
    [(LastValue(), 1, False), (Drift(), 1, True), (SeasonalNaive(season=4), 4, False)],
)
def test_walks_with_gaps_are_those_of_generalised_least_squares(
    method: LastValue | Drift | SeasonalNaive, season: int, drift: bool, missing: list[int]
) -> None:
    y = np.cumsum(0.4 + np.random.default_rng(3).normal(size=40))
    y[missing] = np.nan
    whole = np.random.default_rng(4).normal(size=40)
    frame = pd.DataFrame({"a": y, "whole": whole})
    found = method.fit(frame, seed=0).forecast(pd.Index(np.arange(40, 50)))
    for name in frame:
        mean, sd = kriging(frame[name].to_numpy(), season, drift, 10)
        np.testing.assert_allclose(found.loc[name, "mean"], mean, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(found.loc[name, "sd"], sd, rtol=1e-9)


@pytest.mark.parametrize("bad", [(np.nan, 1.0), (0.0, np.nan), (0.0, np.inf), (0.0, -1.0)])
def test_forecasts_that_are_no_numbers_are_refused(bad: tuple[float, float]) -> None:
    table = Table.of(small_table())
    mean, variance = np.zeros((4, 3)), np.ones((4, 3))
    mean[2, 1], variance[2, 1] = bad
    times = pd.date_range("2021-10-10", periods=4, freq="W")
    with pytest.raises(RuntimeError, match=r"series 'b', 2021-10-24 .*: expected a finite mean"):
        ScaledForecast(table, lambda x: (mean, variance)).forecast(times)


WRONG = [
    ("abcd", {"depth": 0}, "a depth of at least 1, got 0"),
    ("abcd", {"restarts": -1}, "at least 0 restarts, got -1"),
    ("abcd", {"bases": ("SE", "MAT")}, "a base kernel among WN, .*, got"),
    ("abcd", {"bases": ()}, "names of base kernels, got none"),
    ("gprn", {"num_nodes": (0, 1)}, "rising numbers of nodes from 1, got"),
    ("gprn", {"restarts": 0}, "at least 1 start, got 0"),
    ("lmc", {"kernels": ((),)}, r"sets of base kernels, none empty, got \(\(\),\)"),
    ("lmc", {"ranks": (0, 1)}, r"ranks of at least 1, got \(0, 1\)"),
    ("lmc", {"restarts": 0}, "at least 1 start, got 0"),
    ("mosm", {"num_components": ()}, r"expected numbers of components from 1, got \(\)"),
    ("mosm", {"num_components": (2, 0)}, r"from 1, got \(2, 0\)"),
    ("mosm", {"restarts": 0}, "expected at least one start, got 0"),
    ("r-abcd", {"depth": 0}, "a depth of at least 1, got 0"),
    ("r-abcd", {"num_components": -1}, "at least 0 components, got -1"),
    ("seasonal-naive", {"season": 40}, "season of 1 to 39 steps, got 40"),
    ("spike-slab", {"num_latent": 0}, "latent functions as a whole number of 1 or more, got 0"),
    ("oracle", {}, "among .*last-value, .*, got 'oracle'"),
    (None, {}, "the name of a comparator, such as 'drift', got None"),
]


@pytest.mark.parametrize(("name", "settings", "message"), WRONG)
def test_wrong_names_and_settings(name: str, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        comparator(name, **settings).fit(small_table(), seed=0)


def test_names_are_registered_once() -> None:
    with pytest.raises(ValueError, match="another comparator named 'drift'"):
        register("drift")(Drift)

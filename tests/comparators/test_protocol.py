"""Comparators: the tests that every one passes, and what each promises."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from small import small_table

from lkm_gpflow.comparators import (
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


@pytest.fixture(params=comparator_names())
def name(request: pytest.FixtureRequest) -> str:
    if request.param in NEED_LIBRARY:
        pytest.importorskip(NEED_LIBRARY[request.param])
    return request.param


class TestEveryComparator:
    """The protocol."""

    def test_forecast_has_a_row_for_each_series_and_time(self, name: str) -> None:
        times = pd.date_range("2021-10-10", periods=5, freq="W")
        forecast = (
            comparator(name, **QUICK.get(name, {})).fit(small_table(), seed=0).forecast(times)
        )
        shape = (DEGREES,) if name == "lkm" else ()
        assert list(forecast.columns) == ["mean", "sd", *shape]
        assert list(forecast.loc["b"].index) == list(times)
        assert np.isfinite(forecast.to_numpy()).all()
        assert (forecast["sd"] > 0.0).all()

    def test_forecast_is_in_the_units_of_the_series(self, name: str) -> None:
        times = pd.date_range("2021-10-10", periods=3, freq="W")
        table = small_table()
        one = comparator(name, **QUICK.get(name, {})).fit(table, seed=0).forecast(times)
        other = (
            comparator(name, **QUICK.get(name, {})).fit(100.0 * table + 7.0, seed=0).forecast(times)
        )
        # Scaled tables differ in their last digits, and so does where an optimiser stops.
        np.testing.assert_allclose(other["mean"], 100.0 * one["mean"] + 7.0, rtol=1e-5)
        np.testing.assert_allclose(other["sd"], 100.0 * one["sd"], rtol=1e-5)

    def test_bad_tables_are_refused(self, name: str) -> None:
        constant = small_table().assign(a=1.0)
        with pytest.raises(ValueError, match="'a' is constant"):
            comparator(name, **QUICK.get(name, {})).fit(constant, seed=0)


def random_walks(drift: float, count: int = 400) -> np.ndarray:
    steps = drift + np.random.default_rng(0).normal(size=(80, count))
    return np.cumsum(steps, axis=0)


@pytest.mark.parametrize(("method", "drift"), [(LastValue(), 0.0), (Drift(), 0.7)])
def test_intervals_of_random_walks_cover(method: LastValue | Drift, drift: float) -> None:
    """Over 400 walks and 20 steps the squared standardised errors have mean one."""
    walks = random_walks(drift)
    frame = pd.DataFrame(walks[:60])
    forecast = method.fit(frame, seed=0).forecast(pd.Index(np.arange(60, 80)))
    mean = forecast["mean"].to_numpy().reshape(400, 20).T
    sd = forecast["sd"].to_numpy().reshape(400, 20).T
    standardised = (walks[60:] - mean) / sd
    assert np.square(standardised).mean() == pytest.approx(1.0, abs=0.12)


def test_seasons() -> None:
    months = pd.date_range("2015-01-01", periods=48, freq="MS")
    rng = np.random.default_rng(1)
    values = np.tile(np.arange(12.0), 4) + 0.1 * rng.normal(size=48)
    frame = pd.DataFrame({"a": values}, index=months)
    times = pd.date_range("2019-01-01", periods=14, freq="MS")
    forecast = SeasonalNaive().fit(frame, seed=0).forecast(times).loc["a"]
    np.testing.assert_allclose(forecast["mean"].iloc[:12], values[-12:])
    np.testing.assert_allclose(forecast["mean"].iloc[12:], values[-12:-10])
    assert forecast["sd"].iloc[12] == pytest.approx(np.sqrt(2.0) * forecast["sd"].iloc[0])
    assert forecast["sd"].iloc[0] == pytest.approx(0.1 * np.sqrt(2.0), rel=0.3)
    with pytest.raises(ValueError, match="season of 1 to 47 steps, got 48"):
        SeasonalNaive(season=48).fit(frame, seed=0)


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


def test_registry() -> None:
    with pytest.raises(ValueError, match=r"among .*last-value, .*, got 'oracle'"):
        comparator("oracle")
    with pytest.raises(ValueError, match="the name of a comparator, such as 'drift', got None"):
        comparator(None)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="another comparator named 'drift'"):
        register("drift")(Drift)

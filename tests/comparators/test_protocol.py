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
from lkm_gpflow.comparators.naive import season_length
from lkm_gpflow.data.tables import Table
from lkm_gpflow.evaluation.predictive import LOG_MOMENTS
from lkm_gpflow.experiments.methods import SMOKE_SETTINGS

NEED_LIBRARY = {
    **dict.fromkeys(["auto-arima", "auto-ets", "auto-theta", "mstl"], "statsforecast"),
    **dict.fromkeys([f"auto-{name}-own-units" for name in ("arima", "ets", "theta", "ces")],
                    "statsforecast"),
    **dict.fromkeys(["var", "vecm", "arima-110", "dynamic-factor", "unobserved-components"],
                    "statsmodels"),
    "ridge-var": "sklearn",
    "prophet": "prophet",
}  # fmt: skip

QUICK = SMOKE_SETTINGS
"""Settings with which methods that search pass the shared tests in seconds."""


def table_for(name: str) -> pd.DataFrame:
    """The small table, positive for methods that need it so."""
    return np.exp(small_table()) if name.endswith("-log") else small_table()


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
            comparator(name, **QUICK.get(name, {})).fit(table_for(name), seed=0).forecast(times)
        )
        is_log = name.endswith("-log")
        assert list(forecast.columns) == ["mean", "sd", *(LOG_MOMENTS if is_log else ())]
        assert list(forecast.loc["b"].index) == list(times)
        assert np.isfinite(forecast.to_numpy()).all()
        assert (forecast["sd"] > 0.0).all()

    def test_forecast_is_in_the_units_of_the_series(self, name: str) -> None:
        times = pd.date_range("2021-10-10", periods=3, freq="W")
        table = table_for(name)
        # In its own units a series of positive values may be multiplicative.
        own_units = name.endswith(("-own-units", "-log"))
        factor, shift, rtol = (4.0, 0.0, 2e-3) if own_units else (100.0, 7.0, 1e-5)
        one = comparator(name, **QUICK.get(name, {})).fit(table, seed=0).forecast(times)
        other = (
            comparator(name, **QUICK.get(name, {}))
            .fit(factor * table + shift, seed=0)
            .forecast(times)
        )
        # Scaled tables differ in their last digits, and so does where an optimiser stops.
        np.testing.assert_allclose(other["mean"], factor * one["mean"] + shift, rtol=rtol)
        np.testing.assert_allclose(other["sd"], factor * one["sd"], rtol=rtol)

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


def test_drift_beats_the_last_value_where_there_is_one() -> None:
    walks = random_walks(0.7)
    frame, times = pd.DataFrame(walks[:60]), pd.Index(np.arange(60, 80))
    errors = [
        np.abs(
            method.fit(frame, seed=0).forecast(times)["mean"].to_numpy().reshape(400, 20).T
            - walks[60:]
        ).mean()
        for method in (Drift(), LastValue())
    ]
    assert errors[0] < 0.7 * errors[1]


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
    + [("YS", 1), ("BYE-DEC", 1), ("WOM-3FRI", 1), ("2D", 1)],
)
def test_season_of_a_frequency(frequency: str, steps: int) -> None:
    index = pd.date_range("2020-01-01", periods=30, freq=frequency)
    frame = pd.DataFrame({"a": np.random.default_rng(0).normal(size=30)}, index=index)
    assert season_length(Table.of(frame)) == steps


def test_gaps_are_carried_over() -> None:
    frame = pd.DataFrame({"a": [1.0, 2.0, 4.0, np.nan], "b": [1.0, 3.0, 2.0, 5.0]})
    forecast = LastValue().fit(frame, seed=0).forecast(pd.Index([4, 5]))
    assert forecast["mean"].tolist() == [4.0, 4.0, 5.0, 5.0]


def test_registry() -> None:
    with pytest.raises(ValueError, match=r"among .*last-value, .*, got 'oracle'"):
        comparator("oracle")
    with pytest.raises(ValueError, match="another comparator named 'drift'"):
        register("drift")(Drift)

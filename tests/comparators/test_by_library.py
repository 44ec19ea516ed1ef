"""Forecasters of other libraries by name, against the same ones asked directly."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from small import small_table

import lkm_gpflow as lkm
from lkm_gpflow.comparators import comparator
from lkm_gpflow.evaluation.backtesting import backtest

pytest.importorskip("sktime")
pytest.importorskip("statsforecast")

TIMES = pd.date_range("2021-10-10", periods=4, freq="W")


def test_a_vector_autoregression_of_sktime_is_that_of_statsmodels() -> None:
    from statsmodels.tsa.api import VAR

    train = small_table()[["a", "b"]]
    ours = comparator("sktime:VAR", maxlags=2).fit(train, seed=0).forecast(TIMES)
    scaled = (train - train.mean()) / train.std(ddof=0)
    fitted = VAR(scaled.to_numpy()).fit(maxlags=2)
    mean, lower, upper = fitted.forecast_interval(scaled.to_numpy()[-2:], 4, alpha=0.1)
    location, scale = train.mean().to_numpy(), train.std(ddof=0).to_numpy()
    np.testing.assert_allclose(
        ours["mean"].to_numpy().reshape(2, 4).T, location + scale * mean, rtol=1e-6
    )
    sd = scale * (upper - lower) / (2.0 * 1.6448536269514722)
    np.testing.assert_allclose(ours["sd"].to_numpy().reshape(2, 4).T, sd, rtol=1e-6)


def test_a_model_of_statsforecast_is_the_one_of_the_library() -> None:
    from statsforecast.models import HistoricAverage

    train = small_table()
    ours = comparator("statsforecast:HistoricAverage").fit(train, seed=0).forecast(TIMES)
    np.testing.assert_allclose(ours.loc["a", "mean"], train["a"].mean())
    told = HistoricAverage().fit(train["a"].to_numpy()).predict(4, level=[90])
    half = np.asarray(told["hi-90"]) - np.asarray(told["mean"])
    np.testing.assert_allclose(ours.loc["a", "sd"] * 1.6448536269514722, half)


@pytest.mark.parametrize("name", ["sktime:VAR", "sktime:NaiveForecaster", "statsforecast:Naive"])
def test_it_is_backtested_as_any_other(name: str) -> None:
    """Gaps are filled, and every cell has a forecast, without a word of the library's future."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", FutureWarning)
        result = backtest(small_table(), name, 3, 2, progress=False)
    assert result.label == name
    assert np.isfinite(result.forecasts[["mean", "sd"]].to_numpy()).all()
    assert (result.forecasts["sd"] > 0.0).all()


@pytest.mark.parametrize(
    ("name", "settings"),
    [("sktime:ThetaForecaster", {"deseasonalize": False}), ("statsforecast:AutoETS", {})],
)
def test_nothing_is_invented_at_the_ends(name: str, settings: dict[str, bool]) -> None:
    """A late start is a shorter series; one that ended early is forecast so many steps more."""
    walk = np.cumsum(np.random.default_rng(0).normal(size=60))
    frame = pd.DataFrame({"late": walk, "early": walk, "whole": walk[::-1]})
    frame.loc[:29, "late"] = np.nan
    frame.loc[50:, "early"] = np.nan

    def moments(table: pd.DataFrame, steps: int) -> pd.DataFrame:
        times = pd.Index(np.arange(len(table), len(table) + steps))
        return comparator(name, **settings).fit(table, seed=0).forecast(times)

    found = moments(frame, 3)
    late = moments(frame[["late"]].iloc[30:].reset_index(drop=True), 3)
    early = moments(frame[["early"]].iloc[:50], 13)
    np.testing.assert_allclose(found.loc["late"], late.loc["late"], rtol=1e-6)
    np.testing.assert_allclose(found.loc["early"], early.loc["early"].iloc[10:], rtol=1e-6)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("sktime:VAT", r"forecaster of sktime .*, got 'VAT'; did you mean .*'VAR'"),
        ("sktime:Croston", "expected a forecaster with variances, sktime's Croston gives means"),
        ("statsforecast:AutoCE", "got 'AutoCE'; did you mean 'AutoCES'"),
        ("darts:TCN", r"expected a comparator among .*, or sktime:METHOD or statsforecast:METHOD"),
    ],
)
def test_what_there_is_not(name: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        lkm.backtest(small_table(), name, 3)

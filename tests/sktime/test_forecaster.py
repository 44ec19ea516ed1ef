"""The forecaster of sktime: its own checks, and what it says against the discovery behind it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import lognorm
from scipy.stats import t as student_t
from small import small_table

pytest.importorskip("sktime")
pytest.importorskip("skpro")

from sktime.forecasting.base import ForecastingHorizon
from sktime.forecasting.compose import TransformedTargetForecaster
from sktime.forecasting.model_selection import ForecastingGridSearchCV
from sktime.split import ExpandingWindowSplitter
from sktime.transformations.detrend import Detrender
from sktime.utils.estimator_checks import check_estimator

import lkm_gpflow as lkm
from lkm_gpflow.sktime import LKMForecaster

HORIZON = [1, 2, 5]


@pytest.fixture(scope="module")
def fitted() -> LKMForecaster:
    return LKMForecaster(["SE", "LIN"], restarts=1).fit(small_table())


def test_it_says_what_the_discovery_says(fitted: LKMForecaster) -> None:
    found = lkm.learn(small_table(), ["SE", "LIN"], restarts=1, progress=False)
    expected = found.forecast(5, 0.8).unstack("series")
    times = expected.index[[0, 1, 4]]
    mean = fitted.predict(fh=HORIZON)
    pd.testing.assert_frame_equal(
        mean,
        expected["mean"].loc[times],
        check_names=False,
        check_freq=False,
        check_index_type=False,
    )
    interval = fitted.predict_interval(fh=HORIZON, coverage=[0.8, 0.5])
    variance = fitted.predict_var(fh=HORIZON)
    for name in "abc":
        np.testing.assert_allclose(interval[name, 0.8, "lower"], expected["lower"].loc[times, name])
        np.testing.assert_allclose(interval[name, 0.8, "upper"], expected["upper"].loc[times, name])
        np.testing.assert_allclose(variance[name], expected["sd"].loc[times, name] ** 2)
    quantiles = fitted.predict_quantiles(fh=HORIZON, alpha=[0.25, 0.75])
    np.testing.assert_allclose(
        quantiles.xs(0.75, axis=1, level=1), interval.xs((0.5, "upper"), axis=1, level=(1, 2))
    )
    proba = fitted.predict_proba(fh=HORIZON)
    np.testing.assert_allclose(proba.quantile(0.25), quantiles.xs(0.25, axis=1, level=1))


def test_after_a_search_it_is_a_student_t() -> None:
    searched = LKMForecaster(bases=("LIN", "SE"), depth=0, restarts=1, averaging="tempered")
    searched.fit(small_table())
    quantiles = searched.predict_quantiles(fh=HORIZON, alpha=[0.1])
    proba = searched.predict_proba(fh=HORIZON)
    np.testing.assert_allclose(proba.quantile(0.1), quantiles.xs(0.1, axis=1, level=1))
    np.testing.assert_allclose(proba.var(), searched.predict_var(fh=HORIZON))
    mean, sd = searched.predict(fh=HORIZON), np.sqrt(searched.predict_var(fh=HORIZON))
    expected = mean + sd.to_numpy() * student_t.ppf(0.1, 6.0) / student_t.std(6.0)
    np.testing.assert_allclose(proba.quantile(0.1), expected)


def test_one_kernel_is_not_split_into_letters() -> None:
    with pytest.raises(ValueError, match=r"expected a list of components .*, got 'SE'"):
        LKMForecaster("SE").fit(small_table())  # type: ignore[arg-type]


def test_history_and_gaps_have_forecasts(fitted: LKMForecaster) -> None:
    """The third series has no observation in rows 5 to 7."""
    index = small_table().index
    inside = fitted.predict(fh=ForecastingHorizon(index[3:9], is_relative=False))
    expected = fitted.found_.predict(index[3:9])["mean"].unstack("series")
    np.testing.assert_allclose(inside, expected)
    assert inside.notna().all(axis=None)


def test_periods_are_forecast_as_periods() -> None:
    y = small_table().to_period("W")
    forecaster = LKMForecaster(["SE"], restarts=1).fit(y)
    assert list(forecaster.predict(fh=[1, 2]).index) == [y.index[-1] + 1, y.index[-1] + 2]


def test_logarithms_are_turned_back() -> None:
    """Mean, variance and quantiles are those of the lognormal distribution."""
    y = np.exp(small_table()[["a", "b"]])
    forecaster = LKMForecaster(["SE"], restarts=1, transform="log").fit(y)
    plain = LKMForecaster(["SE"], restarts=1).fit(np.log(y))
    location, variance = plain.predict(fh=HORIZON), plain.predict_var(fh=HORIZON)
    expected = lognorm(s=np.sqrt(variance), scale=np.exp(location))
    np.testing.assert_allclose(forecaster.predict(fh=HORIZON), expected.mean())
    np.testing.assert_allclose(forecaster.predict_var(fh=HORIZON), expected.var())
    quantiles = forecaster.predict_quantiles(fh=HORIZON, alpha=[0.05])
    np.testing.assert_allclose(quantiles, expected.ppf(0.05))
    np.testing.assert_allclose(forecaster.predict_proba(fh=HORIZON).ppf(0.05), expected.ppf(0.05))
    assert (quantiles > 0.0).all(axis=None)
    with pytest.raises(ValueError, match=r"'a': expected positive numbers for 'log', got -"):
        LKMForecaster(["SE"], transform="log").fit(small_table())


def test_what_there_is_not(fitted: LKMForecaster) -> None:
    with pytest.raises(NotImplementedError, match="cov=False"):
        fitted.predict_var(fh=HORIZON, cov=True)


def test_pipelines_windows_and_grids_of_sktime() -> None:
    y = small_table()[["a", "b"]]
    own = LKMForecaster(["SE"], restarts=1)
    pipeline = TransformedTargetForecaster([("detrend", Detrender()), ("own", own)])
    pipeline.fit(y, fh=HORIZON)
    trend = Detrender().fit(y)
    rest = own.clone().fit(trend.transform(y)).predict(fh=HORIZON)
    np.testing.assert_allclose(pipeline.predict(), trend.inverse_transform(rest), rtol=1e-6)

    windows = ExpandingWindowSplitter(fh=[1, 2], initial_window=36, step_length=2)
    grid = ForecastingGridSearchCV(own, cv=windows, param_grid={"kernels": [["SE"], ["C"]]})
    grid.fit(y)
    assert grid.best_params_ in ({"kernels": ["SE"]}, {"kernels": ["C"]})
    scores = grid.cv_results_.set_index(grid.cv_results_["params"].map(str)).filter(like="mean_")
    best = scores.filter(like="test").iloc[:, 0].idxmin()
    assert best == str(grid.best_params_)


@pytest.mark.slow
@pytest.mark.usefixtures("quick_fits")
@pytest.mark.filterwarnings("ignore")
def test_all_checks_of_sktime_pass() -> None:
    results = check_estimator(LKMForecaster, verbose=False)
    failed = {name: result for name, result in results.items() if result != "PASSED"}
    assert failed == {}
    assert len(results) > 300

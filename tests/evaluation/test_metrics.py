"""Scores against scipy, numerical integration and hand-made examples."""

import warnings
from collections.abc import Callable
from dataclasses import astuple

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

from lkm_gpflow.evaluation import metrics

NAN = float("nan")
FINITE = st.floats(-100, 100)
POSITIVE = st.floats(0.01, 100)


@pytest.fixture
def forecast() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Observations with gaps, means and sds, [12, 5]; the last series is never observed."""
    rng = np.random.default_rng(0)
    mean, sd = rng.normal(size=(12, 5)), rng.uniform(0.5, 2.0, size=(12, 5))
    y = rng.normal(mean, sd)
    y[rng.random(y.shape) < 0.2] = NAN
    y[:, 4] = NAN
    return y, mean, sd


def test_rmse_by_hand() -> None:
    y = [[1.0, 10.0], [1.0, NAN]]
    mean = [[4.0, 15.0], [-3.0, 0.0]]
    told = metrics.score(y, mean, np.ones((2, 2)))
    assert told.rmse == pytest.approx((np.sqrt((9 + 16) / 2) + 5) / 2)
    assert told.rmse_pooled == pytest.approx(np.sqrt((9 + 16 + 25) / 3))


def test_mnlp_is_the_mean_of_scipys_log_density(forecast: tuple[np.ndarray, ...]) -> None:
    y, mean, sd = forecast
    expected = -np.nanmean(stats.norm.logpdf(y, mean, sd))
    assert metrics.score(y, mean, sd).mnlp == pytest.approx(expected, rel=1e-12)


@settings(deadline=None)
@given(y=FINITE, mean=FINITE, sd=st.floats(0.1, 10))
def test_crps_is_its_integral(y: float, mean: float, sd: float) -> None:
    def below(x: float) -> float:
        return stats.norm.cdf(x, mean, sd) ** 2

    def above(x: float) -> float:
        return stats.norm.sf(x, mean, sd) ** 2

    low, high = min(y, mean) - 10 * sd, max(y, mean) + 10 * sd
    # Break the integral at the mean, where the integrand bends.
    left = integrate.quad(below, low, y, points=[mean] if low < mean < y else None)[0]
    right = integrate.quad(above, y, high, points=[mean] if y < mean < high else None)[0]
    told = metrics.score([[y]], [[mean]], [[sd]])
    assert told.crps == pytest.approx(left + right, rel=1e-6)


@settings(deadline=None)
@given(truth=FINITE, sd=POSITIVE, shift=FINITE, scale=POSITIVE)
def test_no_forecast_beats_the_true_distribution(
    truth: float, sd: float, shift: float, scale: float
) -> None:
    """CRPS and MNLP are proper: over equally likely quantiles, the truth scores best."""
    quantiles = stats.norm.ppf((np.arange(2000) + 0.5) / 2000, truth, sd)[:, None]
    one = np.ones_like(quantiles)
    honest = metrics.score(quantiles, truth * one, sd * one)
    other = metrics.score(quantiles, (truth + shift) * one, sd * scale * one)
    # Near the truth the quantiles, 2000 in number, are not quite its distribution.
    assert other.crps >= honest.crps - 1e-3 * max(1.0, sd)
    assert other.mnlp >= honest.mnlp - 1e-3 * max(1.0, sd)


@settings(deadline=None)
@given(y=FINITE, mean=FINITE, sd=POSITIVE, factor=POSITIVE)
def test_change_of_units(y: float, mean: float, sd: float, factor: float) -> None:
    before = metrics.score([[y]], [[mean]], [[sd]])
    after = metrics.score([[factor * y]], [[factor * mean]], [[factor * sd]])
    assert after.rmse == pytest.approx(factor * before.rmse, rel=1e-6, abs=1e-9)
    assert after.crps == pytest.approx(factor * before.crps, rel=1e-6)
    assert after.mnlp == pytest.approx(before.mnlp + np.log(factor), rel=1e-6, abs=1e-6)


def test_coverage_by_hand() -> None:
    y = [[0.0, 1.64, 1.65, -1.65, NAN]]
    assert metrics.score(y, np.zeros((1, 5)), np.ones((1, 5))).coverage90 == 0.5


def test_mase_by_hand() -> None:
    # Steps of the first series: 1, 3. Of the second: 2; the gap hides the others.
    train = [[0.0, 5.0], [1.0, 7.0], [4.0, NAN], [NAN, 7.0]]
    assert metrics.mase([[1.0, 4.0]], [[0.0, 0.0]], train) == pytest.approx((1 / 2 + 4 / 2) / 2)


def test_missing_observations_do_not_count(forecast: tuple[np.ndarray, ...]) -> None:
    y, mean, sd = forecast
    observed = ~np.isnan(y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        given_gaps = metrics.score(y, mean, sd)
        # What was forecast where nothing was observed is of no consequence, NaN included.
        unasked = metrics.score(y, np.where(observed, mean, NAN), np.where(observed, sd, NAN))
    cells = metrics.score(y[observed][:, None], mean[observed][:, None], sd[observed][:, None])
    assert given_gaps == unasked
    assert given_gaps.rmse_pooled == pytest.approx(cells.rmse)
    assert given_gaps.mnlp == pytest.approx(cells.mnlp)
    assert given_gaps.crps == pytest.approx(cells.crps)
    assert given_gaps.coverage90 == pytest.approx(cells.coverage90)
    series = [metrics.score(y[:, [n]], mean[:, [n]], sd[:, [n]]).rmse for n in range(4)]
    assert given_gaps.rmse == pytest.approx(np.mean(series))


def test_data_frames_score_like_arrays(forecast: tuple[np.ndarray, ...]) -> None:
    frames = [pd.DataFrame(a, columns=list("abcde")) for a in forecast]
    expected = pytest.approx(astuple(metrics.score(*forecast)), rel=1e-14)
    assert astuple(metrics.score(*frames)) == expected
    assert astuple(metrics.score(frames[0], *forecast[1:])) == expected


def test_missing_values_of_pandas_are_missing() -> None:
    y = pd.DataFrame({"a": pd.array([1.0, None], dtype="Float64"), "b": [1, 2]})
    told = metrics.score(y, np.zeros((2, 2)), np.ones((2, 2)))
    assert told.rmse == pytest.approx((1 + np.sqrt(5 / 2)) / 2)


def test_data_frames_with_other_labels_are_refused(forecast: tuple[np.ndarray, ...]) -> None:
    y, mean, sd = (pd.DataFrame(a, columns=list("abcde")) for a in forecast)
    for other in (mean[list("bacde")], mean.set_axis(range(1, 13))):
        with pytest.raises(ValueError, match="mean: expected the labels of y"):
            metrics.score(y, other, sd)


ONES = np.ones((2, 3))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: metrics.score(ONES, ONES.T, ONES), r"mean: .* \(2, 3\), got shape \(3, 2"),
        (lambda: metrics.score(ONES[0], ONES, ONES), r"y: expected .* \[M, N\], got shape \(3,\)"),
        (lambda: metrics.score(NAN * ONES, ONES, ONES), "y: expected at least one observation"),
        (lambda: metrics.score(ONES, NAN * ONES, ONES), "mean: expected finite forecasts"),
        (lambda: metrics.score(ONES, ONES, 0 * ONES), "sd: expected positive .* got 0.0"),
        (lambda: metrics.mase(ONES, ONES, ONES), r"train: expected series that change"),
        (lambda: metrics.mase(ONES, ONES, ONES[:, :2]), "train: expected 3 columns, got shape"),
    ],
)
def test_errors(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()

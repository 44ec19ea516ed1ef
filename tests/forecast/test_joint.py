"""Joint forecasts, against plain linear algebra and their own draws."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import multivariate_normal, norm

from lkm_gpflow.data.transforms import Transforms
from lkm_gpflow.forecast.joint import Joint

TIMES = pd.date_range("2024-01-07", periods=3, freq="W")
CELLS = pd.MultiIndex.from_product([["a", "b"], TIMES], names=["series", "time"])


def joint(count: int = 2) -> Joint:
    rng = np.random.default_rng(0)
    roots = rng.normal(size=(count, 6, 6))
    weights = np.array([0.3, 0.7])[:count] / np.sum([0.3, 0.7][:count])
    means, covariances = rng.normal(size=(count, 6)), roots @ roots.transpose(0, 2, 1)
    return Joint(CELLS, weights, means, covariances, Transforms.none(6))


def test_draws_have_the_moments_of_the_mixture() -> None:
    mixture = joint()
    mean, covariance = mixture.moments()
    draws = mixture.samples(200_000, seed=1)
    sd = np.sqrt(covariance.diagonal())
    np.testing.assert_allclose(draws.mean(axis=1), mean, atol=4.0 * sd.max() / np.sqrt(200_000))
    np.testing.assert_allclose(np.cov(draws), covariance, atol=0.05 * sd.max() ** 2)
    pd.testing.assert_frame_equal(draws, mixture.samples(200_000, seed=1))


def test_intervals_and_quantiles() -> None:
    mixture = joint()
    mean, covariance = mixture.moments()
    told = mixture.frame(0.8, [0.25])
    sd = np.sqrt(covariance.diagonal())
    np.testing.assert_allclose(told["upper"], norm(mean, sd).ppf(0.9))
    np.testing.assert_allclose(told["q0.25"], norm(mean, sd).ppf(0.25))


@pytest.mark.parametrize(
    "path", [pd.Series([1.5, -0.5], TIMES[1:]), [np.nan, 1.5, -0.5]], ids=["series", "list"]
)
def test_what_is_given_by_plain_linear_algebra(path: object) -> None:
    mixture = joint()
    found = mixture.given({"b": path})  # type: ignore[dict-item]
    y, b, a = np.array([1.5, -0.5]), [4, 5], [0, 1, 2, 3]
    density = []
    for f in range(2):
        mean, S = mixture.means[f], mixture.covariances[f]
        gain = S[np.ix_(a, b)] @ np.linalg.inv(S[np.ix_(b, b)])
        np.testing.assert_allclose(found.means[f][a], mean[a] + gain @ (y - mean[b]), atol=1e-8)
        np.testing.assert_allclose(
            found.covariances[f][np.ix_(a, a)],
            S[np.ix_(a, a)] - gain @ S[np.ix_(b, a)],
            atol=1e-8,
        )
        density.append(multivariate_normal(mean[b], S[np.ix_(b, b)]).pdf(y))
    expected = mixture.weights * density / (mixture.weights @ density)
    np.testing.assert_allclose(found.weights, expected, rtol=1e-7)
    told = found.frame()
    np.testing.assert_allclose(told["mean"].iloc[b], y)
    np.testing.assert_allclose(told["sd"].iloc[b], 0.0, atol=1e-12)


def test_one_number_is_the_last_value() -> None:
    mixture = joint()
    last = mixture.given({"a": pd.Series([2.0], TIMES[-1:])})
    np.testing.assert_allclose(mixture.given({"a": 2.0}).means, last.means)
    np.testing.assert_allclose(mixture.given({"a": [np.nan, np.nan, 2.0]}).means, last.means)


def test_sums_by_summed_covariances() -> None:
    mixture = joint()
    mean, S = mixture.moments()
    told = mixture.aggregate({"b": -2.0, "a": 1.0})
    assert list(told.index) == list(TIMES)
    for t in range(3):
        variance = S[t, t] + 4.0 * S[t + 3, t + 3] - 4.0 * S[t, t + 3]
        np.testing.assert_allclose(told["mean"].iloc[t], mean[t] - 2.0 * mean[t + 3])
        np.testing.assert_allclose(told["sd"].iloc[t], np.sqrt(variance))
    np.testing.assert_allclose(mixture.aggregate({"a": 1.0})["sd"], mixture.frame()["sd"].iloc[:3])


def test_wrong_questions_are_refused() -> None:
    mixture = joint()
    with pytest.raises(ValueError, match=r"one of the series 'a' and 'b', got 'c'"):
        mixture.given({"c": 1.0})
    with pytest.raises(ValueError, match=r"one of the series 'a' and 'b', got 'c'"):
        mixture.aggregate({"c": 1.0})
    with pytest.raises(ValueError, match=r"one value of 'a', at the last time, or 3.*got 2"):
        mixture.given({"a": [1.0, 2.0]})
    with pytest.raises(ValueError, match=r"times of the forecast, 2024-01-07.*got 2025-01-05"):
        mixture.given({"a": pd.Series([1.0], [pd.Timestamp("2025-01-05")])})
    with pytest.raises(ValueError, match="at least one known value"):
        mixture.given({"a": [np.nan] * 3})
    with pytest.raises(ValueError, match=r"a level between 0 and 1, got 1\.5"):
        mixture.frame(1.5)
    with pytest.raises(ValueError, match="quantiles between 0 and 1, got 0"):
        mixture.frame(0.9, [0.0])

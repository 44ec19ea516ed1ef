"""Mixture forecasts, against plain linear algebra, Monte Carlo and their own draws."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

from lkm_gpflow.data.transforms import Transforms
from lkm_gpflow.forecast.mixture import MixtureForecast, Part, mixture_moments

TIMES = pd.date_range("2024-01-07", periods=3, freq="W")
CELLS = pd.MultiIndex.from_product([["a", "b"], TIMES], names=["series", "time"])


def joint(is_log: bool = False) -> MixtureForecast:
    """Two parts that know how all cells go together; perhaps series b is a logarithm."""
    rng = np.random.default_rng(0)
    roots = (0.2 if is_log else 1.0) * rng.normal(size=(2, 6, 6))
    means = rng.normal(size=(2, 6))
    parts = map(Part.joint, (0.3, 0.7), means, roots @ roots.transpose(0, 2, 1))
    return MixtureForecast(CELLS, tuple(parts), Transforms(np.arange(6) >= (3 if is_log else 6)))


def moments(mixture: MixtureForecast) -> tuple[np.ndarray, np.ndarray]:
    """Mean and covariance of all cells on the modelled scale, written out."""
    weights = [float(part.weight) for part in mixture.parts]
    mean = sum(w * part.mean for w, part in zip(weights, mixture.parts, strict=True))
    covariance = np.zeros((6, 6))
    for weight, part in zip(weights, mixture.parts, strict=True):
        assert part.covariance is not None
        covariance += weight * (part.covariance + np.outer(part.mean - mean, part.mean - mean))
    return np.asarray(mean), covariance


def test_mixture_moments_by_monte_carlo() -> None:
    rng = np.random.default_rng(0)
    weights, means, variances = [0.2, 0.5, 0.3], [-1.0, 0.5, 2.0], [0.1, 1.0, 0.5]
    which = rng.choice(3, size=400_000, p=weights)
    draws = rng.normal(np.take(means, which), np.sqrt(np.take(variances, which)))
    parts = [
        (w, np.array([m]), np.array([v])) for w, m, v in zip(weights, means, variances, strict=True)
    ]
    mean, variance = mixture_moments(parts)  # type: ignore[arg-type]
    assert mean[0] == pytest.approx(draws.mean(), abs=0.01)
    assert variance[0] == pytest.approx(draws.var(), abs=0.02)


def test_draws_have_the_moments_of_the_mixture() -> None:
    mixture = joint()
    mean, covariance = moments(mixture)
    draws = mixture.samples(200_000, seed=1)
    sd = np.sqrt(covariance.diagonal())
    np.testing.assert_allclose(draws.mean(axis=1), mean, atol=4.0 * sd.max() / np.sqrt(200_000))
    np.testing.assert_allclose(np.cov(draws), covariance, atol=0.05 * sd.max() ** 2)
    pd.testing.assert_frame_equal(draws, mixture.samples(200_000, seed=1))


def test_intervals_and_quantiles() -> None:
    mixture = joint()
    mean, covariance = moments(mixture)
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
    for f in range(2):
        mean, S = mixture.parts[f].mean, mixture.parts[f].covariance
        assert S is not None
        gain = S[np.ix_(a, b)] @ np.linalg.inv(S[np.ix_(b, b)])
        told, V = found.parts[f].mean, found.parts[f].covariance
        assert V is not None
        np.testing.assert_allclose(told[a], mean[a] + gain @ (y - mean[b]), atol=1e-8)
        np.testing.assert_allclose(
            V[np.ix_(a, a)],
            S[np.ix_(a, a)] - gain @ S[np.ix_(b, a)],
            atol=1e-8,
        )
    assert [part.weight for part in found.parts] == [0.3, 0.7]
    told = found.frame()
    np.testing.assert_allclose(told["mean"].iloc[b], y)
    np.testing.assert_allclose(told["sd"].iloc[b], 0.0, atol=1e-12)


def test_sums_by_summed_covariances() -> None:
    mixture = joint()
    mean, S = moments(mixture)
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


def test_sums_with_logarithms_by_draws() -> None:
    mixture = joint(is_log=True)
    draws = mixture.samples(200_000, seed=1)
    for weights in ({"a": 1.0, "b": -0.5}, {"b": -2.0}):
        told = mixture.aggregate(weights, 0.8, [0.25])
        sums = sum(w * draws.loc[name] for name, w in weights.items())
        error = told["sd"] / np.sqrt(200_000)
        assert np.all(np.abs(sums.mean(axis=1) - told["mean"]) < 5.0 * error)
        np.testing.assert_allclose(sums.std(axis=1), told["sd"], rtol=0.03)
        if len(weights) > 1:  # the quantiles of one series are not those of the mixture
            expected = np.quantile(sums, [0.1, 0.9, 0.25], axis=1).T
            found = told[["lower", "upper", "q0.25"]]
            assert np.all(np.abs(found - expected) < 0.05 * told["sd"].to_numpy()[:, None])
    b = mixture.frame(0.8).loc["b"]
    np.testing.assert_allclose(told["lower"], -2.0 * b["upper"])


def test_what_if_needs_forecasters_that_know_how_cells_go_together() -> None:
    apart = MixtureForecast(
        CELLS, (Part.independent(1.0, np.zeros(6), np.ones(6)),), Transforms(np.zeros(6, np.bool_))
    )
    with pytest.raises(ValueError, match="a joint forecast, of couple"):
        apart.given({"a": 1.0})

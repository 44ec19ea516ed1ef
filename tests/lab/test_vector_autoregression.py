"""The Bayesian vector autoregression: its prior, evidence and draws by other routes."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import multivariate_t, norm, t
from walks import walks

from paper_experiments.lab.vector_autoregression import (
    LAGS,
    TIGHTNESS,
    NormalInverseWishart,
    autoregression,
    minnesota,
    regressors,
)


def forecast(Y: np.ndarray, steps: int, lags: int = LAGS) -> tuple[np.ndarray, np.ndarray]:
    """Means and sds, [M, N] each."""
    location, scale = np.nanmean(Y, axis=0), np.nanstd(Y, axis=0)
    times = np.linspace(0.0, 1.0, len(Y))
    mean, sd = autoregression(times, (Y - location) / scale, seed=0, most_lags=lags)(steps)
    return location + scale * mean, scale * sd


def scored(Y: np.ndarray) -> np.ndarray:
    return (Y - Y.mean(axis=0)) / Y.std(axis=0)


@pytest.mark.parametrize(("num_series", "lags"), [(1, 1), (1, 3), (3, 2)])
def test_evidence_is_the_product_of_one_step_predictions(num_series: int, lags: int) -> None:
    """Each is a Student-t about x B with the scale S (1 + x A^-1 x') / (nu - N + 1)."""
    Y = scored(walks(24, num_series, seed=lags))
    X, seen = regressors(Y, lags), Y[lags:]
    prior = now = minnesota(Y, lags, 0.3, 1.5)
    total = 0.0
    for x, y in zip(X, seen, strict=True):
        degrees = now.degrees - num_series + 1
        shape = now.scale * (1.0 + x @ np.linalg.solve(now.precision, x)) / degrees
        total += multivariate_t.logpdf(y, x @ now.mean, shape, degrees)
        now = now.given(x[None], y[None])
    assert prior.log_evidence(X, seen) == pytest.approx(total, rel=1e-8)
    at_once = prior.given(X, seen)
    np.testing.assert_allclose(at_once.mean, now.mean, atol=1e-8)
    np.testing.assert_allclose(at_once.scale, now.scale, rtol=1e-6)


def test_prior_is_the_minnesota_prior() -> None:
    """Quantiles of drawn coefficients, which are Student-t of three degrees of freedom."""
    Y = walks(60, 2, seed=1) * [1.0, 3.0]
    sds = np.diff(Y, axis=0).std(axis=0)
    prior = minnesota(Y, 2, 0.2, 1e6)
    drawn, _ = prior.draws(40_000, np.random.default_rng(0))
    for lag in (1, 2):
        for j in range(2):
            for i in range(2):
                coefficients = drawn[:, (lag - 1) * 2 + j, i]
                centre = float(lag == 1 and i == j)
                assert np.median(coefficients) == pytest.approx(centre, abs=0.01)
                sd = 0.2 * sds[i] / (lag * sds[j])
                spread = np.subtract(*np.quantile(coefficients, [0.75, 0.25]))
                # A Student-t of three degrees has the variance three.
                expected = 2.0 * t.ppf(0.75, 3) * sd / np.sqrt(3.0)
                assert spread == pytest.approx(expected, rel=0.04)


def test_tight_dummies_make_coefficients_add_up_to_walks() -> None:
    Y = scored(walks(60, 3, seed=2))
    drawn, _ = minnesota(Y, 4, 0.8, 1e-4).draws(50, np.random.default_rng(0))
    sums = drawn[:, :-1].reshape(50, 4, 3, 3).sum(axis=1)
    np.testing.assert_allclose(sums, np.broadcast_to(np.eye(3), sums.shape), atol=1e-3)
    np.testing.assert_allclose(drawn[:, -1], 0.0, atol=1e-3)


def test_draws_have_the_covariance_of_the_errors() -> None:
    """The mean of an inverse Wishart is S / (nu - N - 1)."""
    S = np.array([[2.0, 0.6], [0.6, 1.0]])
    known = NormalInverseWishart(np.eye(3), np.zeros((3, 2)), S, 30.0)
    coefficients, factors = known.draws(20_000, np.random.default_rng(0))
    covariance = np.einsum("snk,smk->nm", factors, factors) / 20_000
    np.testing.assert_allclose(covariance, S / 27.0, rtol=0.03)
    # Given Sigma the coefficients of a regressor covary as the errors do.
    np.testing.assert_allclose(np.cov(coefficients[:, 1].T), S / 27.0, rtol=0.1)


def test_a_long_past_tells_the_coefficients() -> None:
    """One and two steps ahead of a stable autoregression, by its own formula."""
    B = np.array([[0.6, 0.3, 0.0], [-0.2, 0.7, 0.0], [0.0, 0.4, 0.5]])
    L = np.array([[1.0, 0.0, 0.0], [1.5, 1.0, 0.0], [0.0, 0.5, 0.5]])  # of correlated errors
    rng = np.random.default_rng(0)
    Y = np.zeros((1500, 3))
    for row in range(1, len(Y)):
        Y[row] = B @ Y[row - 1] + L @ rng.normal(size=3)
    mean, sd = forecast(Y, 2, lags=2)
    np.testing.assert_allclose(mean, [B @ Y[-1], B @ B @ Y[-1]], atol=0.4)
    first = L @ L.T
    np.testing.assert_allclose(sd[0], np.sqrt(np.diag(first)), rtol=0.1)
    np.testing.assert_allclose(sd[1], np.sqrt(np.diag(first + B @ first @ B.T)), rtol=0.1)


def test_walks_are_forecast_almost_as_well_as_by_their_last_values() -> None:
    tables = [walks(65, 6, seed) for seed in range(30)]
    errors = [forecast(Y[:-5], 5)[0] - Y[-5:] for Y in tables]
    moves = [Y[-6] - Y[-5:] for Y in tables]
    assert np.sqrt(np.mean(np.square(errors)) / np.mean(np.square(moves))) < 1.1


@pytest.mark.parametrize("shape", [(20, 3), (40, 8)])
def test_intervals_hold_what_they_say_on_short_tables(shape: tuple[int, int]) -> None:
    held = []
    for seed in range(40):
        Y = walks(shape[0] + 3, shape[1], seed)
        mean, sd = forecast(Y[:-3], 3)
        held.append(np.abs(Y[-3:] - mean) < norm.ppf(0.95) * sd)
    assert np.mean(held) == pytest.approx(0.9, abs=0.05)


def test_the_evidence_widens_the_prior_where_series_follow_each_other() -> None:
    """Where one follows the other's last step, the tightest prior would forecast standing still."""
    rng = np.random.default_rng(3)
    first = np.cumsum(rng.normal(size=120))
    second = np.concatenate([[0.0], first[:-1]]) + 0.1 * rng.normal(size=120)
    Y = np.column_stack([first, second])
    mean, sd = forecast(Y, 1)
    assert abs(mean[0, 1] - first[-1]) < 0.5
    assert sd[0, 1] < 0.5 * sd[0, 0]
    X, seen = regressors(scored(Y), 4), scored(Y)[4:]
    evidence = [minnesota(scored(Y), 4, each, 1.0).log_evidence(X, seen) for each in TIGHTNESS]
    assert int(np.argmax(evidence)) > 1


def test_short_tables_have_a_forecast() -> None:
    for num_times in (3, 4, 9):
        mean, sd = forecast(walks(num_times, 3, seed=num_times), 2)
        assert np.isfinite(mean).all()
        assert np.all(sd > 0.0)


@pytest.mark.parametrize("lacks", [3, 9])
def test_a_series_that_ended_early_is_less_certain(lacks: int) -> None:
    """As a walk is, and it alone."""
    Y = walks(120, 3, seed=6)
    Y[-lacks:, 0] = np.nan
    _, sd = forecast(Y, 4)
    steps = np.array([lacks, 0.0, 0.0]) + np.arange(1.0, 5.0)[:, None]
    step = np.nanstd(np.diff(Y, axis=0), axis=0)
    np.testing.assert_allclose(sd, np.sqrt(steps) * step, rtol=0.2)


def test_far_ahead_it_is_as_uncertain_as_a_walk() -> None:
    """Coefficients that are not known would make paths explode."""
    _, sd = forecast(walks(90, 3, seed=7), 200)
    gained = np.diff(np.square(sd), axis=0)[15:]
    assert np.ptp(gained, axis=0) == pytest.approx(0.0, abs=1e-9)
    walk = np.diff(walks(90, 3, seed=7), axis=0).std(axis=0) * np.sqrt(200.0)
    assert np.all((0.7 * walk < sd[-1]) & (sd[-1] < 2.0 * walk))

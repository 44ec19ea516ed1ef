"""Residuals: one-step errors, and tests that see what is left in them."""

from __future__ import annotations

import gpflow
import numpy as np
import pandas as pd
import pytest
from small import made_by_hand, small_table

from lkm_gpflow.explain.residuals import ljung_box, residual_tests, whitened


def test_residuals_are_one_step_errors_of_gpflows_regression() -> None:
    frame = small_table()
    found = made_by_hand(frame, ["0.8 x SE(lengthscale=30)"], [[1], [1], [1]])
    residuals = whitened(found)[2]
    seen = frame["c"].notna().to_numpy()
    assert residuals.index.equals(frame.index[seen])
    x = found.table.observations.x[seen][:, None]
    y = found.table.observations.Y[2][seen][:, None]
    kernel = gpflow.kernels.SquaredExponential(0.8, 30.0 / found.table.span)
    for i in (1, 10, len(y) - 1):
        model = gpflow.models.GPR((x[:i], y[:i]), kernel, noise_variance=0.05)
        mean, variance = model.predict_y(x[i : i + 1])
        expected = (y[i] - mean.numpy()[0]) / np.sqrt(variance.numpy()[0])
        assert residuals.iloc[i] == pytest.approx(expected[0], abs=1e-6)


def test_ljung_box_agrees_with_statsmodels() -> None:
    from statsmodels.stats.diagnostic import acorr_ljungbox

    values = np.random.default_rng(0).normal(size=80).cumsum()[::3] + 1.0
    lags = min(10, len(values) // 5)
    theirs = acorr_ljungbox(values - 0.0, lags=[lags])["lb_pvalue"].iloc[0]
    assert ljung_box(values) == pytest.approx(theirs, rel=1e-8)


def test_white_noise_is_rarely_conspicuous_and_a_pattern_nearly_always() -> None:
    rng = np.random.default_rng(1)
    white = [ljung_box(rng.normal(size=120)) < 0.05 for _ in range(400)]
    assert 0.02 <= np.mean(white) <= 0.09
    wave = np.sin(np.arange(120) / 5)
    pattern = [ljung_box(rng.normal(size=120) + wave) < 0.05 for _ in range(50)]
    assert np.mean(pattern) > 0.95


def test_a_component_that_is_missing_is_seen() -> None:
    frame = small_table()
    told = residual_tests(made_by_hand(frame, ["0.9 x PER(period=85.8,lengthscale=3)"], [[1]] * 3))
    missing = residual_tests(made_by_hand(frame, ["1e-3 x C"], [[1]] * 3, noise=1.0))
    assert missing[0].autocorrelation < 1e-3 < told[0].autocorrelation


def test_short_series_are_not_tested() -> None:
    frame = pd.DataFrame({"a": [1.0, 2.0, 1.0, 3.0, 2.0], "b": [1.0, 2.0, 4.0, 3.0, 2.0]})
    (first, _) = residual_tests(made_by_hand(frame, ["1 x C"], [[1], [1]]))
    assert np.isnan(first.autocorrelation)
    assert np.isnan(first.normality)

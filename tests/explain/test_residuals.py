"""Residuals: one-step errors, and tests that see what is left in them."""

from __future__ import annotations

from dataclasses import replace

import gpflow
import numpy as np
import pandas as pd
import pytest
from scipy.stats import invgamma
from small import made_by_hand, small_table

from lkm_gpflow.explain import residuals
from lkm_gpflow.explain.residuals import ljung_box, residual_tests, whitened
from lkm_gpflow.gp import limits
from lkm_gpflow.gp.likelihoods import SCALE_DEGREES, ScaledNoise


@pytest.mark.parametrize(("longest", "rows"), [(40, 40), (39, 20)])
def test_residuals_are_one_step_errors_of_gpflows_regression(
    longest: int, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of too long a table those of the last rows, as if no others had come before."""
    monkeypatch.setattr(limits, "LONGEST", longest)
    monkeypatch.setattr(residuals, "_LAST", 20)
    frame = small_table()
    frame.iloc[25:28, 2] = np.nan
    found = made_by_hand(frame, ["0.8 x SE(lengthscale=30)"], [[1], [1], [1]])
    told = whitened(found)[2]
    seen = np.flatnonzero(frame["c"].notna() & (np.arange(40) >= 40 - rows))
    assert told.index.equals(frame.index[seen])
    x = found.table.observations.x[seen][:, None]
    y = found.table.observations.Y[2][seen][:, None]
    kernel = gpflow.kernels.SquaredExponential(0.8, 30.0 / found.table.span)
    for i in (1, 10, len(y) - 1):
        model = gpflow.models.GPR((x[:i], y[:i]), kernel, noise_variance=0.05)
        mean, variance = model.predict_y(x[i : i + 1])
        expected = (y[i] - mean.numpy()[0]) / np.sqrt(variance.numpy()[0])
        assert told.iloc[i] == pytest.approx(expected[0], abs=1e-6)


def test_residuals_are_in_the_scale_of_the_series() -> None:
    """Without components they are the values, in the sd of the noise of their own scale."""
    found = made_by_hand(small_table(), ["1 x C"], [[0], [0], [0]])
    settings = replace(found.settings, fit=replace(found.settings.fit, likelihood=ScaledNoise()))
    for n, told in enumerate(whitened(replace(found, settings=settings))):
        y = found.table.observations.Y[n, found.table.observations.mask[n] > 0.0]
        v = SCALE_DEGREES
        of_scale = invgamma((v + len(y)) / 2.0, scale=(v + y @ y / 0.05) / 2.0)
        np.testing.assert_allclose(told, y / np.sqrt(0.05 * of_scale.mean()), rtol=1e-6)


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


def test_short_series_are_not_tested() -> None:
    frame = pd.DataFrame({"a": [1.0, 2.0, 1.0, 3.0, 2.0], "b": [1.0, 2.0, 4.0, 3.0, 2.0]})
    (first, _) = residual_tests(made_by_hand(frame, ["1 x C"], [[1], [1]]))
    assert np.isnan(first.autocorrelation)
    assert np.isnan(first.normality)

"""The held-out tail: it is not seen, and honest forecasts make its probabilities uniform."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import t
from small import made_by_hand, small_table

import lkm_gpflow as lkm
from lkm_gpflow.explain.holdout import HoldOut, hold_out_tail
from lkm_gpflow.fit.fits import Fit, FitSettings
from lkm_gpflow.forecast import forecasters
from lkm_gpflow.forecast.forecasters import FORECAST_DEGREES, FORECAST_VARIANCE, Member
from lkm_gpflow.forecast.held_out import HeldOut, Window, held_out_forecast


def test_the_tail_is_not_seen(small_found: lkm.Discovery) -> None:
    observations = small_found.table.observations
    window = Window(36, 40)
    changed = replace(observations, Y=observations.Y.copy())
    changed.Y[:, 36:] += 50.0
    settings = small_found.settings.fit
    first, second = (
        held_out_forecast(small_found.fit, data, window, settings)
        for data in (observations, changed)
    )
    np.testing.assert_array_equal(first.mean, second.mean)
    np.testing.assert_array_equal(first.variance, second.variance)


def test_the_tail_is_the_last_tenth(small_found: lkm.Discovery) -> None:
    told = hold_out_tail(small_found)
    assert told.probabilities.shape == (3, 4)
    assert told.times.equals(small_found.table.frame.index[-4:])
    assert told.probabilities.stack().between(0.0, 1.0, inclusive="neither").all()


def test_an_interval_holds_what_has_middling_probabilities() -> None:
    """One of 90% those from 0.05 to 0.95."""
    values = [[0.04, 0.06, 0.5, 0.94], [0.96, np.nan, 0.3, np.nan], [np.nan] * 4]
    told = HoldOut(pd.RangeIndex(4), pd.DataFrame(values))
    assert told.inside(0.9).tolist() == [3, 1, 0]
    assert told.overall(0.9) == pytest.approx(4 / 6)
    assert told.overall(0.5) == pytest.approx(2 / 6)


def test_probabilities_are_those_of_the_average_over_all_forecasters(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of two fits, one of them learnt as exact; another fit fails."""
    frame = pd.DataFrame({"a": np.arange(20.0), "b": np.arange(20.0) ** 2})
    found = made_by_hand(frame, ["1 x C"], [[1], [1]])

    def told(mean: float, variance: float) -> HeldOut:
        return HeldOut(np.full((2, 2), mean), np.full((2, 2), variance))

    def learnt_again(
        fit: Fit, data: object, window: Window, settings: FitSettings, **_: int
    ) -> HeldOut:
        assert window == Window(18, 20)
        if fit.bic == 1.0:
            raise ValueError("not positive definite")
        return told(1.0, 0.5) if settings.exact else told(-0.5, 2.0)

    monkeypatch.setattr(forecasters, "held_out_forecast", learnt_again)
    members = (
        Member(found.fit, 0.48),
        Member(found.fit, 0.32, exact=True),
        Member(replace(found.fit, bic=1.0), 0.2),
    )
    found = replace(found, averaging="stacked", stacked=members)
    # The two have shares of 0.6 and 0.4.
    mean = 0.6 * -0.5 + 0.4 * 1.0
    variance = FORECAST_VARIANCE * (0.6 * 2.0 + 0.4 * 0.5)
    variance += 0.6 * (-0.5 - mean) ** 2 + 0.4 * (1.0 - mean) ** 2
    scale = np.sqrt(variance * (FORECAST_DEGREES - 2.0) / FORECAST_DEGREES)
    values = ((frame - frame.mean()) / frame.std(ddof=0)).iloc[-2:].T
    expected = t.cdf(values, FORECAST_DEGREES, mean, scale)
    np.testing.assert_allclose(hold_out_tail(found).probabilities, expected, rtol=1e-6)


def test_noise_is_covered_as_it_should_be() -> None:
    rng = np.random.default_rng(2)
    frame = pd.DataFrame(rng.normal(size=(200, 12)))
    told = hold_out_tail(made_by_hand(frame, ["1e-3 x C"], [[1]] * 12, noise=1.0))
    assert abs(told.overall(0.9) - 0.9) < 0.06
    assert abs(told.overall(0.5) - 0.5) < 0.1


def test_what_was_not_observed_is_not_counted() -> None:
    frame = small_table()
    frame.iloc[-4:, 0] = np.nan
    frame.iloc[-1, 1] = np.nan
    told = hold_out_tail(made_by_hand(frame, ["0.9 x SE(lengthscale=12)"], [[1]] * 3))
    assert told.probabilities.notna().sum(axis=1).tolist() == [0, 3, 4]
    assert told.inside(0.9).iloc[0] == 0

"""The held-out tail: it is not seen, and honest forecasts make its probabilities uniform."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
from small import made_by_hand, small_table

import lkm_gpflow as lkm
from lkm_gpflow.explain.holdout import hold_out_tail
from lkm_gpflow.search.held_out import Window, held_out_forecast


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


def test_probabilities_of_the_tail(small_found: lkm.Discovery) -> None:
    told = hold_out_tail(small_found)
    assert told.probabilities.shape == (3, 4)
    assert told.times.equals(small_found.table.frame.index[-4:])
    inside = np.abs(told.probabilities.to_numpy() - 0.5) <= 0.45
    assert told.overall(0.9) == inside.mean()
    assert told.inside(0.9).tolist() == inside.mean(axis=1).tolist()


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
    assert np.isnan(told.inside(0.9).iloc[0])

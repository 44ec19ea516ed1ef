"""Components on the history: their means, directions and shares."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
from small import made_by_hand, small_table

import lkm_gpflow as lkm
from lkm_gpflow.explain.decomposition import Decomposition


def test_components_add_up_to_the_fit_given_z(small_found: lkm.Discovery) -> None:
    best = small_found.best
    parts = Decomposition.of(best)
    x = best.table.observations.x[:, None]
    whole, _ = best.model.predict_f(x, Z=best.fit.Z)
    np.testing.assert_allclose(parts.mean.sum(axis=0), whole, atol=1e-8)
    absent = best.fit.Z.T[:, None, :] == 0.0
    assert np.all(np.broadcast_to(absent, parts.mean.shape) <= (parts.mean == 0.0))


def test_shares_add_up_and_count_the_noise(
    small_found: lkm.Discovery, disagreeing: lkm.Discovery
) -> None:
    for found in (small_found, small_found.best, disagreeing):
        parts = Decomposition.of(found)
        share = parts.share
        np.testing.assert_allclose(share.sum(axis=1) + parts.share_of_others, 1.0)
        assert np.all(share[:, -1] > 0.0)
        assert share.min() >= 0.0


def test_shares_are_averaged_over_fits(disagreeing: lkm.Discovery) -> None:
    """The share of the noise, which every fit has, is the weighted mean of those of the fits."""
    alone = [
        Decomposition.of(replace(disagreeing, averaging="none", entries=(entry,), stacked=()))
        for entry in (
            replace(disagreeing.entries[0], fit=member.fit) for member in disagreeing.searched
        )
    ]
    of_noise = np.array([each.share[:, -1] for each in alone])
    got = Decomposition.of(disagreeing)
    np.testing.assert_allclose(got.share[:, -1], [0.6, 0.3, 0.1] @ of_noise, rtol=1e-6)
    # All that varies by the third fit is its walk, which the others have not.
    np.testing.assert_allclose(got.share_of_others, 0.1 * (1.0 - of_noise[2]), rtol=1e-6)


def test_directions_of_planted_lines() -> None:
    t = np.linspace(0.0, 1.0, 40)
    rng = np.random.default_rng(3)
    noise = 0.1 * rng.normal(size=(40, 3))
    frame = pd.DataFrame(np.column_stack([t, -t, 0.0 * t]) + noise, columns=list("abc"))
    found = made_by_hand(frame, ["1e-3 x LIN(location=20)"], [[1], [1], [1]], noise=0.1)
    # Nothing is known of the direction of noise; a lone line through it may go either way.
    assert Decomposition.of(found).trend[:2, 0].tolist() == [1.0, -1.0]


def test_a_wave_has_no_direction_and_an_absent_component_neither() -> None:
    found = made_by_hand(
        small_table(),
        ["0.2 x SE(lengthscale=15)", "1e-4 x LIN(location=0)"],
        [[1, 0], [1, 1], [1, 1]],
    )
    trend = Decomposition.of(found).trend
    assert trend[0].tolist() == [0.0, 0.0]
    assert trend[1, 1] == 1.0


def test_a_line_of_which_the_data_are_not_sure_has_no_direction() -> None:
    """It goes up by 0.04 with a standard deviation of 0.5; in the other series by 1.3."""
    t = np.arange(40.0)
    frame = pd.DataFrame({slope: (-1.0) ** t + slope * t for slope in (0.005, 0.05)})
    found = made_by_hand(frame, ["1e-3 x LIN(location=20)"], [[1], [1]], noise=1.0)
    assert Decomposition.of(found).trend[:, 0].tolist() == [0.0, 1.0]


def test_a_rise_is_sure_though_nobody_knows_how_high_it_lies() -> None:
    """Its level and the constant cannot be told apart: both ends are off by the same."""
    t = np.arange(40.0)
    frame = pd.DataFrame({"a": t, "b": -t}) + 0.1 * np.random.default_rng(0).normal(size=(40, 2))
    found = made_by_hand(frame, ["100 x SE(lengthscale=200)", "100 x C"], [[1, 1], [1, 1]])
    parts = Decomposition.of(found)
    assert parts.sd[0].min() > 5.0
    assert np.ptp(parts.mean[0], axis=0).max() < 4.0
    assert parts.trend[:, 0].tolist() == [1.0, -1.0]

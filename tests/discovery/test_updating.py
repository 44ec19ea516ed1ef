"""A discovery goes on to a longer table: as a refit, quickly, and saying what changed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import kstest, norm, t
from small import agreed, made_by_hand, small_table

import lkm_gpflow as lkm
from lkm_gpflow.discovery.updating import Surprise
from lkm_gpflow.fit.training import fit
from lkm_gpflow.forecast.forecasters import Ensemble
from lkm_gpflow.forecast.held_out import TAILS, windows

ROWS = 36  # of 40, in the discovery that goes on


@pytest.fixture(scope="module")
def before() -> lkm.Discovery:
    table = small_table().iloc[:ROWS]
    return lkm.discover(table, bases=("C", "LIN", "SE", "RW"), depth=0, restarts=2, progress=False)


@pytest.fixture(scope="module")
def after(before: lkm.Discovery) -> lkm.Discovery:
    return before.update(small_table(), progress=False)


def test_learning_on_ends_where_learning_the_structures_anew_ends(
    before: lkm.Discovery, after: lkm.Discovery
) -> None:
    observations = after.table.observations
    for entry in after.entries:
        structure = [kernel.structure for kernel in entry.fit.kernels]
        settings = replace(after.settings.fit, prune=False)
        anew = fit(observations, structure, seed=1, settings=settings)
        assert entry.fit.criterion < anew.criterion + 1.0
    full = lkm.discover(
        small_table(), bases=("C", "LIN", "SE", "RW"), depth=0, restarts=2, progress=False
    )
    one, other = (each.forecast(4)[["mean", "sd"]] for each in (after, full))
    sd = other["sd"].to_numpy()[:, None]
    assert np.abs((one - other) / sd).to_numpy().max() < 0.25
    old = before.predict(other.index.levels[1])[["mean", "sd"]]
    assert np.abs((old - other) / sd).to_numpy().max() > 0.25


def test_new_rows_weigh_forecasters_like_a_part_of_a_window(
    before: lkm.Discovery, after: lkm.Discovery
) -> None:
    """With moments of an independent route: the discovery of each forecaster alone."""
    new = small_table().iloc[ROWS:]
    window = windows(40)[-1]
    log_weights = []
    for member in before.members:
        one = replace(before, stacked=(replace(member, weight=1.0),))
        told = Ensemble(one.table, one.stacked, one.predictors, averages=False).at(new.index)
        mean, variance = (each.reshape(3, -1) for each in told.modelled)
        own = t.logpdf(new.to_numpy().T, TAILS, mean, np.sqrt(variance))
        score = (own + np.log(before.table.scale)[:, None]).mean()
        share = len(new) / (window.end - window.begin)
        log_weights.append(np.log(max(member.weight, 1e-300)) + share * score)
    weights = np.exp(log_weights - np.max(log_weights))
    kinds = [member.kind for member in before.members]
    for kind in ("walk", "seasonal walk", "found"):
        share = sum(member.weight for member in after.members if member.kind == kind)
        expected = sum(w for w, own in zip(weights, kinds, strict=True) if own == kind)
        assert share == pytest.approx(expected / weights.sum(), abs=0.005)


def test_what_is_new_is_said_and_kept(after: lkm.Discovery, tmp_path: Path) -> None:
    assert after.changes.startswith("4 new rows up to 2021-10-03: ")
    assert "of 12 new values fell into the 90% intervals" in after.changes
    assert "Search again" not in after.changes
    assert after.changes in repr(after)
    after.save(tmp_path / "after.lkm")
    again = lkm.load(tmp_path / "after.lkm")
    assert (again.changes, again.surprises) == (after.changes, after.surprises)
    pd.testing.assert_frame_equal(again.forecast(3), after.forecast(3))


def test_a_level_that_jumps_advises_a_new_search(before: lkm.Discovery) -> None:
    jumped = small_table()
    jumped.loc[jumped.index[ROWS:], "b"] += 15.0
    found = before.update(jumped, progress=False)
    assert "--force): the new values of b are" in found.changes


def test_small_surprises_that_never_end_add_up(before: lkm.Discovery) -> None:
    ensemble, new = before.ensemble, small_table().iloc[ROWS : ROWS + 1]
    told = before.predict(new.index)
    off = pd.DataFrame(
        [(told["mean"] + [0.0, 2.2 * told["sd"].iloc[1], 0.0]).to_numpy()], new.index, new.columns
    )
    first = Surprise.of(ensemble, off, (), seed=0)
    assert first.advice == ""
    often = Surprise.of(ensemble, off, [first.scores] * 5, seed=0)
    assert "of b since the search are" in often.advice


def test_scores_of_what_the_forecast_itself_draws_are_normal(before: lkm.Discovery) -> None:
    times = small_table().index[ROWS:]
    paths = before.samples(times, 60, seed=5)
    scores = [
        Surprise.of(before.ensemble, paths[k].unstack("series"), (), seed=0).scores
        for k in range(60)
    ]
    assert kstest(np.ravel(scores), norm.cdf).pvalue > 0.01


def test_revised_values_and_another_order_of_columns(before: lkm.Discovery) -> None:
    revised = small_table().iloc[:ROWS][["c", "a", "b"]]
    revised.iloc[5, 0] = 0.4
    found = before.update(revised, progress=False)
    assert found.changes.startswith("1 revised value. ")
    assert list(found.table.frame.columns) == ["a", "b", "c"]
    assert found.surprises == ()
    with pytest.warns(UserWarning, match="no new or revised values"):
        assert found.update(revised, progress=False) is found


def test_what_looked_wrong_and_was_left_out_is_warned_of(before: lkm.Discovery) -> None:
    wrong = small_table()
    wrong.iloc[6, 2] = -999.0
    with pytest.warns(UserWarning, match="1 value of 'c' that look wrong, the first at 2021-02-14"):
        before.update(wrong, progress=False)


def at_other_steps(days: int, count: int) -> pd.DataFrame:
    table = small_table().iloc[:ROWS]
    times = pd.date_range(table.index[-1], periods=count + 1, freq=f"{days}D")[1:]
    new = pd.DataFrame(np.ones((count, 3)), times, table.columns)
    return pd.concat([table, new])


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (small_table().rename(columns={"a": "z"}), r"expected the series .*'a', 'b' and 'c', got"),
        (small_table().iloc[2:], r"without 2 of them, the first 2021-01-03.*append the new rows"),
        (small_table().reset_index(drop=True), "expected dates as in the training data"),
        (at_other_steps(1, 1), r"steps of about 7 days, as before, got 1 from 2021-09-05"),
        (at_other_steps(28, 3), r"steps of about 7 days, as before, got 28 from"),
    ],
)
def test_what_does_not_go_on_is_refused(
    table: pd.DataFrame, message: str, before: lkm.Discovery
) -> None:
    with pytest.raises(ValueError, match=message):
        before.update(table, progress=False)


def test_a_gap_is_no_other_step(before: lkm.Discovery) -> None:
    found = before.update(at_other_steps(28, 1), progress=False)
    assert len(found.table.frame) == ROWS + 1


@pytest.mark.parametrize("averaging", ["none", "tempered"])
def test_other_averages_go_on_too(averaging: Any, before: lkm.Discovery) -> None:
    found = replace(before, averaging=averaging, stacked=()).update(small_table(), progress=False)
    assert found.stacked == ()
    assert len(found.table.frame) == 40
    assert not any(member.is_walk for member in found.members)
    with pytest.raises(ValueError, match=r"of all 3 series, got a selection of 1: found\.whole"):
        found.select(["a"]).update(small_table())


def test_patterns_that_came_and_went_are_named_once() -> None:
    table = small_table()
    wave, line = "0.6 x SE(lengthscale=20)", "2e-5 x LIN(location=130)"
    one = agreed(table, [(1.0, [wave, line], [[1, 1], [1, 1], [0, 1]])])
    other = made_by_hand(table, ["0.5 x SE(lengthscale=22)"], [[1], [0], [1]])
    changes = other.changes_since(one)
    told = changes.patterns.droplevel("pattern")
    assert set(told[told["now"] > told["before"]].index) <= {"c"}
    assert "No longer needed: " in changes.text
    assert "a trend in b." in changes.text
    assert changes.text.count("trend") == 1
    assert one.changes_since(one).text == "Which series has which pattern has not changed."
    assert "patterns" not in str(changes)
    with pytest.raises(ValueError, match="expected a discovery of the series 'a' and 'b', got"):
        other.select(["a", "b"]).changes_since(one)

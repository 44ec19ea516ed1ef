"""The vector autoregression in forecasts: when it is asked, what it says of which times."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from walks import forecast, walks

import lkm_gpflow as lkm
from lkm_gpflow.comparators import BayesianVAR
from lkm_gpflow.data.tables import Table
from lkm_gpflow.search.autoregression import (
    MOST_SERIES,
    Autoregression,
    held_out_forecast,
    held_out_scores,
    season_of,
)
from lkm_gpflow.search.held_out import TAILS, Window, windows


def dated(values: np.ndarray, frequency: str = "MS") -> pd.DataFrame:
    index = pd.date_range("2001-01-01", periods=len(values), freq=frequency)
    return pd.DataFrame(values, index, [f"s{n}" for n in range(values.shape[1])])


def autoregression(frame: pd.DataFrame) -> Autoregression:
    return Autoregression(Table.of(frame), 0.5, seed=3)


def test_of_which_tables_it_is_asked() -> None:
    months = dated(walks(60, 3))
    assert season_of(Table.of(months)) == 12
    assert season_of(Table.of(months.reset_index(drop=True))) == 1
    assert season_of(Table.of(months[["s0"]])) is None
    for count in (MOST_SERIES, MOST_SERIES + 1):
        many = Table.of(dated(walks(30, count)))
        assert (season_of(many) is None) is (count > MOST_SERIES)
    holidays = dated(walks(60, 3), "B").drop(pd.bdate_range("2001-01-08", periods=9))
    assert season_of(Table.of(holidays)) == 5
    assert season_of(Table.of(dated(walks(60, 3), "D").iloc[np.arange(60) % 3 > 0])) is None
    uneven = months.set_index(np.cumsum(np.random.default_rng(0).exponential(size=60)))
    assert season_of(Table.of(uneven)) is None
    assert season_of(Table.of(lkm.thin(dated(walks(2000, 2), "h"), 100))) is None


@pytest.mark.parametrize(("missing", "is_asked"), [(12, True), (13, False)])
def test_a_series_with_many_gaps_is_not_taken_for_observed(missing: int, is_asked: bool) -> None:
    frame = dated(walks(60, 3))
    frame.iloc[5 : 5 + missing, 1] = np.nan
    assert (season_of(Table.of(frame)) is not None) is is_asked


def test_a_table_at_the_end_of_the_calendar_is_still_asked_for_what_fits() -> None:
    frame = dated(walks(60, 2), "W")
    frame.index = frame.index + (pd.Timestamp("2262-03-23") - frame.index[-1])
    assert season_of(Table.of(frame)) is None or autoregression(frame)
    table = Table.of(frame)
    mean, _ = Autoregression(table, 0.5, 0).observed(table.scaled_times(table.after(2)))
    assert mean.shape == (2, 2)


def test_it_says_what_the_comparator_says() -> None:
    Y = walks(60, 3, seed=4)
    table = Table.of(pd.DataFrame(Y, index=np.arange(60.0)))
    mean, variance = Autoregression(table, 0.5, 0).observed(np.arange(60.0, 65.0) / 59.0)
    told_mean, told_sd = forecast(BayesianVAR(), Y, 5)
    np.testing.assert_allclose(mean * table.scale + table.location, told_mean, atol=1e-7)
    np.testing.assert_allclose(np.sqrt(variance) * table.scale, told_sd, rtol=1e-6)


def test_between_steps_and_within_the_data() -> None:
    frame = dated(walks(50, 2, seed=1))
    own, table = autoregression(frame), Table.of(frame)
    steps = table.scaled_times(table.after(3))
    mean, variance = own.observed(steps)
    # February is short: a third of it is fewer days than a third of March.
    x = np.array([0.3, 1.0, (1.0 + 2.0 * steps[0]) / 3.0, (steps[0] + steps[1]) / 2.0, steps[2]])
    told, spread = own.observed(x)
    last = (frame.iloc[-1] - table.location) / table.scale
    np.testing.assert_array_equal([told[:2], spread[:2]], 0.0)
    np.testing.assert_allclose(told[2], (last + 2.0 * mean[0]) / 3.0, rtol=1e-6)
    np.testing.assert_allclose(spread[2], 2.0 * variance[0] / 3.0, rtol=1e-6)
    np.testing.assert_allclose(told[3], 0.5 * (mean[0] + mean[1]), rtol=1e-6)
    np.testing.assert_allclose(told[4], mean[2], rtol=1e-9)


def test_some_series_are_those_of_all() -> None:
    frame = dated(walks(50, 4, seed=2))
    own, x = autoregression(frame), np.array([1.02, 1.1])
    two = own.of_series(np.array([3, 1], np.int32))
    one = two.of_series(np.array([1], np.int32))
    for whole, some, single in zip(own.observed(x), two.observed(x), one.observed(x), strict=True):
        np.testing.assert_array_equal(some, whole[:, [3, 1]])
        np.testing.assert_array_equal(single, whole[:, [1]])
    rngs = [np.random.default_rng(0) for _ in range(2)]
    paths = [each.samples(3, x, rng) for each, rng in zip((own, two), rngs, strict=True)]
    np.testing.assert_array_equal(paths[1], paths[0][:, [3, 1]])
    window = Window(40, 45)
    told = own.held_out_forecast(window), two.held_out_forecast(window)
    np.testing.assert_array_equal(told[1].mean, told[0].mean[[3, 1]])


def test_paths_have_its_medians_and_intervals() -> None:
    own, x = autoregression(dated(walks(60, 3, seed=5))), np.array([1.02, 1.05, 1.1])
    mean, variance = own.observed(x)
    paths = own.samples(20_000, x, np.random.default_rng(0))
    lower, median, upper = np.quantile(paths, [0.05, 0.5, 0.95], axis=0)
    sd = np.sqrt(variance).T
    assert np.all(np.abs(median - mean.T) < 0.15 * sd)  # of 1,000 paths: four standard errors
    np.testing.assert_allclose((upper - lower) / (2.0 * 1.6449), sd, rtol=0.12)
    # Steps of a path hang together, and so do series of one path.
    assert np.corrcoef(paths[:, 0, 0], paths[:, 0, 1])[0, 1] > 0.5


def test_a_series_that_ended_early_is_less_certain() -> None:
    """As a walk is: its sd three rows after its end is that of three steps and more."""
    frame = dated(walks(80, 3, seed=6))
    frame.iloc[-3:, 0] = np.nan
    own, table = autoregression(frame), Table.of(frame)
    _, variance = own.observed(table.scaled_times(table.after(5)))
    step = frame["s0"].diff().std() / table.scale[0]
    np.testing.assert_allclose(np.sqrt(variance[0, 0]), 2.0 * step, rtol=0.25)
    assert variance[0, 0] > variance[1, 0] * 0.6
    alone = autoregression(frame.dropna())
    _, complete = alone.observed(alone.table.scaled_times(alone.table.after(5)))
    np.testing.assert_allclose(variance[:2, 0] * table.scale[0] ** 2,
                               complete[3:, 0] * alone.table.scale[0] ** 2, rtol=0.3)  # fmt: skip


def test_far_ahead_it_is_as_uncertain_as_a_walk() -> None:
    """Coefficients that are not known would make paths explode."""
    own = autoregression(dated(walks(60, 3, seed=7)))
    table = own.table
    near, far = (table.scaled_times(table.after(h)) for h in (15, 3000))
    _, variance = own.observed(far)
    np.testing.assert_array_equal(variance[:15], own.observed(near)[1])
    gained = np.diff(variance, axis=0)[15:]
    np.testing.assert_allclose(gained, np.broadcast_to(gained[0], gained.shape), rtol=1e-6)
    paths = own.samples(400, table.scaled_times(table.after(200)), np.random.default_rng(1))
    ratio = (paths[:, :, 199] - paths[:, :, 20]).var(axis=0) / (179 * gained[0])
    np.testing.assert_allclose(ratio, 1.0, atol=0.4)


def test_a_window_is_forecast_from_the_table_that_ends_before_it() -> None:
    rng, months = np.random.default_rng(8), np.arange(84)
    wave = np.cos(2.0 * np.pi * months[:, None] / 12.0 + rng.uniform(size=3))
    frame = dated(5.0 * wave + walks(84, 3, seed=8))
    window = Window(72, 78)
    told = held_out_forecast(Table.of(frame).observations, 12, window)
    whole, cut = Table.of(frame), Table.of(frame.iloc[:72])
    mean, variance = Autoregression(cut, 0.5, 0).observed(cut.scaled_times(frame.index[72:78]))
    np.testing.assert_allclose(
        told.mean.T * whole.scale + whole.location, mean * cut.scale + cut.location, atol=1e-6
    )
    np.testing.assert_allclose(told.variance.T * whole.scale**2, variance * cut.scale**2, rtol=1e-6)
    # The season is in it.
    errors = told.mean.T * whole.scale + whole.location - frame.iloc[72:78]
    assert np.abs(errors.to_numpy()).mean() < 3.0


def test_scores_are_log_densities_of_a_student() -> None:
    from scipy.stats import t

    observations = Table.of(dated(walks(60, 2, seed=9))).observations
    scores = held_out_scores(observations, 12)
    assert len(scores) == 5
    last = windows(60)[0]
    told = held_out_forecast(observations, 12, last)
    seen = observations.Y[:, last.begin : last.end]
    expected = t(TAILS, told.mean, np.sqrt(told.variance)).logpdf(seen).mean()
    assert scores[0] == pytest.approx(expected)


def leader(seed: int = 0, num_times: int = 90) -> pd.DataFrame:
    """Two walks of which the second follows the first a step later, a third alone."""
    Y = walks(num_times, 3, seed)
    Y[1:, 1] = Y[:-1, 0] + 0.1 * np.random.default_rng(seed + 1).normal(size=num_times - 1)
    return dated(Y)


@pytest.fixture(scope="module")
def found() -> lkm.Discovery:
    quick = dict(bases=["C", "RW", "SE"], depth=0, restarts=1, transform="none", progress=False)
    return lkm.discover(leader().iloc[:-3], **quick)  # type: ignore[arg-type]


def test_where_series_lead_it_forecasts_who_follows(found: lkm.Discovery) -> None:
    assert found.autoregression is not None
    assert found.autoregression.weight > 0.4  # of windows of ten steps one is foreseen
    truth = leader().iloc[-3]
    told = found.forecast(1).xs(found.times(1)[0], level="time")
    without = replace(found, autoregression=None).forecast(1).xs(found.times(1)[0], level="time")
    errors, errors_without = told["mean"] - truth, without["mean"] - truth
    assert abs(errors["s1"]) < 0.7 * abs(errors_without["s1"])
    assert told["sd"]["s1"] < 0.9 * without["sd"]["s1"]
    own = found.autoregression.observed(found.table.scaled_times(found.times(1)))[0][0]
    assert own[1] * found.table.scale[1] + found.table.location[1] == pytest.approx(
        found.table.frame["s0"].iloc[-1], abs=0.5
    )


def test_what_fills_gaps_knows_nothing_of_it(found: lkm.Discovery) -> None:
    some = found.table.frame.index[40:43]
    alone = replace(found, autoregression=None)
    pd.testing.assert_frame_equal(found.predict(some), alone.predict(some))
    both = found.table.frame.index[-2:].append(found.times(2))
    told = found.predict(both)
    ahead = told.index.get_level_values("time") > found.table.frame.index[-1]
    pd.testing.assert_frame_equal(told[~ahead], found.predict(found.table.frame.index[-2:]))
    pd.testing.assert_frame_equal(told[ahead], found.forecast(2))


def test_it_is_kept_in_files_and_selections(found: lkm.Discovery, tmp_path: object) -> None:
    from pathlib import Path

    path = Path(str(tmp_path)) / "found.lkm"
    found.save(path)
    told = found.forecast(4)
    pd.testing.assert_frame_equal(lkm.load(path).forecast(4), told)
    some = found.select(["s2", "s1"])
    pd.testing.assert_frame_equal(some.forecast(4), told.loc[["s2", "s1"]])
    some.save(path, force=True)
    pd.testing.assert_frame_equal(lkm.load(path).forecast(4), told.loc[["s2", "s1"]])
    assert found.best.autoregression is None
    tempered = replace(found, averaging="tempered")
    assert not np.allclose(tempered.forecast(2)["sd"], found.forecast(2)["sd"])


def test_samples_and_sums_have_its_moments(found: lkm.Discovery) -> None:
    told, paths = found.forecast(3), found.samples(3, 20_000)
    error = told["sd"] / np.sqrt(20_000)
    # Of the autoregression the forecast has the median of paths.
    assert np.all(np.abs(paths.mean(axis=1) - told["mean"]) < 4.5 * error + 0.02 * told["sd"])
    inside = paths.ge(told["lower"], axis=0) & paths.le(told["upper"], axis=0)
    np.testing.assert_allclose(inside.mean(axis=1), 0.9, atol=0.025)
    total = found.aggregate(3, {"s0": 1.0, "s1": -2.0})
    means = told["mean"].unstack("series")
    np.testing.assert_allclose(total["mean"], means["s0"] - 2.0 * means["s1"])
    both = found.table.frame.index[-1:].append(found.times(1))
    assert found.aggregate(both, {"s0": 1.0, "s1": -2.0})["sd"].is_monotonic_increasing


def test_the_report_says_how_much_rests_on_it(found: lkm.Discovery) -> None:
    from lkm_gpflow.report.summary import rests_on

    assert found.autoregression is not None
    weight = found.autoregression.weight
    said = rests_on(found)
    assert "a vector autoregression, which forecasts each series from the last values" in said
    assert f"{100 * weight:.0f}%" in said
    assert rests_on(replace(found, averaging="none", autoregression=None)) == ""
    alone = [replace(m, is_walk=False) for m in found.stacked]
    assert rests_on(replace(found, stacked=tuple(alone))).startswith("A vector autoregression")


def test_its_part_of_a_forecast_is_named(found: lkm.Discovery) -> None:
    from lkm_gpflow.explain.attribution import AUTOREGRESSION, attribute, shares

    for horizon in (3, found.table.frame.index[-1:].append(found.times(2))):
        parts = attribute(found, horizon)
        told = found.predict(found.table.after(horizon))
        np.testing.assert_allclose(parts["mean"].sum(axis=1), told["mean"])
        np.testing.assert_allclose(parts["variance"].sum(axis=1), told["sd"] ** 2)
    within = parts["variance"][AUTOREGRESSION].unstack("time").iloc[:, 0]
    assert np.all(within == 0.0)
    assert shares(attribute(found, 3), "mean")[AUTOREGRESSION].max() > 0.5

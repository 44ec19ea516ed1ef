"""The vector autoregression in forecasts: when it is asked, what it says of which times."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from walks import autoregression_forecast, walks

import lkm_gpflow as lkm
from lkm_gpflow.data.tables import Table
from lkm_gpflow.fit.fits import FitSettings
from lkm_gpflow.forecast.autoregression import MOST_SERIES, Autoregression, Calendar
from lkm_gpflow.forecast.forecasters import Member, with_weight
from lkm_gpflow.forecast.held_out import TAILS, Window, windows
from lkm_gpflow.forecast.predictors import Predictors

SETTINGS = FitSettings()


def dated(values: np.ndarray, frequency: str = "MS") -> pd.DataFrame:
    index = pd.date_range("2001-01-01", periods=len(values), freq=frequency)
    return pd.DataFrame(values, index, [f"s{n}" for n in range(values.shape[1])])


def autoregression(frame: pd.DataFrame, seed: int = 3) -> Autoregression:
    own = Autoregression.of(Table.of(frame), seed, 0.5)
    assert own is not None
    return own


def moments(own: Autoregression, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return own.moments(x, Predictors(own.whole.table.observations, SETTINGS))


def samples(own: Autoregression, count: int, x: np.ndarray, seed: int = 0) -> np.ndarray:
    predictors = Predictors(own.whole.table.observations, SETTINGS)
    return own.samples(count, x, np.empty(0), predictors, np.random.default_rng(seed))


def held_out(own: Autoregression, window: Window) -> tuple[np.ndarray, np.ndarray]:
    told = own.held_out(own.whole.table.observations, window, SETTINGS)
    return told.mean, told.variance


def ahead(own: Autoregression, steps: int) -> np.ndarray:
    """Scaled times of so many steps."""
    table = own.whole.table
    return table.scaled_times(table.after(steps))


def season_of(frame: pd.DataFrame) -> int | None:
    calendar = Calendar.of(Table.of(frame))
    return None if calendar is None else calendar.season


def test_of_which_tables_it_is_asked() -> None:
    months = dated(walks(60, 3))
    assert season_of(months) == 12
    assert season_of(months.reset_index(drop=True)) == 1
    assert season_of(months[["s0"]]) is None
    middle = months.set_index(months.index + pd.Timedelta(days=14))
    assert season_of(middle) == 12
    assert season_of(middle.iloc[::3]) == 4
    for count in (MOST_SERIES, MOST_SERIES + 1):
        many = dated(walks(30, count))
        assert (season_of(many) is None) is (count > MOST_SERIES)
    holidays = dated(walks(60, 3), "B").drop(pd.bdate_range("2001-01-08", periods=9))
    assert season_of(holidays) == 5
    calendar = Calendar.of(Table.of(holidays))
    assert calendar is not None
    assert list(calendar.steps[:7]) == [0, 1, 2, 3, 4, 14, 15]
    assert season_of(dated(walks(60, 3), "D").iloc[np.arange(60) % 3 > 0]) is None
    uneven = months.set_index(np.cumsum(np.random.default_rng(0).exponential(size=60)))
    assert season_of(uneven) is None
    nearly = months.set_index(np.arange(60.0) + 0.2 * np.sin(np.arange(60.0)))
    assert season_of(nearly) == 1
    assert season_of(lkm.thin(dated(walks(2000, 2), "h"), 100)) is None


@pytest.mark.parametrize(("missing", "is_asked"), [(12, True), (13, False)])
def test_a_series_with_many_gaps_is_not_taken_for_observed(missing: int, is_asked: bool) -> None:
    frame = dated(walks(60, 3))
    frame.iloc[5 : 5 + missing, 1] = np.nan
    assert (season_of(frame) is not None) is is_asked


def test_it_says_what_the_learnt_autoregression_says() -> None:
    Y = walks(60, 3, seed=4)
    own = autoregression(pd.DataFrame(Y, index=np.arange(60.0)), seed=0)
    mean, variance = moments(own, np.arange(60.0, 65.0) / 59.0)
    table = own.whole.table
    told_mean, told_sd = autoregression_forecast(Y, 5)
    np.testing.assert_allclose(mean * table.scale + table.location, told_mean, atol=1e-7)
    np.testing.assert_allclose(np.sqrt(variance) * table.scale, told_sd, rtol=1e-6)


def test_between_steps_and_within_the_data() -> None:
    own = autoregression(dated(walks(32, 2, seed=1)))  # less than three years: no season
    steps = ahead(own, 3)
    mean, variance = moments(own, steps)
    # Months differ in length.
    x = np.array([0.3, 1.0, (1.0 + 2.0 * steps[0]) / 3.0, (steps[0] + steps[1]) / 2.0, steps[2]])
    told, spread = moments(own, x)
    np.testing.assert_array_equal([told[:2], spread[:2]], 0.0)
    # A new observation is at least as uncertain as the first: it may have noise.
    np.testing.assert_allclose([told[2], spread[2]], [mean[0], variance[0]])
    np.testing.assert_allclose(told[3], 0.5 * (mean[0] + mean[1]), rtol=1e-6)
    np.testing.assert_allclose(spread[3], 0.5 * (variance[0] + variance[1]), rtol=1e-6)
    np.testing.assert_allclose(told[4], mean[2], rtol=1e-9)


def test_paths_have_its_medians_and_intervals() -> None:
    own, x = autoregression(dated(walks(60, 3, seed=5))), np.array([1.02, 1.05, 1.09])
    mean, variance = moments(own, x)
    paths = samples(own, 20_000, x)
    lower, median, upper = np.quantile(paths, [0.05, 0.5, 0.95], axis=0)
    sd = np.sqrt(variance).T
    assert np.all(np.abs(median - mean.T) < 0.15 * sd)  # of 1,000 paths: four standard errors
    np.testing.assert_allclose((upper - lower) / (2.0 * 1.6449), sd, rtol=0.12)
    # Steps of a path hang together, and so do series of one path.
    assert np.corrcoef(paths[:, 0, 0], paths[:, 0, 1])[0, 1] > 0.5
    own = autoregression(leader())
    paths = samples(own, 20_000, x)
    for m in range(3):
        told, drawn = own.correlations(x)[m], np.corrcoef(paths[:, :, m].T)
        np.testing.assert_allclose(told, drawn, atol=0.12)
    assert told[0, 1] > 0.5 > abs(told[0, 2])


@pytest.mark.parametrize("lacks", [3, 9])
def test_a_series_that_ended_early_is_less_certain(lacks: int) -> None:
    """As a walk is, and it alone; its paths say so, too."""
    frame = dated(walks(120, 3, seed=6))
    frame.iloc[-lacks:, 0] = np.nan
    own = autoregression(frame)
    x = ahead(own, 4)
    _, variance = moments(own, x)
    step = (frame.diff().std() / own.whole.table.scale).to_numpy()
    steps = np.array([lacks, 0.0, 0.0]) + np.arange(1.0, 5.0)[:, None]
    np.testing.assert_allclose(np.sqrt(variance), np.sqrt(steps) * step, rtol=0.2)
    paths = samples(own, 4000, x)
    lower, upper = np.quantile(paths, [0.05, 0.95], axis=0)
    np.testing.assert_allclose((upper - lower) / (2.0 * 1.6449), np.sqrt(variance).T, rtol=0.15)


def waves(num_times: int = 96, seed: int = 8) -> pd.DataFrame:
    """Three series of large seasons and small walks."""
    rng, months = np.random.default_rng(seed), np.arange(num_times)
    wave = np.cos(2.0 * np.pi * months[:, None] / 12.0 + rng.uniform(0.0, 6.0, size=3))
    return dated(10.0 * wave + 0.3 * walks(num_times, 3, seed))


@pytest.mark.parametrize("lacks", ["nothing", "its end", "a year", "its beginning", "rows"])
def test_gaps_do_not_bend_the_season(lacks: str) -> None:
    frame = waves()
    whole, truth = frame.iloc[:-12].copy(), frame.iloc[-12:].to_numpy()
    if lacks == "its end":
        whole.iloc[-5:, 0] = np.nan
    elif lacks == "a year":
        whole.iloc[40:52, 0] = np.nan
    elif lacks == "its beginning":
        whole.iloc[:14, 0] = np.nan
    elif lacks == "rows":
        whole = whole.drop(whole.index[[20, 33, 47, 60, 61, 77]])
    own = autoregression(whole)
    table = own.whole.table
    mean, variance = moments(own, table.scaled_times(frame.index[-12:]))
    errors = np.abs(mean * table.scale + table.location - truth)
    assert errors.mean() < 1.6
    assert np.mean(errors < 1.6449 * np.sqrt(variance) * table.scale) > 0.75
    assert np.sqrt(variance).max() * table.scale.max() < 4.0


@pytest.mark.parametrize("num_series", [3, 20])
def test_far_ahead_it_is_as_uncertain_as_a_walk(num_series: int) -> None:
    """Coefficients that are not known would make paths explode."""
    own = autoregression(dated(walks(90, num_series, seed=7)))
    x = ahead(own, 2000)
    _, variance = moments(own, x)
    np.testing.assert_array_equal(variance[:15], moments(own, x[:15])[1])
    gained = np.diff(variance, axis=0)[15:]
    expected = own.whole.learnt.learnt.posterior.covariance.diagonal()
    np.testing.assert_allclose(gained.mean(axis=0), expected, rtol=0.01)
    frame = own.whole.table.frame
    step = (frame.diff().std() / own.whole.table.scale).to_numpy()
    walk = step * np.sqrt(30.0)
    assert np.sqrt(variance[29] / walk**2).max() < 2.0
    far = np.array([x[20], x[199]])
    paths = samples(own, 400, far, 1)
    ratio = (paths[:, :, 1] - paths[:, :, 0]).var(axis=0) / (179.0 * expected)
    np.testing.assert_allclose(ratio, 1.0, atol=0.45)
    # As many steps as there are are not gone through one by one.
    mean, _ = moments(own, np.array([1e9]))
    assert np.isfinite(mean).all()


def test_times_beyond_the_calendar_have_a_forecast() -> None:
    frame = dated(walks(60, 2), "YS")
    frame.index = frame.index + pd.DateOffset(years=2190 - frame.index[-1].year)
    own, table = autoregression(frame), Table.of(frame)
    late = pd.DatetimeIndex(["2261-06-01", "2262-03-01"])
    mean, variance = moments(own, table.scaled_times(late))
    assert np.isfinite(mean).all()
    assert np.all(np.diff(variance, axis=0) > 0.0)


def test_a_window_is_forecast_from_the_table_that_ends_before_it() -> None:
    frame = waves(84)
    own, before = autoregression(frame), autoregression(frame.iloc[:72], seed=0)
    whole, cut = own.whole.table, before.whole.table
    told, spread = (each.T for each in held_out(own, Window(72, 78)))
    mean, variance = moments(before, cut.scaled_times(frame.index[72:78]))
    np.testing.assert_allclose(
        told * whole.scale + whole.location, mean * cut.scale + cut.location, atol=1e-6
    )
    np.testing.assert_allclose(spread * whole.scale**2, variance * cut.scale**2, rtol=1e-6)
    errors = told * whole.scale + whole.location - frame.iloc[72:78]
    assert np.abs(errors.to_numpy()).mean() < 2.0  # the season is in it


def test_scores_are_log_densities_of_a_student() -> None:
    from scipy.stats import t

    own = autoregression(dated(walks(60, 2, seed=9)))
    observations = own.whole.table.observations
    scores = own.held_out_scores(observations, SETTINGS)
    assert len(scores) == 5
    last = windows(60)[0]
    mean, variance = held_out(own, last)
    seen = observations.Y[:, last.begin : last.end]
    expected = t(TAILS, mean, np.sqrt(variance)).logpdf(seen).mean()
    assert scores[0] == pytest.approx(expected)


@pytest.mark.parametrize("seed", [7, 8])
def test_one_that_explodes_is_not_asked(seed: int) -> None:
    """After last values far off, on levels from which nobody knows where the others go."""
    calm = walks(90, 5, seed)
    wild = calm.copy()
    wild[:, 0] = np.exp(3.0 * wild[:, 0])
    wild[-1, 1] += 1000.0
    line = np.arange(90.0)[:, None] * [1.0, 2.0] + 0.01 * walks(90, 2)
    for values, explodes in ((calm, False), (line, False), (wild, True)):
        own = autoregression(dated(values))
        assert own.whole.learnt.explodes is explodes
        scores = own.held_out_scores(own.whole.table.observations, SETTINGS)
        assert (max(scores) < -1e5) is explodes


def test_no_forecast_is_more_certain_than_a_thousandth_of_its_series() -> None:
    """However exactly a table follows a rule."""
    own = autoregression(dated(np.arange(90.0)[:, None] * [1.0, -2.0]))
    mean, variance = moments(own, ahead(own, 3))
    np.testing.assert_allclose(np.sqrt(variance), 1e-3, rtol=1e-6)
    table = own.whole.table
    expected = np.arange(90.0, 93.0)[:, None] * [1.0, -2.0]
    np.testing.assert_allclose(mean * table.scale + table.location, expected, rtol=1e-3)


def leader(seed: int = 0, num_times: int = 90) -> pd.DataFrame:
    """Two walks of which the second follows the first a step later, a third alone."""
    Y = walks(num_times, 3, seed)
    Y[1:, 1] = Y[:-1, 0] + 0.1 * np.random.default_rng(seed + 1).normal(size=num_times - 1)
    return dated(Y)


def own_of(found: lkm.Discovery) -> Autoregression:
    """The autoregression of a discovery."""
    (own,) = (each for each in found.stacked if isinstance(each, Autoregression))
    return own


def leaning(found: lkm.Discovery, weight: float) -> lkm.Discovery:
    """The discovery whose autoregression weighs so much."""
    own, fits = own_of(found), [each for each in found.stacked if isinstance(each, Member)]
    share = (1.0 - weight) / sum(each.weight for each in fits)
    members = [with_weight(each, share * each.weight) for each in fits]
    return replace(found, stacked=(*members, with_weight(own, weight)))


@pytest.fixture(scope="module")
def found() -> lkm.Discovery:
    quick = dict(bases=["C", "RW", "SE"], depth=0, restarts=1, transform="none", progress=False)
    return lkm.discover(leader().iloc[:-3], **quick)  # type: ignore[arg-type]


def test_where_series_lead_it_forecasts_who_follows(found: lkm.Discovery) -> None:
    own = own_of(found)
    assert own.weight > 0.4  # of windows of ten steps one is foreseen
    truth = leader().iloc[-3]
    told = found.forecast(1).xs(found.times(1)[0], level="time")
    without = leaning(found, 0.0).forecast(1).xs(found.times(1)[0], level="time")
    errors, errors_without = told["mean"] - truth, without["mean"] - truth
    assert abs(errors["s1"]) < 0.7 * abs(errors_without["s1"])
    assert told["sd"]["s1"] < 0.9 * without["sd"]["s1"]
    mean = moments(own, ahead(own, 1))[0][0]
    assert mean[1] * found.table.scale[1] + found.table.location[1] == pytest.approx(
        found.table.frame["s0"].iloc[-1], abs=0.5
    )


def test_what_fills_gaps_knows_nothing_of_it(found: lkm.Discovery) -> None:
    some = found.table.frame.index[40:43]
    alone = leaning(found, 0.0)
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
    assert all(isinstance(each, Member) for each in found.best.members)
    tempered = replace(found, averaging="tempered")
    assert not np.allclose(tempered.forecast(2)["sd"], found.forecast(2)["sd"])


def test_samples_and_sums_have_its_moments(found: lkm.Discovery) -> None:
    leans = leaning(found, 0.9)
    told, paths = leans.forecast(3), leans.samples(3, 20_000)
    error = told["sd"] / np.sqrt(20_000)
    # Of the autoregression the forecast has the median of paths.
    assert np.all(np.abs(paths.mean(axis=1) - told["mean"]) < 4.5 * error + 0.05 * told["sd"])
    inside = paths.ge(told["lower"], axis=0) & paths.le(told["upper"], axis=0)
    np.testing.assert_allclose(inside.mean(axis=1), 0.9, atol=0.045)
    for weights in ({"s0": 1.0, "s1": 1.0}, {"s0": 1.0, "s1": -2.0}):
        total = leans.aggregate(3, weights)
        means = told["mean"].unstack("series")
        expected = sum(w * means[name] for name, w in weights.items())
        np.testing.assert_allclose(total["mean"], expected)
        sums = sum(w * paths.loc[name] for name, w in weights.items())
        within = sums.ge(total["lower"], axis=0) & sums.le(total["upper"], axis=0)
        np.testing.assert_allclose(within.mean(axis=1), 0.9, atol=0.04)
    both = found.table.frame.index[-1:].append(found.times(1))
    assert leans.aggregate(both, {"s0": 1.0, "s1": -2.0})["sd"].is_monotonic_increasing
    later = leans.samples(both, 4000).xs(both[1], level="time").std(axis=1)
    np.testing.assert_allclose(later, paths.xs(both[1], level="time").std(axis=1), rtol=0.1)


def test_sums_of_logarithms_have_its_correlations() -> None:
    quick = dict(bases=["C", "RW"], depth=0, restarts=1, transform="log", progress=False)
    found = lkm.discover(np.exp(0.1 * leader()), **quick)  # type: ignore[arg-type]
    leans = leaning(found, 0.95)
    paths, told = leans.samples(6, 20_000), leans.aggregate(6, {"s0": 1.0, "s1": -1.0})
    spread = paths.loc["s0"] - paths.loc["s1"]
    within = spread.ge(told["lower"], axis=0) & spread.le(told["upper"], axis=0)
    np.testing.assert_allclose(within.mean(axis=1), 0.9, atol=0.04)

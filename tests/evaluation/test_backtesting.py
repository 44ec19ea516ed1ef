"""Backtests: origins, scores, the test of equal accuracy, and going on after a stop."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm, t, ttest_rel
from small import small_table

import lkm_gpflow as lkm
from lkm_gpflow.comparators import Fitted, LastValue


def walks(num_times: int = 60, num_series: int = 4, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    values = np.cumsum(rng.normal(size=(num_times, num_series)), axis=0)
    return pd.DataFrame(values, columns=list("abcdefgh")[:num_series])


def run(frame: pd.DataFrame, method: object = "last-value", **settings: object) -> lkm.Backtest:
    return lkm.backtest(frame, method, **{"horizon": 5, "progress": False, **settings})


def test_origins_are_spread_over_the_second_half() -> None:
    assert run(walks()).origins == (30, 34, 37, 41, 44, 48, 51, 55)
    assert run(walks(), folds=3, first=10).origins == (10, 32, 55)
    assert run(walks(), folds=1).origins == (55,)


def test_every_origin_is_forecast_from_its_past_alone() -> None:
    frame = walks()
    result = run(frame, folds=3)
    for origin in result.origins:
        expected = LastValue().fit(frame.iloc[:origin], seed=0)
        forecast = expected.forecast(frame.index[origin : origin + 5])
        kept = result.forecasts.loc[origin]
        pd.testing.assert_frame_equal(kept[["mean", "sd"]], forecast)
        observed = kept["observed"].unstack("series")
        np.testing.assert_array_equal(observed, frame.iloc[origin : origin + 5])


def test_scores_by_hand() -> None:
    frame = walks()
    frame.iloc[57, 1] = np.nan
    result = run(frame, folds=2)
    past, future = frame.iloc[:55].to_numpy(), frame.iloc[55:].to_numpy()
    error = np.abs(future - past[-1]) / past.std(axis=0)
    row = result.scores.loc[55]
    by_series = [np.sqrt(np.mean(e[np.isfinite(e)] ** 2)) for e in error.T]
    assert row["rmse"] == pytest.approx(np.mean(by_series))
    step = np.abs(np.diff(past, axis=0)).mean(axis=0)
    mase = [np.nanmean(np.abs(future[:, n] - past[-1, n])) / step[n] for n in range(4)]
    assert row["mase"] == pytest.approx(np.mean(mase))
    sd = np.sqrt(np.arange(1, 6)[:, None] * np.mean(np.diff(past, axis=0) ** 2, axis=0))
    z = (future - past[-1]) / sd
    seen = np.isfinite(z)
    assert row["coverage80"] == pytest.approx(np.mean(np.abs(z[seen]) < norm.ppf(0.9)))
    log_density = norm.logpdf(z[seen]) - np.log((sd / past.std(axis=0))[seen])
    assert row["mnlp"] == pytest.approx(-log_density.mean())
    pd.testing.assert_series_equal(result.summary(), result.scores.mean(), check_names=False)


def test_units_do_not_matter() -> None:
    frame = walks()
    scaled = frame * [1.0, 1e3, 1e-3, 10.0] + [0.0, 5.0, 1.0, -3.0]
    columns = ["rmse", "mnlp", "crps", "mase", "coverage90"]
    np.testing.assert_allclose(run(scaled).scores[columns], run(frame).scores[columns])


def test_without_overlap_the_comparison_is_a_paired_t_test() -> None:
    frame = walks(120)
    one = run(frame, "last-value", folds=6, first=90)
    other = run(frame, "drift", folds=6, first=90)
    expected = ttest_rel(one.scores["crps"], other.scores["crps"])
    found = one.compare(other)
    assert found.p_value == pytest.approx(expected.pvalue)
    assert found.difference == pytest.approx((one.scores["crps"] - other.scores["crps"]).mean())
    assert found.standard_error == pytest.approx(abs(found.difference / expected.statistic))
    back = other.compare(one)
    assert (back.difference, back.p_value) == pytest.approx((-found.difference, found.p_value))


def test_the_standard_error_is_that_of_generalised_least_squares() -> None:
    """Of origins at uneven distances, by whitened differences; shared rows are counted."""
    frame = walks(60)
    one, other = (run(frame, name) for name in ("last-value", "drift"))
    d = (one.scores["crps"] - other.scores["crps"]).to_numpy()
    ahead = [set(range(origin, origin + 5)) for origin in one.origins]
    R = np.array([[len(a & b) / 5.0 for b in ahead] for a in ahead])
    whiten = np.linalg.inv(np.linalg.cholesky(R))
    _, (squares,), *_ = np.linalg.lstsq(whiten @ np.ones((8, 1)), whiten @ d, rcond=None)
    found = one.compare(other)
    assert found.standard_error == pytest.approx(np.sqrt(squares / 7.0 * R.mean()))
    assert found.p_value == pytest.approx(2.0 * t(7).sf(abs(d.mean()) / found.standard_error))


def test_comparison_allows_for_origins_that_overlap() -> None:
    """Differences that are moving averages over the overlap have mean zero.

    The test must reject about 5% of them, a t-test that forgets the overlap rejects 29%.
    """
    base = lkm.backtest(walks(144), "last-value", 6, 20, first=100, progress=False)
    assert base.origins == tuple(range(100, 140, 2))  # two more lie within a horizon of 6
    rng = np.random.default_rng(0)
    scores = base.scores
    rejected, naive = 0, 0
    for _ in range(1000):
        noise = rng.normal(size=22)
        moved = lkm.Backtest("moved", 6, base.origins, base.forecasts, base.steps, base.seconds)
        shifted = scores.assign(crps=scores["crps"] + noise[2:] + noise[1:-1] + noise[:-2])
        moved.__dict__["scores"] = shifted
        rejected += moved.compare(base).p_value < 0.05
        naive += ttest_rel(shifted["crps"], scores["crps"]).pvalue < 0.05
    assert naive / 1000 > 0.2
    assert 0.03 < rejected / 1000 < 0.07


@dataclass(frozen=True)
class Counting:
    """Last value, counting how often it is fitted; stops with an error after `limit` fits."""

    limit: int = 100
    fits: list[int] = field(default_factory=list, repr=False)

    def __repr__(self) -> str:
        return "Counting()"

    def fit(self, train: pd.DataFrame, *, seed: int) -> Fitted:
        if len(self.fits) == self.limit:
            raise KeyboardInterrupt
        self.fits.append(len(train))
        return LastValue().fit(train, seed=seed)


def test_a_stopped_backtest_goes_on_from_its_journal(tmp_path: Path) -> None:
    journal = tmp_path / "backtest.jsonl"
    stopped = Counting(limit=3)
    with pytest.raises(KeyboardInterrupt):
        run(walks(), stopped, journal=journal)
    with journal.open("a") as file:
        file.write('{"origin": 41, "mea')  # the writer died in the middle of a line
    rest = Counting()
    result = run(walks(), rest, journal=journal)
    assert sorted(stopped.fits + rest.fits) == sorted(result.origins)
    whole = run(walks(), Counting())
    pd.testing.assert_frame_equal(result.forecasts, whole.forecasts)
    again = Counting()
    run(walks(), again, journal=journal)
    assert again.fits == []
    with pytest.raises(ValueError, match="other settings or data, it differs in seed"):
        run(walks(), Counting(), journal=journal, seed=1)


def test_a_journal_knows_units_and_dates(tmp_path: Path) -> None:
    """Scaled, the tables are the same."""
    journal = tmp_path / "backtest.jsonl"
    run(walks(), Counting(), journal=journal)
    dates = pd.date_range("2020-01-01", periods=len(walks()), freq="h")
    for other in (1000.0 * walks(), walks().set_axis(dates)):
        with pytest.raises(ValueError, match=r"it differs in .*table"):
            run(other, Counting(), journal=journal)


class Plain:
    """A method without a text of its own, which then has its address."""

    def fit(self, train: pd.DataFrame, *, seed: int) -> Fitted:
        return LastValue().fit(train, seed=seed)


def test_a_journal_knows_a_method_without_a_text_again(tmp_path: Path) -> None:
    journal = tmp_path / "backtest.jsonl"
    options = {"journal": journal, "horizon": np.int64(5), "seed": np.int64(1)}
    first = run(walks(), Plain(), **options)
    kept = journal.read_text()
    keep_alive = Plain()
    pd.testing.assert_frame_equal(run(walks(), Plain(), **options).forecasts, first.forecasts)
    assert journal.read_text() == kept
    del keep_alive


class Wide(Plain):
    """Last value with so many times its sd; keeps what it has seen, gives rows in another order."""

    def __init__(self, factor: float, inner: Plain | None = None) -> None:
        self.factor, self.inner = factor, inner

    def fit(self, train: pd.DataFrame, *, seed: int) -> Wide:
        self.train = train
        return self

    def forecast(self, times: pd.Index) -> pd.DataFrame:
        told = LastValue().fit(self.train, seed=0).forecast(times)
        return told.assign(sd=self.factor * told["sd"]).sort_index(ascending=False)


def test_a_journal_tells_methods_without_a_text_by_their_settings(tmp_path: Path) -> None:
    journal = tmp_path / "backtest.jsonl"
    method = Wide(1.0, Wide(2.0))
    kept = run(walks(), method, journal=journal).forecasts
    pd.testing.assert_frame_equal(run(walks(), method, journal=journal).forecasts, kept)
    for other in (Wide(9.0, Wide(2.0)), Wide(1.0, Wide(3.0)), Wide(1.0)):
        with pytest.raises(ValueError, match="differs in method"):
            run(walks(), other, journal=journal)


def test_a_forecast_with_gaps_is_refused() -> None:
    with pytest.raises(ValueError, match="Wide, origin 30: expected finite means and positive"):
        run(walks(), Wide(np.nan))


def test_a_comparison_leaves_out_origins_without_a_score() -> None:
    frame = walks(120)
    frame.iloc[100:110] = np.nan
    one, other = (run(frame, name, folds=6, first=90) for name in ("last-value", "drift"))
    scored = one.scores["crps"].notna()
    assert 2 < scored.sum() < 6
    expected = ttest_rel(one.scores["crps"][scored], other.scores["crps"][scored])
    assert one.compare(other).p_value == pytest.approx(expected.pvalue)


def test_without_a_step_before_the_origin_there_is_no_mase() -> None:
    frame = walks()
    frame.iloc[0:55:2, 0] = np.nan
    scores = run(frame, folds=2).scores
    assert scores["mase"].isna().all()
    assert scores.drop(columns="mase").notna().all(axis=None)
    frame.iloc[55:, 0] = np.nan  # who is not observed does not count
    assert np.isfinite(run(frame, folds=1).scores.loc[55, "mase"])


class Noisy(Plain):
    """Last value plus noise that follows from the seed."""

    def fit(self, train: pd.DataFrame, *, seed: int) -> Fitted:
        return LastValue().fit(train + np.random.default_rng(seed).normal(size=train.shape), seed=0)


def test_the_seed_reaches_the_method() -> None:
    frame = walks()
    result = run(frame, Noisy(), folds=2, seed=7)
    for origin in result.origins:
        noise = np.random.default_rng(7).normal(size=(origin, 4))
        told = result.forecasts.loc[origin, "mean"].unstack("series").iloc[0]
        np.testing.assert_allclose(told, frame.iloc[origin - 1] + noise[-1])


@pytest.mark.parametrize("before", [0.0, 5.0, np.nan])
def test_a_series_that_begins_late_is_named_whatever_the_method(before: float) -> None:
    """Scores are in standard deviations of what came before."""

    class Always:
        def fit(self, train: pd.DataFrame, *, seed: int) -> Fitted:
            sound = train.fillna(0.0) + np.arange(len(train))[:, None]
            return LastValue().fit(sound, seed=seed)

    frame = small_table()
    frame.iloc[:-6, 0] = before
    with pytest.raises(ValueError, match=r"Always, given the \d+ rows .*'a'"):
        lkm.backtest(frame, Always(), horizon=3, folds=2, progress=False)


def test_a_method_is_no_backtest() -> None:
    frame = small_table()
    with pytest.raises(ValueError, match="expected another Backtest to compare with, got 'drift'"):
        run(frame, folds=2).compare("drift")  # type: ignore[arg-type]


def test_wrong_settings_are_refused() -> None:
    for settings, message in (
        ({"horizon": 0}, "a horizon as a whole number of 1 or more, got 0"),
        ({"first": 58}, "expected 3 to 55 rows before the first origin .*, got 58"),
        ({"folds": 27}, "expected 1 to 26 folds, got 27"),
        ({"folds": 0}, "folds as a whole number of 1 or more, got 0"),
    ):
        with pytest.raises(ValueError, match=message):
            run(walks(), **settings)
    with pytest.raises(ValueError, match="expected a comparator among"):
        run(walks(), "oracle")
    one = run(walks())
    with pytest.raises(ValueError, match="same origins and data"):
        one.compare(run(walks(), folds=4))
    with pytest.raises(ValueError, match="same origins and data"):
        one.compare(run(walks(seed=1)))
    with pytest.raises(ValueError, match="expected a score among"):
        one.compare(one, "luck")
    with pytest.raises(ValueError, match=r"less is better\), got 'coverage90'"):
        one.compare(one, "coverage90")
    assert one.compare(one).p_value == 1.0

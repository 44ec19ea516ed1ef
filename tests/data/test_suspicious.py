"""Planted faults are listed where they are, and what is meant is not."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from lkm_gpflow.data.suspicious import COLUMNS, find, without

DAYS = 200


def week(seed: int = 0) -> np.ndarray:
    """A weekly cycle about fifty, with noise."""
    t = np.arange(DAYS)
    noise = np.random.default_rng(seed).normal(size=DAYS)
    return 50.0 + 10.0 * np.sin(2 * np.pi * t / 7) + 2.0 * noise


def found_in(values: np.ndarray, season: int = 7) -> list[tuple[str, int]]:
    """Kinds and places of what is listed."""
    index = pd.date_range("2024-01-01", periods=len(values))
    found = find(pd.DataFrame({"a": values}, index), season)
    assert list(found.columns) == list(COLUMNS)
    return [
        (kind, (time - index[0]).days) for time, kind in zip(found.time, found.kind, strict=True)
    ]


def test_spikes_of_a_positive_series_are_outliers() -> None:
    """Their logarithms are less far off, but nothing else speaks for logarithms."""
    y = week()
    y[[80, 81]] = 400.0, 300.0
    assert found_in(y) == [("outlier", 80), ("outlier", 81)]


def test_a_peak_of_what_grows_by_percentages_is_none() -> None:
    """It is far off in units, and within what its logarithm does."""
    t = np.arange(DAYS)
    y = np.exp(0.025 * t + 0.3 * np.random.default_rng(1).normal(size=DAYS))
    assert found_in(y, season=1) == []
    y[120] *= 1e6
    assert found_in(y, season=1) == [("outlier", 120)]


@pytest.mark.parametrize("word", [-999.0, 9999.0, -1e20])
def test_words_for_missing(word: float) -> None:
    y = week()
    y[[5, 60, 61]] = word
    assert found_in(y) == [("sentinel", 5), ("sentinel", 60), ("sentinel", 61)]


@pytest.mark.parametrize("words", [(-888.0, -999.0), (0.0,), (-1.0,), (-99.0, 99.0)])
def test_several_words_and_zeros_far_from_all_values(words: tuple[float, ...]) -> None:
    y = (week() - 50.0) / 10.0 + (0.0 if 99.0 in words else 100.0)
    places = [(9 * k + i, word) for i, word in enumerate(words) for k in range(1, 4)]
    for place, word in places:
        y[place] = word
    assert found_in(y) == [("sentinel", place) for place, _ in sorted(places)]


def test_zeros_near_other_values_or_on_many_days_are_meant() -> None:
    y = week()
    y[::7] = 0.0
    assert found_in(y) == []
    assert found_in(np.random.default_rng(4).poisson(2.0, DAYS).astype(float)) == []


def test_spikes_beside_a_step_among_wide_swings_and_at_the_end() -> None:
    t, noise = np.arange(DAYS), np.random.default_rng(5).normal(size=DAYS)
    stepped = noise + np.where(t < 90, 0.0, 40.0)
    stepped[40] += 25.0
    assert found_in(stepped, season=1) == [("outlier", 40), ("level shift", 90)]
    swings = np.exp(2.5 * np.sin(t / 15.0) + 0.1 * noise)
    swings[70] *= 1e4
    assert ("outlier", 70) in found_in(swings, season=1)
    walk = np.cumsum(noise)
    walk[-1] += 60.0
    assert found_in(walk, season=1) == [("outlier", DAYS - 1)]


def test_a_stuck_sensor() -> None:
    y = week()
    y[100:115] = y[100]
    assert found_in(y) == [("flat", place) for place in range(101, 115)]


def test_a_change_of_spread() -> None:
    rng = np.random.default_rng(3)
    y = rng.normal(size=DAYS) * np.where(np.arange(DAYS) < 100, 1.0, 20.0)
    ((kind, place),) = found_in(y, season=1)
    assert kind == "change of spread"
    assert abs(place - 100) < 10


@pytest.mark.parametrize("seed", range(20))
def test_nothing_is_listed_where_nothing_is_planted(seed: int) -> None:
    rng = np.random.default_rng(seed)
    assert found_in(week(seed)) == []
    assert found_in(np.cumsum(rng.normal(size=DAYS)), season=1) == []
    assert found_in(rng.poisson(0.7, DAYS).astype(float), season=1) == []
    assert found_in(100.0 * np.exp(np.cumsum(0.02 * rng.normal(size=DAYS))), season=1) == []


def test_without_them_only_single_values_are_missing() -> None:
    spiked, stepped = week(), week(1)
    spiked[30] = 500.0
    stepped[120:] += 200.0
    times = pd.date_range("2024-01-01", periods=DAYS)
    frame = pd.DataFrame({"a": spiked, "b": stepped}, times)
    found = find(frame, 7)
    assert list(zip(found.series, found.kind, strict=True)) == [
        ("a", "outlier"),
        ("b", "level shift"),
    ]
    cleaned = without(frame, found)
    assert np.argwhere(cleaned.isna().to_numpy()).tolist() == [[30, 0]]
    pd.testing.assert_frame_equal(cleaned.drop(frame.index[30]), frame.drop(frame.index[30]))


def test_spikes_that_recur_are_a_beat_and_no_outliers() -> None:
    rng = np.random.default_rng(0)
    values = 0.1 * rng.normal(size=(200, 2))
    spikes = 5.0 + rng.normal(size=5)
    values[[20, 50, 110, 140, 171], 0] = spikes  # every 30 rows, some of them missed
    values[[20, 63, 104, 151, 190], 1] = spikes
    found = find(pd.DataFrame(values, columns=["heart", "fault"]))
    assert set(found.loc[found["kind"] == "outlier", "series"]) == {"fault"}

"""Discoveries of logarithms: whatever is told is in the units of the data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm
from small import made_by_hand, small_table

import lkm_gpflow as lkm
from lkm_gpflow.data.transforms import Transform
from lkm_gpflow.explain.wording import scale_note
from lkm_gpflow.forecast.forecasters import Member

KERNELS = ["0.6 x SE(lengthscale=60)", "0.4 x SE(lengthscale=15)"]
Z = [[1, 0], [1, 1], [0, 1]]
DRAWS = 40_000


def logs() -> pd.DataFrame:
    """The small table, which is taken for logarithms."""
    return 0.3 * small_table()


def discovery(transform: Transform, frame: pd.DataFrame) -> lkm.Discovery:
    """Two fits that disagree, of which the second is wider."""
    made = [
        made_by_hand(frame, KERNELS, rows, noise, transform)
        for rows, noise in ((Z, 0.05), ([[0, 1], [1, 0], [1, 0]], 0.2))
    ]
    members = tuple(Member(each.fit, w) for each, w in zip(made, (0.7, 0.3), strict=True))
    return replace(made[0], averaging="stacked", stacked=members)


@pytest.fixture(scope="module")
def found() -> lkm.Discovery:
    return discovery("log", np.exp(logs()))


@pytest.fixture(scope="module")
def plain() -> lkm.Discovery:
    """The same of the logarithms themselves, with variances as they are told."""
    found = discovery("none", logs())
    found.ensemble.__dict__["variance_factors"] = lambda x: np.ones((len(x), 3))
    return found


def test_quantiles_are_those_of_the_logarithm(found: lkm.Discovery, plain: lkm.Discovery) -> None:
    told, of_logs = found.forecast(5), plain.forecast(5)
    normal = norm(of_logs["mean"], of_logs["sd"])
    for column, q in {"lower": 0.05, "upper": 0.95}.items():
        np.testing.assert_allclose(told[column], np.exp(normal.ppf(q)))
    quantiles = found.quantiles(5, [0.1, 0.5, 0.75])
    for q in (0.1, 0.5, 0.75):
        np.testing.assert_allclose(quantiles[q], np.exp(normal.ppf(q)))
    several = found.forecast(5, [0.5, 0.9], quantiles=[0.5])
    np.testing.assert_allclose(several["upper50"], quantiles[0.75])
    np.testing.assert_allclose(several["q0.5"], np.exp(of_logs["mean"]))
    modelled = found.predict_modelled(found.times(5))
    np.testing.assert_allclose(modelled[["mean", "sd"]], of_logs[["mean", "sd"]])
    assert np.isinf(modelled["degrees"]).all()


def test_paths_are_exponentials_with_the_moments_told(
    found: lkm.Discovery, plain: lkm.Discovery
) -> None:
    alone, of_logs = (replace(each, averaging="none") for each in (found, plain))
    np.testing.assert_allclose(alone.samples(4, 5), np.exp(of_logs.samples(4, 5)))
    paths, told = found.samples(4, DRAWS), found.forecast(4)
    error = paths.std(axis=1) / np.sqrt(DRAWS)
    assert np.all(np.abs(paths.mean(axis=1) - told["mean"]) < 4.5 * error)
    squares = np.square(paths.sub(paths.mean(axis=1), axis=0))
    error = squares.std(axis=1) / np.sqrt(DRAWS)
    assert np.all(np.abs(squares.mean(axis=1) - told["sd"] ** 2) < 4.5 * error)
    assert np.all(found.quantiles(4, [0.5])[0.5] < told["mean"])


def test_sums_of_series_some_of_them_logarithmic() -> None:
    """Mean, sd and interval against paths, whose series are independent given a fit, too."""
    frame = logs().assign(a=lambda each: np.exp(each["a"]))
    found = discovery({"a": "log"}, frame)
    weights = {"a": 2.0, "c": -0.5}
    told = found.aggregate(3, weights, 0.8)
    paths = found.samples(3, DRAWS, seed=1)
    sums: np.ndarray = sum(w * paths.loc[name].to_numpy() for name, w in weights.items())
    error = sums.std(axis=1) / np.sqrt(DRAWS)
    assert found.aggregate(frame.index[:0], weights).shape == (0, 4)
    assert np.all(np.abs(sums.mean(axis=1) - told["mean"]) < 4.5 * error)
    np.testing.assert_allclose(sums.std(axis=1), told["sd"], rtol=0.03)
    for column, q in (("lower", 0.1), ("upper", 0.9)):
        below = np.mean(sums < told[column].to_numpy()[:, None], axis=1)
        assert np.all(np.abs(below - q) < 0.01)


def test_a_series_beyond_all_numbers_does_not_spoil_the_sums_of_others() -> None:
    frame = logs().assign(a=lambda each: np.exp(each["a"]), b=lambda each: np.exp(100 * each["b"]))
    found = discovery({"a": "log", "b": "log"}, frame)
    assert not np.isfinite(found.forecast(3).loc["b", "sd"]).all()
    assert np.isfinite(found.aggregate(3, {"a": 2.0, "c": -0.5})).all(axis=None)


def test_components_are_percentages_that_multiply(plain: lkm.Discovery) -> None:
    one = made_by_hand(np.exp(logs()), KERNELS, Z, transform="log")
    other = made_by_hand(logs(), KERNELS, Z)
    parts, of_logs = one.components("b", 3, 0.8), other.components("b", 3, 0.8)
    rng, log_levels = np.random.default_rng(0), float(logs()["b"].mean())
    medians = np.ones(len(parts))
    for name in one.names:
        mean, sd = (of_logs[name, moment].to_numpy() for moment in ("mean", "sd"))
        drawn = 100.0 * np.expm1(mean + sd * rng.standard_normal((DRAWS, len(parts))))
        error = drawn.std(axis=0) / np.sqrt(DRAWS)
        assert np.all(np.abs(drawn.mean(axis=0) - parts[name, "mean"]) < 4.5 * error)
        np.testing.assert_allclose(drawn.std(axis=0), parts[name, "sd"], rtol=0.03)
        for end in ("lower", "upper"):
            expected = 100.0 * np.expm1(of_logs[name, end])
            np.testing.assert_allclose(parts[name, end], expected)
        medians *= np.exp(mean)
    level = np.exp(log_levels)
    told = one.ensemble.at(parts.index).quantile(0.5).reshape(3, -1)
    np.testing.assert_allclose(level * medians, told[1])


@pytest.mark.usefixtures("quick_fits")
def test_discover_and_learn_take_logarithms(tmp_path: Path) -> None:
    options = {"bases": ("LIN", "SE"), "depth": 0, "restarts": 1, "averaging": "none"}
    frame, ledger = np.exp(logs()), tmp_path / "ledger.jsonl"
    found = lkm.discover(frame, transform="log", ledger=ledger, progress=False, **options)
    plain = lkm.discover(logs(), progress=False, **options)
    assert found.kernels == plain.kernels
    np.testing.assert_allclose(found.forecast(4)["upper"], np.exp(plain.forecast(4)["upper"]))
    *_, last = lkm.discover_steps(frame, transform="log", ledger=ledger, progress=False, **options)
    assert last.bic == found.bic
    with pytest.raises(ValueError, match=r"differs in .*data"):
        lkm.discover(frame, ledger=ledger, progress=False, **options)
    learnt = [
        lkm.learn(each, ["SE"], transform=transform, restarts=1, progress=False).forecast(3)
        for each, transform in ((frame, "log"), (logs(), "none"))
    ]
    np.testing.assert_allclose(learnt[0]["lower"], np.exp(learnt[1]["lower"]))


def coupled_moments(told: pd.DataFrame, paths: pd.DataFrame, columns: Sequence[str]) -> None:
    for name in columns:
        own = paths.loc[name].to_numpy()
        error = own.std(axis=1) / np.sqrt(own.shape[1])
        assert np.all(np.abs(own.mean(axis=1) - told.loc[name, "mean"]) < 4.5 * error)
        np.testing.assert_allclose(own.std(axis=1), told.loc[name, "sd"], rtol=0.04)
        for column, q in (("lower", 0.05), ("upper", 0.95)):
            below = np.mean(own < told.loc[name, column].to_numpy()[:, None], axis=1)
            assert np.all(np.abs(below - q) < 0.015)


def test_coupled_series_are_told_in_units() -> None:
    """Forecasts, sums and what-if, of a table in which one series is modelled as it is."""
    frame = np.exp(logs()).assign(b=logs()["b"])
    coupled = made_by_hand(frame, KERNELS, Z, transform={"a": "log", "c": "log"}).couple()
    of_logs = made_by_hand(logs(), KERNELS, Z).couple()
    told, paths = coupled.forecast(3), coupled.samples(3, DRAWS)
    coupled_moments(told, paths, "abc")
    expected = of_logs.forecast(3)
    np.testing.assert_allclose(told.loc["c", "upper"], np.exp(expected.loc["c", "upper"]))
    np.testing.assert_allclose(told.loc["b"], expected.loc["b"])
    weights = {"a": 1.0, "b": 2.0}
    sums = paths.loc["a"].to_numpy() + 2.0 * paths.loc["b"].to_numpy()
    whole = coupled.aggregate(3, weights)
    np.testing.assert_allclose(whole["sd"], sums.std(axis=1), rtol=0.03)
    np.testing.assert_allclose(whole["upper"], np.quantile(sums, 0.95, axis=1), rtol=0.02)
    if_so = coupled.forecast(3, given={"a": 1.7})
    expected = of_logs.forecast(3, given={"a": float(np.log(1.7))})
    np.testing.assert_allclose(if_so["lower"].loc["c"], np.exp(expected["lower"].loc["c"]))
    np.testing.assert_allclose(if_so["mean"].loc["a"].iloc[-1], 1.7)
    with pytest.raises(ValueError, match=r"positive values of 'a', whose logarithm .* got -1 at"):
        coupled.forecast(3, given={"a": -1.0})


def test_by_default_each_series_is_asked() -> None:
    """The paper's learners model every series as it is."""
    steps = np.random.default_rng(0).normal(size=(120, 2))
    frame = pd.DataFrame({"Sales": np.exp(0.4 * steps[:, 0].cumsum()), "Mood": steps[:, 1]})
    small = {"bases": ["C", "RW"], "depth": 0, "restarts": 1, "progress": False}
    own = lkm.discover(frame, averaging="none", **small)
    assert own.table.transforms.names == ["log", "none"]
    assert "Sales is modelled on a log scale" in scale_note(own.table)
    papers = lkm.discover(
        frame, learner="relaxed", annealing=lkm.Annealing(num_steps=5, most_blocks=1), **small
    )
    assert papers.table.transforms.names == ["none", "none"]

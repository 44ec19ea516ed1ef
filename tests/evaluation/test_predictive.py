"""Scores of lognormal and Student-t forecasts by quadrature and SciPy, and where they are used."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.integrate import quad, trapezoid
from scipy.stats import lognorm, nbinom, norm, poisson
from scipy.stats import t as student_t
from small import small_table

import lkm_gpflow as lkm
from lkm_gpflow.comparators import Fitted
from lkm_gpflow.comparators.protocol import PROBABILITIES
from lkm_gpflow.evaluation.predictive import QUANTILES, Predictive, matrices


def lognormal(m: float, r: float) -> Predictive:
    told = lognorm(r, scale=np.exp(m))
    return Predictive(*(np.array([[x]]) for x in (told.mean(), told.std(), m, r, np.inf)))


@pytest.mark.parametrize(("m", "r"), [(0.0, 1.0), (1.5, 0.1), (-2.0, 0.6), (0.3, 1.8)])
@pytest.mark.parametrize("y", [0.4, 5.0, 1.0, -0.7])
def test_crps_by_quadrature(m: float, r: float, y: float) -> None:
    told = lognorm(r, scale=np.exp(m))
    top = max(10.0, float(told.ppf(1.0 - 1e-12)))
    inner = sorted({max(y, 0.0), float(told.median()), *told.ppf([0.01, 0.99])})
    edges = [0.0, *(x for x in inner if x > 0.0), top]
    parts = [
        quad(lambda x: (told.cdf(x) - (x >= y)) ** 2, a, b, limit=500)[0]
        for a, b in pairwise(edges)
    ]
    expected = sum(parts) + max(-y, 0.0)  # below zero F is 0
    assert lognormal(m, r).crps(np.array([[y]])).item() == pytest.approx(expected, rel=1e-5)


def test_crps_of_what_is_certain_is_the_absolute_error() -> None:
    value, y = np.array([2.0]), np.array([[-1.0], [0.0], [1.5], [2.0], [5.0]])
    zero, nothing = np.zeros(1), np.full(1, np.nan)
    for shape in (
        (np.log(value), zero, np.inf),
        (nothing, nothing, 6.0),
        (nothing, nothing, np.inf),
    ):
        certain = Predictive(value, zero, *map(np.asarray, shape))
        np.testing.assert_allclose(certain.crps(y), np.abs(y - value), atol=1e-12)
        assert np.isnan(certain.crps(np.array([np.nan]))).all()


def test_density_and_intervals() -> None:
    told = lognorm(0.6, scale=np.exp(-2.0))
    own, values = lognormal(-2.0, 0.6), [0.05, 0.3, 2.0]
    for y in values:
        cell = np.array([[y]])
        assert own.nlpd(cell).item() == pytest.approx(-told.logpdf(y))
        low, high = told.ppf([0.1, 0.9])
        assert own.inside(cell, 0.8).item() == (low <= y <= high)
    nothing = np.array([[0.0]])
    assert own.nlpd(nothing).item() == np.inf
    assert not own.inside(nothing, 0.99).item()
    assert np.isnan(own.crps(np.array([[np.nan]]))).item()


@pytest.mark.parametrize("degrees", [2.5, 4.0, 6.0, 130.0])
@pytest.mark.parametrize("y", [-3.0, 0.4, 9.0])
def test_student_t_by_quadrature(degrees: float, y: float) -> None:
    told = student_t(degrees, 0.7, 1.9)
    columns = {"mean": told.mean(), "sd": told.std(), "degrees": degrees}
    own = Predictive.of({name: np.array([value]) for name, value in columns.items()})
    inner = sorted([y, 0.7])
    edges = [-np.inf, *inner, np.inf]
    parts = [
        quad(lambda x: (told.cdf(x) - (x >= y)) ** 2, a, b, limit=500)[0]
        for a, b in pairwise(edges)
    ]
    assert own.crps(np.array([y])).item() == pytest.approx(sum(parts), rel=1e-5)
    assert own.nlpd(np.array([y])).item() == pytest.approx(-told.logpdf(y))
    for level in (0.5, 0.9):
        low, high = told.interval(level)
        assert own.inside(np.array([y]), level).item() == (low <= y <= high)
        edge = np.array([0.999, 1.001]) * (high - 0.7) + 0.7
        assert own.inside(edge, level).tolist() == [True, False]
    scaled = own.divided_by(np.array([4.0]))
    assert scaled.crps(np.array([y / 4.0])).item() == pytest.approx(sum(parts) / 4.0, rel=1e-5)


def test_matrices_go_by_the_index() -> None:
    times, series = pd.date_range("2000", periods=3), pd.Index(["b", "a"])
    index = pd.MultiIndex.from_product([series, times.as_unit("s")])
    told = pd.DataFrame({"mean": np.arange(6.0), "sd": 1.0, "log_sd": np.nan}, index)
    found = matrices(told.iloc[::-1], times, series)
    assert list(found) == ["mean", "sd", "log_sd"]
    np.testing.assert_array_equal(found["mean"], [[0.0, 3.0], [1.0, 4.0], [2.0, 5.0]])
    rest = matrices(told, times[1:], series[1:])  # more than what was asked for
    np.testing.assert_array_equal(rest["mean"], [[4.0], [5.0]])
    for wrong in (told.iloc[:-1], pd.concat([told, told.iloc[:1]]), told.droplevel(0)):
        with pytest.raises(ValueError, match="one row for each of 2 series and 3 times"):
            matrices(wrong, times, series)
    for bad in (np.nan, np.inf, 0.0):
        with pytest.raises(ValueError, match=rf"got mean 4.0 and sd {bad} of series 'a' at 2000-"):
            matrices(told.assign(sd=[1.0, 1.0, 1.0, 1.0, bad, 1.0]), times, series)


@dataclass(frozen=True)
class Known:
    """Says that a is lognormal and the others normal, whatever it is given."""

    def fit(self, train: pd.DataFrame, *, seed: int) -> Fitted:
        return self  # type: ignore[return-value]

    def forecast(self, times: pd.Index) -> pd.DataFrame:
        index = pd.MultiIndex.from_product([["a", "b", "c"], times], names=["series", "time"])
        told = pd.DataFrame({"mean": 1.0, "sd": 2.0, "log_mean": np.nan, "log_sd": np.nan}, index)
        a = lognorm(0.4, scale=np.exp(0.1))
        told.loc["a"] = [a.mean(), a.std(), 0.1, 0.4]
        return told


def test_backtests_score_lognormal_forecasts_as_such(tmp_path: Path) -> None:
    frame = small_table().assign(a=lambda each: np.exp(each["a"]))
    options = {"horizon": 4, "folds": 2, "progress": False, "journal": tmp_path / "b.jsonl"}
    result = lkm.backtest(frame, Known(), **options)
    again = lkm.backtest(frame, Known(), **options)
    pd.testing.assert_frame_equal(again.forecasts, result.forecasts)
    past, future = frame.iloc[:36], frame.iloc[36:]
    scale = past.std(ddof=0)
    a = lognorm(0.4, scale=np.exp(0.1) / scale["a"])
    rest = [norm(1.0 / scale[name], 2.0 / scale[name]) for name in "bc"]
    y = [(future[name] / scale[name]).to_numpy() for name in "abc"]
    densities = [told.logpdf(each) for told, each in zip([a, *rest], y, strict=True)]
    row = result.scores.loc[36]
    assert row["mnlp"] == pytest.approx(-np.mean(densities))
    crps = []
    for told, each in zip([a, *rest], y, strict=True):
        grid = np.linspace(*told.ppf([1e-9, 1.0 - 1e-9]), 400_001)
        crps += [trapezoid((told.cdf(grid) - (grid >= value)) ** 2, grid) for value in each]
    assert row["crps"] == pytest.approx(np.mean(crps), abs=1e-3)
    inside = [
        (told.ppf(0.1) <= each) & (each <= told.ppf(0.9))
        for told, each in zip([a, *rest], y, strict=True)
    ]
    assert row["coverage80"] == pytest.approx(np.mean(inside))


def test_our_model_of_logarithms_is_a_comparator(quick_fits: None) -> None:
    frame = np.exp(0.3 * small_table())
    quick = {"bases": ("LIN", "SE"), "depth": 0, "restarts": 1, "averaging": "none"}
    method = lkm.comparators.comparator("lkm", transform="log", **quick)
    told = method.fit(frame.iloc[:36], seed=0).forecast(frame.index[36:])
    found = lkm.discover(frame.iloc[:36], transform="log", progress=False, **quick)
    expected = found.forecast(4)
    np.testing.assert_allclose(told["mean"], expected["mean"])
    medians = found.quantiles(4, [0.5])[0.5]
    np.testing.assert_allclose(np.exp(told["log_mean"]), medians)
    # Scales of series are integrated out: Student-t of 40 degrees of freedom, of the same variance.
    half = student_t.ppf(0.95, 40.0) * np.sqrt(38.0 / 40.0) * told["log_sd"]
    np.testing.assert_allclose(
        np.exp(told["log_mean"] + half).drop("c"), expected["upper"].drop("c")
    )
    result = lkm.backtest(frame, method, 4, 1, progress=False)
    assert np.isfinite(result.scores.loc[36, ["crps", "mnlp"]]).all()
    some = lkm.comparators.comparator("lkm", transform={"b": "log"}, **quick)
    part = some.fit(frame.iloc[:36], seed=0).forecast(frame.index[36:])
    assert part["log_sd"].notna().groupby(level="series").all().to_dict() == {
        "a": False, "b": True, "c": False,
    }  # fmt: skip


@pytest.mark.parametrize("law", [poisson(0.3), poisson(3.0), poisson(50.0), nbinom(0.5, 0.1)])
def test_counts_by_brute_force(law: Any) -> None:
    """A forecast by quantiles: sums over whole numbers, and coverage of values that are drawn."""
    columns = {"mean": law.mean(), "sd": law.std()}
    columns |= {name: law.ppf(p) for name, p in zip(QUANTILES, PROBABILITIES, strict=True)}
    own = Predictive.of({name: np.full(4000, value) for name, value in columns.items()})
    y = law.rvs(4000, random_state=np.random.default_rng(0)).astype(float)
    every = np.arange(0.0, 400.0)
    crps = np.square(law.cdf(every) - (every >= y[:, None])).sum(axis=1)
    assert own.crps(y).mean() == pytest.approx(crps.mean(), rel=2e-3)
    np.testing.assert_allclose(own.crps(y), crps, atol=0.1 * crps.mean())
    assert own.divided_by(np.array(4.0)).crps(y / 4.0).sum() == pytest.approx(own.crps(y).sum() / 4)
    for level in (0.5, 0.8, 0.9, 0.95):
        assert own.inside(y, level).mean() == pytest.approx(level, abs=0.02)


def test_a_discovery_of_counts_is_scored_by_its_quantiles(quick_fits: None) -> None:
    rates = np.exp(small_table()[["a", "b"]] - 0.5)
    frame = pd.DataFrame(np.random.default_rng(0).poisson(rates), rates.index, ["a", "b"]) * 1.0
    frame["c"] = small_table()["a"]
    quick = {"bases": ("LIN", "SE"), "depth": 0, "restarts": 1, "averaging": "none"}
    method = lkm.comparators.comparator("lkm", **quick)
    with pytest.warns(UserWarning, match="a and b are taken as counts"):
        result = lkm.backtest(frame, method, 4, 1, progress=False)
    with pytest.warns(UserWarning, match="a and b are taken as counts"):
        found = lkm.discover(frame.iloc[:36], progress=False, **quick)
    told = result.forecasts.loc[36]
    expected = found.forecast(4, quantiles=PROBABILITIES)[[*QUANTILES]]
    pd.testing.assert_frame_equal(told.loc[["a", "b"], [*QUANTILES]], expected.loc[["a", "b"]])
    assert told.loc["c", [*QUANTILES]].isna().all(axis=None)
    assert np.isfinite(result.scores.loc[36, ["crps", "mnlp"]]).all()

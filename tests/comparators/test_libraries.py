"""Methods of other libraries: what they are given, and what is made of their answers."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from types import ModuleType

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm
from small import small_table

import lkm_gpflow as lkm
from lkm_gpflow.comparators import Comparator, comparator
from lkm_gpflow.comparators.libraries import AutoARIMA, AutoETS, AutoTheta
from lkm_gpflow.data.tables import Table

needs_library = pytest.mark.skipif(
    find_spec("statsforecast") is None,
    reason="needs statsforecast, pip install '.[comparators]'",
)


def steps_after(frame: pd.DataFrame, steps: int) -> pd.Index:
    return Table.of(frame).axis.after(frame.index[-1], steps)


def forecast(method: Comparator, frame: pd.DataFrame, steps: int) -> pd.DataFrame:
    return method.fit(frame, seed=0).forecast(steps_after(frame, steps))


def wide(forecasts: pd.DataFrame, column: str) -> np.ndarray:
    """One column of a forecast, [M, N]."""
    N = forecasts.index.get_level_values("series").nunique()
    return forecasts[column].to_numpy().reshape(N, -1).T


# --- What the library is given -------------------------------------------------------------------


class Spy(ModuleType):
    """In the place of statsforecast.models: remembers what it is given, forecasts 0, 1, 2, ..."""

    def __init__(self) -> None:
        super().__init__("statsforecast.models")
        self.given: list[tuple[int, np.ndarray]] = []

    def AutoARIMA(self, season_length: int) -> Spy:
        self.season = season_length
        return self

    def fit(self, y: np.ndarray) -> Spy:
        self.given.append((self.season, y))
        return self

    def predict(self, h: int, level: list[int]) -> dict[str, np.ndarray]:
        steps, quantile = np.arange(h, dtype=float), norm.ppf(0.5 + level[0] / 200)
        return {
            "mean": steps,
            f"lo-{level[0]}": steps - quantile * (steps + 1.0),
            f"hi-{level[0]}": steps + quantile * (steps + 1.0),
        }


@pytest.fixture
def spy(monkeypatch: pytest.MonkeyPatch) -> Spy:
    module = Spy()
    monkeypatch.setitem(sys.modules, "statsforecast", ModuleType("statsforecast"))
    monkeypatch.setitem(sys.modules, "statsforecast.models", module)
    return module


def test_gaps_are_interpolated_in_time(spy: Spy) -> None:
    values = [2.0, 1.0, np.nan, np.nan, 4.0, 3.0, 5.0, 1.0, 2.0]
    frame = pd.DataFrame({"a": values}, index=[0.0, 1.0, 2.0, 5.0, 11.0, 12.0, 13.0, 14.0, 15.0])
    AutoARIMA().fit(frame, seed=0)
    ((_, y),) = spy.given
    in_units = np.nanmean(values) + np.nanstd(values) * y
    np.testing.assert_allclose(in_units[1:5], [1.0, 1.3, 2.2, 4.0], atol=1e-5)


def test_nothing_is_invented_at_the_ends(spy: Spy) -> None:
    """Late starts are cut off; early ends are forecast for so many steps more."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(20, 3)), columns=["whole", "late", "early"])
    frame.loc[:4, "late"] = np.nan
    frame.loc[17:, "early"] = np.nan
    fitted = AutoARIMA().fit(frame, seed=0)
    assert [len(y) for _, y in spy.given] == [20, 15, 17]
    forecasts = fitted.forecast(pd.Index([20.0, 21.0]))
    table = Table.of(frame)
    means = (wide(forecasts, "mean") - table.location) / table.scale
    sds = wide(forecasts, "sd") / table.scale
    np.testing.assert_allclose(means, [[0.0, 0.0, 3.0], [1.0, 1.0, 4.0]], atol=1e-12)
    np.testing.assert_allclose(sds, [[1.0, 1.0, 4.0], [2.0, 2.0, 5.0]])


@pytest.mark.parametrize(
    ("frequency", "rows", "season"),
    [("MS", 36, 12), ("MS", 35, 1), ("B", 15, 5), ("D", 40, 7), ("W", 200, 1), ("QS", 40, 4)],
)
def test_seasons_are_short_and_were_seen_three_times(
    spy: Spy, frequency: str, rows: int, season: int
) -> None:
    index = pd.date_range("2001-01-01", periods=rows, freq=frequency)
    frame = pd.DataFrame({"a": np.random.default_rng(0).normal(size=rows)}, index=index)
    AutoARIMA().fit(frame, seed=0)
    AutoARIMA(season=6).fit(frame, seed=0)
    assert [given for given, _ in spy.given] == [season, 6]


def test_a_short_series_is_refused(spy: Spy) -> None:
    short = small_table()
    short.iloc[6:, 0] = np.nan
    with pytest.raises(ValueError, match=r"'a': expected at least 7 rows .*, got 6"):
        AutoARIMA().fit(short, seed=0)


# --- The library is optional ---------------------------------------------------------------------


@pytest.mark.parametrize("method", [AutoARIMA, AutoETS, AutoTheta])
def test_absent_library(method: type[Comparator], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "statsforecast", None)
    monkeypatch.setitem(sys.modules, "statsforecast.models", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install '\.\[comparators\]'"):
        method().fit(small_table(), seed=0)


# --- What is made of its answers -----------------------------------------------------------------


@needs_library
@pytest.mark.parametrize(
    ("ours", "name"),
    [
        ("auto-arima", "AutoARIMA"),
        ("auto-ets", "AutoETS"),
        ("statsforecast:HistoricAverage", "HistoricAverage"),
    ],
)
@pytest.mark.parametrize("level", [50, 99])
def test_sd_agrees_with_intervals_of_another_level(ours: str, name: str, level: int) -> None:
    """Mean plus or minus the quantile times our sd is the library's interval: it is normal."""
    from statsforecast import models

    walk = np.cumsum(np.random.default_rng(3).normal(size=90)) + 0.3 * np.arange(90)
    found = forecast(comparator(ours), pd.DataFrame({"a": walk}), 8)
    theirs = (
        getattr(models, name)().fit((walk - walk.mean()) / walk.std()).predict(8, level=[level])
    )
    quantile = norm.ppf(0.5 + level / 200)
    for side, sign in (("lo", -1.0), ("hi", 1.0)):
        bound = walk.mean() + walk.std() * np.asarray(theirs[f"{side}-{level}"])
        np.testing.assert_allclose(found["mean"] + sign * quantile * found["sd"], bound, rtol=1e-4)


@needs_library
def test_seasonal_sd_grows_by_the_season() -> None:
    """y_t = s_{t-m} + e_t, s_t = s_{t-m} + gamma e_t: variance sigma^2 (1 + k gamma^2).

    k seasons have passed.  The library's own intervals have the last step's k at every step.
    """
    gamma, rng = 0.8, np.random.default_rng(5)
    errors = rng.normal(size=(160, 12))
    season = np.vstack([5.0 * rng.normal(size=(4, 12)), np.zeros((160, 12))])
    y = np.empty((160, 12))
    for t in range(160):
        y[t] = season[t] + errors[t]
        season[t + 4] = season[t] + gamma * errors[t]
    index = pd.date_range("1980-01-01", periods=160, freq="QS")
    sd = np.median(wide(forecast(AutoETS(), pd.DataFrame(y, index=index), 12), "sd"), axis=1)
    expected = np.sqrt(1.0 + np.repeat([0.0, 1.0, 2.0], 4) * gamma**2)
    np.testing.assert_allclose(sd, expected, rtol=0.1)


@needs_library
def test_theta_agrees_with_the_paths_of_the_library() -> None:
    """20,000 paths, in which the trend is updated with what happens; the library draws 200."""
    from statsforecast import models
    from statsforecast.theta import compute_pi_samples

    walk = np.cumsum(np.random.default_rng(6).normal(size=(200, 6)), axis=0)
    ours = wide(forecast(AutoTheta(), pd.DataFrame(walk), 10), "sd")
    for n in range(6):
        y = walk[:, n]
        fitted = models.AutoTheta().fit((y - y.mean()) / y.std()).model_
        paths = compute_pi_samples(
            n=200,
            h=10,
            states=fitted["states"],
            sigma=np.std(fitted["residuals"][3:], ddof=1),
            alpha=fitted["par"]["alpha"],
            theta=fitted["par"]["theta"],
            mean_y=fitted["mean_y"],
            n_samples=20_000,
        )
        np.testing.assert_allclose(ours[:, n] / y.std(), paths.std(axis=1), rtol=0.02)


# --- Any method of two libraries ------------------------------------------------------------------

needs_both = pytest.mark.skipif(
    find_spec("sktime") is None or find_spec("statsforecast") is None,
    reason="needs sktime and statsforecast",
)

TIMES = pd.date_range("2021-10-10", periods=4, freq="W")


@needs_both
def test_a_vector_autoregression_of_sktime_is_that_of_statsmodels() -> None:
    from statsmodels.tsa.api import VAR

    train = small_table()[["a", "b"]]
    ours = comparator("sktime:VAR", maxlags=2).fit(train, seed=0).forecast(TIMES)
    scaled = (train - train.mean()) / train.std(ddof=0)
    fitted = VAR(scaled.to_numpy()).fit(maxlags=2)
    mean, lower, upper = fitted.forecast_interval(scaled.to_numpy()[-2:], 4, alpha=0.1)
    location, scale = train.mean().to_numpy(), train.std(ddof=0).to_numpy()
    np.testing.assert_allclose(
        ours["mean"].to_numpy().reshape(2, 4).T, location + scale * mean, rtol=1e-6
    )
    sd = scale * (upper - lower) / (2.0 * 1.6448536269514722)
    np.testing.assert_allclose(ours["sd"].to_numpy().reshape(2, 4).T, sd, rtol=1e-6)


@needs_both
@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("sktime:VAT", r"forecaster of sktime .*, got 'VAT'; did you mean .*'VAR'"),
        ("sktime:Croston", "expected a forecaster with variances, sktime's Croston gives means"),
        ("statsforecast:AutoCE", "got 'AutoCE'; did you mean 'AutoCES'"),
        ("darts:TCN", r"expected a comparator among .*, or sktime:METHOD or statsforecast:METHOD"),
    ],
)
def test_what_there_is_not(name: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        lkm.backtest(small_table(), name, 3)

"""Forecasts that average over fits are Student-t, whoever asks: intervals, paths, comparators."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
from scipy.stats import kstest, norm
from scipy.stats import t as student_t
from small import made_by_hand, small_table

import lkm_gpflow as lkm
from lkm_gpflow.comparators.latent import DiscoveryForecast
from lkm_gpflow.data.transforms import Transform
from lkm_gpflow.forecast.forecasters import FORECAST_VARIANCE, Member
from lkm_gpflow.gp.types import Floats

KERNELS = ["0.6 x SE(lengthscale=60)", "0.4 x LIN(location=10)"]


def averaged(transform: Transform = "none") -> lkm.Discovery:
    frame = small_table().assign(a=lambda each: np.exp(each["a"]))
    made = made_by_hand(frame, KERNELS, [[1, 0], [1, 1], [0, 1]], 0.05, transform)
    return replace(made, averaging="stacked", stacked=(Member(made.fit, 1.0),))


def unit(told: pd.DataFrame, found: lkm.Discovery, times: pd.Index) -> Floats:
    """Half an interval in standard deviations."""
    modelled = found.predict_modelled(times)
    return np.asarray((told["upper"] - told["mean"]) / modelled["sd"])


def test_six_degrees_after_the_data_and_those_of_the_model_within() -> None:
    found = averaged()
    after, within = found.times(4), found.table.frame.index[8:12]
    heavy = student_t.ppf(0.95, 6.0) / student_t.std(6.0)
    np.testing.assert_allclose(unit(found.forecast(4), found, after), heavy)
    np.testing.assert_allclose(unit(found.predict(within), found, within), 1.6448536, rtol=1e-6)
    alone = replace(found, averaging="none")
    np.testing.assert_allclose(unit(alone.forecast(4), alone, after), 1.6448536, rtol=1e-6)
    ratio = found.forecast(4)["sd"] / alone.forecast(4)["sd"]
    np.testing.assert_allclose(ratio.loc[["b", "c"]] ** 2, FORECAST_VARIANCE)
    pd.testing.assert_series_equal(found.predict(within)["sd"], alone.predict(within)["sd"])
    total: dict[object, float] = {"b": 1.0, "c": 1.0}
    ratio = found.aggregate(4, total)["sd"] / alone.aggregate(4, total)["sd"]
    np.testing.assert_allclose(ratio**2, FORECAST_VARIANCE)


def test_paths_have_the_quantiles_told() -> None:
    found = averaged()
    paths = found.samples(3, 20_000, seed=3)
    told = found.predict_modelled(found.times(3))
    for draws, mean, sd in zip(paths.to_numpy(), told["mean"], told["sd"], strict=True):
        scale = sd / student_t.std(6.0)
        assert kstest(draws, student_t(6.0, mean, scale).cdf).pvalue > 1e-4
        assert kstest(draws, norm(mean, sd).cdf).pvalue < 1e-4


def test_logarithms_have_no_such_tails() -> None:
    found = averaged({"a": "log"})
    degrees = found.predict_modelled(found.times(3))["degrees"]
    assert np.isinf(degrees["a"]).all()
    alone = replace(found, averaging="none").forecast(3)
    pd.testing.assert_frame_equal(found.forecast(3).loc[["a"]], alone.loc[["a"]])
    assert (degrees[["b", "c"]] == 6.0).all()
    told = DiscoveryForecast(found).forecast(found.times(3))
    assert told["degrees"].isna().groupby(level="series").all().to_dict() == {
        "a": True, "b": False, "c": False,
    }  # fmt: skip


# --- paths ---

WAVES = ["0.6 x SE(lengthscale=60)", "0.4 x SE(lengthscale=15)"]


def by_hand(found: lkm.Discovery, times: pd.Index) -> tuple[np.ndarray, np.ndarray]:
    """Mean and covariance of new observations of series a, written out."""
    table = small_table()["a"]
    y = (table - table.mean()) / table.std(ddof=0)
    days = np.concatenate(
        [(i - table.index[0]) / pd.Timedelta(days=1) for i in (table.index, times)]
    )
    C = 0.6 * np.exp(-0.5 * np.square((days[:, None] - days) / 60.0))
    D = len(table)
    V = C[:D, :D] + 0.05 * np.eye(D)
    gain = np.linalg.solve(V, C[:D, D:]).T
    mean = gain @ y.to_numpy()
    covariance = C[D:, D:] - gain @ C[:D, D:] + 0.05 * np.eye(len(times))
    scale = table.std(ddof=0)
    return table.mean() + scale * mean, scale**2 * covariance


def test_paths_hold_together_over_time() -> None:
    found = made_by_hand(small_table(), WAVES[:1], [[1]] * 3)
    times = found.times(5)
    paths = found.samples(5, 20_000, seed=1)
    assert list(paths.index) == list(found.forecast(5).index)
    mean, covariance = by_hand(found, times)
    own = paths.loc["a"].to_numpy()
    error = np.sqrt(np.diag(covariance) / 20_000)
    assert np.all(np.abs(own.mean(axis=1) - mean) < 4.5 * error)
    variances = np.diag(covariance)
    errors = np.sqrt((np.outer(variances, variances) + covariance**2) / 20_000)
    assert np.all(np.abs(np.cov(own) - covariance) < 4.5 * errors)
    other = np.corrcoef(own[-1], paths.loc["b"].to_numpy()[-1])[0, 1]
    assert abs(other) < 4.5 / np.sqrt(20_000)
    pd.testing.assert_frame_equal(paths, found.samples(times, 20_000, seed=1))


def test_paths_are_as_wide_as_forecasts_where_scales_are_integrated_out() -> None:
    """Of few rows the mean scale is far from one, and belongs to the noise, too."""
    rng = np.random.default_rng(0)
    t = np.arange(10.0)
    frame = pd.DataFrame({c: 0.5 * np.sin(t) + 0.7 * rng.normal(size=10) for c in "ab"})
    found = lkm.learn(frame, ["SE"], likelihood="scaled", progress=False)
    np.testing.assert_allclose(
        found.samples(4, 40_000).std(axis=1), found.forecast(4)["sd"], rtol=0.03
    )

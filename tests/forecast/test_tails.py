"""Forecasts that average over fits are Student-t, whoever asks: intervals, paths, comparators."""

from __future__ import annotations

from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from scipy.stats import kstest, norm
from scipy.stats import t as student_t
from small import made_by_hand, small_table

import lkm_gpflow as lkm
from lkm_gpflow import plotting
from lkm_gpflow.comparators.latent import DiscoveryForecast
from lkm_gpflow.data.transforms import Transform
from lkm_gpflow.evaluation.predictive import Predictive
from lkm_gpflow.explain.holdout import hold_out_tail
from lkm_gpflow.forecast.averaging import Member
from lkm_gpflow.forecast.tails import FORECAST_DEGREES, FORECAST_VARIANCE
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


def test_intervals_of_90_percent_are_as_wide_as_without_tails() -> None:
    """The two constants belong together."""
    heavy = student_t.ppf(0.95, FORECAST_DEGREES) / student_t.std(FORECAST_DEGREES)
    assert heavy * np.sqrt(FORECAST_VARIANCE) == pytest.approx(norm.ppf(0.95), rel=1e-3)


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


def test_a_comparator_tells_what_the_discovery_does() -> None:
    found = averaged()
    forecast = found.forecast(3, 0.8)
    columns = DiscoveryForecast(found).forecast(found.times(3))
    told = Predictive.of({str(name): values.to_numpy() for name, values in columns.items()})
    for factor, inside in ((0.999, True), (1.001, False)):
        edge = forecast["mean"] + factor * (forecast["upper"] - forecast["mean"])
        assert (told.inside(edge.to_numpy(), 0.8) == inside).all()


def test_held_out_probabilities_are_those_of_forecasts() -> None:
    found = averaged()
    heavy = hold_out_tail(found).probabilities
    normal = hold_out_tail(replace(found, averaging="none")).probabilities
    scale = student_t.std(6.0)
    z = student_t.ppf(heavy, 6.0) / scale * np.sqrt(FORECAST_VARIANCE)
    np.testing.assert_allclose(norm.ppf(normal), z, rtol=1e-6)
    assert not np.allclose(heavy, normal, equal_nan=True)


@pytest.mark.parametrize("level", [0.5, 0.99])
def test_other_levels(level: float) -> None:
    found = averaged()
    told = found.forecast(2, level)
    expected = student_t.ppf(0.5 + 0.5 * level, 6.0) / student_t.std(6.0)
    np.testing.assert_allclose(unit(told, found, found.times(2)), expected)


def test_the_picture_of_all_series_has_the_same_intervals() -> None:
    """Ends of bands, in rows, against the intervals told; all of a row have one scale."""
    found = averaged()
    column = plotting.plot_decomposition(found, 4)[0]
    times = found.table.frame.index.append(found.times(4))
    told = found.predict(times)
    for n, name in enumerate(found.table.frame.columns):
        (path,) = column.collections[n].get_paths()
        ends = pd.Series(path.vertices[:, 1]).groupby(path.vertices[:, 0])
        drawn = (ends.max() - ends.min()).to_numpy()
        expected = (told["upper"] - told["lower"])[name].to_numpy()
        np.testing.assert_allclose(drawn / drawn[0], expected / expected[0], rtol=1e-6)
    plt.close("all")

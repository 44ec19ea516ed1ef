"""Intervals, sample paths and xarray, against the model written out in NumPy."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.stats import norm
from small import made_by_hand, small_table

import lkm_gpflow as lkm

KERNELS = ["0.6 x SE(lengthscale=60)", "0.4 x SE(lengthscale=15)"]


@pytest.fixture(scope="module")
def found() -> lkm.Discovery:
    return made_by_hand(small_table(), KERNELS, [[1, 0], [1, 1], [0, 1]])


def test_several_levels_and_quantiles(found: lkm.Discovery) -> None:
    table = found.forecast(4, [0.5, 0.9], quantiles=[0.05, 0.5, 0.75])
    assert list(table.columns) == [
        "mean", "sd", "lower50", "upper50", "lower90", "upper90", "q0.05", "q0.5", "q0.75",
    ]  # fmt: skip
    told = norm(table["mean"], table["sd"])
    for column, q in {"lower50": 0.25, "upper50": 0.75, "lower90": 0.05, "q0.5": 0.5}.items():
        np.testing.assert_allclose(table[column], told.ppf(q))
    np.testing.assert_allclose(table["q0.05"], table["lower90"])
    np.testing.assert_allclose(table["q0.75"], table["upper50"])
    one = found.forecast(4, 0.9)
    np.testing.assert_allclose(one["upper"], table["upper90"])
    assert list(found.forecast(4, quantiles=[0.1]).columns)[-1] == "q0.1"
    with pytest.raises(ValueError, match=r"quantiles between 0 and 1, got 1\.5"):
        found.forecast(4, quantiles=[1.5])
    with pytest.raises(ValueError, match="a level between 0 and 1, got 2"):
        found.forecast(4, [0.5, 2])


def test_long_format(found: lkm.Discovery) -> None:
    long = lkm.to_long(found.forecast(3))
    assert list(long.columns) == ["unique_id", "ds", "mean", "sd", "lower", "upper"]
    assert list(long["unique_id"].unique()) == ["a", "b", "c"]


def test_xarray_and_netcdf(found: lkm.Discovery, tmp_path: Path) -> None:
    xarray = pytest.importorskip("xarray")
    pytest.importorskip("h5netcdf")
    found.to_xarray(4, [0.5, 0.9], samples=7, seed=3).to_netcdf(tmp_path / "found.nc")
    with xarray.open_dataset(tmp_path / "found.nc") as data:
        forecast = found.forecast(4, [0.5, 0.9])
        for variable, column in (("forecast_mean", "mean"), ("forecast_sd", "sd")):
            ours = data[variable].stack(row=("series", "ahead")).to_pandas()
            np.testing.assert_allclose(ours, forecast[column])
        upper = data["interval"].sel(level=0.5, side="upper", series="c")
        np.testing.assert_allclose(upper, forecast.loc["c", "upper50"])
        assert list(upper["ahead"].to_index()) == list(found.times(4))
        np.testing.assert_allclose(data["probability"].to_pandas(), found.probabilities)
        np.testing.assert_array_equal(data["structure"].to_pandas(), found.structure)
        parts = found.components("b", 4)
        for name in found.names:
            np.testing.assert_allclose(
                data["component_mean"].sel(series="b", component=name), parts[name, "mean"]
            )
            np.testing.assert_allclose(
                data["component_sd"].sel(series="b", component=name), parts[name, "sd"]
            )
        paths = found.samples(4, 7, seed=3).loc["a"]
        np.testing.assert_allclose(data["sample"].sel(series="a").transpose("ahead", "draw"), paths)
        assert lkm.parse(str(data["kernel"].values[0])).structure == found.kernels[0].structure
        observed = data["observed"].to_pandas().T
        np.testing.assert_array_equal(observed, small_table())


def test_times_of_a_zone_are_written_in_utc(tmp_path: Path) -> None:
    xarray = pytest.importorskip("xarray")
    pytest.importorskip("h5netcdf")
    table = small_table().tz_localize("Europe/Berlin")
    found = made_by_hand(table, KERNELS[:1], [[1]] * 3)
    found.to_xarray(2).to_netcdf(tmp_path / "found.nc")
    with xarray.open_dataset(tmp_path / "found.nc") as data:
        assert data.attrs["time_zone"] == "Europe/Berlin"
        for name, times in {"time": table.index, "ahead": found.times(2)}.items():
            again = data[name].to_index().tz_localize("UTC").tz_convert(data.attrs["time_zone"])
            assert list(again) == list(times)
        assert data.sizes["all_times"] == 42

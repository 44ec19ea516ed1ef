"""Counts, shares, yes or no and outliers, from a table to forecasts, reports and files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gpflow
import numpy as np
import pandas as pd
import pytest

from lkm_gpflow.discovery.discover import discover
from lkm_gpflow.discovery.keywords import DiscoverSettings
from lkm_gpflow.discovery.result import Discovery, load
from lkm_gpflow.gp.likelihoods import Binomial, Poisson, Share, Student
from lkm_gpflow.model.lkm import LKM

QUICK: dict[str, Any] = {
    "bases": ("C", "PER", "RW"), "depth": 0, "restarts": 1, "progress": False,
    "averaging": "tempered",
}  # fmt: skip
OUTLIER = pd.Timestamp("2022-02-12")


def frame() -> pd.DataFrame:
    """A weekly cycle in each of four series; visits have a gap, temp has an outlier."""
    rng, t = np.random.default_rng(0), np.arange(70)
    wave, index = np.sin(2.0 * np.pi * t / 7.0), pd.date_range("2022-01-03", periods=70)
    odds = np.exp(2.0 + wave)
    values = {
        "visits": rng.poisson(np.exp(0.7 + 0.7 * wave)).astype(float),
        "open": (rng.random(70) < np.exp(1.5 * wave + 1.0) / (1.0 + np.exp(1.5 * wave + 1.0)))
        * 1.0,
        "full %": np.round(100.0 * rng.beta(30.0 * odds / (1.0 + odds), 30.0 / (1.0 + odds)), 1),
        "temp": 10.0 + 3.0 * wave + rng.normal(size=70),
    }
    table = pd.DataFrame(values, index)
    table.iloc[10:13, 0] = np.nan
    table.iloc[5:7, 2] = 100.0
    table.loc[OUTLIER, "temp"] = 300.0
    return table


@pytest.fixture(scope="module")
def found() -> Discovery:
    with pytest.warns(UserWarning, match="taken as") as warned:
        discovery = discover(frame(), **QUICK)
    said = " ".join(str(each.message) for each in warned)
    assert "visits is taken as counts" in said
    assert "full % is taken as shares" in said
    return discovery


def test_values_choose_and_forecasts_stay_among_values(found: Discovery) -> None:
    kinds = found.table.kinds
    assert [type(kind) for kind in kinds.values()] == [Poisson, Binomial, Share, Student]
    told = found.forecast(14, quantiles=[0.5])
    columns = ["lower", "upper", "q0.5"]
    whole = told.loc[["visits", "open"], columns].to_numpy()
    np.testing.assert_array_equal(whole, np.round(whole))
    assert told.loc["visits", "lower"].min() >= 0.0
    assert set(np.unique(told.loc["open", columns])) <= {0.0, 1.0}
    assert told.loc["full %", columns].to_numpy().max() <= 100.0
    assert told.loc["temp", "sd"].max() < 3.0  # and not that of an outlier
    paths = found.samples(14, 50)
    assert set(np.unique(paths.loc["open"])) == {0.0, 1.0}
    assert paths.loc["full %"].to_numpy().max() <= 100.0
    total = found.aggregate(3, {"visits": 1.0, "open": 1.0})
    expected = sum(found.forecast(3)["mean"].loc[name].to_numpy() for name in ("visits", "open"))
    np.testing.assert_allclose(total["mean"], expected, rtol=0.03)


def test_report_and_suspicious_values_say_it(found: Discovery) -> None:
    text = found.report(7).text
    assert "visits is modelled as counts" in text
    assert "1-week cycle" in text
    assert list(found.suspicious["time"]) == [OUTLIER]
    height = found.components("visits")["PER", "mean"] if "PER" in found.names else None
    assert height is None or -100.0 < height.min() < 0.0 < height.max() < 400.0


def test_a_file_keeps_the_sites(found: Discovery, tmp_path: Path) -> None:
    found.save(tmp_path / "a.lkm")
    again = load(tmp_path / "a.lkm")
    assert again.table.kinds == found.table.kinds
    pd.testing.assert_frame_equal(again.forecast(5), found.forecast(5))
    some = again.select(["temp", "visits"])
    pd.testing.assert_frame_equal(some.forecast(5), found.forecast(5).loc[["temp", "visits"]])


def test_what_cannot_take_them_says_so(found: Discovery) -> None:
    for asked in (found.couple, lambda: found.model):
        with pytest.raises(ValueError, match="expected series with Gaussian noise"):
            asked()


@pytest.mark.parametrize("likelihood", ["scaled", "gaussian"])
def test_plain_likelihoods_choose_nothing(likelihood: Any) -> None:
    assert DiscoverSettings(likelihood=likelihood).points == "none"


def test_wrong_likelihoods_are_refused() -> None:
    for likelihood, text in [
        ("poison", "expected one of"),
        ({"visit": "poisson"}, "did you mean"),
        ({"temp": "poisson"}, "series 'temp': expected whole numbers"),
    ]:
        with pytest.raises(ValueError, match=text):
            discover(frame(), likelihood=likelihood, **QUICK)
    with pytest.raises(ValueError, match="has the likelihood"):
        discover(frame(), likelihood={"full %": "share"}, transform={"full %": "log"}, **QUICK)

    class Own(LKM):
        pass

    for keywords in ({"learner": "relaxed"}, {"model": Own}):
        with pytest.raises(ValueError, match="expected likelihood 'gaussian'"):
            DiscoverSettings(likelihood="poisson", **keywords)
        assert DiscoverSettings(**keywords).points == "none"


def test_a_likelihood_of_gpflow(tmp_path: Path) -> None:
    table = frame()[["visits", "temp"]]
    ours, theirs = (
        discover(table, likelihood={"visits": each}, **QUICK)
        for each in ("poisson", gpflow.likelihoods.Poisson())
    )
    expected = ours.forecast(5).loc["visits"]
    pd.testing.assert_frame_equal(theirs.forecast(5).loc["visits"], expected, rtol=0.02)
    with pytest.raises(ValueError, match="no file keeps it"):
        theirs.save(tmp_path / "a.lkm")

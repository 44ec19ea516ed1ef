"""Long series: thinned for the search, learnt on all times; limits that say what to do instead."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from small import made_by_hand

import lkm_gpflow as lkm
from lkm_gpflow.data.observations import Observations
from lkm_gpflow.explain.residuals import whitened
from lkm_gpflow.fit.fits import FitSettings
from lkm_gpflow.gp import limits
from lkm_gpflow.search.settings import check_size


def long_table(num_times: int = 300, seed: int = 0) -> pd.DataFrame:
    """Three daily series: a and b share a period of 25 days, b and c a line."""
    rng = np.random.default_rng(seed)
    t = np.arange(num_times)
    wave, line = np.sin(2.0 * np.pi * t / 25.0), np.linspace(-2.0, 2.0, num_times)
    values = np.column_stack([wave, wave + line, line]) + 0.2 * rng.normal(size=(num_times, 3))
    values[20:40, 1] = np.nan
    index = pd.date_range("2020-01-01", periods=num_times, freq="D")
    return pd.DataFrame(values, index=index, columns=["a", "b", "c"])


# --- thin ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("num_times", "count"), [(20_000, 300), (1_000, 100), (301, 300), (60, 30), (10, 3)]
)
def test_thinned_rows_lie_at_distances_of_all_sizes(num_times: int, count: int) -> None:
    frame = pd.DataFrame({"a": np.arange(num_times)})
    rows = lkm.thin(frame, count)["a"].to_numpy()
    assert len(rows) == count
    assert np.all(np.diff(rows) > 0)
    assert (rows[0], rows[-1]) == (0, num_times - 1)
    distances = np.diff(rows)
    if num_times == 20_000:
        assert distances.min() == 1
        assert np.mean(distances < 8) > 0.2
        assert np.mean(distances > 100) > 0.15
    assert lkm.thin(frame, count).equals(lkm.thin(frame, count))
    assert num_times < 1_000 or not lkm.thin(frame, count).equals(lkm.thin(frame, count, seed=1))


# --- learnt on all rows --------------------------------------------------------------------------


def test_components_are_learnt_on_all_times() -> None:
    """From a thinned table with a wrong period, an idle component, and missing points."""
    frame = long_table()
    texts = ["1.0 x PER(period=24.8, lengthscale=1.5)", "1e-4 x LIN(location=100)"]
    found = made_by_hand(
        lkm.thin(frame, 60), [*texts, "0.1 x SE(lengthscale=3)"],
        [[1, 0, 0], [1, 1, 0], [0, 1, 0]],
    )  # fmt: skip
    learnt = found.update(frame, progress=False)
    period = next(k for k in learnt.kernels if str(k.structure) == "PER").factors[0].values[0]
    assert period == pytest.approx(25.0, abs=0.02)
    structure = learnt.structure[["PER", "LIN"]]
    assert structure.to_numpy().tolist() == [[1, 0], [1, 1], [0, 1]]
    noise = np.sqrt(learnt.fit.noise_variance) * learnt.table.scale
    np.testing.assert_allclose(noise, 0.2, rtol=0.15)


# --- limits --------------------------------------------------------------------------------------


def test_a_search_on_too_many_times_is_refused_before_it_begins() -> None:
    frame = pd.DataFrame({"a": np.random.default_rng(0).normal(size=20_000)})
    with pytest.raises(ValueError, match=r"at most 10000 times, 4000 unless.*got 20000.*thin"):
        lkm.discover(frame, progress=False)


def test_a_search_that_takes_hours_warns_and_one_that_is_too_long_is_refused() -> None:
    def table(D: int, N: int, power: float) -> Observations:
        return Observations(np.linspace(0.0, 1.0, D) ** power, np.zeros((N, D)), np.ones((N, D)))

    with pytest.warns(UserWarning, match="more than 1000 irregular times takes hours, got 1001"):
        check_size(table(1001, 2, 2.0), FitSettings(), None)
    with pytest.warns(UserWarning, match="more than 50 series may take hours, got 51: with a"):
        check_size(table(100, 51, 1.0), FitSettings(), None)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_size(table(1000, 50, 2.0), FitSettings(), None)
        check_size(table(100, 51, 1.0), FitSettings(), 25)
        check_size(table(10_000, 2, 1.0), FitSettings(), None)
    for long in (table(4001, 2, 2.0), table(10_001, 2, 1.0)):
        with pytest.raises(ValueError, match="expected at most"):
            check_size(long, FitSettings(), None)
    with pytest.raises(ValueError, match="expected at most 4000"):
        check_size(table(4001, 2, 1.0), FitSettings(learner="relaxed"), None)


def test_a_long_exact_model_warns(monkeypatch: pytest.MonkeyPatch) -> None:
    data, kernels = (np.arange(12.0)[:, None], np.ones((12, 1))), [lkm.kernels.Constant()]
    monkeypatch.setattr(lkm.LKM, "LONGEST", 11)
    with pytest.warns(UserWarning, match="at most 11 time points.*got 12"):
        lkm.LKM(data, kernels)


# --- what is said of long series -----------------------------------------------------------------


def test_reports_of_long_series_look_at_some_times(monkeypatch: pytest.MonkeyPatch) -> None:
    frame = long_table(600)
    found = made_by_hand(
        frame, ["1.0 x PER(period=25, lengthscale=1.5)", "1e-6 x LIN(location=300)"],
        [[1, 0], [1, 1], [0, 1]],
    )  # fmt: skip
    monkeypatch.setattr(limits, "LONGEST", 599)
    monkeypatch.setattr(limits, "LONGEST_REGULAR", 599)
    monkeypatch.setattr("lkm_gpflow.explain.residuals._LAST", 150)
    found = replace(found)  # without what it has computed
    residuals = whitened(found)
    assert all(len(part) == 150 for part in residuals)
    assert residuals[0].index[-1] == frame.index[-1]
    assert np.std(residuals[0]) == pytest.approx(1.0, abs=0.3)
    report = found.report(5).text
    assert "too long to be learnt twice: forecasts were not checked" in report
    assert "periodic with a period of 3.6 weeks" in report

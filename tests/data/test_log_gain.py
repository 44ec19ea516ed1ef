"""Which series want their logarithm: the likelihood ratio by statsmodels, and planted series."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from statsmodels.api import OLS, add_constant

from lkm_gpflow import datasets
from lkm_gpflow.data.tables import Table
from lkm_gpflow.data.transforms import ORDERS, STRONG, log_gain, wants_logarithm
from lkm_gpflow.gp.types import Floats


def planted(num_series: int, num_times: int = 150, seed: int = 0) -> Floats:
    """Stationary AR(1) series of standard deviation one, [D, N]."""
    rng = np.random.default_rng(seed)
    values = np.empty((num_times, num_series))
    values[0] = rng.normal(size=num_series)
    for t in range(1, num_times):
        values[t] = 0.8 * values[t - 1] + 0.6 * rng.normal(size=num_series)
    return values


def log_likelihood(values: Floats, order: int) -> float:
    """Of an autoregression, conditional on its first values, by statsmodels."""
    lags = np.column_stack([values[order - lag : len(values) - lag] for lag in range(1, order + 1)])
    return float(OLS(values[order:], add_constant(lags), missing="drop").fit().llf)


@pytest.mark.parametrize("gaps", [[], [40, 41, 100]])
def test_the_gain_is_a_ratio_of_likelihoods(gaps: list[int]) -> None:
    """Rows that miss something are left out."""
    y = np.exp(0.5 * planted(1)[:, 0])
    y[gaps] = np.nan
    ratios = []
    for order in ORDERS:
        complete = np.isfinite([y[t - order : t + 1] for t in range(order, len(y))]).all(axis=1)
        jacobian = np.log(y[order:][complete]).sum()
        ratios.append(log_likelihood(np.log(y), order) - jacobian - log_likelihood(y, order))
    assert log_gain(y) == pytest.approx(min(ratios))


def test_units_do_not_matter() -> None:
    y = np.exp(0.5 * planted(1)[:, 0])
    for unit in (1e-20, 1e-15, 1000.0, 1e12, 1e30):
        assert log_gain(unit * y) == pytest.approx(log_gain(y))
    assert log_gain(1e-15 * (10.0 + planted(1)[:, 0])) < STRONG


def test_multiplied_series_are_told_from_added_ones() -> None:
    """Of 200 planted series of each kind."""
    values = planted(200)
    assert wants_logarithm(np.exp(0.7 * values)).mean() >= 0.99
    assert wants_logarithm(8.0 + values).mean() <= 0.01


@pytest.mark.parametrize(
    "values",
    [np.full(50, 3.0), np.array([1.0, 2.0, 4.0]), np.full(50, np.nan), -np.exp(planted(1)[:, 0])],
    ids=["constant", "short", "empty", "negative"],
)
def test_nothing_is_said_of(values: Floats) -> None:
    assert log_gain(values) == 0.0


@pytest.mark.parametrize("name", ["stocks", "houses", "currencies", "gonu"])
def test_the_papers_prices_stay_as_they_are(name: str) -> None:
    frame = datasets.load(name).frame
    assert max(log_gain(column) for column in frame.to_numpy().T) < STRONG / 2.0


def test_each_series_is_asked() -> None:
    values = planted(2)
    frame = pd.DataFrame({"Sales": np.exp(values[:, 0]), "Mood": values[:, 1]})
    assert Table.of(frame, "auto").transforms.names == ["log", "none"]

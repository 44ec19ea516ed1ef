"""Intervals of hyperparameters: quantiles of draws, in the data's own time."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from small import made_by_hand, small_table

import lkm_gpflow as lkm
from lkm_gpflow.kernels.grammar import Kind
from lkm_gpflow.sharing.statements import Marginal

WAVE, LINE = "0.5 x PER(period=85,lengthscale=1)", "2e-5 x LIN(location=130)"
ROWS = [[1, 0], [1, 1], [0, 1]]


def test_quantiles_are_those_of_the_draws() -> None:
    values = np.random.default_rng(0).normal(size=101)
    marginal = Marginal("SE lengthscale", Kind.DURATION, values)
    assert marginal.quantile(0.5) == np.sort(values)[50]
    assert np.isnan(Marginal("SE lengthscale", Kind.DURATION, np.empty(0)).quantile(0.5))


def test_draws_are_told_in_days() -> None:
    found = made_by_hand(small_table(), [WAVE, LINE], ROWS)
    told = found.hyperparameters(0.8)
    assert list(told.columns) == ["median", "lower", "upper"]
    own = {one.name: one.values for one in found.marginals[found.names.index("PER")]}
    for name, span in (("PER period", 273.0), ("PER lengthscale", 1.0)):
        expected = span * np.quantile(own[name], [0.5, 0.1, 0.9])
        np.testing.assert_allclose(told.loc["PER", name], expected)


def test_factors_of_one_name_are_numbered_and_walks_have_nothing_to_say() -> None:
    square = "1e-9 x LIN(location=20) x LIN(location=200)"
    found = made_by_hand(small_table(), [square, "1 x RW(start=-7)"], [[1, 1]] * 3)
    told = found.hyperparameters()
    assert list(told.index) == [
        ("LIN x LIN", "LIN location (1)"),
        ("LIN x LIN", "LIN location (2)"),
    ]


def test_nothing_found_nothing_told() -> None:
    walk = made_by_hand(small_table(), ["1 x RW(start=-7)"], [[1]] * 3)
    told = walk.hyperparameters()
    assert told.empty
    assert told.index.names == ["component", "hyperparameter"]


def test_wider_levels_have_wider_intervals(small_found: lkm.Discovery) -> None:
    narrow, wide = (small_found.hyperparameters(level) for level in (0.5, 0.95))
    assert (wide["lower"] < narrow["lower"]).all()
    assert (wide["upper"] > narrow["upper"]).all()
    pd.testing.assert_series_equal(wide["median"], narrow["median"])


@pytest.mark.parametrize("level", [0.0, 1.0, 90.0])
def test_a_level_is_a_probability(small_found: lkm.Discovery, level: float) -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        small_found.hyperparameters(level)

"""Warnings point at the line of whoever called the package."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
from small import made_by_hand

import lkm_gpflow as lkm


def unsorted() -> pd.DataFrame:
    values = np.random.default_rng(0).normal(size=(30, 2))
    return pd.DataFrame(values, np.arange(30.0)[::-1], ["a", "b"])


def before() -> pd.DataFrame:
    frame = unsorted().sort_index()
    return made_by_hand(frame, ["1 x RW(start=-1)"], [[1], [1]]).predict(pd.Index([-1.0]))


@pytest.mark.parametrize(
    "ask",
    [
        lambda: lkm.learn(unsorted(), ["SE"], restarts=1, progress=False),
        lambda: next(lkm.discover_steps(unsorted()[:9], bases=["C"], progress=False)),
        lambda: lkm.backtest(unsorted(), "last-value", horizon=3, folds=2, progress=False),
        before,
    ],
)
def test_the_line_is_that_of_the_caller(ask: Callable[[], object]) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ask()
    ours = [each for each in caught if issubclass(each.category, UserWarning)]
    assert ours
    assert {each.filename for each in ours} == {__file__}

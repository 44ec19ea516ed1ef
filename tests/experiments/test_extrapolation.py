"""The protocol of the paper's forecasting experiment."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest

import lkm_gpflow as lkm
from lkm_gpflow.experiments import extrapolate, method_for

# RMSE and MNLP of carrying the last value forward, computed apart from this package.
LAST_VALUE = {
    "stocks": (5.81, 2.18),
    "houses": (15.64, 5.23),
    "currencies": (100.3, 2.07),
    "gonu": (0.60, 0.96),
}


@pytest.mark.parametrize("dataset", LAST_VALUE)
@pytest.mark.usefixtures("tables")
def test_last_value_on_the_papers_windows(dataset: str) -> None:
    found = extrapolate(dataset, "last-value")
    rmse, mnlp = LAST_VALUE[dataset]
    assert found.scores.rmse == pytest.approx(rmse, rel=0.01)
    assert found.scores.mnlp == pytest.approx(mnlp, abs=0.01)
    assert found.processor_seconds > 0.0
    assert found.seconds > 0.0


def test_embedded_data_are_scored_in_their_own_units() -> None:
    train, test = lkm.datasets.load("demo").split()
    found = extrapolate("demo", "drift")
    mean = found.forecast["mean"].unstack("series")[test.columns]
    errors = [np.sqrt(np.nanmean((mean[c] - test[c]) ** 2)) for c in test]
    assert found.scores.rmse == pytest.approx(np.mean(errors))
    assert found.discovery is None


@pytest.mark.parametrize("method", ["abcd", "lkm"])
def test_an_extrapolation_comes_back_from_another_process(method: str) -> None:
    found = extrapolate("toy", method_for(method, "smoke"))
    back = pickle.loads(pickle.dumps(found))
    pd.testing.assert_frame_equal(back.forecast, found.forecast)
    assert (back.discovery is not None) == (method == "lkm")
    if back.discovery is not None:
        _, test = lkm.datasets.load("toy").split()
        pd.testing.assert_frame_equal(
            back.discovery.predict(test.index)[["mean", "sd"]], found.forecast[["mean", "sd"]]
        )

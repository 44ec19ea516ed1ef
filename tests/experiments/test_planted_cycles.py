"""What reports say of planted cycles: the counts by hand, and that it is true."""

from __future__ import annotations

import json

import numpy as np
import pytest

from lkm_gpflow.experiments import cycles


def test_what_is_planted_repeats() -> None:
    """Of a strict cycle, values a whole period apart are nearer than half a period apart."""
    frame, has, period = cycles.plant(3)
    assert has.tolist() == [1, 0, 0, 0]
    lag = round(period)
    for name, own in zip(frame.columns, has, strict=True):
        y = frame[name].to_numpy()
        apart = [np.var(y[k:] - y[:-k]) for k in (lag, lag // 2)]
        assert not own or apart[0] < 0.5 * apart[1]
    again, *_ = cycles.plant(3)
    np.testing.assert_array_equal(again, frame)


def test_statements_are_counted() -> None:
    record = {
        "form": "strict",
        "period": 10.0,
        "has": [1, 1, 1, 0, 1],
        "component": [10.1, None, None, None, None],
        "cycle": [None, 10.4, 5.0, 9.9, None],
    }
    table = cycles.summary([record])
    expected = {
        "tables": 1, "planted": 4, "told": 3, "by component": 1, "said": 3, "true": 1,
    }  # fmt: skip
    assert table.loc["strict"].to_dict() == table.loc["all"].to_dict() == expected
    assert table.loc["approximate"].sum() == 0


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_what_a_report_says_of_planted_cycles_is_true(seed: int) -> None:
    record = json.loads(json.dumps(cycles.report_on(seed)))
    assert record["form"] == cycles.FORMS[seed]
    counts = cycles.summary([record]).loc["all"]
    assert counts["true"] == counts["said"]
    assert counts["told"] >= counts["planted"] - 1 > 0

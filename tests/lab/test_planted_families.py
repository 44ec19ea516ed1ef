"""What reports say of planted families: counts by hand, and that it is true."""

from __future__ import annotations

import json

import pytest

from paper_experiments.lab import families


def test_statements_are_counted() -> None:
    record = {
        "form": "strict",
        "period": 10.0,
        "is_slow": True,
        "cycle": {
            "has": [1, 1, 1, 0, 1],
            "component": [10.1, None, None, None, None],
            "family": [None, 10.4, 5.0, 9.9, None],
        },
        "slow movement": {
            "has": [1, 1, 0, 0, 1],
            "component": [True, None, True, None, None],
            "family": [None, True, None, True, None],
        },
        "pattern": {
            "has": [1, 1, 1, 0, 1],
            "component": [True, None, True, None, None],
            "family": [None, None, None, True, True],
        },
    }
    table = families.summary([record])
    assert table.loc["strict"].to_dict() == table.loc["cycles"].to_dict() == {
        "tables": 1, "planted": 4, "told": 3, "by component": 1, "said": 3, "true": 1,
    }  # fmt: skip
    assert table.loc["approximate"].sum() == 0
    assert table.loc["slow movements"].to_dict() == {
        "tables": 1, "planted": 3, "told": 2, "by component": 1, "said": 2, "true": 1,
    }  # fmt: skip
    assert table.loc["patterns"].to_dict() == {
        "tables": 1, "planted": 4, "told": 3, "by component": 2, "said": 2, "true": 1,
    }  # fmt: skip
    without = families.summary([{**record, "is_slow": False}])
    nearly = without.loc["slow movements"]
    assert nearly["planted"] == nearly["told"] == nearly["true"] == 0
    assert without.loc["patterns"].equals(table.loc["patterns"])


@pytest.mark.slow
def test_what_a_report_says_of_planted_families_is_true() -> None:
    """Of a table in which a cycle and the slow movements are told by families alone."""
    record = json.loads(json.dumps(families.report_on(14)))
    assert record["form"] == families.FORMS[2]
    counts = families.summary([record])
    assert counts.loc["cycles", "told"] >= counts.loc["cycles", "planted"] - 1 > 0
    for kind in ("cycles", "slow movements"):
        assert counts.loc[kind, "true"] == counts.loc[kind, "said"] > 0

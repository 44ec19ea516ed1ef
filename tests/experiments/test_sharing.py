"""The recovery of who shares what: what is planted, how it is compared, the committed runs."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from lkm_gpflow.data.tables import Table
from lkm_gpflow.experiments.sharing import (
    DESIGNS,
    compare,
    likeness,
    matched,
    plant,
    summary,
)
from lkm_gpflow.kernels.grammar import parse
from lkm_gpflow.learning.engine import components

COMMITTED = Path(__file__).parents[2] / "paper_experiments" / "results" / "sharing.jsonl"
TIMES = np.linspace(0.0, 1.0, 60)


@pytest.mark.parametrize("design", DESIGNS)
def test_tables_are_planted(design: str) -> None:
    equal, unequal = plant(design, "equal", 1), plant(design, "unequal", 1)
    assert equal.frame.shape == (120, 6)
    np.testing.assert_array_equal(equal.Z, unequal.Z)
    assert not np.allclose(equal.frame, unequal.frame)
    assert plant(design, "equal", 1).frame.equals(equal.frame)
    assert not np.array_equal(plant(design, "equal", 2).frame, equal.frame)
    assert equal.Z.any(axis=1).all()
    assert (equal.Z.sum(axis=0) >= 2).all()


def test_likeness_is_the_correlation_of_centred_covariances() -> None:
    C = components([parse("2 x SE(lengthscale=0.2)"), parse("1 x LIN(location=0.5)")], TIMES)
    H = np.eye(60) - 1.0 / 60.0
    a, b = (H @ own @ H for own in C)
    expected = np.sum(a * b) / np.sqrt(np.sum(a * a) * np.sum(b * b))
    found = likeness(C, 7.0 * C + 3.0)  # neither the variance nor the level counts
    np.testing.assert_allclose(found, [[1.0, expected], [expected, 1.0]], atol=1e-10)


def test_components_are_matched_one_to_one() -> None:
    """Greedily the first would take the second's, and leave it what is below a half."""
    assert matched(np.array([[0.9, 0.8], [0.85, 0.2]])) == [(0, 1), (1, 0)]
    assert matched(np.array([[0.9, 0.1], [0.3, 0.2]])) == [(0, 0)]


def test_wrong_entries_are_counted() -> None:
    planted = plant("SE+PER", "equal", 0)
    observations = Table.of(planted.frame).observations
    kernels = (*planted.kernels[::-1], planted.kernels[1], parse("1 x C"))
    Z = np.column_stack([planted.Z[:, ::-1], planted.Z[:, 1], np.ones(6)])
    Z[0, 1] = 1.0 - Z[0, 1]
    fit = SimpleNamespace(kernels=kernels, Z=Z, probabilities=Z)
    found = SimpleNamespace(
        table=SimpleNamespace(observations=observations), fit=fit, kernels=kernels
    )
    record = compare(found, planted)  # type: ignore[arg-type]
    assert (record["wrong"], record["entries"]) == (1, 12)
    assert (record["components"], record["planted"], record["near_duplicates"]) == (3, 2, 1)
    alone = SimpleNamespace(kernels=kernels[:1], Z=Z[:, :1], probabilities=Z[:, :1])
    found = SimpleNamespace(table=found.table, fit=alone, kernels=kernels[:1])
    assert compare(found, planted)["wrong"] == planted.Z[:, 0].sum()  # type: ignore[arg-type]


def test_scales_of_series_leave_fewer_wrong_entries_and_duplicates() -> None:
    """By the committed runs."""
    lines = COMMITTED.read_text().splitlines()
    records = [json.loads(line) for line in lines[1:]]
    table = summary(records)
    assert table["tables"].min() >= 1
    series = {"amplitudes": "series", "criterion": "bic+prior"}
    both = {
        variant: [r for r in records if r["options"] == options]
        for variant, options in (("none", {}), ("series", series))
    }
    assert len(both["none"]) == len(both["series"]) == 40
    for heights in ("equal", "unequal"):
        wrong = {
            variant: sum(r["wrong"] for r in own if r["heights"] == heights)
            for variant, own in both.items()
        }
        assert wrong["series"] <= wrong["none"]
    twice = {variant: sum(r["near_duplicates"] for r in own) for variant, own in both.items()}
    assert twice["series"] < twice["none"]

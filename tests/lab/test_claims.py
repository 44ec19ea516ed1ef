"""The page of claims: whole, computed, and of the paper's statements as the paper makes them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from paper_experiments.lab import article, claims, gonu


def test_every_claim_has_a_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    """But for those on seizures, whose fits take seconds to read; the notebook has them."""
    monkeypatch.setattr(claims, "_of_seizures", lambda folder: iter(()))
    table = claims.claims()
    assert len(table) > 22
    assert set(table["verdict"]) <= {"holds", "does not hold", "cannot be told"}
    by_sentence = table.set_index("the paper says")
    assert by_sentence.at["LKM outperforms ABCD", "verdict"] == "does not hold"
    theory = table[~table["where"].str.contains(r"Section 6|Table|Repository|Oil")]
    assert set(theory["verdict"]) == {"holds"}


@pytest.mark.usefixtures("tables")
def test_the_article_is_filled_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claims, "_of_seizures", lambda folder: iter(()))
    text = article.build()
    assert "{" not in text
    assert "nan" not in text.lower().split()
    assert 1000 < len(text.split()) < 4000  # eight pages


def record(learner: str, seed: int, holds: bool, pair: list[list[float]]) -> dict[str, Any]:
    statements = {"a": ("told", holds), "b": ("told", False)}
    return {"learner": learner, "seed": seed, "statements": statements, "oil and dollar": pair}


def test_statements_are_counted_over_seeds() -> None:
    records = [
        record("paper", 0, True, [[-0.9, -0.95, -0.4], [-1.0, -1.0, -1.0]]),
        record("paper", 1, True, [[-0.3, -0.5, 0.1]]),
        record("paper", 2, False, []),
        record("ours", 0, False, [[0.1, 0.0, 0.2]]),
    ]
    expected = pd.DataFrame(
        {"paper": ["2 of 3", "0 of 3"], "ours": ["0 of 1", "0 of 1"]}, ["a", "b"]
    )
    pd.testing.assert_frame_equal(gonu.of_seeds(records), expected, check_names=False)
    assert gonu.holds_mostly(records).tolist() == [True, False]
    lowest = gonu.inverse(records)
    assert lowest["negative"].tolist() == [True, True, False, False]
    assert lowest["certain"].tolist() == [True, False, False, False]
    assert np.isnan(lowest.loc[("paper", 2), "correlation"])

"""Shares of activities by recording, and the small file that keeps a fit of many series."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from lkm_gpflow.search import many_series as extension
from paper_experiments.lab import many_series
from paper_experiments.lab.many_series import recall, shares


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    """70 series of 14 recordings: waves and noise."""
    rng = np.random.default_rng(0)
    x = np.linspace(0.0, 1.0, 20)
    values = np.sin(25.0 * x[:, None] + rng.uniform(0.0, 6.0, 70)) * (np.arange(70) % 2)
    names = [f"R{n // 5:03d}.{n % 5:02d}" for n in range(70)]
    return pd.DataFrame(values + 0.3 * rng.normal(size=(20, 70)), x, names)


def test_a_small_file_gives_the_fit_back(
    frame: pd.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (extension, many_series):
        monkeypatch.setattr(module, "ENOUGH_TO_CHOOSE", 30)
    data = SimpleNamespace(frame=frame)
    monkeypatch.setattr(many_series.datasets, "load", lambda _: data)
    monkeypatch.setattr(many_series, "STRUCTURE", ["PER", "SE"])
    options = {"subset": 10, "restarts": 1, "progress": False}
    found = many_series.learn_all("learn", tmp_path / "ledger.jsonl", 1, tmp_path, **options)
    again, document = recall("learn", frame, tmp_path)
    assert again.names == found.names
    assert again.kernels == found.kernels
    assert again.fit.elbo == pytest.approx(found.fit.elbo, rel=1e-5)
    np.testing.assert_allclose(again.probabilities, found.probabilities, atol=1e-2)
    assert document["command"].startswith("learn --subset 10")
    assert document["elbo"] == found.fit.elbo
    (other,) = document["chosen among"]
    assert other["series"] == 30
    assert other["found"] == [str(kernel.structure) for kernel in found.kernels]
    with pytest.raises(ValueError, match="expected the table that was learnt from"):
        recall("learn", frame.iloc[:, :69], tmp_path)


def test_intervals_of_shares_are_those_of_recordings() -> None:
    """Pieces of a recording are the same: the standard error is that of 40 numbers, not 400."""
    rng = np.random.default_rng(1)
    names = pd.Index([f"R{i:03d}.{j:02d}" for i in range(80) for j in range(10)])
    own = rng.uniform(size=80)
    own[40:] = 1.0
    probabilities = pd.DataFrame({"SE": np.repeat(own, 10), "PER": 0.25}, names)
    activities = pd.Series(np.repeat([1, 2], 400), names)
    table = shares(probabilities, activities)
    assert table.loc[("SE", 1), "share"] == pytest.approx(own[:40].mean())
    half = 0.5 * (table["upper"] - table["lower"])
    assert half["SE", 1] == pytest.approx(1.96 * own[:40].std() / np.sqrt(40), rel=0.1)
    assert half["SE", 2] == 0.0
    assert table.loc["PER"].eq(0.25).all(axis=None)
    assert len(table) == 4

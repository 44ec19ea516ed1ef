"""Files that version 0.1 wrote, before its modules moved into folders, are still read.

The small table of `small.py`: found with C and SE (depth 1, one restart, seed 0) and saved with its
ledger; learnt with SE and C on numbered times, and again with ten inducing points; and the journal
of a backtest of the last value.
"""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from small import small_table

import lkm_gpflow as lkm
from lkm_gpflow.forecast.tails import FORECAST_VARIANCE
from lkm_gpflow.gp import limits
from lkm_gpflow.model.sparse import SparseLKM

FILES = Path(__file__).with_name("version_0_1")


def test_a_discovery_forecasts_as_it_did() -> None:
    found = lkm.load(FILES / "discovered.lkm")
    pd.testing.assert_frame_equal(
        found.table.frame, small_table(), check_freq=False, check_index_type=False
    )
    before = pd.read_csv(FILES / "discovered.csv", parse_dates=["time"])
    before = before.set_index(["series", "time"])
    # Forecasts were normal, and had the variances that fits say.
    as_told = tuple(replace(m, spread=m.spread / FORECAST_VARIANCE) for m in found.stacked)
    moments = ["mean", "sd"]
    now = replace(found, stacked=as_told).forecast(4)
    pd.testing.assert_frame_equal(
        now[moments], before[moments], rtol=1e-8, check_freq=False, check_index_type=False
    )


@pytest.mark.parametrize("name", ["learnt", "sparse"])
def test_components_learnt_on_numbered_times(name: str) -> None:
    found = lkm.load(FILES / f"{name}.lkm")
    assert found.names == ["SE"]
    assert np.isfinite(found.forecast(3).to_numpy()).all()


def test_sparse_models_stay_sparse(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "LONGEST", 10)
    assert isinstance(lkm.load(FILES / "sparse.lkm").model, SparseLKM)


def test_a_search_goes_on_from_its_ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: object, **__: object) -> None:
        raise AssertionError("everything is in the ledger")

    monkeypatch.setattr("lkm_gpflow.search.structure_search.fit", never)
    monkeypatch.setattr("lkm_gpflow.forecast.stacking.fit", never)
    ledger = tmp_path / "ledger.jsonl"
    shutil.copy(FILES / "ledger.jsonl", ledger)
    found = lkm.discover(
        small_table(), bases=("C", "SE"), depth=1, restarts=1, amplitudes="none", criterion="bic",
        seed=0, ledger=ledger, progress=False,
    )  # fmt: skip
    assert found.bic == lkm.load(FILES / "discovered.lkm").bic


def test_a_ledger_of_other_defaults_says_in_what_it_differs(tmp_path: Path) -> None:
    ledger = tmp_path / "ledger.jsonl"
    shutil.copy(FILES / "ledger.jsonl", ledger)
    with pytest.raises(ValueError, match=r"fit: amplitudes \(nothing there, series here\)"):
        lkm.discover(
            small_table(), bases=("C", "SE"), depth=1, restarts=1, ledger=ledger, progress=False
        )


def test_a_backtest_goes_on_from_its_journal(tmp_path: Path) -> None:
    journal = tmp_path / "backtest.jsonl"
    shutil.copy(FILES / "backtest.jsonl", journal)
    before = journal.read_text("utf-8")
    table = small_table().dropna()
    scores = lkm.backtest(
        table, "last-value", horizon=4, folds=2, journal=journal, progress=False
    ).summary()
    assert journal.read_text("utf-8") == before
    assert scores["crps"] == pytest.approx(0.701958, abs=1e-6)

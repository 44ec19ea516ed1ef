"""Variants of the default model, and the file that keeps their backtests."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest
from small import small_table

import lkm_gpflow as lkm
from lkm_gpflow.comparators.latent import LatentKernelModel
from paper_experiments.lab import ablations
from paper_experiments.lab.ablations import SEARCHES, WalksAlone

QUICK = LatentKernelModel(bases=("C", "RW", "IOU", "SE"), depth=0, restarts=1)


def test_walks_alone_add_up_to_one(monkeypatch: pytest.MonkeyPatch) -> None:
    found = QUICK.fit(small_table(), seed=0)
    monkeypatch.setattr(LatentKernelModel, "fit", lambda *_, **__: found)
    walks = WalksAlone().fit(small_table(), seed=0).found.stacked
    assert sum(member.weight for member in walks) == pytest.approx(1.0)
    kept = [member.kind for member in found.found.stacked if member.kind != "found"]
    assert [member.kind for member in walks] == kept


def test_a_kept_ledger_spares_the_search(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    method = replace(QUICK, ledgers=tmp_path)
    first = method.fit(small_table(), seed=0)
    assert len(list(tmp_path.iterdir())) == 1

    def never(*args: object, **options: object) -> None:
        raise AssertionError("learnt again")

    monkeypatch.setattr("lkm_gpflow.search.structure_search.fit", never)
    monkeypatch.setattr("lkm_gpflow.forecast.stacking.fit", never)
    again = replace(method, averaging="none").fit(small_table(), seed=0)
    assert again.found.bic == first.found.bic
    monkeypatch.undo()
    method.fit(small_table(), seed=1)
    assert len(list(tmp_path.iterdir())) == 2
    assert repr(method) == repr(QUICK)


def test_a_backtest_is_kept_and_read_without_a_fit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = small_table()
    train, test = table.iloc[:-4], table.iloc[-4:]
    data = SimpleNamespace(split=lambda: (train, test))
    monkeypatch.setattr(ablations.datasets, "load", lambda _: data)
    monkeypatch.setattr(ablations, "FOLDS", 2)
    monkeypatch.setitem(SEARCHES, "default", QUICK)  # type: ignore[arg-type]
    one = ablations.ablate("small", "default", tmp_path)
    direct = lkm.backtest(train, QUICK, 4, 2, progress=False)
    pd.testing.assert_frame_equal(one.forecasts, direct.forecasts)
    monkeypatch.setattr(LatentKernelModel, "fit", None)
    again = ablations.ablate("small", "default", tmp_path)
    pd.testing.assert_frame_equal(again.forecasts, one.forecasts)
    assert not list((tmp_path / "work").iterdir())

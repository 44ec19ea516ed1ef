"""Table 1 from results: means over seeds, what is missing, what is beside it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from lkm_gpflow.comparators import comparator_names
from paper_experiments.lab import table1 as tables
from paper_experiments.lab.journals import opened
from paper_experiments.lab.table1 import SMOKE_SETTINGS, extrapolate, method_for


def keep(
    store: Path, dataset: str, method: str, seed: int, rmse: float, profile: str = "paper",
    data: str = "abc",
) -> None:  # fmt: skip
    parameters = {"dataset": dataset, "method": method, "seed": seed, "profile": profile}
    scores = dict.fromkeys(tables.SCORES, 0.5) | {"rmse": rmse, "seconds": 10.0 + seed}
    record = {
        "id": f"{dataset}-{method}-{seed}-{profile}", "experiment": "extrapolation", "error": "",
        "parameters": parameters, "scores": scores, "data": {dataset: data}, "commit": "",
    }  # fmt: skip
    opened(store, "runs", {}).append(record)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path


def test_cells_are_means_over_the_seeds_of_one_profile(store: Path) -> None:
    values = [4.0, 5.0, 4.5, 4.2, 4.8]
    for seed, value in enumerate(values):
        keep(store, "stocks", "lkm-paper", seed, value)
    keep(store, "stocks", "last-value", 0, 5.81)
    keep(store, "stocks", "lkm-paper", 5, 1000.0, profile="smoke")
    for number, method in enumerate(tables.PUBLISHED_METHODS[2:]):
        keep(store, "stocks", method, 0, 7.0 - 0.5 * number)
    runs = tables.extrapolation_runs(store, "paper")
    table = tables.cells(runs)
    ours = table.loc[("lkm-paper", "stocks")]
    assert ours["runs"] == 5
    assert ours["rmse"] == pytest.approx(np.mean(values))
    assert ours["rmse_sd"] == pytest.approx(np.std(values, ddof=1))
    assert ours["seconds"] == pytest.approx(12.0)
    shown = tables.beside_the_paper(table, "rmse")["stocks"]
    assert shown.at["lkm-paper", "ours"] == "4.50 ± 0.41"
    assert shown.at["last-value", "ours"] == "5.81 (1)"
    assert shown.at["spike-slab", "ours"] == tables.MISSING
    verdict = tables.against_published(table).loc[("stocks", "rmse")]
    assert verdict["at or below"]
    assert verdict["difference"] == pytest.approx(4.5 - 4.58)
    assert np.isnan(verdict["best other, ours"])  # not before all have been run
    keep(store, "stocks", "spike-slab", 0, 9.0)
    table = tables.cells(tables.extrapolation_runs(store, "paper"))
    verdict = tables.against_published(table).loc[("stocks", "rmse")]
    assert (verdict["best other, ours"], verdict["best other is"]) == (5.0, "r-abcd")
    assert list(tables.beside_the_paper(table, "crps")["stocks"]) == ["ours"]


def test_methods_have_their_own_settings_but_in_smoke() -> None:
    assert set(tables.METHODS) <= set(comparator_names())
    assert set(tables.PUBLISHED_METHODS) == set(tables.published_table().index.unique("method"))
    for name in SMOKE_SETTINGS:
        assert method_for(name, "smoke") != method_for(name, "paper") == method_for(name, "quick")
    with pytest.raises(ValueError, match="'fast'"):
        method_for("lkm", "fast")


def test_the_published_table_is_whole() -> None:
    table = tables.published_table()
    assert table.shape == (28, 4)
    assert table.notna().to_numpy().all()
    assert table.loc[("lkm-paper", "gonu")].tolist() == [0.76, 0.07, 1.90, 0.25]
    best = table[["rmse", "mnlp"]].unstack("dataset").idxmin()
    bold = {key for key, method in best.items() if method == "lkm-paper"}
    expected = {("rmse", "stocks"), ("rmse", "currencies"), ("rmse", "gonu")}
    assert bold == expected | {("mnlp", d) for d in ("stocks", "houses", "currencies")}


# RMSE and MNLP of carrying the last value forward, computed apart from this package.
LAST_VALUE = {
    "stocks": (5.81, 2.18), "houses": (15.64, 5.23), "currencies": (100.3, 2.07),
    "gonu": (0.60, 0.96),
}  # fmt: skip


@pytest.mark.parametrize("dataset", LAST_VALUE)
@pytest.mark.usefixtures("tables")
def test_last_value_on_the_papers_windows(dataset: str) -> None:
    found = extrapolate(dataset, "last-value")
    rmse, mnlp = LAST_VALUE[dataset]
    assert found.scores.rmse == pytest.approx(rmse, rel=0.01)
    assert found.scores.mnlp == pytest.approx(mnlp, abs=0.01)
    assert found.processor_seconds > 0.0

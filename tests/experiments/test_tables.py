"""Table 1 from results: means over seeds, what is missing, what is beside it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from test_store import record_of

from lkm_gpflow.comparators import comparator_names
from lkm_gpflow.experiments import table_1, tables
from lkm_gpflow.experiments.methods import SMOKE_SETTINGS, method_for
from lkm_gpflow.experiments.profiles import Run
from lkm_gpflow.experiments.store import Store
from lkm_gpflow.plotting import plot_beside_published


def keep(
    store: Store, dataset: str, method: str, seed: int, rmse: float, profile: str = "paper",
    data: str = "abc",
) -> None:  # fmt: skip
    parameters = {"dataset": dataset, "method": method, "seed": seed, "profile": profile}
    run = Run("extrapolation", "extrapolation.ipynb", parameters, (dataset,))
    scores = dict.fromkeys(tables.SCORES, 0.5) | {"rmse": rmse, "seconds": 10.0 + seed}
    store.keep(replace(record_of(run, **scores), data={dataset: data}))


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path)


def test_an_empty_store_is_a_table_of_what_is_missing(store: Store) -> None:
    table = tables.cells(tables.extrapolation_runs(store, "paper"))
    assert len(table) == 4 * len(tables.METHODS)
    assert (table["runs"] == 0).all()
    assert table.drop(columns="runs").isna().all(axis=None)
    shown = tables.beside_the_paper(table, "rmse")
    assert (shown.xs("ours", axis=1, level=1) == tables.MISSING).all(axis=None)
    assert shown.at["lkm-paper", ("stocks", "paper")] == "4.58 ± 0.16"
    assert shown.at["lkm", ("stocks", "paper")] == "-"
    verdict = tables.against_published(table)
    assert len(verdict) == 8
    assert not verdict["at or below"].any()
    assert verdict["ours"].isna().all()


def test_cells_are_means_over_the_seeds_of_one_profile(store: Store) -> None:
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


def test_the_best_of_a_column_has_an_asterisk(store: Store) -> None:
    for method, rmse in (("lkm", 4.004), ("gp", 3.998), ("last-value", 4.2)):
        keep(store, "stocks", method, 0, rmse)
    table = tables.cells(tables.extrapolation_runs(store, "paper"))
    shown = tables.beside_the_paper(table, "rmse", mark_best=True)
    ours, paper = shown["stocks", "ours"], shown["stocks", "paper"]
    # What rounds to the same is as good; what has not been run is not.
    assert list(ours[ours.str.contains("*", regex=False)].index) == ["lkm", "gp"]
    assert ours["lkm"] == "4.00 (1) *"
    published = table_1()["rmse"].xs("stocks", level="dataset")
    assert list(paper[paper.str.endswith("*")].index) == [published.idxmin()]
    assert not (shown["houses", "ours"] != tables.MISSING).any()
    table.loc[("lkm", "stocks"), "coverage90"] = 0.97
    table.loc[("gp", "stocks"), "coverage90"] = 0.82
    table.loc[("last-value", "stocks"), "coverage90"] = 0.5
    held = tables.beside_the_paper(table, "coverage90", mark_best=True)["stocks", "ours"]
    assert list(held[held.str.endswith("*")].index) == ["lkm"]


def test_results_of_other_data_are_not_mixed(store: Store) -> None:
    keep(store, "gonu", "lkm", 0, 1.0)
    keep(store, "gonu", "lkm", 1, 1.0, data="other")
    with pytest.raises(ValueError, match=r"one version of the data 'gonu'.*abc"):
        tables.extrapolation_runs(store, "paper")


def test_the_bar_picture_says_what_is_missing() -> None:
    ours = pd.DataFrame({"mean": [1.0, np.nan], "sd": [0.1, np.nan]}, index=["lkm", "gprn"])
    paper = pd.DataFrame({"mean": [2.0], "sd": [0.2]}, index=["gprn"])
    ax = plot_beside_published(ours, paper, "RMSE")
    assert [bar.get_width() for bar in ax.patches] == [1.0, 0.0]
    assert [text.get_text() for text in ax.texts] == ["missing"]
    assert [label.get_text() for label in ax.get_yticklabels()] == ["lkm", "gprn"]
    assert ax.texts[0].xy[1] == pytest.approx(ax.patches[1].get_y() + 0.3)
    plt.close("all")


def test_methods_have_their_own_settings_but_in_smoke() -> None:
    assert set(tables.METHODS) <= set(comparator_names())
    assert set(tables.PUBLISHED_METHODS) == set(table_1().index.unique("method"))
    for name in SMOKE_SETTINGS:
        assert method_for(name, "smoke") != method_for(name, "paper") == method_for(name, "quick")
    with pytest.raises(ValueError, match="'fast'"):
        method_for("lkm", "fast")

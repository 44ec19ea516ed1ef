"""Gaps and missing ends of the benchmark: what is hidden, and how rivals fill it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from paper_experiments.lab import RESULTS, coupling
from paper_experiments.lab.bench_tables import benchmark_tables, tables_of
from paper_experiments.lab.journals import opened


@pytest.fixture(autouse=True)
def _bench(tables: Path) -> None:
    if not all((tables / "bench" / f"{name}.csv").exists() for name in benchmark_tables()):
        pytest.skip("needs data: the tables of the benchmark are not beside the raw files")


@pytest.mark.parametrize("table", ["metals", "office_room"])
def test_blocks_are_hidden_in_half_of_the_series(table: str) -> None:
    cut = coupling.blanked(table, "gaps")
    D, N = cut.whole.shape
    hidden = cut.hidden.notna()
    assert (hidden.any().sum()) == max(1, round(N / 2))
    for name in hidden.columns[hidden.any()]:
        rows = np.flatnonzero(cut.left[name].isna() & cut.whole[name].notna())
        assert rows[0] > 0
        assert rows[-1] < D - 1
        assert 0.03 * D <= len(rows) <= 0.16 * D
    pd.testing.assert_frame_equal(cut.left, coupling.blanked(table, "gaps").left)
    pd.testing.assert_frame_equal(cut.left.fillna(cut.hidden), cut.whole)


def test_straight_lines_by_hand() -> None:
    frame = pd.DataFrame({"a": [0.0, 1.0, 3.0, np.nan, np.nan, 6.0, np.nan]})
    mean, sd = coupling.lines(frame)
    np.testing.assert_allclose(mean[:, 0], [0, 1, 3, 4, 5, 6, 6])
    # Steps of 1 and 2; a bridge of three steps, and a walk of one step after the last.
    variance = 0.5 * np.array([2 / 3, 2 / 3, 1.0])
    np.testing.assert_allclose(sd[[3, 4, 6], 0], np.sqrt(variance))


def test_scores_are_those_of_the_hidden_cells() -> None:
    (record,) = coupling.compare("metals", "gaps", "lines")
    cut = coupling.blanked("metals", "gaps")
    mean, sd = coupling.lines(cut.left)
    error, variance, inside = [], [], []
    scale = cut.left.std(ddof=0)
    for n, name in enumerate(cut.whole):
        for d in np.flatnonzero(cut.hidden[name].notna()):
            off = cut.whole[name].iloc[d] - mean[d, n]
            error.append((off / scale[name]) ** 2)
            variance.append((sd[d, n] / scale[name]) ** 2)
            inside.append(abs(off) < 1.6448536 * sd[d, n])
    nlpd = 0.5 * (np.log(2 * np.pi * np.array(variance)) + np.array(error) / variance)
    assert record["smse"] == pytest.approx(np.mean(error), abs=1e-5)
    assert record["nlpd"] == pytest.approx(np.mean(nlpd), abs=1e-5)
    assert record["coverage90"] == pytest.approx(np.mean(inside), abs=1e-5)
    assert record["cells"] == len(error)


def test_the_committed_results_are_of_these_tables_and_settings() -> None:
    header = {"structure": coupling.STRUCTURE, "lmc": dict(coupling.LMC_SETTINGS)}
    records = opened(RESULTS, "coupling", header).records
    assert records
    assert {record["table"] for record in records} <= set(tables_of("choosing"))
    for record in records:
        if record["method"] in ("lines", "neighbours") and record["table"] in (
            "metals",
            "oilseeds",
        ):
            (again,) = coupling.compare(record["table"], record["task"], record["method"])
            assert {**again, "processor_seconds": 0} == {**record, "processor_seconds": 0}
    told = coupling.overview(records)
    assert told.loc[("gaps", "coupled"), "nlpd"] < told.loc[("gaps", "uncoupled"), "nlpd"]
    # Most of the gain is owed to correlations: the refitted model has none.
    won = coupling.against(records, ["uncoupled", "refitted"])
    assert (won.loc["gaps", "smse"] < 0.65).all()
    assert (won.loc["ends", "crps"] < 0.85).all()
    assert (won["nlpd_lower"] >= 0.8 * won["tables"]).all()
    assert (won["tables"] >= 20).all()

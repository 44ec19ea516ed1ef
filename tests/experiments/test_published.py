"""The paper's numbers."""

from __future__ import annotations

from lkm_gpflow.experiments import table_1


def test_table_1_is_whole() -> None:
    table = table_1()
    assert table.shape == (28, 4)
    assert table.notna().to_numpy().all()
    assert table.index.get_level_values("dataset").value_counts().eq(7).all()
    assert table.loc[("lkm-paper", "gonu")].tolist() == [0.76, 0.07, 1.90, 0.25]
    assert table.loc[("mosm", "currencies")].tolist() == [318.26, 101.52, 3.93, 0.15]


def test_the_papers_row_is_best_in_the_cells_that_it_prints_bold() -> None:
    best = table_1()[["rmse", "mnlp"]].unstack("dataset").idxmin()
    bold = {key for key, method in best.items() if method == "lkm-paper"}
    expected = {("rmse", "stocks"), ("rmse", "currencies"), ("rmse", "gonu")}
    assert bold == expected | {("mnlp", d) for d in ("stocks", "houses", "currencies")}

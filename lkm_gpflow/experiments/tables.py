"""Table 1 of the paper from the results that there are; what is missing stays missing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from .published import table_1
from .store import Record, Store

DATASETS = ("stocks", "houses", "currencies", "gonu")

PUBLISHED_METHODS = ("lkm-paper", "spike-slab", "gprn", "lmc", "mosm", "abcd", "r-abcd")
"""The seven of the paper's table; "lkm-paper" is the paper's own, with its learner and no other."""

METHODS = (
    "lkm",
    "lkm-single",
    *PUBLISHED_METHODS,
    "gp",
    "gp-sm",
    "last-value",
    "drift",
    "seasonal-naive",
    "auto-arima",
    "auto-ets",
    "auto-theta",
)

SCORES = ("rmse", "rmse_pooled", "mnlp", "crps", "coverage90", "seconds", "processor_seconds")

MISSING = "missing"

_NOMINAL = 0.9
"""What coverage should be."""

_SEEDS = 5
"""Runs of a cell of the paper."""


def extrapolation_runs(store: Store, profile: str) -> pd.DataFrame:
    """All finished runs of the extrapolation notebook in a profile.

    Parameters
    ----------
    store
        Where results are.
    profile
        The value of the notebook's parameter: "paper" or "smoke".

    Returns
    -------
    One row per run: dataset, method, seed, the columns of `SCORES`, bic of the best fit to the
    training part (of the latent kernel model; otherwise NaN), and commit.

    Raises
    ------
    ValueError
        If runs of one data set used different data.
    """
    records = [
        record
        for record in store.records("extrapolation")
        if record.configuration["parameters"].get("profile") == profile
    ]
    _check_data(records)
    rows = [
        {
            **{k: record.configuration["parameters"][k] for k in ("dataset", "method", "seed")},
            **{score: record.scores[score] for score in SCORES},
            "bic": record.scores.get("bic", np.nan),
            "commit": record.commit,
        }
        for record in records
    ]
    return pd.DataFrame(rows, columns=["dataset", "method", "seed", *SCORES, "bic", "commit"])


def _check_data(records: Iterable[Record]) -> None:
    seen: dict[str, tuple[str, str]] = {}
    for record in records:
        for name, checksum in record.data.items():
            first = seen.setdefault(name, (checksum, record.id))
            if first[0] != checksum:
                raise ValueError(
                    f"expected one version of the data {name!r}, got {first[0][:12]} in {first[1]} "
                    f"and {checksum[:12]} in {record.id}: delete the older results"
                )


def cells(runs: pd.DataFrame, datasets: Sequence[str] = DATASETS) -> pd.DataFrame:
    """Mean and standard deviation over seeds of each method on each data set.

    Parameters
    ----------
    runs
        See `extrapolation_runs`.
    datasets
        Those of the table.

    Returns
    -------
    Index (method, dataset), all of them; columns ``runs`` (how many), each of `SCORES` and its
    ``_sd``.  A score without runs is NaN, and so is an sd of fewer than two.
    """
    known = [*METHODS, *sorted(set(runs["method"]) - set(METHODS))]
    index = pd.MultiIndex.from_product([known, datasets], names=["method", "dataset"])
    groups = runs.groupby(["method", "dataset"])
    table = groups[list(SCORES)].mean().join(groups[list(SCORES)].std(ddof=1).add_suffix("_sd"))
    table.insert(0, "runs", groups.size())
    table = table.astype(float).reindex(index)
    return table.assign(runs=table["runs"].fillna(0).astype(int))


def beside_the_paper(
    table: pd.DataFrame, score: str, digits: int = 2, *, mark_best: bool = False
) -> pd.DataFrame:
    """One score as text, ours and the paper's side by side.

    Parameters
    ----------
    table
        See `cells`.
    score
        Among `SCORES`.  The paper has rmse and mnlp alone.
    digits
        After the point.
    mark_best
        Whether an asterisk marks the best mean of each column, and those that round to the same:
        the lowest, for coverage the nearest to 0.9.

    Returns
    -------
    Rows are methods; columns (dataset, "ours" or "paper").  A mean stands with its sd over seeds,
    with ``(n)`` where n is not 5; what has not been run is "missing", what the paper does not have
    is "-".
    """
    paper = table_1()
    methods = table.index.unique("method")
    columns: dict[tuple[str, str], list[str]] = {}
    for dataset in table.index.unique("dataset"):
        ours = pd.DataFrame(table.xs(dataset, level="dataset"))
        columns[dataset, "ours"] = [
            _text(*values, digits) for values in _values(ours, score, ours["runs"])
        ]
        if mark_best:
            columns[dataset, "ours"] = _with_best(columns[dataset, "ours"], ours[score], digits)
        if score in paper:
            theirs = paper[paper.index.get_level_values("dataset") == dataset]
            theirs = pd.DataFrame(theirs.droplevel("dataset")).reindex(methods)
            columns[dataset, "paper"] = [
                "-" if np.isnan(mean) else _text(mean, sd, _SEEDS, digits)
                for mean, sd, _ in _values(theirs, score, theirs[score])
            ]
            if mark_best:
                columns[dataset, "paper"] = _with_best(
                    columns[dataset, "paper"], theirs[score], digits
                )
    return pd.DataFrame(columns, index=methods)


def _with_best(texts: list[str], means: pd.Series[Any], digits: int) -> list[str]:
    """Add an asterisk to the best of a column."""
    rounded = means.round(digits)
    misses = (rounded - _NOMINAL).abs() if means.name == "coverage90" else rounded
    best = misses.round(digits) == misses.round(digits).min()
    return [f"{text} *" if b else text for text, b in zip(texts, best, strict=True)]


def _values(
    table: pd.DataFrame, score: str, runs: pd.Series[Any]
) -> Iterator[tuple[float, float, float]]:
    """Mean, sd and number of runs of a score, row by row."""
    return zip(
        map(float, table[score]), map(float, table[f"{score}_sd"]), map(float, runs), strict=True
    )


def _text(mean: float, sd: float, runs: float, digits: int) -> str:
    if runs == 0:
        return MISSING
    spread = "" if np.isnan(sd) else f" ± {sd:.{digits}f}"
    return f"{mean:.{digits}f}{spread}" + ("" if runs == _SEEDS else f" ({runs:.0f})")


def against_published(table: pd.DataFrame, method: str = "lkm-paper") -> pd.DataFrame:
    """The paper's own row, and ours, in its eight cells.

    Parameters
    ----------
    table
        See `cells`.
    method
        Our row: the paper's method as published, or another one to look at beside it.

    Returns
    -------
    Rows (dataset, score); columns paper, ours, difference, whether ours is at or below the paper,
    and the best of the other six published methods as we ran them, if all have been run.  What is
    missing is NaN, and counts as a miss.
    """
    paper = table_1()
    rows = {}
    for dataset in DATASETS:
        for score in ("rmse", "mnlp"):
            ours = float(table[score][(method, dataset)])
            published = float(paper[score][("lkm-paper", dataset)])
            others = table[score].xs(dataset, level="dataset")[list(PUBLISHED_METHODS[1:])]
            complete = bool(others.notna().all())
            rows[dataset, score] = {
                "paper": published,
                "ours": ours,
                "difference": ours - published,
                "at or below": ours <= published,
                "best other, ours": others.min() if complete else np.nan,
                "best other is": others.idxmin() if complete else MISSING,
            }
    found = pd.DataFrame.from_dict(rows, orient="index")
    return found.rename_axis(["dataset", "score"])

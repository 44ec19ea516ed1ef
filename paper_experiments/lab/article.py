"""The article on the reproduction: a page whose numbers are filled in from kept results."""

from __future__ import annotations

from collections.abc import Hashable
from pathlib import Path
from typing import Any

import pandas as pd

from . import RESULTS, seizure, table1
from .claims import claims
from .published import PUBLISHED_STRUCTURES, STRUCTURES

TEMPLATE = Path(__file__).parents[1] / "article" / "article.md"


def build(results: Path | str = "") -> str:
    """Return the article in Markdown."""
    return TEMPLATE.read_text(encoding="utf-8").format(**_numbers(Path(results or RESULTS)))


def _numbers(folder: Path) -> dict[str, object]:
    """What the template's names stand for."""
    every = claims(folder)
    verdicts = every["verdict"].value_counts()
    runs = table1.extrapolation_runs(folder, "paper")
    cells = table1.cells(runs)
    verdict = table1.against_published(cells)
    lowest = verdict["ours"] < verdict["best other, ours"]
    means = cells[["rmse", "mnlp"]].stack().unstack("method").reindex(verdict.index)
    authors = table1.authors_table(runs)
    fixed, learnt = (authors.loc[method] for method in PUBLISHED_STRUCTURES)
    worse = [name for name in STRUCTURES if learnt[name, "mnlp"] > fixed[name, "mnlp"]]
    own, activities = seizure.authors_assignment()
    fitted = seizure.learn_seizure(
        seizure.SAMPLES[seizure.PAPERS_SAMPLE], "relaxed", folder, restarts=3
    )
    agreement = seizure.agreement_by_cell(fitted.assignment(), own).loc["all"]
    last = means["last-value"] < verdict["ours"]
    return {
        "claims": len(every),
        "holds": verdicts.get("holds", 0),
        "fails": verdicts.get("does not hold", 0),
        "cells": len(verdict),
        "lowest": int(lowest.sum()),
        "lowest_walk": int((lowest & (verdict["ours"] < means["lmc-walk"])).sum()),
        "below": int(verdict["at or below"].sum()),
        "last_value": f"{int(last.sum())} of {len(last)}",
        "seeds": int(cells["runs"]["lkm-paper"].max()),
        "stocks_printed": f"{authors['stocks', 'rmse']['published']:.2f}",
        "stocks_fixed": f"{fixed['stocks', 'rmse']:.2f}",
        "stocks_learnt": f"{learnt['stocks', 'rmse']:.2f}",
        "worse": len(worse),
        "structures": len(STRUCTURES),
        "comparators": _markdown(table1.comparators_table().reset_index()),
        "theory": _told(every, ~every["where"].str.contains(r"Section 6|Table|Repository|Oil")),
        "table1": _markdown(_beside(cells)),
        "authors": _markdown(_shown(authors)),
        "authors_seizures": _on_authors(own, activities),
        "agreement": f"{agreement['agreement']:.0%}",
        "chance": f"{agreement['by chance']:.0%}",
        "gonu": _told(every, every["where"].str.contains(r"6\.2\.2|Oil")),
        "all_claims": _markdown(every.drop(columns="tested by")),
    }


def _told(every: pd.DataFrame, of: pd.Series[bool]) -> str:
    """How many of some claims hold, and which do not."""
    own = every[of]
    told = f"{(own['verdict'] == 'holds').sum()} of {len(own)} claims hold."
    for verdict, claim in own[own["verdict"] != "holds"].groupby("verdict")["the paper says"]:
        told += f" {str(verdict).capitalize()}: {'; '.join(claim)}."
    return told


def _on_authors(own: pd.DataFrame, activities: pd.Series[int]) -> str:
    words = {True: "holds", False: "fails"}
    same = seizure.tumour_patients(own, activities).holds
    pure = seizure.pure_periodic(own, activities).holds
    return (
        f"the first (both areas of tumour patients have the same sparsity) {words[same]}, and the "
        f"third (seizures lack a low-frequency periodic component) {words[pure]} if it is about "
        "any component PER; the second needs kernels, which were not published."
    )


def _beside(cells: pd.DataFrame) -> pd.DataFrame:
    """RMSE / MNLP of the seven methods and the last value, the printed ones in brackets."""
    ours, paper = _pairs(cells), _pairs(table1.published_table())
    methods = (*table1.PUBLISHED_METHODS, "lmc-walk", "last-value")
    shown = pd.DataFrame(index=pd.Index(methods, name="method"))
    for name in table1.DATASETS:
        shown[name] = [
            ours[method, name] + (f" ({paper[key]})" if (key := (method, name)) in paper else "")
            for method in methods
        ]
    return shown.reset_index()


def _pairs(scores: Any) -> dict[Hashable, str]:
    """RMSE / MNLP by row."""
    pairs = scores[["rmse", "mnlp"]].to_numpy().tolist()
    return {
        key: f"{rmse:.3g} / {mnlp:.3g}"
        for key, (rmse, mnlp) in zip(scores.index, pairs, strict=True)
    }


def _shown(authors: pd.DataFrame) -> pd.DataFrame:
    """RMSE / MNLP of the published structures."""
    shown = pd.DataFrame({name: list(_pairs(authors[name]).values()) for name in STRUCTURES})
    return shown.set_index(authors.index).rename_axis("").reset_index()


def _markdown(table: pd.DataFrame) -> str:
    lines = [list(map(str, table.columns)), ["---"] * table.shape[1]]
    lines += [[str(cell) for cell in row] for row in table.to_numpy().tolist()]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)

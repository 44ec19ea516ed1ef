"""What is said of a series and a component, and whether it is true where the truth is known."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from small import made_by_hand, small_table

import lkm_gpflow as lkm
from lkm_gpflow.explain.decomposition import Decomposition
from lkm_gpflow.explain.verdicts import verdicts
from lkm_gpflow.kernels.grammar import parse
from lkm_gpflow.sharing.matching import one_to_one, shapes_of

ROOT = Path(__file__).parents[2]
HALF = 0.5
"""Shapes that correlate this much stand for each other where truth is looked up."""


def judged(p: float, evidence: float, share: float, averaging: str = "tempered", z: int = 0) -> str:
    """What is said of a series of this probability, evidence and share."""
    found = made_by_hand(small_table()[["a"]], ["1 x SE(lengthscale=20)"], [[z]])
    p_and_evidence = {"probabilities": np.array([[p]]), "evidence": np.array([[evidence]])}
    consensus = replace(found.consensus, **p_and_evidence)
    found = replace(found, averaging=averaging)
    found.__dict__["agreed"] = found.__dict__["consensus"] = consensus
    nothing, values = np.zeros(0), np.array([[share, 1.0 - share]])
    parts = Decomposition(nothing, nothing, nothing, values, np.ones((1, 1)), np.zeros(1))
    return str(verdicts(found, parts).iloc[0, 0])


@pytest.mark.parametrize(
    ("p", "evidence", "share", "said"),
    [
        (0.95, 5.0, 0.2, "has"),
        (0.85, 5.0, 0.2, "perhaps"),
        (0.95, 2.0, 0.2, "perhaps"),
        (0.95, 5.0, 0.02, "perhaps"),
        (0.95, 0.5, 0.2, "perhaps"),
        (0.95, -0.5, 0.2, "cannot be told"),
        (0.6, 0.0, 0.2, "cannot be told"),
        (0.3, -1.0, 0.0, "cannot be told"),
        (0.07, -15.0, 0.0, "cannot be told"),
        (0.05, -5.0, 0.0, "has not"),
        (0.05, -2.0, 0.0, "cannot be told"),
        (0.05, 2.0, 0.0, "cannot be told"),
    ],
)
def test_has_needs_probability_evidence_and_share(
    p: float, evidence: float, share: float, said: str
) -> None:
    assert judged(p, evidence, share) == said


def test_one_fit_is_judged_as_several_are() -> None:
    assert judged(0.95, 5.0, 0.2, "none", z=1) == "has"
    assert judged(0.6, 1.0, 0.2, "none", z=1) == "perhaps"
    assert judged(0.4, 0.0, 0.01, "none", z=0) == "cannot be told"
    assert judged(0.05, -5.0, 0.0, "none", z=0) == "has not"


def statements(found: lkm.Discovery, kernels: tuple[str, ...], Z: np.ndarray) -> pd.DataFrame:
    """What is said of every series and component, and whether the planted model has it."""
    x = found.table.observations.x
    planted = shapes_of([parse(kernel) for kernel in kernels], x)
    match = dict(one_to_one(shapes_of(found.consensus.kernels, x), planted, HALF))
    said = verdicts(found, Decomposition.of(found)).to_numpy()
    rows = [
        (said[n, k], bool(Z[n, match[k]]) if k in match else False)
        for k in range(said.shape[1])
        for n in range(len(said))
    ]
    return pd.DataFrame(rows, columns=["said", "true"])


@pytest.mark.usefixtures("whole_chains")
def test_what_notebook_and_readme_say_of_the_town_is_true(tmp_path: Path) -> None:
    """The planted model of `demo` is known: each "has" and "has not" is looked up in it."""
    ledger = shutil.copy(ROOT / "notebooks" / "ledgers" / "demo.jsonl", tmp_path)
    demo = lkm.datasets.load("demo")
    found = lkm.discover(demo.frame, ledger=ledger, progress=False)
    told = statements(found, demo.truth.kernels, demo.truth.Z.to_numpy())
    by_verdict = told.groupby("said")["true"]
    assert by_verdict.size()["has"] >= 10
    assert by_verdict.mean()[["has", "has not"]].tolist() == [1.0, 0.0]
    assert by_verdict.mean()["perhaps"] > 0.5

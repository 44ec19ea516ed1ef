"""Whether searches of one table from different random numbers say the same."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from lkm_gpflow import datasets
from lkm_gpflow.data.tables import Table
from lkm_gpflow.discovery.discover import discover
from lkm_gpflow.gp.types import Floats
from lkm_gpflow.kernels.grammar import Product, parse

from . import RESULTS
from .journals import fill, opened
from .sharing import counterparts

DATASETS = ("demo", "gonu", "houses")


def train(dataset: str) -> pd.DataFrame:
    """Return the table that is searched; of real ones without the rows that are forecast."""
    data = datasets.load(dataset)
    return data.frame if data.truth is not None else data.split().train


def search(dataset: str, seed: int) -> dict[str, Any]:
    """Discover a data set with the defaults but for walks, and note what it says.

    Without walks forecasts differ and statements do not: see `search.stacking`.

    Returns
    -------
    In JSON's types: ``dataset``, ``seed``, ``kernels`` in scaled units, ``Z`` and
    ``best`` with kernels and Z of the best fit.
    """
    found = discover(train(dataset), averaging="tempered", seed=seed, progress=False)
    return {
        "dataset": dataset,
        "seed": seed,
        **_said(found.fit.kernels, found.statements.Z),
        "best": _said(found.fit.kernels, found.fit.Z),
    }


def _said(kernels: Sequence[Any], Z: Floats) -> dict[str, Any]:
    return {"kernels": [str(kernel) for kernel in kernels], "Z": Z.astype(int).tolist()}


def agreement(a: Mapping[str, Any], b: Mapping[str, Any], x: Floats) -> float:
    """Share of the entries of Z on which two searches agree.

    Components stand for each other one to one (`sharing.counterparts`); one that stands for none
    is compared with nobody's.  Constants, which only make up for the centring of series, do not
    count.
    """
    (first, Z), (second, W) = (_patterns(each) for each in (a, b))
    pairs = counterparts(first, second, x)
    alone = [np.delete(Z, [i for i, _ in pairs], 1), np.delete(W, [j for _, j in pairs], 1)]
    same = sum(int((Z[:, i] == W[:, j]).sum()) for i, j in pairs)
    same += sum(int((rest == 0).sum()) for rest in alone)
    total = Z.shape[0] * (len(pairs) + sum(rest.shape[1] for rest in alone))
    return same / total if total else 1.0


def _patterns(said: Mapping[str, Any]) -> tuple[list[Product], Floats]:
    kernels = [parse(text) for text in said["kernels"]]
    kept = [k for k, kernel in enumerate(kernels) if str(kernel.structure) != "C"]
    Z = np.array(said["Z"], np.float64)[:, kept]
    return [kernels[k] for k in kept], Z


def summary(records: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Mean agreement over pairs of seeds, a row for each data set."""
    rows = {}
    for dataset in dict.fromkeys(record["dataset"] for record in records):
        own = [record for record in records if record["dataset"] == dataset]
        x = Table.of(train(dataset)).observations.x
        pairs = list(itertools.combinations(own, 2))
        rows[dataset] = {
            "seeds": len(own),
            "best fit": np.mean([agreement(a["best"], b["best"], x) for a, b in pairs]),
            "consensus": np.mean([agreement(a, b, x) for a, b in pairs]),
        }
    return pd.DataFrame.from_dict(rows, orient="index")


def run(
    datasets_: Sequence[str], seeds: int, results: Path = RESULTS, executor: Executor | None = None
) -> pd.DataFrame:
    """Make the searches that the journal has not, and summarise all that it has."""
    journal = opened(results, "agreement", {})
    done = {(record["dataset"], record["seed"]) for record in journal.records}
    jobs = {
        (name, seed): partial(search, name, seed)
        for seed in range(seeds)
        for name in datasets_
        if (name, seed) not in done
    }
    return summary(fill(journal, jobs, executor, "search"))

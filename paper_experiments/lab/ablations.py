"""What each ingredient brings: variants of the latent kernel model on the same rolling origins.

A variant is the default method with one thing changed.  Variants that differ only in how forecasts
are averaged share their searches.  Each backtest is a line of `results/ablations.jsonl`.  The kept
ones, one of them without it, are of the time when a Bayesian vector autoregression took part in
forecasts.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from lkm_gpflow import datasets
from lkm_gpflow.comparators import Comparator, comparator
from lkm_gpflow.comparators.latent import DiscoveryForecast, LatentKernelModel
from lkm_gpflow.evaluation.backtesting import Backtest, backtest
from lkm_gpflow.evaluation.predictive import columns_of
from lkm_gpflow.forecast.forecasters import weighted

from . import RESULTS
from .journals import opened

DATASETS = ("stocks", "houses", "currencies", "gonu")
FOLDS = 8

PAPER = ("WN", "C", "LIN", "SE", "PER")

SEARCHES: Mapping[str, LatentKernelModel] = {
    "default": LatentKernelModel(),
    "paper bases": LatentKernelModel(bases=PAPER),
    "no IOU": LatentKernelModel(bases=(*PAPER, "RW")),
    "no priors": LatentKernelModel(priors=False),
    "one restart": LatentKernelModel(restarts=1),
    "no products": LatentKernelModel(depth=0),
    "best fit alone": LatentKernelModel(averaging="none"),
    "BIC weights": LatentKernelModel(averaging="tempered"),
}
"""Variants by the settings of `lkm_gpflow.discover`."""


@dataclass(frozen=True)
class WalksAlone:
    """The default method, forecasting from the walks alone."""

    ledgers: Path | None = field(default=None, repr=False)

    def fit(self, train: pd.DataFrame, *, seed: int) -> DiscoveryForecast:
        """Discover with the defaults, and keep the walks."""
        found = LatentKernelModel(ledgers=self.ledgers).fit(train, seed=seed).found
        walks = weighted([member for member in found.stacked if member.is_walk])
        return DiscoveryForecast(replace(found, stacked=tuple(walks)))


VARIANTS = (*SEARCHES, "walks alone")


@dataclass(frozen=True)
class Kept:
    """A method that forecasts what was kept of a backtest, by the number of rows before it."""

    records: Mapping[int, Mapping[str, Any]]

    def fit(self, train: pd.DataFrame, *, seed: int) -> KeptForecast:
        """Find the forecast from the end of the rows."""
        return KeptForecast(self.records[len(train)], list(train.columns))


@dataclass(frozen=True)
class KeptForecast:
    """One forecast that was kept."""

    record: Mapping[str, Any]
    series: list[str]

    def forecast(self, times: pd.Index) -> pd.DataFrame:
        """Return it, with index (series, time)."""
        index = pd.MultiIndex.from_product([self.series, times], names=["series", "time"])
        columns = {name: np.ravel(self.record[name]) for name in columns_of(self.record)}
        return pd.DataFrame(columns, index=index)


def ablate(
    dataset: str,
    label: str,
    results: Path | str = RESULTS,
    *,
    ledgers: Path | None = None,
    executor: Executor | None = None,
) -> Backtest:
    """Backtest a variant, or another method, on the training part of a data set.

    Parameters
    ----------
    dataset
        Among `DATASETS`.
    label
        Among `VARIANTS`, or the name of a comparator.
    results
        Folder of what is kept; what it has is not run again.
    ledgers
        Folder for the ledgers of searches: variants of the same search then share it.
    executor
        Runs the origins; None: this process.
    """
    train, test = datasets.load(dataset).split()
    kept = opened(results, "ablations", {})
    name = label.replace(" ", "-")
    there = [r for r in kept.records if (r["dataset"], r["label"]) == (dataset, name)]
    if not there:
        journal = Path(results or RESULTS) / "work" / f"{dataset}_{name}.jsonl"
        journal.parent.mkdir(exist_ok=True)
        backtest(
            train, _method(label, ledgers), len(test), FOLDS, journal=journal, executor=executor
        )
        lines = journal.read_text(encoding="utf-8").splitlines()
        header, *records = (json.loads(line, parse_float=_short) for line in lines)
        there = [{"dataset": dataset, "label": name, "header": header, "records": records}]
        kept.append(there[0])
        journal.unlink()
    told = Kept({record["origin"]: record for record in there[-1]["records"]})
    return backtest(train, told, len(test), FOLDS, label=label, progress=False)


def _short(number: str) -> float:
    """Read a number to seven significant digits."""
    return float(f"{float(number):.7g}")


def _method(label: str, ledgers: Path | None) -> Comparator:
    if label in SEARCHES:
        return replace(SEARCHES[label], ledgers=ledgers)
    return WalksAlone(ledgers) if label == "walks alone" else comparator(label)

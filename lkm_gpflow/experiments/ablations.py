"""What each ingredient brings: variants of the latent kernel model on the same rolling origins.

A variant is the default method with one thing changed.  Variants that differ only in how forecasts
are averaged share their searches.  Results are journals that `lkm_gpflow.backtest` reads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from pathlib import Path

import pandas as pd

from .. import datasets
from ..comparators import Comparator
from ..comparators.latent import DiscoveryForecast, LatentKernelModel
from ..discovery.result import Discovery
from ..evaluation.backtesting import Backtest, backtest
from ..forecast.forecasters import BaseForecaster, with_weight

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


def _walks_alone(found: Discovery) -> Discovery:
    walks = ("walk", "seasonal walk")
    return replace(found, stacked=_renormalised(m for m in found.stacked if m.kind in walks))


def _without_autoregression(found: Discovery) -> Discovery:
    fits = (m for m in found.stacked if m.kind != "autoregression")
    return replace(found, stacked=_renormalised(fits))


def _renormalised(members: Iterable[BaseForecaster]) -> tuple[BaseForecaster, ...]:
    kept = list(members)
    total = sum(member.weight for member in kept)
    return tuple(with_weight(member, member.weight / total) for member in kept)


PARTS: Mapping[str, Callable[[Discovery], Discovery]] = {
    "walks alone": _walks_alone,
    "no autoregression": _without_autoregression,
}
"""Variants of the default by what they forecast from."""


@dataclass(frozen=True)
class PartOfStack:
    """The default method, forecasting from a part of what it stacks.

    Parameters
    ----------
    name
        A variant among `PARTS`.
    ledgers
        See `LatentKernelModel`.
    """

    name: str
    ledgers: Path | None = field(default=None, repr=False)

    def fit(self, train: pd.DataFrame, *, seed: int) -> DiscoveryForecast:
        """Discover with the defaults, and keep the part."""
        found = LatentKernelModel(ledgers=self.ledgers).fit(train, seed=seed).found
        return DiscoveryForecast(PARTS[self.name](found))


VARIANTS = (*SEARCHES, *PARTS)


def journal(folder: Path, dataset: str, variant: str) -> Path:
    """Where the backtest of a variant is kept."""
    return folder / f"{dataset}_{variant.replace(' ', '-')}.jsonl"


def ablate(
    dataset: str,
    variant: str,
    folder: Path,
    *,
    ledgers: Path | None = None,
    executor: Executor | None = None,
    seed: int = 0,
) -> Backtest:
    """Backtest one variant on the training part of a data set, or read its journal.

    Parameters
    ----------
    dataset
        Among `DATASETS`.
    variant
        Among `VARIANTS`.
    folder
        Where journals are kept.
    ledgers
        Folder for the ledgers of searches: variants of the same search then share it.
    executor
        Runs the origins; None: this process.
    seed
        Everything random follows from it.
    """
    train, test = datasets.load(dataset).split()
    method: Comparator
    if variant in SEARCHES:
        method = replace(SEARCHES[variant], ledgers=ledgers)
    else:
        method = PartOfStack(variant, ledgers)
    return backtest(
        train, method, len(test), FOLDS, label=variant, seed=seed,
        journal=journal(folder, dataset, variant), executor=executor, progress=False,
    )  # fmt: skip

"""The latent kernel model behind the protocol of the comparators: ours, and the paper's."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd

from ..data.tables import Table
from ..data.transforms import Transform
from ..discovery.discover import discover
from ..discovery.keywords import Averaging
from ..discovery.result import Discovery
from ..fit.fits import Criterion, LearnerName
from ..gp.likelihoods import LikelihoodName
from ..kernels.grammar import EXTENDED_BASES, PAPER_BASES
from .protocol import PROBABILITIES


@dataclass(frozen=True)
class DiscoveryForecast:
    """A discovery as a fitted method."""

    found: Discovery

    def forecast(self, times: pd.Index) -> pd.DataFrame:
        """See `Fitted.forecast`."""
        told, table = self.found.predict(times)[["mean", "sd"]], self.found.table
        is_log = np.repeat(table.transforms.is_log, len(times))
        modelled = self.found.predict_modelled(times)
        if is_log.any():
            for moment in ("mean", "sd"):
                told[f"log_{moment}"] = modelled[moment].where(is_log)
        is_linked = np.repeat(table.transforms.is_linked, len(times))
        if is_linked.any():
            every = self.found.ensemble.at(times).frame(quantiles=list(PROBABILITIES))
            told = told.join(every.filter(regex="^q")[is_linked])
        is_student = ~is_log & np.isfinite(modelled["degrees"])
        if is_student.any():
            told["degrees"] = modelled["degrees"].where(is_student)
        return told


@dataclass(frozen=True)
class LatentKernelModel:
    """The latent kernel model, as `discover` finds it with its defaults."""

    #: See `lkm_gpflow.discover`.
    bases: tuple[str, ...] = EXTENDED_BASES
    depth: int = 2
    restarts: int = 3
    priors: bool = True
    learner: LearnerName = "scan"
    likelihood: LikelihoodName | None = None
    criterion: Criterion | None = None
    averaging: Averaging = "stacked"
    transform: Transform = "auto"
    #: Folder that keeps the ledger of every search, by its data and settings, so that nothing is
    #: learnt twice.
    ledgers: Path | None = field(default=None, repr=False)

    def fit(self, train: pd.DataFrame, *, seed: int) -> DiscoveryForecast:
        """Discover the structure and learn it."""
        found = discover(
            train,
            transform=self.transform,
            ledger=self._ledger(train, seed),
            bases=self.bases,
            depth=self.depth,
            restarts=self.restarts,
            priors=self.priors,
            learner=self.learner,
            likelihood=self.likelihood,
            criterion=self.criterion,
            averaging=self.averaging,
            seed=seed,
            progress=False,
        )
        return DiscoveryForecast(found)

    def _ledger(self, train: pd.DataFrame, seed: int) -> Path | None:
        if self.ledgers is None:
            return None
        search = (self.bases, self.depth, self.restarts, self.priors, self.learner, seed)
        chosen = (self.likelihood, self.criterion)
        is_open = self.learner == "scan" and self.likelihood is None
        table = Table.of(train, self.transform, "listed", "auto" if is_open else "none")
        key = f"{search}{chosen}{table.observations.fingerprint}"
        return self.ledgers / f"{hashlib.sha256(key.encode()).hexdigest()[:20]}.jsonl"


@dataclass(frozen=True)
class PaperLatentKernelModel(LatentKernelModel):
    """The latent kernel model as published (Tong and Choi 2019, section 4 and algorithm 1).

    The paper's base kernels, the relaxed bound climbed by Adam from several starts of which the
    largest bound wins, nu thresholded, BIC, no priors on hyperparameters, and the forecast of the
    best fit alone; nothing of ours.

    The paper gives neither starts nor schedule, and its authors' repository those of the seizure
    data alone.  Six starts were decided on the training parts alone
    (``paper_experiments/results/relaxed_starts.csv``), schedule and stopping rule
    (`fits.PUBLISHED_ANNEALING`) on planted tables.
    """

    bases: tuple[str, ...] = PAPER_BASES
    restarts: int = 6
    priors: bool = False
    learner: LearnerName = "relaxed"
    averaging: Averaging = "none"
    transform: Transform = "none"


@dataclass(frozen=True)
class SingleLatentKernelModel(LatentKernelModel):
    """The paper's model, base kernels and criterion and its single best fit, by our learner."""

    bases: tuple[str, ...] = PAPER_BASES
    restarts: int = 6
    priors: bool = False
    learner: LearnerName = "scan"
    likelihood: LikelihoodName | None = "gaussian"
    criterion: Criterion | None = "bic"
    averaging: Averaging = "none"
    transform: Transform = "none"

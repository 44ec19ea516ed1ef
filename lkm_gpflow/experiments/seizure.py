"""The seizure experiment (figure 5): six kernels learnt from 50 EEG series."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from .. import datasets
from ..data.tables import Table
from ..discovery.result import Discovery
from ..fit.fits import Fit, FitSettings
from ..fit.training import fit
from ..forecast.by_model import to_model
from ..gp.types import Floats
from ..kernels.grammar import Product, parse
from ..runtime.executors import run_all
from ..runtime.journal import Journal
from ..search.ledger import Entry, fit_from_json, fit_to_json
from ..search.settings import SearchSettings

STRUCTURE = ("SE", "SE", "PER", "PER", "PER x SE", "PER x SE")
"""The paper's six kernels (section 6.2)."""

SAMPLES = ("get_50_exp_0", "get_50_exp_1", "get_50_exp_2")
"""The authors' own draws of 50 series."""

POSTERIORS: Mapping[str, FitSettings] = {
    "relaxed": FitSettings(learner="relaxed", prune=False),
    "enumerated": FitSettings(prune=False),
}
"""How the kernels are learnt: the paper's way, and ours.  They are given, so nothing is pruned."""


def journal_of(sample: int, posterior: str, seed: int) -> str:
    """Return the file name of the fits to one sample."""
    way = "" if posterior == "enumerated" else f"{posterior}_"
    return f"seizure_{sample}_{way}seed_{seed}.jsonl"


@dataclass(frozen=True)
class SeizureSettings:
    """What learning the six kernels depends on, beside the data.

    Parameters
    ----------
    structure
        The members.
    restarts
        Fits from different random numbers.
    seed
        Everything random follows from it.
    fit
        How one structure is learnt, see `POSTERIORS`.
    """

    structure: tuple[str, ...] = STRUCTURE
    restarts: int = 6
    seed: int = 0
    fit: FitSettings = POSTERIORS["enumerated"]


@dataclass(frozen=True)
class SeizureResult:
    """What was learnt from one sample.

    Parameters
    ----------
    table
        The series and their scaling.
    activities
        The activity of each series, [N].
    fits
        One a restart, in scaled units; the best (by the bound that was climbed) first.
    alpha
        Concentration of the Indian Buffet Process.
    """

    table: Table
    activities: pd.Series[int]
    fits: tuple[Fit, ...]
    alpha: float

    def kernels(self, restart: int = 0) -> tuple[Product, ...]:
        """The components of a fit in seconds."""
        table = self.table
        return tuple(k.change_units(table.span, table.start) for k in self.fits[restart].kernels)

    def assignment(self, restart: int = 0) -> pd.DataFrame:
        """Z of a fit, series x components."""
        kernels = self.fits[restart].kernels
        structures = [str(kernel.structure) for kernel in kernels]
        names = [f"{name} ({structures[: i + 1].count(name)})" for i, name in enumerate(structures)]
        return pd.DataFrame(
            self.fits[restart].Z.astype(int), index=self.table.frame.columns, columns=names
        )

    def discovery(self, restart: int = 0) -> Discovery:
        """A fit as a discovery, for pictures; its components stay in their order."""
        fit = self.fits[restart]
        settings = SearchSettings(
            depth=0, restarts=len(self.fits), fit=FitSettings(alpha=self.alpha, prune=False)
        )
        found = Discovery(self.table, settings, "none", (Entry.alone(fit),))
        found.__dict__["fit"] = fit
        return found

    def decompose(self, restart: int = 0) -> tuple[Floats, Floats]:
        """Posterior means of the series [N, D] and of their components [K, N, D], z-scored."""
        observations = self.table.observations
        fit = self.fits[restart]
        model = to_model(fit, observations, FitSettings(alpha=self.alpha))
        parts, _ = model.predict_components(observations.x[:, None], Z=fit.Z)
        components = np.asarray(parts).transpose(0, 2, 1)
        return components.sum(axis=0), components

    def profiles(self, restart: int = 0) -> pd.DataFrame:
        """Shares of the series of each activity that have each component, activity x component."""
        return self.assignment(restart).groupby(self.activities).mean()


def learn_seizure(
    sample: str,
    journal: str | Path | None = None,
    settings: SeizureSettings | None = None,
    *,
    executor: Executor | None = None,
) -> SeizureResult:
    """Learn the six kernels from one of the authors' samples, or read what was learnt.

    Parameters
    ----------
    sample
        Its name, see `lkm_gpflow.datasets.seizure`.
    journal
        File that keeps the fits; those that it has are not run again.
    settings
        See `SeizureSettings`.
    executor
        Runs the restarts; None: this process.
    """
    settings = settings or SeizureSettings()
    data = datasets.load("seizure", sample=sample)
    assert data.labels is not None
    table = Table.of(data.frame)
    observations = table.observations
    # Without the number of restarts: more of them go on from the same file.
    fixed = {
        **asdict(settings),
        "structure": list(settings.structure),
        "fit": settings.fit.to_json(),
    }
    del fixed["restarts"]
    header = {"settings": fixed, "data": observations.fingerprint}
    kept = Journal(None if journal is None else Path(journal), "seizure", header)
    fits = {record["restart"]: fit_from_json(record["fit"]) for record in kept.records}
    members = [parse(text) for text in settings.structure]
    jobs: dict[int, Callable[[], Fit]] = {
        r: partial(fit, observations, members, seed=(settings.seed, r), settings=settings.fit)
        for r in range(settings.restarts)
        if r not in fits
    }
    for restart, found in run_all(jobs, executor):
        fits[restart] = found
        kept.append({"restart": restart, "fit": fit_to_json(found)})
    best_first = sorted((fits[r] for r in range(settings.restarts)), key=lambda f: -f.elbo)
    return SeizureResult(table, data.labels, tuple(best_first), settings.fit.alpha)

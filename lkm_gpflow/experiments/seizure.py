"""The seizure experiment (figure 5): 50 EEG series, six kernels, and what is said of them.

The paper reads three observations off a learnt Z.  Here each has a definition that can miss, over
the *profile* of an activity: the shares of its series that have each component.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import asdict, dataclass, field
from functools import partial
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd

from .. import datasets
from ..config import Floats
from ..executors import run_all
from ..expressions import Product, parse
from ..fits import Fit, FitSettings
from ..frames import Table
from ..journal import Journal
from ..kernels import to_kernel
from ..ledger import fit_from_json, fit_to_json
from ..training import fit

STRUCTURE = ("SE", "SE", "PER", "PER", "PER x SE", "PER x SE")
"""The paper's six kernels (section 6.2)."""

SAMPLES = ("get_50_exp_0", "get_50_exp_1", "get_50_exp_2")
"""The authors' own draws of 50 series."""

SEIZURE, LOCATED_TUMOUR, IDENTIFYING_TUMOUR, EYES_CLOSED, EYES_OPEN = 1, 2, 3, 4, 5
"""The labels of the activities, as the paper numbers them."""


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
        How one structure is learnt; nothing is pruned, because the structure is given.
    """

    structure: tuple[str, ...] = STRUCTURE
    restarts: int = 3
    seed: int = 0
    fit: FitSettings = field(default_factory=lambda: FitSettings(prune=False))


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
        One a restart, in scaled units; the best (by its evidence lower bound) first.
    """

    table: Table
    activities: pd.Series[int]
    fits: tuple[Fit, ...]

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
    fixed = {**asdict(settings), "structure": list(settings.structure)}
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
    return SeizureResult(table, data.labels, tuple(best_first))


# --- measures ---


def correlation_time(kernel: Product) -> float:
    r"""Return the lag at which a stationary kernel's correlation first falls to exp(-1/2).

    One measure of rapidity for all kernels: for SE it is the lengthscale; for PER it grows with the
    period and with the lengthscale; for a product it is below that of every factor.

    Parameters
    ----------
    kernel
        Complete and stationary.

    Returns
    -------
    A time in the kernel's unit; infinity if the correlation never falls so low.
    """
    gpflow_kernel = to_kernel(kernel)
    lags = np.concatenate([[0.0], np.geomspace(1e-5, 1e3, 40_001)])[:, None]
    covariance = np.asarray(gpflow_kernel(lags, np.zeros((1, 1))))[:, 0]
    below = np.flatnonzero(covariance <= np.exp(-0.5) * covariance[0])
    return float(lags[below[0], 0]) if len(below) else np.inf


def longest_period(kernel: Product) -> float:
    """Return the longest period among a product's factors; zero if it has none."""
    periods = [factor.values[0] for factor in kernel.factors if factor.base.name == "PER"]
    return max((period for period in periods if period is not None), default=0.0)


@dataclass(frozen=True)
class TumourAreas:
    """Observation 1: the two tumour areas have the same sparsity.

    It holds if each of the two profiles is the other's nearest (mean absolute difference, all five
    activities) and a permutation of the labels of their series is as far apart in more than
    one case of twenty.

    Parameters
    ----------
    distances
        Between all pairs of profiles, activity x activity.
    p_value
        Of the permutation test.
    """

    distances: pd.DataFrame
    p_value: float

    @property
    def are_nearest(self) -> bool:
        """Whether each is the other's nearest."""
        pair = {LOCATED_TUMOUR: IDENTIFYING_TUMOUR, IDENTIFYING_TUMOUR: LOCATED_TUMOUR}
        return all(self.distances[a].drop(a).idxmin() == b for a, b in pair.items())

    @property
    def holds(self) -> bool:
        """See the class."""
        return self.are_nearest and self.p_value > 0.05


def tumour_areas(
    Z: pd.DataFrame, activities: pd.Series[int], *, permutations: int = 2000, seed: int = 0
) -> TumourAreas:
    """Measure observation 1 on an assignment."""
    profiles = Z.groupby(activities).mean()
    distances = pd.DataFrame(0.0, profiles.index, profiles.index)
    for a, b in combinations(profiles.index, 2):
        distances.loc[a, b] = distances.loc[b, a] = (profiles.loc[a] - profiles.loc[b]).abs().mean()
    first, second = (
        Z[activities == a].to_numpy(np.float64) for a in (LOCATED_TUMOUR, IDENTIFYING_TUMOUR)
    )
    rows, rng = np.concatenate([first, second]), np.random.default_rng(seed)
    observed = _distance(rows, len(first))
    shuffled = [_distance(rng.permutation(rows), len(first)) for _ in range(permutations)]
    # The observed labelling is one of the permutations.
    count = 1 + sum(distance >= observed - 1e-12 for distance in shuffled)
    return TumourAreas(distances, count / (permutations + 1))


def _distance(rows: Floats, cut: int) -> float:
    return float(np.abs(rows[:cut].mean(axis=0) - rows[cut:].mean(axis=0)).mean())


@dataclass(frozen=True)
class Presence:
    """How common some components are in each activity, and whether an observation holds.

    Parameters
    ----------
    shares
        Components x activities, with a column of what was measured of the component.
    holds
        Whether the observation holds.
    """

    shares: pd.DataFrame
    holds: bool


def rapid_components(profiles: pd.DataFrame, kernels: tuple[Product, ...]) -> Presence:
    """Measure observation 2: eyes open and eyes closed share rapidly varying components.

    Rapid are the components with the shorter half of the correlation times.  It holds if one of
    them is in at least half of the series of both activities, and more common in either
    than in either tumour area.
    """
    times = pd.Series([correlation_time(kernel) for kernel in kernels], profiles.columns)
    rapid = times.sort_values().index[: (len(times) + 1) // 2]
    shares = profiles[rapid].T
    eyes = shares[[EYES_CLOSED, EYES_OPEN]].min(axis=1)
    tumours = shares[[LOCATED_TUMOUR, IDENTIFYING_TUMOUR]].max(axis=1)
    holds = bool(((eyes >= 0.5) & (eyes > tumours)).any())
    return Presence(shares.assign(**{"correlation time": times[rapid]}), holds)


def slow_period(profiles: pd.DataFrame, kernels: tuple[Product, ...]) -> Presence:
    """Measure observation 3: seizures lack the low-frequency periodic component.

    That is the component with the longest period.  It holds if at most a tenth of the seizure
    series have it and at least a quarter of all others.
    """
    periods = pd.Series([longest_period(kernel) for kernel in kernels], profiles.columns)
    shares = profiles[periods.index[periods > 0.0]].T.assign(period=periods[periods > 0.0])
    slowest = shares.sort_values("period", ascending=False).iloc[0]
    others = slowest[[LOCATED_TUMOUR, IDENTIFYING_TUMOUR, EYES_CLOSED, EYES_OPEN]].mean()
    holds = bool(slowest[SEIZURE] <= 0.1 and others >= 0.25)
    return Presence(shares.sort_values("period", ascending=False), holds)

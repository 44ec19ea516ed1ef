"""How often a search found a component, and whether it survives without one of the series."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from ..data.observations import Observations
from ..discovery.result import Discovery
from ..fit.fits import Fit
from ..fit.training import fit
from ..gp.types import Floats
from ..kernels.grammar import Product
from ..runtime.executors import run_all
from ..runtime.progress import Progress
from ..sharing.matching import ALIKE, one_to_one, shapes_of, thinned


@dataclass(frozen=True)
class Stability:
    """How often a component was found."""

    # Fits of the ledger, begun from nothing, that could have found it: its structure was among
    # their members.
    tried: int
    # Those of them that have it.  Components are matched one to one: a fit with one of two that are
    # nearly alike has found one (see `discovery.matching`).
    found: int
    # How often it was learnt without one of its series, and found again; zero if not asked.
    left_out: int = 0
    survived: int = 0

    @property
    def share(self) -> float:
        """Share of the fits that could have found it and did."""
        return self.found / self.tried if self.tried else float("nan")


def stability(found: Discovery) -> list[Stability]:
    """Look up every component in the fits of the ledger that began from nothing.

    The other fits began at one that had it, and the best fit itself adds nothing new.
    """
    kernels, grid = found.consensus.kernels, thinned(found.table.observations.x)
    others = [
        (set(entry.structure), _alike(kernels, entry.fit.kernels, grid))
        for entry in found.entries
        if entry.is_from_nothing(found.settings.fit.learner) and entry.fit.bic != found.bic
    ]
    results = []
    for k, kernel in enumerate(kernels):
        tried = [alike for members, alike in others if str(kernel.structure) in members]
        results.append(Stability(len(tried), sum(k in each for each in tried)))
    return results


def _alike(kernels: Sequence[Product], others: Sequence[Product], grid: Floats) -> frozenset[int]:
    """Numbers of the kernels that a fit of these others has."""
    own, theirs = shapes_of(kernels, grid), shapes_of(others, grid)
    return frozenset(k for k, _ in one_to_one(own, theirs, ALIKE))


def leave_one_out(
    found: Discovery, *, executor: Executor | None = None, progress: bool = True
) -> list[Stability]:
    """Learn the components again without each series in turn, from nothing.

    Returns `stability` with `left_out` and `survived`: of the fits without a series that has the
    component, those that found it again.
    """
    kernels, Z = found.consensus.kernels, found.consensus.Z
    observations = found.table.observations
    grid = thinned(observations.x)
    N = observations.num_series
    if N < 2:
        raise ValueError(f"expected at least 2 series to leave one out, got {N}")
    jobs = {n: partial(_without, found, n) for n in range(N)}
    again: dict[int, Fit] = {}
    with Progress("without a series", N, shown=progress) as bar:
        for n, one in run_all(jobs, executor, hear=bar.hear):
            again[n] = one
            bar.update()
    alike = {n: _alike(kernels, one.kernels, grid) for n, one in again.items()}
    results = []
    for k, before in enumerate(stability(found)):
        owners = np.flatnonzero(Z[:, k])
        survived = sum(k in alike[n] for n in owners)
        results.append(replace(before, left_out=len(owners), survived=survived))
    return results


def _without(found: Discovery, n: int) -> Fit:
    observations = found.table.observations
    rest = Observations(
        observations.x, np.delete(observations.Y, n, 0), np.delete(observations.mask, n, 0)
    )
    bare = [kernel.structure for kernel in found.consensus.kernels]
    return fit(rest, bare, seed=(found.settings.seed, 2_000_000, n), settings=found.settings.fit)

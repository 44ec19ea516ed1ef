"""How often a search found a component, and whether it survives without one of the series."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from ..data.observations import Observations
from ..discovery.consensus import measured_in_time
from ..discovery.matching import ALIKE, one_to_one, shapes_of, thinned
from ..discovery.result import Discovery
from ..kernels.grammar import Product
from ..learning.fits import Fit
from ..learning.training import fit
from ..numerics.types import Floats
from ..runtime.executors import run_all
from ..runtime.progress import Progress


@dataclass(frozen=True)
class Stability:
    """How often a component was found.

    Parameters
    ----------
    tried
        Fits of the ledger, begun from nothing, that could have found it: its structure was among
        their members.
    found
        Those of them that have it.  Components are matched one to one: a fit with one of two that
        are nearly alike has found one (see `discovery.matching`).
    ranges
        The middle four fifths of each duration, over the fits among `tried` that have a component
        of this structure, matched one to one: name, lower, upper, in the data's time.
    left_out, survived
        How often it was learnt without one of its series, and found again; zero if not asked.
    """

    tried: int
    found: int
    ranges: tuple[tuple[str, float, float], ...]
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
        (set(entry.structure), _matches(kernels, entry.fit.kernels, grid))
        for entry in found.entries
        if (entry.restart > 0 or entry.parent == -1) and entry.fit.bic != found.bic
    ]
    results = []
    for k, kernel in enumerate(kernels):
        tried = [matches for members, matches in others if str(kernel.structure) in members]
        durations: dict[str, list[float]] = {}
        for matches in tried:
            version = matches.of_its_kind.get(k)
            for name, value in () if version is None else measured_in_time(version):
                durations.setdefault(name, []).append(value * found.table.span)
        ranges = tuple(
            (name, float(np.quantile(values, 0.1)), float(np.quantile(values, 0.9)))
            for name, values in durations.items()
        )
        results.append(Stability(len(tried), sum(k in each.alike for each in tried), ranges))
    return results


@dataclass(frozen=True)
class _Matches:
    """Components that a fit has: numbers of those alike, and the nearest of the same structure."""

    alike: frozenset[int]
    of_its_kind: dict[int, Product]


def _matches(kernels: Sequence[Product], others: Sequence[Product], grid: Floats) -> _Matches:
    own, theirs = shapes_of(kernels, grid), shapes_of(others, grid)
    alike = frozenset(k for k, _ in one_to_one(own, theirs, ALIKE))
    of_its_kind = {}
    for structure in {kernel.structure for kernel in kernels}:
        mine = [k for k, kernel in enumerate(kernels) if kernel.structure == structure]
        same = [i for i, other in enumerate(others) if other.structure == structure]
        for k, i in one_to_one(own[mine], theirs[same], 0.0):
            of_its_kind[mine[k]] = others[same[i]]
    return _Matches(alike, of_its_kind)


def leave_one_out(
    found: Discovery, *, executor: Executor | None = None, progress: bool = True
) -> list[Stability]:
    """Learn the components again without each series in turn, from nothing.

    Parameters
    ----------
    found
        A discovery of at least two series.
    executor
        Runs the fits; None: this process.
    progress
        Whether to show a progress bar.

    Returns
    -------
    As `stability`, with `left_out` and `survived`: of the fits without a series that has the
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
    alike = {n: _matches(kernels, one.kernels, grid).alike for n, one in again.items()}
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

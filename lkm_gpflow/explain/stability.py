"""How often a search found a component, and whether it survives without one of the series."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from ..data.observations import Observations
from ..discovery.result import Discovery
from ..kernels.grammar import Kind, Product
from ..learning.engine import components
from ..learning.fits import Fit
from ..learning.training import fit
from ..numerics.types import Floats
from ..runtime.executors import run_all
from ..runtime.progress import Progress

ALIKE = 0.95
"""Two components are the same if their covariances on the grid correlate this much."""


@dataclass(frozen=True)
class Stability:
    """How often a component of the best fit was found.

    Parameters
    ----------
    tried
        Fits of the ledger, begun from nothing, that could have found it: its structure was among
        their members.
    found
        Those of them that have it: the same structure, and a covariance that is alike.
    ranges
        The middle four fifths of each duration, over the fits among `tried` that have a component
        of this structure, the one most alike taken: name, lower, upper, in the data's time.
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
    """Look every component up in the fits of the ledger that began from nothing.

    The others began at a fit that had it, and the best fit itself says nothing new.
    """
    x = found.table.observations.x
    fits = [
        (entry.structure, entry.fit)
        for entry in found.entries
        if (entry.restart > 0 or entry.parent == -1) and entry.fit.bic != found.bic
    ]
    return [_looked_up(kernel, fits, x, found.table.span) for kernel in found.fit.kernels]


def _looked_up(
    kernel: Product, fits: Sequence[tuple[tuple[str, ...], Fit]], x: Floats, span: float
) -> Stability:
    tried = [one for members, one in fits if str(kernel.structure) in members]
    nearest = [_nearest(kernel, one.kernels, x) for one in tried]
    durations: dict[str, list[float]] = {}
    for other, _ in nearest:
        for name, value in () if other is None else _durations(other, span):
            durations.setdefault(name, []).append(value)
    ranges = tuple(
        (name, float(np.quantile(values, 0.1)), float(np.quantile(values, 0.9)))
        for name, values in durations.items()
    )
    return Stability(len(tried), sum(alike >= ALIKE for _, alike in nearest), ranges)


def _durations(kernel: Product, span: float) -> Iterator[tuple[str, float]]:
    """Names and values of what a kernel measures in time."""
    for factor in kernel.factors:
        for (name, kind), value in zip(factor.base.parameters, factor.values, strict=True):
            if kind in (Kind.DURATION, Kind.PERIOD, Kind.MEMORY) and value is not None:
                yield f"{factor.base.name} {name}", value * span


def _nearest(kernel: Product, others: Sequence[Product], x: Floats) -> tuple[Product | None, float]:
    """Return the component of the same structure that is most alike, and how much."""
    same = [other for other in others if other.structure == kernel.structure]
    if not same:
        return None, 0.0
    alike = likeness_of_kernels(kernel, same, x)
    return same[int(np.argmax(alike))], float(alike.max())


def likeness_of_kernels(kernel: Product, others: Sequence[Product], x: Floats) -> Floats:
    r"""Cosine of covariance matrices, :math:`\langle C, C' \rangle / (\|C\| \|C'\|)`.

    Parameters
    ----------
    kernel, others
        Complete products.
    x
        The grid, [D].
    """
    C, *rest = np.asarray(components([kernel, *others], x))
    products = np.tensordot(np.array(rest), C, axes=2)
    return products / (np.linalg.norm(C) * np.linalg.norm(np.array(rest), axis=(1, 2)))


def leave_one_out(
    found: Discovery, *, executor: Executor | None = None, progress: bool = True
) -> list[Stability]:
    """Learn the best structure again without each series in turn, from nothing.

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
    kernels, Z = found.fit.kernels, found.fit.Z
    observations = found.table.observations
    N = observations.num_series
    if N < 2:
        raise ValueError(f"expected at least 2 series to leave one out, got {N}")
    jobs = {n: partial(_without, found, n) for n in range(N)}
    again: dict[int, Fit] = {}
    with Progress("without a series", N, shown=progress) as bar:
        for n, one in run_all(jobs, executor, hear=bar.hear):
            again[n] = one
            bar.update()
    results = []
    for k, (kernel, before) in enumerate(zip(kernels, stability(found), strict=True)):
        owners = np.flatnonzero(Z[:, k])
        alike = [_nearest(kernel, again[n].kernels, observations.x)[1] for n in owners]
        results.append(
            replace(before, left_out=len(owners), survived=sum(a >= ALIKE for a in alike))
        )
    return results


def _without(found: Discovery, n: int) -> Fit:
    observations = found.table.observations
    rest = Observations(
        observations.x, np.delete(observations.Y, n, 0), np.delete(observations.mask, n, 0)
    )
    bare = [kernel.structure for kernel in found.fit.kernels]
    return fit(rest, bare, seed=(found.settings.seed, 2_000_000, n), settings=found.settings.fit)

"""Cycles in whatever form: components that repeat with about one period, taken together.

Fits of a search may agree that a series repeats every eleven years, and disagree on how: strictly,
approximately, or with a height that wanders.  Then no component is certain, and yet the cycle is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..kernels.grammar import Product
from ..numerics.types import Floats, Integers

_SAME = 0.1
"""Neighbouring periods that differ by less, in their logarithm, are about one."""

_REPEATS = 0.5
"""A cycle whose smooth factor has a lengthscale below so many periods never repeats."""


@dataclass(frozen=True)
class Cycle:
    """Consensus components that repeat with about one period, and who has any of them.

    Parameters
    ----------
    members
        Numbers of the components, ascending.
    by_fit
        Probability that a series has any of them, by each fit, [M, N].
    evidence
        Log Bayes factors of having any of them, [N]; as `Consensus.evidence`.
    """

    members: tuple[int, ...]
    by_fit: Floats
    evidence: Floats

    def of_series(self, places: Integers) -> Cycle:
        """Return the part about some series."""
        return replace(self, by_fit=self.by_fit[:, places], evidence=self.evidence[places])


def of_one_period(kernels: Sequence[Product]) -> list[tuple[int, ...]]:
    """Return the numbers of kernels with about one period, two or more of each."""
    periods = {k: math.log(p) for k, kernel in enumerate(kernels) if (p := period(kernel))}
    groups: list[list[int]] = []
    for k in sorted(periods, key=lambda k: periods[k]):
        if groups and periods[k] - periods[groups[-1][-1]] < _SAME:
            groups[-1].append(k)
        else:
            groups.append([k])
    return [tuple(sorted(group)) for group in groups if len(group) > 1]


def period(kernel: Product) -> float:
    """Return the longest period of a kernel, zero if it has none or never repeats."""
    return 0.0 if never_repeats(kernel) else longest_period(kernel)


def longest_period(kernel: Product) -> float:
    """Return the longest period of a kernel, zero if it has none."""
    return max(_values(kernel, "PER"), default=0.0)


def never_repeats(kernel: Product) -> bool:
    """Whether it is periodic only by its kernel: it has changed long before a period ends.

    With a lengthscale of half a period, values a period apart have a correlation of 0.14.
    """
    return min(_values(kernel, "SE"), default=math.inf) < _REPEATS * longest_period(kernel)


def _values(kernel: Product, name: str) -> list[float]:
    """First numbers of the factors of a base kernel."""
    return [float(f.values[0] or 0.0) for f in kernel.factors if f.base.name == name]

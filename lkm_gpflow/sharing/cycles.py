"""Which kernels repeat, and which of them with about one period."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..kernels.grammar import Product

_SAME = 0.1
"""Neighbouring periods that differ by less, in their logarithm, are about one."""

_REPEATS = 0.5
"""A cycle whose smooth factor has a lengthscale below so many periods never repeats."""


def of_one_period(kernels: Sequence[Product]) -> list[tuple[int, ...]]:
    """Return the numbers of kernels with about one period."""
    periods = {k: math.log(p) for k, kernel in enumerate(kernels) if (p := period(kernel))}
    groups: list[list[int]] = []
    for k in sorted(periods, key=lambda k: periods[k]):
        if groups and periods[k] - periods[groups[-1][-1]] < _SAME:
            groups[-1].append(k)
        else:
            groups.append([k])
    return [tuple(sorted(group)) for group in groups]


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

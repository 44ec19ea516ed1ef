"""Which kernels repeat, and with which period."""

from __future__ import annotations

import math

from ..kernels.grammar import Product

_REPEATS = 0.5
"""A cycle whose smooth factor has a lengthscale below so many periods never repeats."""


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

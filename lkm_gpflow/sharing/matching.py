"""Which components are one: periods, shapes, their correlation, one-to-one matching."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy.optimize import linear_sum_assignment

from ..fit.engine import components
from ..gp.types import Booleans, Floats, Integers
from ..kernels.grammar import Product


def centred(C: Floats) -> Floats:
    r"""Return covariances of series whose averages were subtracted, [..., D, D].

    .. math:: x - \bar x 1 = H x \sim \mathcal{N}(0, H C H), \qquad H = I - \tfrac1D 1 1^\top

    Nothing is left in the direction of 1.
    """
    by_column: Floats = C - C.mean(axis=-2, keepdims=True)
    return by_column - by_column.mean(axis=-1, keepdims=True)


_REPEATS = 0.5
"""A cycle whose smooth factor has a lengthscale below so many periods never repeats."""

SAME = 0.95
"""From this correlation on two components are one: near duplicates, which data hardly tell apart.

Smooth components are the same up to lengthscales about 1.6 times apart, cycles up to periods that
are out of step by a tenth of a period within the data; walks with and without next to no momentum
are the same, a walk and a smooth component never.  A straight line and a smooth component are the
same if the lengthscale is no shorter than two thirds of the data.
"""

ALIKE = 0.93
"""From this correlation on components of different fits are versions of one; see `SAME`."""

MUCH_LIKE = 0.85
"""From this correlation on a pattern counts as a component, where it is said who has what.

Smooth components are much alike up to lengthscales about 2.3 times apart, and so are a random walk
and a smooth component whose lengthscale is between a tenth of the time and nine tenths.
"""

_MOST_TIMES = 200
"""Of the grid on which covariances are compared."""

FLAT = 1e-9
"""A component that has less of its variance over time is a constant."""


def shapes_of(kernels: Sequence[Product], x: Floats) -> Floats:
    r"""Shapes of components on a grid as vectors of unit length, [K, D * D]; zero of constants.

    .. math:: \frac{S}{\|S\|}, \qquad S = (H C H)^{1/2}, \qquad H = I - \tfrac1D 1 1^\top

    H C H is the covariance of what a component does about its own average: series are centred,
    too, so that their level says nothing.  The inner product of two such vectors is the
    correlation of the components.  Without the root the slowest movement would decide alone, and
    a smooth component and a random walk would be one.

    Parameters
    ----------
    kernels
        Complete products.
    x
        The grid, [D].
    """
    C = components(kernels, x)
    before = np.trace(C, axis1=1, axis2=2)
    values, vectors = np.linalg.eigh(centred(C))
    roots = np.sqrt(np.maximum(values, 0.0))
    S = (vectors * roots[:, None, :]) @ np.swapaxes(vectors, 1, 2)
    size = np.linalg.norm(S, axis=(1, 2))
    is_flat = np.square(size) <= FLAT * before
    S /= np.where(is_flat, np.inf, size)[:, None, None]
    shapes: Floats = S.reshape(len(C), len(x) ** 2)  # of no kernels, too
    return shapes


def sizes_of(kernels: Sequence[Product], x: Floats) -> Floats:
    """Variances over time that components are expected to have about their own average, [K]."""
    return np.trace(centred(components(kernels, x)), axis1=1, axis2=2) / len(x)


def thinned(x: Floats) -> Floats:
    """Return the grid on which shapes are compared: the times, or 200 of more."""
    if len(x) <= _MOST_TIMES:
        return x
    return x[np.linspace(0, len(x) - 1, _MOST_TIMES).round().astype(int)]


def correlation(a: Floats, b: Floats) -> Floats:
    """Correlations of shapes, [A, B]; constants are like constants alone."""
    products: Floats = a @ b.T
    both_flat = ~a.any(axis=1)[:, None] & ~b.any(axis=1)[None, :]
    return np.where(both_flat, 1.0, products)


ONE_CYCLE = 0.5
"""Cycles are one if their frequencies differ by fewer cycles per span than this."""


def do_much_the_same(
    a: Sequence[Product], b: Sequence[Product], shapes_a: Floats, shapes_b: Floats
) -> Booleans:
    """Whether components, with their shapes, are one pattern in whatever form, [A, B].

    Their shapes are much alike (`MUCH_LIKE`), or both are cycles of one period.
    """
    p, q = (np.array([period(one) for one in each]) for each in (a, b))
    with np.errstate(divide="ignore", invalid="ignore"):
        one_cycle = np.abs(1.0 / p[:, None] - 1.0 / q) < ONE_CYCLE  # NaN where neither repeats
    return np.asarray((correlation(shapes_a, shapes_b) >= MUCH_LIKE) | one_cycle)


def one_to_one(a: Floats, b: Floats, least: float) -> list[tuple[int, int]]:
    """Pairs of rows of a and b that stand for each other: the assignment of most correlation.

    Parameters
    ----------
    a, b
        Shapes, [A, P] and [B, P]; see `shapes_of`.
    least
        Correlation below which two are not matched.
    """
    likeness = correlation(a, b)
    gain = np.where(likeness >= least, likeness, 0.0)
    return [
        (int(i), int(j))
        for i, j in zip(*linear_sum_assignment(-gain), strict=True)
        if gain[i, j] > 0.0
    ]


def groups_of_same(shapes: Floats) -> Integers:
    """Number the components of one fit so that near duplicates have one number, [K]."""
    number = np.arange(len(shapes))
    likeness = correlation(shapes, shapes)
    for i, j in zip(*np.nonzero(np.triu(likeness > SAME, 1)), strict=True):
        number[number == number[j]] = number[i]
    return np.unique(number, return_inverse=True)[1]


def unit(rows: Floats) -> Floats:
    """Return rows of length one; rows of zeros stay."""
    size = np.linalg.norm(rows, axis=-1, keepdims=True)
    scaled: Floats = rows / np.where(size > 0.0, size, 1.0)
    return scaled


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

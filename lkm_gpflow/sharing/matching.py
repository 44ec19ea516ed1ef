"""How alike components are: their periods, their shapes, and the correlation of shapes."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ..fit.engine import components
from ..gp.types import Floats
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

MUCH_LIKE = 0.85
"""From this correlation on columns do the same.

Smooth components are much alike up to lengthscales about 2.3 times apart, and so are a random walk
and a smooth component whose lengthscale is between a tenth of the time and nine tenths.
"""

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


def correlation(a: Floats, b: Floats) -> Floats:
    """Correlations of shapes, [A, B]; constants are like constants alone."""
    products: Floats = a @ b.T
    both_flat = ~a.any(axis=1)[:, None] & ~b.any(axis=1)[None, :]
    return np.where(both_flat, 1.0, products)


ONE_CYCLE = 0.5
"""Cycles are one if their frequencies differ by fewer cycles per span than this."""


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

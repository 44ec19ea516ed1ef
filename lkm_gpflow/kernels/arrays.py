"""The built-in base kernels in NumPy, each with its own derivatives.

TensorFlow takes longer to dispatch an operation on a hundred numbers than NumPy takes to do it,
and learning needs tens of thousands of such evaluations.  So what `base` defines for TensorFlow is
here once more: a value, and what pulls a gradient back to the parameters as they are learnt
(logarithms of the positive ones).  A kernel that a user registered has no entry here, see `taped`.
TensorFlow, which takes seconds to load, is only loaded for these.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeAlias

import numpy as np
from scipy.special import expit, i0e, i1e

from ..gp.lags import LagGrid, Lags
from ..gp.types import Booleans, Floats
from .grammar import BaseKernel

Pull: TypeAlias = Callable[[Floats], Sequence[float]]
"""From the gradient by values to that by the parameters, as they are learnt.

Values are [R] of a stationary kernel.  Of another they are [D, D], and only the lower triangle of
the gradient is given, with half its diagonal: what is returned is half of the whole then.
"""

Evaluate: TypeAlias = Callable[..., tuple[Floats, Pull]]


def _white(grid: Lags) -> tuple[Floats, Pull]:
    return (grid.lags == 0.0).astype(np.float64), lambda g: ()


def _constant(grid: Lags) -> tuple[Floats, Pull]:
    return np.ones_like(grid.lags), lambda g: ()


def _squared_exponential(grid: Lags, lengthscale: float) -> tuple[Floats, Pull]:
    squared = np.square(grid.lags / lengthscale)
    k = np.exp(-0.5 * squared)
    return k, lambda g: (float(g @ (k * squared)),)


def _periodic(grid: Lags, period: float, lengthscale: float) -> tuple[Floats, Pull]:
    r"""See `base.ZeroMeanPeriodic`; a = 1 / l^2, s = sin(pi r / p), c = 1 - 2 s^2.

    .. math:: \frac{\partial k}{\partial a}
       = \frac{c\,e^{ac} - I_1(a) - k\,(e^a - I_1(a))}{e^a - I_0(a)}
    """
    angle = (math.pi / period) * _remainder(grid.lags, period)
    sine, a = np.sin(angle), lengthscale**-2.0
    c = 1.0 - 2.0 * np.square(sine)
    if a < 0.5:
        f, f_at_1, i1 = np.exp(a * c), math.exp(a), math.exp(a) * float(i1e(a))
        i0_minus_1 = 0.0
        for j in range(7, 0, -1):
            i0_minus_1 = 0.25 * a * a / (j * j) * (1.0 + i0_minus_1)
        below = math.expm1(a) - i0_minus_1
        k = (np.expm1(a * c) - i0_minus_1) / below
    else:
        f, f_at_1, i1, i0 = np.exp(a * (c - 1.0)), 1.0, float(i1e(a)), float(i0e(a))
        below = 1.0 - i0
        k = (f - i0) / below

    def pull(g: Floats) -> Sequence[float]:
        # By s^2 it is -2 a f / below; by log p the angle changes by -pi r / p.
        gf = g * f
        by_angle = gf * sine * np.cos(angle)
        by_period = 4.0 * a / below * (math.pi / period) * float(by_angle @ grid.lags)
        by_a = (float(gf @ c) - i1 * float(g.sum()) - (f_at_1 - i1) * float(g @ k)) / below
        return by_period, -2.0 * a * by_a

    return k, pull


def _remainder(r: Floats, period: float) -> Floats:
    """See `base._remainder`: half of the period's digits at a time, so that products are exact."""
    whole = np.round(r / period)
    shifted = (2.0**27 + 1.0) * period
    upper = shifted - (shifted - period)
    return (r - whole * upper) - whole * (period - upper)


def _linear(grid: LagGrid, location: float) -> tuple[Floats, Pull]:
    c = grid.x - location
    return np.multiply.outer(c, c), lambda G: (-float(c @ _sums(G)),)


def _random_walk(grid: LagGrid, start: float) -> tuple[Floats, Pull]:
    def pull(G: Floats) -> Sequence[float]:
        return (-float(_after(G, grid.x > start).sum()),)

    return grid.walk(start), pull


def _integrated_ornstein_uhlenbeck(
    grid: LagGrid, lengthscale: float, start: float
) -> tuple[Floats, Pull]:
    """See `base.IntegratedOrnsteinUhlenbeck`; its last term by lag, the others by time."""
    after = grid.x > start
    s = np.where(after, grid.x - start, 0.0)
    by_lag, by_time = np.expm1(-grid.lags / lengthscale), np.expm1(-s / lengthscale)
    k = grid.spread(by_lag)
    k -= by_time[:, None]
    k -= by_time
    k *= -0.5 * lengthscale
    k += grid.walk(start)
    if not after.all():
        k *= np.multiply.outer(after, after)

    def pull(G: Floats) -> Sequence[float]:
        G = _after(G, after)
        sums = _sums(G)

        def slope(u: Floats, expm1: Floats) -> Floats:
            """Of -l / 2 expm1(-u / l) by log l."""
            return -0.5 * (lengthscale * expm1 + u * (1.0 + expm1))

        by_lengthscale = float(grid.collect(G) @ slope(grid.lags, by_lag))
        by_lengthscale -= float(sums @ slope(s, by_time))
        by_start = -float(G.sum()) + 0.5 * float(sums @ (1.0 + by_time))
        return by_lengthscale, by_start

    return k, pull


def _ornstein_uhlenbeck(grid: Lags, lengthscale: float) -> tuple[Floats, Pull]:
    scaled = grid.lags / lengthscale
    k = np.exp(-scaled)
    return k, lambda g: (float(g @ (k * scaled)),)


def window(x: Floats, at: float, width: float, *, sign: float) -> tuple[Floats, list[Floats]]:
    """Half of `base.Until` (`sign` -1) or `base.From` (1): c, [D], and its derivatives."""
    u = sign * (x - at) / width
    c = expit(u)
    slope = c * expit(-u)
    return c, [-sign * slope / width, -u * slope]


def _window(grid: LagGrid, at: float, width: float, *, sign: float) -> tuple[Floats, Pull]:
    c, slopes = window(grid.x, at, width, sign=sign)
    return np.multiply.outer(c, c), lambda G: [float(_sums_with(G, c) @ each) for each in slopes]


def _sums_with(G: Floats, s: Floats) -> Floats:
    """As `_sums`, pairs weighted by s at their other time, [D]."""
    return np.asarray(G @ s + s @ G)


def _sums(G: Floats) -> Floats:
    """Sums over rows and over columns, added up, [D]."""
    return _sums_with(G, np.ones(len(G)))


def _after(G: Floats, after: Booleans) -> Floats:
    """Without pairs of which one lies before the start of a walk."""
    return G if after.all() else np.asfortranarray(G * np.multiply.outer(after, after))


_BUILT_IN: dict[str, Evaluate] = {
    "WN": _white,
    "C": _constant,
    "LIN": _linear,
    "SE": _squared_exponential,
    "PER": _periodic,
    "RW": _random_walk,
    "IOU": _integrated_ornstein_uhlenbeck,
    "OU": _ornstein_uhlenbeck,
    "UNTIL": partial(_window, sign=-1.0),
    "FROM": partial(_window, sign=1.0),
}
"""By name; no other base kernel can be registered under these."""


def evaluate(base: BaseKernel, grid: Lags, values: Sequence[float]) -> tuple[Floats, Pull]:
    """Evaluate a base kernel on a grid.

    Parameters
    ----------
    base
        Built in, or registered.
    grid
        The times; a `LagGrid` if the base kernel is not stationary.
    values
        Its hyperparameters, in the order of ``base.parameters``.

    Returns
    -------
    Its values, by lag [R] if it is stationary and else [D, D], and their `Pull`.
    """
    if base.name in _BUILT_IN:
        return _BUILT_IN[base.name](grid, *values)
    from .taped import evaluate_taped

    return evaluate_taped(base, grid, values)

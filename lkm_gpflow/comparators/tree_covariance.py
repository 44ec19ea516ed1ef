"""Kernel trees as covariances: values and analytic gradients in NumPy, without a trace.

A tree is evaluated from its leaves up and differentiated from its root down.  Stationary parts
live on the different lags of the grid, of which a regular grid of D times has D, and are spread to
pairs of times where they meet parts that are not.  One value with its gradient takes well below a
millisecond for D = 120.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

import gpflow
import numpy as np
from scipy.special import i0e, i1e

from ..fit.initialization import VARIANCE, hyperparameter_range, typical_step
from ..gp.types import Floats
from ..kernels import component
from ..kernels.component import ComponentKernel
from ..kernels.grammar import Factor, Kind, Product
from .grammar import Node, Sum, Term, is_stationary

_LAG_DIGITS = 13
"""Lags (in spans) that agree to so many decimals are one."""

# --- base kernels: values, and gradients as they are learnt (logarithms of positive values) -------

_Gradients: TypeAlias = Callable[[], tuple[Floats, ...]]


def _white(x: Floats, x2: Floats) -> tuple[Floats, _Gradients]:
    return np.asarray(x == x2, np.float64), tuple


def _constant(x: Floats, x2: Floats) -> tuple[Floats, _Gradients]:
    return np.ones_like(x - x2), tuple


def _linear(x: Floats, x2: Floats, location: float) -> tuple[Floats, _Gradients]:
    return (x - location) * (x2 - location), lambda: (2.0 * location - x - x2,)


def _squared_exponential(x: Floats, x2: Floats, lengthscale: float) -> tuple[Floats, _Gradients]:
    squared = np.square((x - x2) / lengthscale)
    k = np.exp(-0.5 * squared)
    return k, lambda: (k * squared,)


def _periodic(
    x: Floats, x2: Floats, period: float, lengthscale: float
) -> tuple[Floats, _Gradients]:
    """``k = (exp(a c) - I0(a)) / (exp(a) - I0(a))``, a = 1 / l^2, c = cos(2 pi r / p).

    Of both sides one is taken for small a, and both are divided by exp(a) for large ones, as in
    `kernels.base.ZeroMeanPeriodic`.
    """
    angle = 2.0 * np.pi * (x - x2) / period
    c, a = np.cos(angle), lengthscale**-2.0
    if a < 0.5:
        f, f_at_1, i1 = np.exp(a * c), math.exp(a), math.exp(a) * i1e(a)
        i0_minus_1 = sum((0.5 * a) ** (2 * j) / math.factorial(j) ** 2 for j in range(1, 8))
        below = math.expm1(a) - i0_minus_1
        k = (np.expm1(a * c) - i0_minus_1) / below
    else:
        f, f_at_1, i1 = np.exp(a * (c - 1.0)), 1.0, i1e(a)
        below = 1.0 - i0e(a)
        k = (f - i0e(a)) / below

    def gradients() -> tuple[Floats, ...]:
        by_a = (c * f - i1 - k * (f_at_1 - i1)) / below
        return a * f / below * np.sin(angle) * angle, -2.0 * a * by_a

    return k, gradients


def _random_walk(x: Floats, x2: Floats, start: float) -> tuple[Floats, _Gradients]:
    return np.maximum(np.minimum(x, x2) - start, 0.0), tuple


_BASES: dict[str, Callable[..., tuple[Floats, _Gradients]]] = {
    "WN": _white,
    "C": _constant,
    "LIN": _linear,
    "SE": _squared_exponential,
    "PER": _periodic,
    "RW": _random_walk,
}
"""The kernels of `kernels.base` once more, without TensorFlow and with their gradients."""

KNOWN_BASES = tuple(_BASES)
"""Base kernels that can be learnt here."""


def covariance(kernel: Sum, x: Floats, x2: Floats) -> Floats:
    """Covariances of a complete kernel at times that broadcast: [D, 1] and [1, D2] give [D, D2]."""
    total = np.zeros(np.broadcast_shapes(x.shape, x2.shape))
    for term in kernel.terms:
        value = np.full_like(total, term.variance)
        for node in term.factors:
            if isinstance(node, Sum):
                value *= covariance(node, x, x2)
            else:
                value *= _BASES[node.base.name](x, x2, *node.values)[0]
        total += value
    return total


def to_kernel(kernel: Sum, is_factor: bool = False) -> gpflow.kernels.Kernel:
    """Return the GPflow kernel of a complete, normalised tree.

    Parameters
    ----------
    kernel
        The tree.
    is_factor
        Whether it is a factor of a product: then its first weight is redundant, hence fixed.

    Raises
    ------
    ValueError
        If the kernel is zero, for which GPflow has none.
    """
    if not kernel.terms:
        raise ValueError("expected a kernel of at least one term, got the kernel that is zero")
    terms = []
    for term in kernel.terms:
        if term.variance is None:
            raise ValueError(f"expected a kernel with all its numbers, got {kernel}")
        terms.append(ComponentKernel([_gpflow_factor(n) for n in term.factors], term.variance))
    if is_factor:
        gpflow.set_trainable(terms[0].variance, False)
    return terms[0] if len(terms) == 1 else gpflow.kernels.Sum(terms)


def _gpflow_factor(node: Node) -> gpflow.kernels.Kernel:
    if isinstance(node, Sum):
        return to_kernel(node, is_factor=True)
    return component.to_kernel(Product((node,), 1.0)).factors[0]


# --- a structure on a grid ------------------------------------------------------------------------


class Grid:
    """Times with their different lags.

    Parameters
    ----------
    x
        Scaled times, [D], sorted.
    """

    def __init__(self, x: Floats) -> None:
        self.x = x
        self.step = typical_step(x)
        rows, columns = np.repeat(x, len(x)), np.tile(x, len(x))
        distances = np.abs(rows - columns)
        _, first, self._lag_of_pair = np.unique(
            distances.round(_LAG_DIGITS), return_index=True, return_inverse=True
        )
        lags = distances[first]
        self.lags, self.pairs = (lags, np.zeros_like(lags)), (rows, columns)

    def spread(self, by_lag: Floats) -> Floats:
        """From values by lag to values by pair of times, [D * D]."""
        return by_lag[self._lag_of_pair]

    def collect(self, by_pair: Floats) -> Floats:
        """Sums over all pairs of a lag: the transpose of `spread`."""
        return np.bincount(self._lag_of_pair, by_pair, len(self.lags[0])).astype(np.float64)


_Pull: TypeAlias = Callable[[Floats], list[float]]
"""From the gradient by covariances to that by the parameters, in their order."""


class TreeCovariance:
    """The covariance of a structure on a grid, as a function of its parameters.

    The parameters are those of `Sum.parameters`, in their order, the positive ones as logarithms.

    Parameters
    ----------
    kernel
        The structure; of its numbers only those that are not learnt matter.
    grid
        The times, D of them.
    """

    def __init__(self, kernel: Sum, grid: Grid) -> None:
        self._kernel = kernel
        self._grid = grid
        kinds = [kind for kind, _ in kernel.parameters]
        ranges = [VARIANCE if k is None else hyperparameter_range(k, grid.step) for k in kinds]
        self._is_log = np.array([k is None or k.positive for k in kinds], bool)
        self.lower = np.array([r.lower for r in ranges])
        self.upper = np.array([r.upper for r in ranges])

    def pack(self, kernel: Sum) -> Floats:
        """Parameters of a normalised kernel of this structure."""
        theta = np.array([value for _, value in kernel.parameters], np.float64)
        theta[self._is_log] = np.log(theta[self._is_log])
        return theta

    def unpack(self, theta: Floats) -> Sum:
        """Return the kernel with these parameters."""
        return self._kernel.with_parameters(self._values(theta))

    def _values(self, theta: Floats) -> list[float]:
        return np.where(self._is_log, np.exp(np.where(self._is_log, theta, 0.0)), theta).tolist()

    def __call__(self, theta: Floats) -> tuple[Floats, Callable[[Floats], Floats]]:
        """Return K, [D, D], and what turns a gradient by K, [D, D], into one by theta."""
        D = len(self._grid.x)
        k, pull = self._sum(self._kernel, iter(self._values(theta)), is_factor=False)
        if self._kernel.is_stationary:
            k = self._grid.spread(k)

        def gradient(G: Floats) -> Floats:
            flat = G.ravel()
            return np.array(pull(self._grid.collect(flat) if self._kernel.is_stationary else flat))

        return k.reshape(D, D), gradient

    def _sum(self, kernel: Sum, values: Iterator[float], is_factor: bool) -> tuple[Floats, _Pull]:
        points = self._points(kernel.is_stationary)
        total, pulls = np.zeros_like(points[0]), []
        for i, term in enumerate(kernel.terms):
            k, pull = self._term(term, values, is_redundant=is_factor and i == 0)
            k, pull = self._fit(k, pull, term.is_stationary, kernel.is_stationary)
            total += k
            pulls.append(pull)
        return total, lambda g: [value for pull in pulls for value in pull(g)]

    def _term(
        self, term: Term, values: Iterator[float], is_redundant: bool
    ) -> tuple[Floats, _Pull]:
        factors: list[Floats] = []
        pulls: list[_Pull] = []
        for node in term.factors:
            if isinstance(node, Sum):
                k, pull = self._sum(node, values, is_factor=True)
            else:
                k, pull = self._base(node, values)
            k, pull = self._fit(k, pull, is_stationary(node), term.is_stationary)
            factors.append(k)
            pulls.append(pull)
        variance = 1.0 if is_redundant else next(values)
        product = _product(factors, variance)

        def gradient(g: Floats) -> list[float]:
            found = []
            for j, pull in enumerate(pulls):
                found += pull(g * _product(factors[:j] + factors[j + 1 :], variance))
            return found if is_redundant else [*found, float(g @ product)]

        return product, gradient

    def _base(self, factor: Factor, values: Iterator[float]) -> tuple[Floats, _Pull]:
        numbers = (
            value if kind is Kind.ORIGIN else next(values)
            for (_, kind), value in zip(factor.base.parameters, factor.values, strict=True)
        )
        k, gradients = _BASES[factor.base.name](*self._points(factor.base.stationary), *numbers)
        return k, lambda g: [float(g @ by) for by in gradients()]

    def _points(self, is_stationary: bool) -> tuple[Floats, Floats]:
        return self._grid.lags if is_stationary else self._grid.pairs

    def _fit(
        self, k: Floats, pull: _Pull, is_stationary: bool, is_whole_stationary: bool
    ) -> tuple[Floats, _Pull]:
        """Bring a part to the points of the whole."""
        if is_stationary == is_whole_stationary:
            return k, pull
        return self._grid.spread(k), lambda g: pull(self._grid.collect(g))


def _product(factors: Sequence[Floats], variance: float) -> Floats:
    product = np.array(variance)
    for factor in factors:
        product = product * factor
    return product

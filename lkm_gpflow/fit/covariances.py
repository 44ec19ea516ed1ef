"""Covariances of a structure's components on a grid, and the gradient by its hyperparameters.

A component is a variance, times stationary factors (by lag, [R]), times factors that are not
([D, D]).  Most are one or the other, so the two parts are kept apart for as long as they can be.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import numpy as np

from ..gp.lags import LagGrid
from ..gp.types import Floats
from ..kernels.arrays import Pull, evaluate
from ..kernels.grammar import BaseKernel, Product
from .layout import Layout


class Component:
    """One component at given hyperparameters.

    Parameters
    ----------
    grid
        The times.
    variance
        Its variance.
    factors
        Its base kernels and their hyperparameters.

    Attributes
    ----------
    by_lag
        The variance times the stationary factors, [R].
    moving
        The product of the other factors, [D, D]; None where there are none.
    """

    def __init__(
        self,
        grid: LagGrid,
        variance: float,
        factors: Sequence[tuple[BaseKernel, Sequence[float]]],
    ) -> None:
        self._grid = grid
        self._variance = variance
        self._kinds = [base.stationary for base, _ in factors]
        self._counts = [len(values) for _, values in factors]
        self._parts: list[tuple[Floats, Pull]] = [
            evaluate(base, grid, values) for base, values in factors
        ]
        of_kind: dict[bool, list[Floats]] = {True: [], False: []}
        for kind, (k, _) in zip(self._kinds, self._parts, strict=True):
            of_kind[kind].append(k)
        self._is_plain = not of_kind[True]
        self.by_lag: Floats = variance * _product(of_kind[True], np.ones_like(grid.lags))
        self.moving: Floats | None = None
        if of_kind[False]:
            first, *others = of_kind[False]
            self.moving = _product(others, first)

    def matrix(self) -> Floats:
        """The covariance, a new matrix [D, D]."""
        if self.moving is None:
            return self._grid.spread(self.by_lag)
        if self._is_plain:
            return self._variance * self.moving
        covariance = self._grid.spread(self.by_lag)
        covariance *= self.moving
        return covariance

    def diagonal(self) -> Floats:
        """The variances, [D]."""
        ones = np.ones(len(self._grid.x))
        return self.by_lag[0] * (ones if self.moving is None else self.moving.diagonal())

    def pull_back(self, gradient: Floats) -> list[float]:
        """From a gradient by covariances to that by log variance and hyperparameters.

        Parameters
        ----------
        gradient
            Of a stationary component sums over the pairs of a lag, [R]; of another the lower
            triangle, see `cholesky.gradient`, [D, D].
        """
        if self.moving is None:
            return [float(gradient @ self.by_lag), *self._pull(True, gradient * self._variance)]
        weighted = np.asfortranarray(gradient * self.moving)
        if self._is_plain:
            found = [self._variance * float(weighted.sum())]
            return found + [self._variance * value for value in self._pull(False, gradient)]
        by_lag = self._grid.collect(weighted)
        pulled = iter(self._pull(True, by_lag * self._variance))
        moved = iter(self._pull(False, gradient * self._grid.spread(self.by_lag)))
        # In the order of the factors, of which either kind may come first.
        return [float(by_lag @ self.by_lag)] + [
            next(pulled if is_stationary else moved)
            for is_stationary, count in zip(self._kinds, self._counts, strict=True)
            for _ in range(count)
        ]

    def _pull(self, stationary: bool, gradient: Floats) -> list[float]:
        """From a gradient by the product of the factors of one kind to that by their values."""
        own = [part for part, kind in zip(self._parts, self._kinds, strict=True)
               if kind is stationary]  # fmt: skip
        found: list[float] = []
        for j, (_, pull) in enumerate(own):
            upstream = _product([k for i, (k, _) in enumerate(own) if i != j], gradient)
            found += pull(upstream if stationary else np.asfortranarray(upstream))
        return found


def _product(factors: Sequence[Floats], first: Floats) -> Floats:
    return reduce(np.multiply, factors, first)


class Structure:
    """The components of a layout on a grid, as a function of the flat vector.

    Parameters
    ----------
    layout
        Where the hyperparameters stand.
    grid
        The times.
    """

    def __init__(self, layout: Layout, grid: LagGrid) -> None:
        self._layout = layout
        self._grid = grid
        self._K = len(layout.products)
        self._factors: list[list[tuple[BaseKernel, slice]]] = []
        place = self._K
        for product in layout.products:
            own = []
            for factor in product.factors:
                own.append((factor.base, slice(place, place + len(factor.values))))
                place += len(factor.values)
            self._factors.append(own)

    def at(self, flat: Floats) -> list[Component]:
        """Components at a flat vector."""
        is_log = self._layout.is_log
        values = np.where(is_log, np.exp(np.where(is_log, flat, 0.0)), flat).tolist()
        return [
            Component(self._grid, values[k], [(base, values[own]) for base, own in factors])
            for k, factors in enumerate(self._factors)
        ]

    def gather(self, by_component: Sequence[Sequence[float]]) -> Floats:
        """From what `Component.pull_back` returns to a gradient by the flat vector.

        Noise variances have none.
        """
        gradient = np.zeros(self._layout.size)
        place = self._K
        for k, (by_log_variance, *others) in enumerate(by_component):
            gradient[k] = by_log_variance
            gradient[place : place + len(others)] = others
            place += len(others)
        return gradient


def at(products: Sequence[Product], grid: LagGrid) -> list[Component]:
    """Components of complete products."""
    layout = Layout(products, num_series=0)
    return Structure(layout, grid).at(layout.pack(np.empty(0)))

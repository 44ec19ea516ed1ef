"""Covariances of a structure's components on a grid, their sums over rows of Z, gradients back.

A component is a variance, times stationary factors (by lag, [R]), times factors that are not
([D, D]).  Most components are one or the other, so the two parts stay apart as long as they can.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Protocol

import numpy as np
from scipy.linalg.blas import daxpy

from ..gp.lags import LagGrid, matrix
from ..gp.types import Floats
from ..kernels.arrays import Pull, evaluate
from ..kernels.grammar import BaseKernel, Product
from .layout import Layout


class Component(Protocol):
    """The covariance of one component at given hyperparameters: by lag, or a matrix.

    Attributes
    ----------
    by_lag
        Covariances by lag, [R], of a stationary component.
    """

    by_lag: Floats

    @property
    def is_stationary(self) -> bool:
        """Whether `by_lag` says everything."""

    def matrix(self) -> Floats:
        """The covariance, a new matrix [D, D]."""

    def pull_back(self, gradient: Floats) -> Sequence[float] | Floats:
        """From the gradient by the component to that by its numbers, as the flat vector has them.

        Those by the model's own parameters come last, if it has any.

        Parameters
        ----------
        gradient
            For a stationary component its sums over the pairs of a lag, [R]; for another the lower
            triangle of `GaussianSeries.lower_gradient`, [D, D].
        """


class Components:
    """All components of a structure at one flat vector.

    Parameters
    ----------
    layout
        Places of the hyperparameters.
    parts
        The K components.
    """

    def __init__(self, layout: Layout, parts: Sequence[Component]) -> None:
        self._layout, self.parts = layout, parts

    def pull_back(self, gradients: Sequence[Floats]) -> Floats:
        """From gradients by components to the gradient by the flat vector, zero for noise, [size].

        Parameters
        ----------
        gradients
            As of `Component.pull_back`.
        """
        found = np.zeros(self._layout.size)
        for part, places, gradient in zip(self.parts, self._layout.places, gradients, strict=True):
            own = part.pull_back(gradient)
            found[places] = own[: len(places)]
            found[self._layout.extras] += own[len(places) :]
        return found


class ProductComponent:
    """A product of base kernels with one variance, by their formulas in NumPy.

    Parameters
    ----------
    grid
        The times.
    variance
        Variance of the component.
    factors
        Base kernels and their hyperparameters.
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
        self._is_moving_alone = not of_kind[True]
        self.by_lag = variance * _product(of_kind[True], np.ones_like(grid.lags))  # [R]
        self._moving: Floats | None = None  # [D, D]
        if of_kind[False]:
            first, *others = of_kind[False]
            self._moving = _product(others, first)

    @property
    def is_stationary(self) -> bool:
        """See `Component`."""
        return self._moving is None

    def matrix(self) -> Floats:
        """See `Component`."""
        if self._moving is None:
            return self._grid.spread(self.by_lag)
        if self._is_moving_alone:
            return self._variance * self._moving
        covariance = self._grid.spread(self.by_lag)
        covariance *= self._moving
        return covariance

    def diagonal(self) -> Floats:
        """The variances, [D]."""
        ones = np.ones(len(self._grid.x))
        return self.by_lag[0] * (ones if self._moving is None else self._moving.diagonal())

    def pull_back(self, gradient: Floats) -> list[float]:
        """See `Component`."""
        if self._moving is None:
            return [float(gradient @ self.by_lag), *self._pull(True, gradient * self._variance)]
        weighted = np.asfortranarray(gradient * self._moving)
        if self._is_moving_alone:
            found = [self._variance * float(weighted.sum())]
            return found + [self._variance * value for value in self._pull(False, gradient)]
        by_lag = self._grid.collect(weighted)
        pulled = iter(self._pull(True, by_lag * self._variance))
        moved = iter(self._pull(False, gradient * self._grid.spread(self.by_lag)))
        # In the order of the factors: either kind may come first.
        return [float(by_lag @ self.by_lag)] + [
            next(pulled if is_stationary else moved)
            for is_stationary, count in zip(self._kinds, self._counts, strict=True)
            for _ in range(count)
        ]

    def _pull(self, stationary: bool, gradient: Floats) -> list[float]:
        """From a gradient by the product of the factors of one kind to that by their values."""
        return pull_factors(
            [part for part, kind in zip(self._parts, self._kinds, strict=True)
             if kind is stationary], gradient,
        )  # fmt: skip


def pull_factors(factors: Sequence[tuple[Floats, Pull]], gradient: Floats) -> list[float]:
    """From a gradient by a product of factors to that by the values of each."""
    found: list[float] = []
    for j, (_, pull) in enumerate(factors):
        others = [k for i, (k, _) in enumerate(factors) if i != j]
        found += pull(np.asfortranarray(_product(others, gradient)))
    return found


def _product(factors: Sequence[Floats], first: Floats) -> Floats:
    return reduce(np.multiply, factors, first)


class ProductComponents(Components):
    """The components of a layout on a grid at one flat vector, [size], by NumPy."""

    def __init__(self, layout: Layout, grid: LagGrid, flat: Floats) -> None:
        super().__init__(layout, [ProductComponent(grid, *own) for own in layout.factors(flat)])


def components_at(products: Sequence[Product], grid: LagGrid) -> Sequence[ProductComponent]:
    """Components of complete products."""
    layout = Layout(products, num_series=0)
    return [ProductComponent(grid, *own) for own in layout.factors(layout.pack(np.empty(0)))]


class RowCovariances:
    r"""Covariances of rows of Z, and sums over rows of gradients by them.

    .. math:: V_p = \sum_k t_{pk} C_k, \qquad
              \frac{\partial}{\partial C_k} = \sum_p t_{pk} G_p

    Stationary components stay values by lag, [R], as long as they can.

    Parameters
    ----------
    parts
        K components.
    grid
        The times.
    rows
        t, [P, K], 0 or 1.
    """

    def __init__(self, parts: Sequence[Component], grid: LagGrid, rows: Floats) -> None:
        self._grid, D = grid, len(grid.x)
        self._is_moving = np.array([not c.is_stationary for c in parts], bool)
        self._rows_by_lag = np.ascontiguousarray(rows[:, ~self._is_moving])
        self._rows_moving = np.ascontiguousarray(rows[:, self._is_moving])
        self._has_by_lag = self._rows_by_lag.any(axis=1).tolist()
        by_lag = [c.by_lag for c in parts if c.is_stationary]
        stationary = np.array(by_lag).reshape(len(by_lag), len(grid.lags))
        self._moving = np.array([c.matrix().ravel() for c in parts if not c.is_stationary])
        self._by_lag = self._rows_by_lag @ stationary  # [P, R]
        self._d_by_lag = np.zeros_like(stationary)
        self._d_moving = [matrix(D) for _ in self._moving]

    def write(self, p: int, out: Floats) -> None:
        """Write the covariance of a row to a matrix [D, D]."""
        has_moving = len(self._moving) > 0
        if has_moving:
            np.dot(self._rows_moving[p], self._moving, out=out.reshape(-1))
        if self._rows_by_lag.shape[1] or not has_moving:
            self._grid.spread_into(self._by_lag[p], out, add=has_moving)

    def add(self, p: int, weight: float, G: Floats) -> None:
        """Add a weighted gradient by the covariance of row p, see `Component.pull_back`."""
        for has, total in zip(self._rows_moving[p], self._d_moving, strict=True):
            if has:
                # Both in Fortran's order.
                daxpy(G.T.reshape(-1), total.T.reshape(-1), a=weight * has)
        if self._has_by_lag[p]:
            sums = self._grid.collect(G)
            self._d_by_lag += np.multiply.outer(weight * self._rows_by_lag[p], sums)

    def gradients(self) -> list[Floats]:
        """The sums for each component, as `Component.pull_back` takes them."""
        by_lag, moving = iter(self._d_by_lag), iter(self._d_moving)
        return [next(moving if is_moving else by_lag) for is_moving in self._is_moving]

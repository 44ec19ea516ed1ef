"""Covariances of many pairs as weighted sums of the same components, and gradients back."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.linalg.blas import daxpy

from ..gp.lags import LagGrid, matrix
from ..gp.types import Floats
from .covariances import Component


class Sums:
    r"""Covariances of pairs, and sums over pairs of gradients by them.

    .. math:: V_p = \sum_k l_{pk} C_k, \qquad
              \frac{\partial}{\partial C_k} = \sum_p l_{pk} G_p, \qquad
              \frac{\partial}{\partial \log l_{pk}} = l_{pk} \langle G_p, C_k \rangle

    Stationary components stay values by lag, [R], for as long as they can.

    Parameters
    ----------
    components
        K of them.
    grid
        The times.
    loadings
        l, [P, K].
    """

    def __init__(self, components: Sequence[Component], grid: LagGrid, loadings: Floats) -> None:
        self._grid, D = grid, len(grid.x)
        self._is_moving = np.array([c.moving is not None for c in components], bool)
        self._own_by_lag = np.ascontiguousarray(loadings[:, ~self._is_moving])
        self._own_by_pair = np.ascontiguousarray(loadings[:, self._is_moving])
        self._has_by_lag = self._own_by_lag.any(axis=1).tolist()
        by_lag = [c.by_lag for c in components if c.moving is None]
        self._stationary = np.array(by_lag).reshape(len(by_lag), len(grid.lags))
        self._moving = np.array([c.matrix().ravel() for c in components if c.moving is not None])
        self._by_lag = self._own_by_lag @ self._stationary
        self._d_by_lag = np.zeros_like(self._stationary)
        self._d_by_pair = [matrix(D) for _ in self._moving]

    def write(self, p: int, out: Floats) -> None:
        """Write the covariance of a pair to a matrix [D, D]."""
        has_moving = len(self._moving) > 0
        if has_moving:
            np.dot(self._own_by_pair[p], self._moving, out=out.reshape(-1))
        if self._own_by_lag.shape[1] or not has_moving:
            self._grid.spread_into(self._by_lag[p], out, add=has_moving)

    def add(self, p: int, weight: float, G: Floats) -> None:
        """Add a weighted gradient by the covariance of a pair to the sums.

        Parameters
        ----------
        p
            The pair.
        weight
            Of its gradient.
        G
            Lower triangle of the gradient, see `cholesky.gradient`, [D, D].
        """
        for loading, total in zip(self._own_by_pair[p], self._d_by_pair, strict=True):
            if loading:
                # Both in Fortran's order.
                daxpy(G.T.reshape(-1), total.T.reshape(-1), a=weight * loading)
        if self._has_by_lag[p]:
            sums = self._grid.collect(G)
            self._d_by_lag += np.multiply.outer(weight * self._own_by_lag[p], sums)

    def slopes(self, p: int, G: Floats) -> Floats:
        """Gradient by the log loadings of a pair, [K], from that by its covariance."""
        slopes = np.zeros(len(self._is_moving))
        if self._has_by_lag[p]:
            own = self._stationary @ self._grid.collect(G)
            slopes[~self._is_moving] = self._own_by_lag[p] * own
        if self._own_by_pair[p].any():
            # Covariances are symmetric: the order of their memory does not matter.
            slopes[self._is_moving] = self._own_by_pair[p] * (self._moving @ G.T.reshape(-1))
        return slopes

    def gradients(self) -> list[Floats]:
        """Sums of what was added, one a component, as `Component.pull_back` takes them."""
        by_lag, by_pair = iter(self._d_by_lag), iter(self._d_by_pair)
        return [next(by_pair if is_moving else by_lag) for is_moving in self._is_moving]

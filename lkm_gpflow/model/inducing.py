"""Where inducing inputs go: greedily to where the components are least known."""

from __future__ import annotations

from collections.abc import Sequence

import gpflow
import numpy as np
from gpflow.base import AnyNDArray
from gpflow.inducing_variables import InducingPoints
from gpflow.kernels import Kernel
from gpflow.utilities import to_default_float

from ..gp.types import Floats

TOLERANCE = 0.01
"""Nats of all series together that are not worth another inducing variable."""


def place_inducing(
    kernels: Sequence[Kernel],
    X: AnyNDArray,
    count: int,
    weights: AnyNDArray,
    tolerance: float = TOLERANCE,
) -> list[InducingPoints]:
    r"""Choose inducing inputs of all components among the inputs of the data.

    Inputs are placed one at a time: the component k whose weighted residual variance
    :math:`w_k \sum_d k_k(x_d, x_d) - q_k(x_d, x_d)` is largest gets one where it is largest, by a
    pivoted Cholesky factorisation of every component.  A line needs one, a slow component few, a
    fast one many.  Source: Burt, Rasmussen and van der Wilk 2020, *Convergence of Sparse
    Variational Inference in Gaussian Processes Regression*, section 4.2.

    Parameters
    ----------
    kernels
        The K components.
    X
        Inputs, [D, Q].
    count
        Inducing variables of all components together, at least K.
    weights
        What a unit of residual variance costs in nats, [K]: for series n that has the component,
        1 / (2 sigma_n^2).
    tolerance
        Nats of residual variance at which fewer than `count` will do.

    Returns
    -------
    One set of inducing points per component, at least one point each, which are not trained unless
    ``gpflow.set_trainable`` says so.

    Raises
    ------
    ValueError
        If `count` is less than K.
    """
    count = checked_count(count, len(kernels))
    X = to_default_float(X).numpy() if hasattr(X, "numpy") else np.asarray(X, np.float64)
    columns = [_PivotedCholesky(kernel, X) for kernel in kernels]
    for column in columns:
        column.pivot()
    for _ in range(count - len(kernels)):
        nats = np.array([w * c.residual.sum() for w, c in zip(weights, columns, strict=True)])
        open_ = np.array([c.can_pivot for c in columns])
        if nats.sum() < tolerance or not open_.any():
            break
        columns[int(np.argmax(np.where(open_, nats, -np.inf)))].pivot()
    chosen = [InducingPoints(X[np.sort(column.rows)]) for column in columns]
    for points in chosen:
        gpflow.set_trainable(points, False)
    return chosen


def checked_count(count: int, num_components: int) -> int:
    """Return how many inducing variables there may be, if every component can have one."""
    if count < num_components:
        raise ValueError(
            f"inducing: expected at least {num_components}, one for each component, got {count}"
        )
    return count


class _PivotedCholesky:
    """Pivoted Cholesky factorisation of one kernel on the inputs, a pivot at a time."""

    def __init__(self, kernel: Kernel, X: Floats) -> None:
        self._kernel = kernel
        self._X = X
        self.residual: Floats = kernel(X, full_cov=False).numpy()
        self._least = 1e-10 * float(self.residual.max())
        self._factor = np.empty((16, len(X)))
        self.rows: list[int] = []

    @property
    def can_pivot(self) -> bool:
        """Whether more than rounding errors is left."""
        return len(self.rows) < len(self._X) and float(self.residual.max()) > self._least

    def pivot(self) -> None:
        row, m = int(np.argmax(self.residual)), len(self.rows)
        if m == len(self._factor):
            self._factor = np.concatenate([self._factor, np.empty_like(self._factor)])
        column = self._kernel(self._X[row : row + 1], self._X).numpy()[0]
        column -= self._factor[:m, row] @ self._factor[:m]
        self._factor[m] = column / np.sqrt(max(self.residual[row], np.finfo(float).tiny))
        self.residual = np.maximum(self.residual - np.square(self._factor[m]), 0.0)
        self.residual[row] = 0.0
        self.rows.append(row)

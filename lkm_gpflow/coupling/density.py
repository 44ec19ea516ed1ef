r"""Log density of series that covary, and its gradient by how: LAPACK on all cells at once.

.. math:: y \sim \mathcal{N}\Big(0, \sum_k B_k \otimes C_k\Big)

at the cells that were observed, series after series.  B_k [N, N] says how the series covary in
pattern k, C_k [D, D] how the times do.  Time grows with the third power of the number of cells M,
memory with the second.
"""

from __future__ import annotations

import numpy as np

from ..gp.series import GaussianSeries, log_density
from ..gp.types import Floats, Integers

LARGEST = 3400
"""Most observed cells: one value with its gradient takes 1.3 s of one core for 3,263, and a search
asks for some hundred."""


class CellsTooManyError(ValueError):
    """More cells than a dense covariance can hold; the text says what to do."""


class CoupledDensity:
    """``log N(y | 0, V)`` as a function of the B_k.

    C [K, D, D] are the covariances of the times, symmetric; what stands in missing cells of Y [N,
    D] does not matter.  More than `LARGEST` cells raise a CellsTooManyError.
    """

    def __init__(self, C: Floats, Y: Floats, mask: Floats) -> None:
        self.num_series, self.num_times = Y.shape
        cells: Integers = np.flatnonzero(mask).astype(np.int32)
        check_number_of_cells(len(cells))
        self.y: Floats = np.ascontiguousarray(Y.ravel()[cells])
        self._cells = None if len(cells) == Y.size else cells
        self._flat = np.ascontiguousarray(C.reshape(len(C), -1))

    def covariance(self, B: Floats) -> Floats:
        """V at the observed cells, [M, M] in Fortran's order, from B [K, N, N]."""
        N, D = self.num_series, self.num_times
        blocks = B.reshape(len(B), -1).T @ self._flat
        V: Floats = blocks.reshape(N, N, D, D).transpose(0, 2, 1, 3).reshape(N * D, N * D)
        if self._cells is not None:
            V = V[np.ix_(self._cells, self._cells)]
        return V.T  # symmetric: the same in LAPACK's order

    def value(self, B: Floats) -> float:
        """Log density; NaN where V is not positive definite."""
        return log_density(self.covariance(B), self.y)

    def value_and_gradient(self, B: Floats) -> tuple[float, Floats]:
        """Log density, and G [K, N, N], symmetric: it changes by the sum of G dB."""
        series = GaussianSeries(self.covariance(B), self.y, overwrite=True)
        value = series.log_density
        if np.isnan(value):
            return value, np.zeros_like(B)
        lower = series.lower_gradient()
        N, D = self.num_series, self.num_times
        whole = lower.T
        if self._cells is not None:
            whole = np.zeros((N * D, N * D))
            whole[np.ix_(self._cells, self._cells)] = lower.T
        pairs = whole.reshape(N, D, N, D).transpose(0, 2, 1, 3).reshape(N * N, D * D)
        G = (pairs @ self._flat.T).T.reshape(B.shape)
        return value, -0.5 * (G + G.transpose(0, 2, 1))


def check_number_of_cells(count: int) -> None:
    """Refuse what a dense covariance of all cells cannot hold."""
    if count > LARGEST:
        raise CellsTooManyError(
            f"expected at most {LARGEST:,} observed values to couple, because time grows with "
            f"their third power, got {count:,}: couple some of the series "
            "(found.select([...]).couple()), or learn from fewer rows (lkm_gpflow.thin)"
        )

"""Series with gaps: their missing rows are left out of covariances, and gradients have none."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..data.observations import Observations
from ..gp.lags import matrix
from ..gp.types import Floats, Integers


class Seen:
    """The points that a series has, among all D, and memory for one covariance of them.

    Series of one pattern of gaps share this.

    Parameters
    ----------
    pattern
        One where a point was observed, [D].
    """

    def __init__(self, pattern: Floats) -> None:
        self.places = np.flatnonzero(pattern)
        """Of the points that were observed, [d]."""
        self.is_all = len(self.places) == len(pattern)
        """Whether that is every point."""
        self._pairs = (self.places[:, None] * len(pattern) + self.places).ravel()
        self.covariance = matrix(len(self.places))
        """For the use of whoever comes next, [d, d] in Fortran's order."""

    def rows(self, y: Floats) -> Floats:
        """Return the observed entries of a series, [d]."""
        return y if self.is_all else y[self.places]

    def block(self, V: Floats) -> Floats:
        """Return the observed rows and columns of a matrix [D, D], [d, d]."""
        if self.is_all:
            return V
        return V.ravel().take(self._pairs, mode="clip").reshape(self.covariance.shape)

    def target(self, out: Floats, whole: Floats) -> Floats:
        """Where to write a symmetric matrix [D, D] that goes to `out`: there, or to `whole`."""
        return out.T if self.is_all else whole

    def select(self, V: Floats, noise_variance: float, out: Floats) -> None:
        """Write a symmetric matrix [D, D] to `out`, without missing rows, with noise.

        What was written to `target` is there already.
        """
        flat = out.T.reshape(-1)
        if not self.is_all:
            V.ravel().take(self._pairs, out=flat, mode="clip")
        elif not np.may_share_memory(V, out):
            np.copyto(out.T, V)
        flat[:: len(out) + 1] += noise_variance

    def whole(self, G: Floats, out: Floats) -> Floats:
        """From a lower triangle [d, d] to one of all points, in `out` [D, D], zero elsewhere."""
        if self.is_all:
            return G
        out[...] = 0.0
        # Places are in order: what was below the diagonal is so again.
        out.T.reshape(-1)[self._pairs] = G.T.reshape(-1)
        return out


def seen_by_series(observations: Observations) -> list[Seen]:
    """Return for each series which points it has; one object a pattern."""
    of_series, patterns = observations.mask_patterns
    every = [Seen(pattern) for pattern in patterns]
    return [every[number] for number in of_series]


def by_configuration(configurations: Floats) -> Iterator[tuple[Floats, Integers]]:
    """Different rows of [P, K], entries 0 or 1, each with the places of the pairs that have it."""
    # Rows as whole numbers: sorting them is much faster than sorting rows.
    codes = configurations @ 2.0 ** np.arange(configurations.shape[1])
    _, first, which = np.unique(codes, return_index=True, return_inverse=True)
    order = np.argsort(which.reshape(-1), kind="stable").astype(np.int32)
    for places in np.split(order, np.cumsum(np.bincount(which.reshape(-1)))[:-1]):
        yield configurations[places[0]], places

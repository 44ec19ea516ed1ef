"""Scaled observations: what models are learnt on."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..gp import limits
from ..gp.types import Floats, Integers


@dataclass(frozen=True)
class Observations:
    """Scaled observations."""

    x: Floats  # times, [D], sorted
    Y: Floats  # one row per series, [N, D]; zero where missing
    mask: Floats  # one where observed, [N, D]
    # Variances of noise that are known beside the one that is learnt, [N, D]; None: zero.  Values
    # are then Gaussian sites of another likelihood (`gp.likelihoods`).
    known: Floats | None = None

    @property
    def num_series(self) -> int:
        """N."""
        return int(self.Y.shape[0])

    @property
    def is_long(self) -> bool:
        """Whether there are so many times that a search may do less, see `limits.LONG`."""
        return len(self.x) >= limits.LONG

    @property
    def num_observed(self) -> int:
        """How many values were observed."""
        return int(self.mask.sum())

    @property
    def table(self) -> tuple[Floats, Floats]:
        """The same in GPflow's order: X [D, 1] and Y [D, N], with NaN where missing.

        A ValueError says if noise is known of each value, of which the caller takes no notice.
        """
        self.check_alike("models of TensorFlow")
        return self.x[:, None], np.where(self.mask > 0.0, self.Y, np.nan).T

    def check_alike(self, who: str) -> None:
        """Refuse what treats all values of a series alike, if noise is known of each value."""
        if self.known is not None:
            raise ValueError(
                f"{who}: expected series with Gaussian noise, got counts, shares or Student noise, "
                "which they do not take: discover(..., likelihood='scaled') goes without"
            )

    def noise(self, variance: Floats) -> Floats:
        """Variances of the noise of every value, learnt [N] and known together, [N, D]."""
        own = 0.0 if self.known is None else self.known
        return np.asarray(variance[:, None] + own + np.zeros_like(self.Y))

    def known_of(self, n: int, places: Integers | slice = slice(None)) -> Floats | float:
        """Known variances of some values of a series; zero if none are known."""
        return 0.0 if self.known is None else self.known[n, places]

    def standard(self) -> tuple[Floats, Floats]:
        """Mean and standard deviation of each series, [N] each; noisy values count less."""
        if self.known is None:
            values = np.where(self.mask > 0.0, self.Y, np.nan)
            return np.nanmean(values, axis=1), np.nanstd(values, axis=1)
        weights = self.mask / (1.0 + self.known)
        weights /= weights.sum(axis=1, keepdims=True)
        mean = (weights * self.Y).sum(axis=1)
        return mean, np.sqrt((weights * np.square(self.Y - mean[:, None])).sum(axis=1))

    @cached_property
    def is_complete(self) -> bool:
        """Whether nothing is missing."""
        return bool(np.all(self.mask == 1.0))

    @cached_property
    def mask_patterns(self) -> tuple[Integers, Floats]:
        """Which pattern of observed points each series has, [N], and the patterns, [M, D]."""
        if self.is_complete:
            return np.zeros(self.num_series, np.int32), np.ones((1, len(self.x)))
        patterns, of_series = np.unique(self.mask, axis=0, return_inverse=True)
        return of_series.reshape(-1).astype(np.int32), patterns

    @property
    def filled(self) -> Floats:
        """Return the values with gaps filled, [D, N]; see `filled`."""
        return filled(self.x, self.table[1])

    @property
    def ends(self) -> tuple[Integers, Integers]:
        """Return the first row of every series, [N], and the row after its last one, [N]."""
        backwards = np.argmax(self.mask[:, ::-1], axis=1)
        return np.argmax(self.mask, axis=1), len(self.x) - backwards

    def of_series(self, places: Integers) -> Observations:
        """Return the observations of some series."""
        known = None if self.known is None else self.known[places]
        return Observations(self.x, self.Y[places], self.mask[places], known)

    def at_times(self, places: Integers) -> Observations:
        """Return the observations at some times, on the same scales."""
        known = None if self.known is None else self.known[:, places]
        return Observations(self.x[places], self.Y[:, places], self.mask[:, places], known)

    @property
    def fingerprint(self) -> str:
        """A checksum of the scaled data."""
        digest = hashlib.sha256()
        arrays = [self.x, self.Y, self.mask, *([] if self.known is None else [self.known])]
        for array in arrays:
            digest.update(np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()


def filled(x: Floats, Y: Floats) -> Floats:
    """Return values [D, N] with gaps, NaN, filled by straight lines in time.

    The first and last observation are carried to the ends.
    """
    columns = []
    for y in Y.T:
        seen = np.isfinite(y)
        columns.append(np.interp(x, x[seen], y[seen]))
    return np.column_stack(columns)

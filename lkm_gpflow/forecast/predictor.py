"""What a fit says of any times: moments of sums of its components, and of new observations."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ..data.observations import Observations
from ..fit.assignments import Pairs
from ..fit.fits import Fit, FitSettings
from ..gp.types import Floats

_AT_A_TIME = 500
"""Series that are gone through at a time: memory does not grow with their number."""

_TIMES = 1000
_JUDGES = 200
"""Of more times and series evenly spaced ones, about as many, say what components explain."""


@dataclass(frozen=True)
class Predictor(ABC):
    """What a fit says; the posterior over Z is averaged over, unless a Z [N, K] is given.

    Parameters
    ----------
    fit
        The fit.
    observations, settings
        The scaled data that it was learnt on, and how.
    """

    fit: Fit
    observations: Observations
    settings: FitSettings

    @abstractmethod
    def sums(
        self, x: Floats, sums: Floats, *, full_cov: bool = False, Z: Floats | None = None
    ) -> tuple[Floats, Floats]:
        """Moments of sums of components; see `LKM.predict_sums`.

        Parameters
        ----------
        x
            Scaled times, [M].
        sums
            Which components make up each sum, [G, K].
        full_cov
            Whether to return covariances over the times.
        Z
            The rows to speak of.

        Returns
        -------
        Mean [N, G, M], and variance [N, G, M] or covariance [N, G, M, M].
        """

    @abstractmethod
    def noise(self, Z: Floats | None = None) -> Floats:
        """Variance of the noise of each series, [N]; see `LKM.predict_noise`."""

    @abstractmethod
    def observed(self, x: Floats) -> tuple[Floats, Floats]:
        """Mean and variance of new observations at scaled times [M], [M, N] each."""

    @abstractmethod
    def covariances(self, x: Floats) -> Floats:
        """Return those of the components at scaled times [M], [K, M, M]."""

    @property
    @abstractmethod
    def posterior(self) -> tuple[Pairs, Floats]:
        """Rows of Z that weigh something, and their weights [P], one for each series together."""

    def scales(self, Z: Floats | None = None) -> Floats:
        """Posterior means of the scales of the series, [N]; ones where these have none."""
        return self.noise(Z) / self.fit.noise_variance

    def explained(self) -> Floats:
        """Variance over time of the mean of every component, on average over series, [K].

        Of many series and of many times evenly spaced ones are asked.
        """
        N, judges = self.observations.num_series, self
        if N > _JUDGES:
            (judges,) = self._of_some(slice(None, None, -(-N // _JUDGES)))
        x = self.observations.x[:: -(-len(self.observations.x) // _TIMES)]
        mean, _ = judges.sums(x, np.eye(len(self.fit.kernels)))
        return np.asarray(mean.var(axis=2).mean(axis=0))

    def _of_some(self, *which: slice) -> Iterator[Predictor]:
        """What the fit says of some series, and of some others."""
        every = np.arange(self.observations.num_series, dtype=np.int32)
        for places in (every[some] for some in which):
            part = self.fit.of_series(places), self.observations.of_series(places)
            yield type(self)(*part, self.settings)

    def _in_parts(self) -> Iterator[Predictor]:
        """What the fit says of all series, some at a time."""
        starts = range(0, self.observations.num_series, _AT_A_TIME)
        return self._of_some(*(slice(start, start + _AT_A_TIME) for start in starts))

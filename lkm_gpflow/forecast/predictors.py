"""The fits of a search, each asked in the way that suits it.

A report asks every fit a dozen times.  A model of TensorFlow spends most of its time on being
built, on its parameters and on dispatch, so fits of `LKM` itself are asked by NumPy (`by_arrays`).
Both ways give the same numbers.
"""

from __future__ import annotations

import numpy as np

from ..data.observations import Observations
from ..fit.fits import Fit, FitSettings
from .by_arrays import ByArrays
from .predictor import Predictor


class Predictors:
    """What the fits of a search say; each is kept, with what it has worked out.

    Parameters
    ----------
    observations, settings
        As of `Predictor`.
    """

    def __init__(self, observations: Observations, settings: FitSettings) -> None:
        self.observations = observations
        self.settings = settings
        self._known: dict[int, Predictor] = {}

    def __reduce__(self) -> tuple[type[Predictors], tuple[Observations, FitSettings]]:
        """Other processes work out their own: models of TensorFlow do not travel."""
        return Predictors, (self.observations, self.settings)

    def of(self, fit: Fit) -> Predictor:
        """Return what predicts by a fit: `ByModel` if it is relaxed, else `ByArrays`."""
        known = self._known.get(id(fit))
        if known is None:
            # It holds the fit, so that no other object is given the same number.
            kind = self._kind(fit)
            known = self._known[id(fit)] = kind(fit, self.observations, self.settings)
        return known

    def _kind(self, fit: Fit) -> type[Predictor]:
        if fit.relaxed is None:
            return ByArrays
        from .by_model import ByModel  # with TensorFlow, which takes seconds to load

        return ByModel

    def best_first(self, fit: Fit) -> Fit:
        """Return a fit with its components in the order of what they explain, the most first."""
        return fit.of_components(np.argsort(-self.of(fit).explained(), kind="stable"))

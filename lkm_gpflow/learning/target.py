"""What hyperparameters are learnt on: the function that an optimiser is handed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..numerics.types import Floats
from .engine import Objective
from .initialization import Ranges
from .layout import Layout

MANY = 64
"""From so many series on kernels are scaled: 500 series of EEG then need a fifth of the steps."""


@dataclass(frozen=True)
class Target:
    """What hyperparameters are learnt on: their log joint density with the data.

    Parameters
    ----------
    layout
        Where the hyperparameters stand in the flat vector.
    ranges
        Their ranges and priors.
    objective
        Log likelihood and its gradient.
    begin
        Where learning begins.
    priors
        Whether the priors count.
    """

    layout: Layout
    ranges: Ranges
    objective: Objective
    begin: Floats
    priors: bool

    @property
    def lower(self) -> Floats:
        """Lower bounds; what is not learnt stays where it begins."""
        return np.where(self.layout.is_fixed, self.begin, self.ranges.lower)

    @property
    def upper(self) -> Floats:
        """Upper bounds; what is not learnt stays where it begins."""
        return np.where(self.layout.is_fixed, self.begin, self.ranges.upper)

    @property
    def scale(self) -> Floats:
        """What an optimiser multiplies hyperparameters by, so that all bend the loss alike.

        All series bend it in the kernels', one bends it in its noise variance.  Few series need
        no scaling, and keep the results that they had without.
        """
        N, size = self.layout.num_series, self.layout.size
        return np.where(np.arange(size) < size - N, np.sqrt(N) if N >= MANY else 1.0, 1.0)

    def scaled_loss(self, scaled: Floats) -> tuple[float, Floats]:
        """`loss`, of hyperparameters multiplied by `scale`."""
        value, gradient = self.loss(scaled / self.scale)
        return value, gradient / self.scale

    def loss(self, flat: Floats) -> tuple[float, Floats]:
        """Minus the log joint density, and its gradient."""
        value, gradient = self.objective(flat)
        if self.priors:
            log_prior, prior_gradient = self.ranges.log_prior(flat)
            value, gradient = value + log_prior, gradient + prior_gradient
        if not (np.isfinite(value) and np.all(np.isfinite(gradient))):
            # Not positive definite: send the line search back.
            return 1e15, np.zeros_like(flat)
        return -value, -gradient

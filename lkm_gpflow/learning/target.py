"""What hyperparameters are learnt on: the function that an optimiser is handed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..models.amplitudes import HEIGHT_SD
from ..numerics.types import Floats
from .engine import Objective
from .initialization import Ranges
from .layout import Layout

_MOST_LOG_HEIGHT = 7.0

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
    is_used
        Heights of which series and components follow the hyperparameters and are learnt, [N, K];
        None: there are none.
    """

    layout: Layout
    ranges: Ranges
    objective: Objective
    begin: Floats
    priors: bool
    is_used: Floats | None = None

    @property
    def lower(self) -> Floats:
        """Lower bounds; what is not learnt stays where it begins."""
        return self._bound(self.ranges.lower, -_MOST_LOG_HEIGHT)

    @property
    def upper(self) -> Floats:
        """Upper bounds; what is not learnt stays where it begins."""
        return self._bound(self.ranges.upper, _MOST_LOG_HEIGHT)

    def _bound(self, values: Floats, of_heights: float) -> Floats:
        own = np.where(self.layout.is_fixed, self.begin[: self.layout.size], values)
        heights = self.begin[self.layout.size :]
        if self.is_used is not None:
            heights = np.where(self.is_used.ravel() > 0.0, of_heights, heights)
        return np.concatenate([own, heights])

    @property
    def scale(self) -> Floats:
        """What an optimiser multiplies hyperparameters by, so that all bend the loss alike.

        All series bend it in the kernels', one bends it in its noise variance.  Few series need
        no scaling, and keep the results that they had without.
        """
        N, size = self.layout.num_series, self.layout.size
        is_kernels = np.arange(len(self.begin)) < size - N
        return np.where(is_kernels, np.sqrt(N) if N >= MANY else 1.0, 1.0)

    def scaled_loss(self, scaled: Floats) -> tuple[float, Floats]:
        """`loss`, of hyperparameters multiplied by `scale`."""
        value, gradient = self.loss(scaled / self.scale)
        return value, gradient / self.scale

    def loss(self, flat: Floats) -> tuple[float, Floats]:
        """Minus the log joint density, and its gradient."""
        value, gradient = self.objective(flat)
        size = self.layout.size
        if self.priors:
            log_prior, prior_gradient = self.ranges.log_prior(flat[:size])
            value, gradient = value + log_prior, gradient.copy()
            gradient[:size] += prior_gradient
        if self.is_used is not None:
            own = self.is_used.ravel() * flat[size:]
            value -= 0.5 * float(own @ own) / HEIGHT_SD**2
            gradient[size:] -= own / HEIGHT_SD**2
        if not (np.isfinite(value) and np.all(np.isfinite(gradient))):
            # Not positive definite: send the line search back.
            return 1e15, np.zeros_like(flat)
        return -value, -gradient

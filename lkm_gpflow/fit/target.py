"""The function of the hyperparameters that an optimiser is handed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType

import numpy as np

from ..gp.types import Floats
from ..kernels.grammar import Kind
from .engine import Engine, Objective
from .initialization import Ranges
from .layout import Layout

_BENDS: Mapping[Kind, float] = MappingProxyType(
    {
        Kind.DURATION: 3.0,
        Kind.MEMORY: 1.0,
        Kind.PERIOD: 60.0,  # times the number of periods in the data: the last is moved most
        Kind.RATIO: 4.0,
        Kind.LOCATION: 10.0,
        Kind.CHANGE: 10.0,
        Kind.WIDTH: 1.0,
        Kind.ORIGIN: 1.0,
    }
)
"""How a hyperparameter bends the loss, compared with a log variance: roots of second derivatives.

Without them L-BFGS creeps along the valleys of periods, which are a thousand times as steep as they
are long, and takes creeping for the end.
"""

_NOISE_BENDS = 3.0
"""The same for a log noise variance."""


@dataclass(frozen=True)
class Target:
    """Log joint density of the hyperparameters with the data.

    Parameters
    ----------
    engine
        The model.
    layout
        Places of the hyperparameters in the flat vector.
    ranges
        Their ranges and priors.
    objective
        Log likelihood and its gradient.
    begin
        Where learning begins, [size].
    priors
        Whether the priors count.
    """

    engine: Engine
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

    @cached_property
    def scale(self) -> Floats:
        """Factors of the hyperparameters after which all bend the loss alike, [size].

        All series bend it in the hyperparameters of kernels, one bends it in its noise variance.
        """
        layout = self.layout
        scale = np.ones_like(self.begin)
        scale[layout.shapes] = [_BENDS[kind] for kind in layout.kinds]
        is_period = np.array([kind is Kind.PERIOD for kind in layout.kinds], bool)
        scale[layout.shapes][is_period] *= np.exp(-self.begin[layout.shapes][is_period])
        scale *= np.sqrt(layout.num_series)
        scale[layout.noise] = _NOISE_BENDS
        return scale

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
            if self.layout.num_extras:
                own, own_gradient = self.engine.log_prior(flat[self.layout.extras])
                value += own
                gradient[self.layout.extras] += own_gradient
        if not (np.isfinite(value) and np.all(np.isfinite(gradient))):
            # Not positive definite: send the line search back.
            return 1e15, np.zeros_like(flat)
        return -value, -gradient

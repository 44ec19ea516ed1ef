"""What hyperparameters are learnt on: the function that an optimiser is handed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType

import numpy as np

from ..gp.types import Floats
from ..kernels.grammar import Kind
from ..model.amplitudes import HEIGHT_SD
from .engine import Objective
from .initialization import Ranges
from .layout import Layout

_MOST_LOG_HEIGHT = 7.0

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

Rounded medians of fits of two tables.  Without them L-BFGS creeps along the valleys of periods,
which are a thousand times as steep as they are long, and takes creeping for the end.
"""

_NOISE_BENDS = 3.0
"""The same of a log noise variance; that of a kernel is in several series, and one of a noise in
one."""


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

    @cached_property
    def scale(self) -> Floats:
        """What an optimiser multiplies hyperparameters by, so that all bend the loss alike.

        All series bend it in the kernels' hyperparameters, one bends it in its noise variance.
        """
        layout = self.layout
        kinds = [kind for p in layout.products for f in p.factors for _, kind in f.base.parameters]
        shapes = slice(len(layout.products), len(layout.products) + len(kinds))
        kernels = np.ones(shapes.stop)
        kernels[shapes] = [_BENDS[kind] for kind in kinds]
        is_period = np.array([kind is Kind.PERIOD for kind in kinds], bool)
        kernels[shapes][is_period] *= np.exp(-self.begin[shapes][is_period])
        scale = np.ones_like(self.begin)
        scale[: shapes.stop] = np.sqrt(layout.num_series) * kernels
        scale[shapes.stop : layout.size] = _NOISE_BENDS
        return scale

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

"""The spectral mixture kernel, and starting values from the spectrum of the data."""

from __future__ import annotations

import math
from dataclasses import dataclass

import gpflow
import numpy as np
import tensorflow as tf
from check_shapes import inherit_check_shapes
from gpflow.base import Parameter
from gpflow.utilities import positive
from scipy.signal import lombscargle

from ..data.observations import Observations
from ..fit.initialization import typical_step
from ..gp.types import Floats, FloatTensor


@dataclass(frozen=True)
class Mixture:
    """A mixture of Q Gaussians as a spectral density."""

    weight: Floats  # variances of the components, [Q]
    frequency: Floats  # their mean frequencies, in cycles per unit of time, [Q]
    bandwidth: Floats  # their standard deviations in frequency, [Q]


class SpectralMixture(gpflow.kernels.Kernel):
    r"""Any stationary covariance, by a mixture of Q Gaussians as its spectral density.

    .. math:: k(r) = \sum_q w_q \exp(-2 \pi^2 s_q^2 r^2) \cos(2 \pi \mu_q r)

    for one-dimensional input (Wilson and Adams 2013, equation 12); w, mu and s start from
    `mixture`.
    """

    def __init__(self, mixture: Mixture, active_dims: tuple[int, ...] = (0,)) -> None:
        super().__init__(active_dims=active_dims)
        self.weight = Parameter(mixture.weight, transform=positive(base="exp"))
        self.frequency = Parameter(mixture.frequency, transform=positive(base="exp"))
        self.bandwidth = Parameter(mixture.bandwidth, transform=positive(base="exp"))

    def assign(self, mixture: Mixture) -> None:
        """Give the parameters the values of a mixture."""
        self.weight.assign(mixture.weight)
        self.frequency.assign(mixture.frequency)
        self.bandwidth.assign(mixture.bandwidth)

    @inherit_check_shapes
    def K(self, X: FloatTensor, X2: FloatTensor | None = None) -> FloatTensor:
        r = X[..., :, None, :1] - (X if X2 is None else X2)[..., None, :, :1]
        decay = tf.exp(-2.0 * tf.square(math.pi * self.bandwidth * r))
        wave = tf.cos(2.0 * math.pi * self.frequency * r)
        return tf.reduce_sum(self.weight * decay * wave, axis=-1)

    @inherit_check_shapes
    def K_diag(self, X: FloatTensor) -> FloatTensor:
        return tf.fill(tf.shape(X)[:-1], tf.reduce_sum(self.weight))


@dataclass(frozen=True)
class Spectrum:
    """The power of one scaled series by frequency."""

    # From half a cycle in the span of the data to the Nyquist frequency of the typical step.
    frequency: Floats
    power: Floats  # Lomb-Scargle periodogram of the series, normalised to a sum of one

    @classmethod
    def of(cls, observations: Observations, series: int) -> Spectrum:
        """Measure the spectrum of one series, over the points where it was observed."""
        observed = observations.mask[series] > 0.0
        x, y = observations.x[observed], observations.Y[series, observed]
        frequency = np.arange(0.5, 0.5 / typical_step(observations.x), 0.25)
        power = lombscargle(x, y - y.mean(), 2.0 * np.pi * frequency)
        return cls(frequency, power / power.sum())

    def draw(self, count: int, rng: np.random.Generator) -> Mixture:
        """Draw a mixture of `count` components, of unit variance in all.

        Frequencies are drawn by their power, so high peaks get components, weights are uniform on
        the simplex, and bandwidths between a tenth of a cycle in the span and a third of the
        Nyquist frequency: from lasting waves to noise that a few steps remember.
        """
        frequency = rng.choice(self.frequency, size=count, p=self.power)
        return Mixture(
            weight=rng.dirichlet(np.ones(count)),
            frequency=frequency * np.exp(0.1 * rng.normal(size=count)),
            bandwidth=np.exp(rng.uniform(np.log(0.1), np.log(self.frequency[-1] / 3.0), count)),
        )

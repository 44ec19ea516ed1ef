"""The multi-output spectral mixture kernel of Parra and Tobar.

References
----------
Parra and Tobar 2017, *Spectral Mixture Kernels for Multi-Output Gaussian Processes*, NIPS 30.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from functools import partial

import gpflow
import numpy as np
import pandas as pd
import tensorflow as tf
import tensorflow_probability as tfp
from check_shapes import check_shapes, inherit_check_shapes
from gpflow.base import Parameter
from gpflow.utilities import positive
from numpy.typing import NDArray

from ..data.observations import Observations
from ..data.tables import Table
from ..gp.types import Floats, FloatTensor, Integers
from ..model.criterion import bic
from .lbfgs import MultiStart
from .protocol import ScaledForecast
from .spectral import Mixture, Spectrum
from .stacked import StackedGPR, stack

_SAME_LAG = 1e-9  # lags that differ by less, in spans of the data, are taken for one

_DELAY_SD = 0.05
"""Sd of the prior of delays, in spans of the data.

Without it two series that have little in common end up delays of one or two spans apart, and a
delay of just over a span makes forecasts depend on the other series' first values.
"""


@dataclass(frozen=True)
class CrossMixture(Mixture):
    """Q Gaussians as the spectral density of each of N series, with their cross spectra.

    Weight, frequency and bandwidth as in `Mixture`, but [Q, N].
    """

    delay: Floats  # the time by which a component comes later in a series, [Q, N]
    # The angle by which it comes later, [Q, N].  Of both only differences of series matter.
    phase: Floats

    def joined(self, other: CrossMixture) -> CrossMixture:
        """Components of both, of which those of the other get a tenth of the weight."""
        joined = {
            field.name: np.concatenate([getattr(self, field.name), getattr(other, field.name)])
            for field in fields(self)
        }
        joined["weight"][: len(self.weight)] *= 0.9
        joined["weight"][len(self.weight) :] *= 0.1
        return CrossMixture(**joined)


class MultiOutputSpectralMixture(gpflow.kernels.Kernel):
    r"""Stationary series of which any two have their own coherence, delay and phase.

    Component q of series i has the spectral density :math:`v_i \mathcal{N}(f \mid \mu_i, s_i^2)`
    and filters the same white noise in all series, so that its cross spectral density is

    .. math:: S_{ij}(f) = \sqrt{v_i v_j}
        \sqrt{\mathcal{N}(f \mid \mu_i, s_i^2) \, \mathcal{N}(f \mid \mu_j, s_j^2)} \,
        e^{-\mathrm{i} (2 \pi f \theta_{ij} + \phi_{ij})},
        \qquad \theta_{ij} = \theta_i - \theta_j, \quad \phi_{ij} = \phi_i - \phi_j

    and the covariance of series i at time t + r and series j at t the sum over q of

    .. math:: k_{ij}(r) &= \sqrt{v_i v_j} \, b_{ij}
        \exp(-2 \pi^2 s_{ij}^2 (r - \theta_{ij})^2)
        \cos(2 \pi \mu_{ij} (r - \theta_{ij}) - \phi_{ij}) \\
        s_{ij}^2 &= \frac{2 s_i^2 s_j^2}{s_i^2 + s_j^2}, \qquad
        \mu_{ij} = \frac{s_j^2 \mu_i + s_i^2 \mu_j}{s_i^2 + s_j^2}, \qquad
        b_{ij} = \sqrt{\frac{2 s_i s_j}{s_i^2 + s_j^2}}
        \exp\Big(-\frac{(\mu_i - \mu_j)^2}{4 (s_i^2 + s_j^2)}\Big).

    This is the kernel of Parra and Tobar 2017 for one input, in other units: weights v are
    variances, so that each series alone has the `SpectralMixture` of its weights, frequencies are
    in cycles and bandwidths their standard deviations, b is the affinity of two spectra (one where
    they are the same), and positive delays and phases mean later, where theirs mean earlier.

    Inputs are (time, number of the series).

    Parameters
    ----------
    mixture
        Starting values.
    active_dims
        The input columns that hold time and series.
    """

    def __init__(self, mixture: CrossMixture, active_dims: tuple[int, int] = (0, 1)) -> None:
        super().__init__(active_dims=active_dims)
        self.weight = Parameter(mixture.weight, transform=positive(base="exp"))
        self.frequency = Parameter(mixture.frequency, transform=positive(base="exp"))
        self.bandwidth = Parameter(mixture.bandwidth, transform=positive(base="exp"))
        self.delay = Parameter(mixture.delay, transform=tfp.bijectors.Scale(np.float64(_DELAY_SD)))
        self.phase = Parameter(mixture.phase)

    @property
    def mixture(self) -> CrossMixture:
        """The present values of the parameters."""
        names = (field.name for field in fields(CrossMixture))
        return CrossMixture(**{name: getattr(self, name).numpy() for name in names})

    def assign(self, mixture: CrossMixture) -> None:
        """Give the parameters the values of a mixture."""
        for field in fields(mixture):
            getattr(self, field.name).assign(getattr(mixture, field.name))

    @property
    def num_free(self) -> int:
        """How many numbers the kernel depends on: delays and phases are relative to a series."""
        Q, N = self.weight.shape
        return 5 * Q * N - 2 * Q

    @check_shapes(
        "first: [pairs...]", "second: [pairs...]", "lag: [pairs...]", "return: [pairs...]"
    )
    def covariance(self, first: Integers, second: Integers, lag: FloatTensor) -> FloatTensor:
        """Covariances of one series at t + lag and another at t, by their numbers."""
        pair = first * tf.shape(self.weight)[1] + second
        total = tf.zeros_like(lag)
        for constants in tf.unstack(self._pairs(), axis=1):
            size, rate, angular, delay, phase = (tf.gather(c, pair) for c in tf.unstack(constants))
            r = lag - delay
            total += size * tf.exp(-tf.square(rate * r)) * tf.cos(angular * r - phase)
        return total

    def _pairs(self) -> FloatTensor:
        """Size, decay rate, angular frequency, delay and phase of all pairs, [5, Q, N * N]."""
        v, mu = tf.sqrt(self.weight), tf.convert_to_tensor(self.frequency)
        s = tf.convert_to_tensor(self.bandwidth)
        power = tf.square(s)
        both = power[:, :, None] + power[:, None, :]
        product = s[:, :, None] * s[:, None, :]
        affinity = tf.sqrt(2.0 * product / both) * tf.exp(-0.25 * tf.square(_minus(mu)) / both)
        size = v[:, :, None] * v[:, None, :] * affinity
        rate = 2.0 * math.pi * product / tf.sqrt(both)
        mean = (power[:, None, :] * mu[:, :, None] + power[:, :, None] * mu[:, None, :]) / both
        constants = (size, rate, 2.0 * math.pi * mean, _minus(self.delay), _minus(self.phase))
        Q = tf.shape(s)[0]
        return tf.stack([tf.reshape(c, [Q, -1]) for c in constants])

    @inherit_check_shapes
    def K(self, X: FloatTensor, X2: FloatTensor | None = None) -> FloatTensor:
        other = X if X2 is None else X2
        lag = X[..., :, None, 0] - other[..., None, :, 0]
        first = tf.broadcast_to(tf.cast(X[..., :, None, 1], tf.int32), tf.shape(lag))
        second = tf.broadcast_to(tf.cast(other[..., None, :, 1], tf.int32), tf.shape(lag))
        return self.covariance(first, second, lag)

    @inherit_check_shapes
    def K_diag(self, X: FloatTensor) -> FloatTensor:
        return tf.gather(tf.reduce_sum(self.weight, axis=0), tf.cast(X[..., 1], tf.int32))


def _minus(values: FloatTensor) -> FloatTensor:
    """Differences of all pairs of series, [Q, N] to [Q, N, N]."""
    values = tf.convert_to_tensor(values)
    return values[:, :, None] - values[:, None, :]


@dataclass(frozen=True)
class LagPairs:
    """The different pairs among M stacked observations: two series and a lag.

    Series with common times have far fewer of them than M^2 (1.5% for nine stocks on 116 days).
    """

    # The different pairs, [P] each.
    first: Integers
    second: Integers
    lag: Floats
    index: Integers  # where the covariance of two observations stands among them, [M, M]

    @classmethod
    def of(cls, X: Floats) -> LagPairs:
        """Find them among inputs (time, number of the series), [M, 2]."""
        series = X[:, 1].astype(np.int64)
        lag = X[:, None, 0] - X[None, :, 0]
        steps, step = np.unique(np.rint(lag / _SAME_LAG), return_inverse=True)
        pair = series[:, None] * (series.max() + 1) + series[None, :]
        label = pair * len(steps) + step.reshape(lag.shape)
        _, place, index = np.unique(label, return_index=True, return_inverse=True)
        row, column = np.divmod(place, len(X))
        return cls(
            series[row].astype(np.int32),
            series[column].astype(np.int32),
            lag[row, column],
            index.reshape(lag.shape).astype(np.int32),
        )

    def covariance(self, kernel: MultiOutputSpectralMixture) -> FloatTensor:
        """Covariance of the M observations without noise, as `kernel.K` gives it."""
        return tf.gather(kernel.covariance(self.first, self.second, self.lag), self.index)


class MultiOutputGPR(StackedGPR):
    """Exact regression with a `MultiOutputSpectralMixture`, evaluated once for every lag."""

    def __init__(self, observations: Observations, mixture: CrossMixture) -> None:
        data = stack(observations)
        super().__init__(data, MultiOutputSpectralMixture(mixture), observations.num_series)
        self._distinct = LagPairs.of(data[0])

    @inherit_check_shapes
    def covariance(self) -> FloatTensor:
        return self._distinct.covariance(self.kernel)

    def bic(self) -> float:
        """BIC, with every free number of kernel and noise."""
        free = self.kernel.num_free + self.likelihood.variance.variance.shape[0]
        return bic(float(self.log_marginal_likelihood()), free, len(self.data[0]))


@dataclass(frozen=True)
class CrossSpectrum:
    """Power and common phases of several scaled series by frequency."""

    frequency: Floats  # in cycles per unit of time, [F]
    power: Floats  # spectra of the series, each with a sum of one, [N, F]
    # Their Fourier coefficients over the observed points, [N, F].
    coefficients: NDArray[np.complex128]

    @classmethod
    def of(cls, observations: Observations) -> CrossSpectrum:
        """Measure the spectra of all series."""
        spectra = [Spectrum.of(observations, n) for n in range(observations.num_series)]
        frequency = spectra[0].frequency
        waves = np.exp(-2j * np.pi * np.outer(observations.x, frequency))
        power = np.array([spectrum.power for spectrum in spectra])
        return cls(frequency, power, observations.Y @ waves)

    def draw(self, count: int, rng: np.random.Generator) -> CrossMixture:
        """Draw a mixture of `count` components, of unit variance in every series.

        Frequencies and bandwidths are drawn from the mean spectrum, as `Spectrum.draw` does, and
        vary a little between series.  Weights are the shares of the power of a series that EM
        gives to the components; delays and phases make the series of a band most alike.
        """
        N = len(self.power)
        common = Spectrum(self.frequency, self.power.mean(axis=0)).draw(count, rng)
        bands = self._bands(common)
        steps = rng.normal(size=(count, N))
        delays, phases = zip(*(self._alignment(band) for band in bands), strict=True)
        return CrossMixture(
            weight=self._weights(bands / common.bandwidth[:, None]),
            frequency=np.abs(common.frequency[:, None] + 0.2 * common.bandwidth[:, None] * steps),
            bandwidth=common.bandwidth[:, None] * np.exp(0.1 * rng.normal(size=(count, N))),
            delay=np.array(delays),
            phase=np.array(phases),
        )

    def _bands(self, mixture: Mixture) -> Floats:
        """Heights of the Gaussians of a mixture where they are one at their tops, [Q, F]."""
        bandwidth = np.hypot(mixture.bandwidth, self.frequency[1] - self.frequency[0])
        deviation = (self.frequency - mixture.frequency[:, None]) / bandwidth[:, None]
        return np.exp(-0.5 * np.square(deviation)) + 1e-9

    def _weights(self, density: Floats) -> Floats:
        """Shares of the power of every series that EM gives to densities, [Q, N]."""
        weight = np.full((len(density), len(self.power)), 1.0 / len(density))
        for _ in range(10):
            parts = weight[:, :, None] * density[:, None, :]
            weight = np.sum(self.power * parts / parts.sum(axis=0), axis=2)
        return np.maximum(weight, 1e-3)

    def _alignment(self, band: Floats) -> tuple[Floats, Floats]:
        """Delays and phases that make the series of a band most alike, [N] each.

        What they are compared with is their first principal component in the band.
        """
        cross = (band * self.coefficients) @ self.coefficients.conj().T
        leading = np.linalg.eigh(cross)[1][:, -1].conj() @ self.coefficients
        delays = _DELAY_SD * np.linspace(-3.0, 3.0, 61)
        waves = np.exp(2j * np.pi * np.outer(self.frequency, delays))
        alike = (band * self.coefficients * leading.conj()) @ waves
        # Delays that the data hardly determine stay small.
        best = np.argmax(np.abs(alike) * np.exp(-0.5 * np.square(delays / _DELAY_SD)), axis=1)
        return delays[best], -np.angle(alike[np.arange(len(best)), best])


@dataclass(frozen=True)
class MOSM:
    """Exact regression with a multi-output spectral mixture (Parra and Tobar 2017).

    Learnt from several starts, by maximum likelihood as they do, but for a weak normal prior of the
    delays around zero.  They set the number of components by hand; here BIC chooses it.
    """

    num_components: tuple[int, ...] = (1, 2, 3)  #: The Q among which BIC chooses
    #: Starts for every Q, drawn from the spectra of the series; every other one continues from the
    #: best mixture of fewer components.
    restarts: int = 10
    #: See `MultiStart.best_of`.
    short: int = 20
    keep: int = 2
    max_iterations: int = 100

    def fit(self, train: pd.DataFrame, *, seed: int) -> ScaledForecast:
        """Learn all series together."""
        if not self.num_components or min(self.num_components) < 1:
            raise ValueError(f"expected numbers of components from 1, got {self.num_components}")
        if self.restarts < 1:
            raise ValueError(f"expected at least one start, got {self.restarts}")
        table = Table.of(train)
        observations = table.observations
        spectrum = CrossSpectrum.of(observations)
        rng = np.random.default_rng(seed)
        models: list[MultiOutputGPR] = []
        for count in sorted(set(self.num_components)):
            smaller = models[-1].kernel.mixture if models else None
            models.append(self._learn(observations, spectrum, count, smaller, rng))
        return ScaledForecast(table, min(models, key=MultiOutputGPR.bic).predict_series)

    def _learn(
        self,
        observations: Observations,
        spectrum: CrossSpectrum,
        count: int,
        smaller: CrossMixture | None,
        rng: np.random.Generator,
    ) -> MultiOutputGPR:
        """Learn `count` components, every other time by adding to the best smaller mixture."""
        model = MultiOutputGPR(observations, spectrum.draw(count, rng))
        model.kernel.delay.prior = tfp.distributions.Normal(np.float64(0.0), np.float64(_DELAY_SD))
        noise = model.likelihood.variance.variance

        def start(grown: bool) -> None:
            if grown and smaller is not None:
                added = spectrum.draw(count - len(smaller.weight), rng)
                model.kernel.assign(smaller.joined(added))
            else:
                model.kernel.assign(spectrum.draw(count, rng))
            noise.assign(np.full(observations.num_series, 0.1))

        MultiStart(model).best_of(
            [partial(start, bool(i % 2)) for i in range(self.restarts)],
            short=self.short,
            keep=self.keep,
            max_iterations=self.max_iterations,
        )
        return model

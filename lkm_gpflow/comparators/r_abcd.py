"""Relational ABCD: one composite kernel that all series share, and a spectral mixture for each.

Hwang, Tong and Choi, *Automatic construction of nonparametric relational regression models for
multiple time series*, ICML 2016: semi-relational kernel learning (SRKL).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import gpflow
import numpy as np
import pandas as pd

from ..data.observations import Observations
from ..data.tables import Table
from ..fit.initialization import NOISE_VARIANCE, Proposer, typical_step
from ..gp.lags import LagGrid, matrix
from ..gp.types import Floats
from ..kernels.component import to_kernel
from ..kernels.grammar import PAPER_BASES
from ..runtime.threads import single_threaded
from .abcd import (
    KernelFit,
    KernelLearner,
    SingleSeries,
    Terms,
    check_search,
    covariance,
    greedy_search,
    kernel_text,
)
from .protocol import ScaledForecast
from .spectral import Mixture, SpectralMixture, Spectrum

_LOG_SCALES = (-12.0, 12.0)  # between these the logarithms of squared scales are learnt

_WEIGHTS = (1e-8, 10.0)
"""Between these the weights of mixtures are learnt (series have unit variance)."""

_LOWEST_FREQUENCY = 0.01
"""In cycles per span, of frequencies and bandwidths; the highest is the Nyquist frequency."""

_DRAWS = 8  # of so many mixtures of a series the likeliest is started from

_LOG_SHARES = (math.log(0.03), 0.0)
"""Between these the variance of a drawn mixture lies, as a share of the residual's."""

_SHORT, _LONG = 30, 200
"""Iterations of a start of the mixtures, and of learning all jointly."""


@dataclass(frozen=True)
class Shares:
    """What is learnt beside the shared kernel."""

    scale: Floats  # s_n^2, [N], of geometric mean one
    noise_variance: Floats  # sigma_n^2, [N]
    # Weights, frequencies and bandwidths of the Q components of every series, [N, 3, Q].
    mixtures: Floats

    @classmethod
    def of(cls, own: Floats, num_series: int) -> Shares:
        """Read the vector that is learnt.

        It holds the logarithms of the first N - 1 squared scales, of the N noise variances, and of
        the mixtures.  The scales have geometric mean one, as the variance of the shared kernel is
        learnt too.
        """
        log_scale, log_noise, mixtures = np.split(own, [num_series - 1, 2 * num_series - 1])
        return cls(
            np.exp(np.append(log_scale, -log_scale.sum())),
            np.exp(log_noise),
            np.exp(mixtures).reshape(num_series, 3, -1),
        )


class SemiRelational:
    r"""N series that share a kernel, given which they are independent: a `KernelLikelihood`.

    .. math:: x_n \sim \mathcal{N}(0, s_n^2 K + K_{SM,n} + \sigma_n^2 I)

    with scales s_n, and a `SpectralMixture` of `num_components` Gaussians for every series (Hwang
    et al. 2016); with none the series differ in scale and noise alone (relational kernel learning).
    Missing points are left out.  `Shares.of` describes the parameters beside K.
    """

    def __init__(self, observations: Observations, num_components: int) -> None:
        self.x = observations.x
        self.num_series = N = observations.num_series
        self.num_observed = observations.num_observed
        self.num_components = num_components
        self._grid = LagGrid(self.x)
        rows = [np.flatnonzero(mask) for mask in observations.mask]
        self._cells = [np.ix_(seen, seen) for seen in rows]
        self._series = [
            SingleSeries(self.x[seen], y[seen])
            for y, seen in zip(observations.Y, rows, strict=True)
        ]
        nyquist = 0.5 / typical_step(self.x)
        frequencies = _LOWEST_FREQUENCY, max(nyquist, 1.0)
        ranges = np.log([_WEIGHTS, frequencies, frequencies])
        noise = NOISE_VARIANCE.lower, NOISE_VARIANCE.upper
        mixtures = np.tile(np.repeat(ranges, num_components, axis=0), (N, 1))
        self.lower, self.upper = np.vstack([[_LOG_SCALES] * (N - 1) + [noise] * N, mixtures]).T
        self.is_noise = np.zeros(len(self.lower), bool)
        self.is_noise[N - 1 : 2 * N - 1] = True

    def draw(self, rng: np.random.Generator) -> Floats:
        """See `KernelLikelihood.draw`: similar scales, similar noise, and no mixtures."""
        own = self.lower.copy()
        N = self.num_series
        own[: N - 1] = 0.5 * rng.normal(size=N - 1)
        own[self.is_noise] = rng.uniform(np.log(0.01), 0.0) + 0.3 * rng.normal(size=N)
        return own

    def __call__(self, K: Floats, own: Floats) -> tuple[float, Callable[[], tuple[Floats, Floats]]]:
        """See `KernelLikelihood.__call__`."""
        N = self.num_series
        shares = Shares.of(own, N)
        by_lag, pull = self._mixtures(shares.mixtures)  # [N, R]
        value, gradients_of = 0.0, []
        for n, (series, cells) in enumerate(zip(self._series, self._cells, strict=True)):
            V = shares.scale[n] * K + self._grid.spread(by_lag[n])
            loss, gradients_of_one = series(V[cells], own[N - 1 + n : N + n])
            if not math.isfinite(loss):
                return math.inf, lambda: (np.zeros_like(K), np.zeros_like(own))
            value += loss
            gradients_of.append(gradients_of_one)

        def gradients() -> tuple[Floats, Floats]:
            by_K = matrix(len(K))
            by_scale, by_noise, by_lags = np.empty(N), np.empty(N), np.empty_like(by_lag)
            for n, cells in enumerate(self._cells):
                G = matrix(len(K))  # a lower triangle, as those of the series are
                G[cells], by_noise[n : n + 1] = gradients_of[n]()
                by_K += shares.scale[n] * G
                by_scale[n] = shares.scale[n] * np.vdot(G, K)
                by_lags[n] = self._grid.collect(G)
            by_own = by_scale[:-1] - by_scale[-1], by_noise, pull(by_lags).ravel()
            return by_K, np.concatenate(by_own)

        return value, gradients

    def _mixtures(self, mixtures: Floats) -> tuple[Floats, Callable[[Floats], Floats]]:
        """Mixtures by lag, [N, R], and from a gradient by these to one by logarithms, [N, 3, Q]."""
        lags = self._grid.lags
        weight, frequency, bandwidth = np.moveaxis(mixtures, 1, 0)[..., None]
        angle = 2.0 * np.pi * frequency * lags
        squared = np.square(2.0 * np.pi * bandwidth * lags)
        decay = weight * np.exp(-0.5 * squared)
        waves = decay * np.cos(angle)

        def pull(by_lag: Floats) -> Floats:
            by_log = waves, -decay * np.sin(angle) * angle, -waves * squared
            return np.stack([np.einsum("nql,nl->nq", d, by_lag) for d in by_log], axis=1)

        return waves.sum(axis=1), pull


class RelationalLearner(KernelLearner):
    """Learns the kernel that series share, and with it what each has of its own.

    `num_components` are the Gaussians in the spectral density of a series.  Mixtures have as many
    random starts as structures, beside one.
    """

    def __init__(
        self,
        observations: Observations,
        num_components: int,
        restarts: int,
        rng: np.random.Generator,
    ) -> None:
        self._observations = observations
        self._whole = SemiRelational(observations, num_components)
        super().__init__(self._whole, Proposer.of(observations), restarts, rng)

    def run(self, kernel: Terms, own: Floats, max_iterations: int) -> KernelFit:
        """See `KernelLearner.run`; where no kernel is shared, the scales are not counted."""
        fit = super().run(kernel, own, max_iterations)
        num_redundant = 0 if kernel else self._whole.num_series - 1
        return replace(fit, bic=fit.bic - num_redundant * math.log(self._whole.num_observed))

    def add_mixtures(self, fit: KernelFit) -> KernelFit:
        """Give a fit without mixtures its mixtures, and learn all jointly."""
        starts = [self._with_mixtures(fit) for _ in range(1 + self._restarts)]
        begun = [self.run(fit.kernel, own, _SHORT) for own in starts]
        best = max(begun, key=lambda fit: fit.log_likelihood)
        return self.run(best.kernel, best.own, _LONG)

    def _with_mixtures(self, fit: KernelFit) -> Floats:
        """Draw mixtures for a fit without them, from what its kernel leaves to the noise.

        That is ``E[noise | x_n] = sigma_n^2 V_n^-1 x_n``, whose spectrum the mixtures start from.
        """
        shares = Shares.of(fit.own, self._whole.num_series)
        K = covariance(fit.kernel, self._observations.x)
        mixtures = []
        for n, mask in enumerate(self._observations.mask):
            alone = Observations(self._observations.x, self._observations.Y[[n]], mask[None, :])
            seen = mask > 0.0
            V = shares.scale[n] * K[np.ix_(seen, seen)]
            V.flat[:: len(V) + 1] += shares.noise_variance[n]
            residual = np.zeros_like(alone.Y)
            residual[0, seen] = shares.noise_variance[n] * np.linalg.solve(V, alone.Y[0, seen])
            spectrum = Spectrum.of(replace(alone, Y=residual), 0)
            likelihood = SemiRelational(alone, self._whole.num_components)
            noise = math.log(shares.noise_variance[n])
            draws = [
                np.append(noise, self._drawn_mixture(spectrum, float(residual[0, seen].var())))
                for _ in range(_DRAWS)
            ]
            draws = [np.clip(own, likelihood.lower, likelihood.upper) for own in draws]
            best = min(draws, key=lambda own: likelihood(shares.scale[n] * K, own)[0])
            mixtures.append(best[1:])
        return np.concatenate([fit.own[: 2 * len(mixtures) - 1], *mixtures])

    def _drawn_mixture(self, spectrum: Spectrum, variance: float) -> Floats:
        mixture = spectrum.draw(self._whole.num_components, self._rng)
        share = math.exp(self._rng.uniform(*_LOG_SHARES))
        weight = np.maximum(variance * share * mixture.weight, _WEIGHTS[0])
        return np.log(np.concatenate([weight, mixture.frequency, mixture.bandwidth]))


@dataclass(frozen=True)
class RelationalFit:
    """What was found, how, and its data."""

    observations: Observations  # scaled observations of N series
    path: tuple[KernelFit, ...]  # accepted fits of the search, without mixtures; the last the best
    joint: KernelFit  # the last of them with mixtures, all learnt jointly

    @property
    def kernel(self) -> Terms:
        """The kernel of scaled times that the series share, with its numbers."""
        return self.joint.kernel

    @property
    def shares(self) -> Shares:
        """Scales, noise and mixtures of the scaled series."""
        return Shares.of(self.joint.own, self.observations.num_series)

    def kernel_of(self, series: int) -> gpflow.kernels.Kernel:
        """Return the kernel of a series for GPflow: what it has of the shared one, and its own."""
        shares = self.shares
        parts: list[gpflow.kernels.Kernel] = [SpectralMixture(Mixture(*shares.mixtures[series]))]
        scale = float(shares.scale[series])
        shared = (replace(each, variance=scale * (each.variance or 1.0)) for each in self.kernel)
        parts += [to_kernel(each) for each in shared]
        return gpflow.kernels.Sum(parts)

    def model_of(self, series: int) -> gpflow.models.GPR:
        """Return the regression of a series, over the points where it was observed."""
        seen = self.observations.mask[series] > 0.0
        data = self.observations.x[seen, None], self.observations.Y[series, seen, None]
        noise_variance = float(self.shares.noise_variance[series])
        return gpflow.models.GPR(data, self.kernel_of(series), noise_variance=noise_variance)

    def predict(self, x: Floats) -> tuple[Floats, Floats]:
        """Means and variances (with noise) of new observations at scaled times, [M, N] each."""
        models = [self.model_of(n) for n in range(self.observations.num_series)]
        means, variances = zip(*(model.predict_y(x[:, None]) for model in models), strict=True)
        # Rounding may leave a function variance a little below zero.
        return np.hstack(means), np.maximum(np.hstack(variances), self.shares.noise_variance)


@dataclass(frozen=True)
class RelationalForecast(ScaledForecast):
    """The forecast of series that share a kernel."""

    found: RelationalFit

    @property
    def composite(self) -> str:
        """The shared kernel, with times in the units of the table from its start.

        Its variance is that of series scaled to unit variance, of geometric mean over them.
        """
        return kernel_text(self.found.kernel, self.table.span, 1.0)

    @property
    def kernels(self) -> dict[str, str]:
        """The part of the shared kernel in every series, in its own units."""
        variances = self.found.shares.scale * self.table.scale**2
        return {
            name: kernel_text(self.found.kernel, self.table.span, float(variance))
            for name, variance in zip(self.table.names, variances, strict=True)
        }


@dataclass(frozen=True)
class RelationalABCD:
    r"""Relational ABCD: series that share a composite kernel, each with a spectral mixture.

    .. math:: x_n \sim \mathcal{N}(0, s_n^2 K_C(\theta) + K_{SM,n} + \sigma_n^2 I)

    The composite K_C is searched as in `ABCD`, over all series jointly, by BIC.  What is learnt
    and counted are the numbers of K_C, N - 1 scales (one is redundant
    too), N noise variances, and 3 Q numbers of every mixture.

    It departs from Hwang et al. (2016) in the order of learning: the search goes without
    mixtures, whose numbers are as many for every structure.  They then start from the spectrum of
    what the composite leaves to the noise, and all is learnt jointly.  Mixtures that are there
    from the start explain everything, and leave next to nothing to share.

    As in `ABCD` change points are off by default, and the search ends when a step brings nothing.
    """

    depth: int = 4  #: Steps of the search at most
    #: Q, the Gaussians in the spectral density of a series; with none the series differ in scale
    #: and noise alone.
    num_components: int = 10
    bases: tuple[str, ...] = PAPER_BASES  #: Names of the base kernels
    #: Random starts of every kernel, beside two from the numbers of the kernel it derives from, and
    #: of the mixtures beside one.
    restarts: int = 2

    def __post_init__(self) -> None:
        check_search(self.depth, self.restarts, self.bases)
        if self.num_components < 0:
            raise ValueError(f"expected at least 0 components, got {self.num_components}")

    def fit(self, train: pd.DataFrame, *, seed: int) -> RelationalForecast:
        """Search the composite and learn all by maximum likelihood."""
        table = Table.of(train)
        observations = table.observations
        rng = np.random.default_rng(seed)
        sharing = RelationalLearner(observations, 0, self.restarts, rng)
        with single_threaded():
            path = tuple(greedy_search(sharing, self.bases, self.depth))
            joint = path[-1]
            if self.num_components:
                whole = RelationalLearner(observations, self.num_components, self.restarts, rng)
                joint = whole.add_mixtures(joint)
        found = RelationalFit(observations, path, joint)
        return RelationalForecast(table, found.predict, found)

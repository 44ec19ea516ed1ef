"""A fit asked by NumPy, with the covariances and densities that it was learnt with."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import numpy as np
from scipy.special import softmax

from ..fit.assignments import Pairs, log_prior_weights
from ..fit.toeplitz_engine import ToeplitzEngine
from ..fit.training import engine_for, fit_covariances
from ..gp.limits import MIN_WEIGHT
from ..gp.series import GaussianSeries
from ..gp.types import Floats, Integers
from ..runtime.threads import single_threaded
from .predictor import Predictor

_AT_A_TIME = 1000
"""So many times are predicted at once: covariances of all pairs are needed."""


class ByArrays(Predictor):
    r"""A fit of `LKM` itself, with its enumerated posterior, by NumPy.

    Given a row z of a series, a sum g of its components with covariances C_g is

    .. math:: f_g \mid x_n \sim \mathcal{N}(C_{g*} V^{-1} x_n,\;
       s\,(C_{g**} - C_{g*} V^{-1} C_{g*}^\top))

    with s = 1, or the mean of the scale of the series (`LKM.expected_scales`); moments are those
    of the mixture over rows.
    """

    @single_threaded()
    def sums(
        self, x: Floats, sums: Floats, *, full_cov: bool = False, Z: Floats | None = None
    ) -> tuple[Floats, Floats]:
        """See `Predictor.sums`; many times are asked for some at a time, which spares memory."""
        engine = engine_for(self.observations, self.settings)
        is_on_grid = isinstance(engine, ToeplitzEngine) and engine.places(x) is not None
        if not (full_cov or is_on_grid) and len(x) > _AT_A_TIME:
            parts = np.array_split(x, range(_AT_A_TIME, len(x), _AT_A_TIME))
            means, variances = zip(*(self.sums(part, sums, Z=Z) for part in parts), strict=True)
            return np.concatenate(means, axis=2), np.concatenate(variances, axis=2)
        shape = (self.observations.num_series, len(sums), len(x))
        mean, second = np.zeros(shape), np.zeros(shape + shape[-1:] * full_cov)
        for n, weight, some, m, V in self._moments(x, sums, full_cov, Z):
            squares = m[:, :, None] * m[:, None, :] if full_cov else np.square(m)
            mean[n, some] += weight * m
            second[n, some] += weight * ((V if full_cov else np.maximum(V, 0.0)) + squares)
        if full_cov:
            return mean, second - mean[..., :, None] * mean[..., None, :]
        return mean, np.maximum(second - np.square(mean), 0.0)

    def _moments(
        self, x: Floats, sums: Floats, full_cov: bool, Z: Floats | None
    ) -> Iterator[tuple[int, float, Integers, Floats, Floats]]:
        """Yield series, weights, which sums are not zero, their means and covariances."""
        pairs, weights = self.posterior if Z is None else (Pairs.of_rows(Z), np.ones(len(Z)))
        engine, fit = engine_for(self.observations, self.settings), self.fit
        if isinstance(engine, ToeplitzEngine):
            found = engine.moments(fit, pairs, x, sums, full_cov=full_cov)
            if found is not None:
                for p, g, mean, variance in found:
                    which = np.array([g], np.int32)
                    yield int(pairs.series[p]), weights[p], which, mean[None], variance[None]
                return
        own, where = np.unique(np.concatenate([self.observations.x, x]), return_inverse=True)
        old, new = np.split(where.reshape(-1), [len(self.observations.x)])
        every = self.covariances(own)
        C, C_cross = (every[:, old[:, None], times] for times in (old, new))
        C_new = every[:, new[:, None], new] if full_cov else every[:, new, new]
        for n, z, weight in zip(pairs.series, pairs.configurations, weights, strict=True):
            among = sums * z
            some: Integers = np.flatnonzero(among.any(axis=1)).astype(np.int32)
            if not some.size * len(x):  # all moments are zero, or there are none
                continue
            series, seen = self._series(n, np.tensordot(z, C, axes=1))
            cross = np.tensordot(among[some], C_cross[:, seen], axes=1)  # [G, d, M]
            prior = np.tensordot(among[some], C_new, axes=1)
            W = series.whiten(cross.transpose(1, 0, 2).reshape(len(seen), -1))
            W = W.reshape(len(seen), len(some), len(x))
            if full_cov:
                V = prior - W.transpose(1, 2, 0) @ W.transpose(1, 0, 2)
            else:
                V = prior - np.square(W).sum(axis=0)
            m = np.asarray(series.b @ cross, np.float64)  # [G, M]
            yield n, weight, some, m, series.scale * V

    @single_threaded()
    def noise(self, Z: Floats | None = None) -> Floats:
        """See `Predictor.noise`."""
        if not self.settings.likelihood.rescales:
            return self.fit.noise_variance
        pairs, weights = self.posterior if Z is None else (Pairs.of_rows(Z), np.ones(len(Z)))
        engine, total = engine_for(self.observations, self.settings), np.zeros(len(self.fit.Z))
        np.add.at(total, pairs.series, weights * engine.scales(self.fit, pairs))
        return total * self.fit.noise_variance

    def observed(self, x: Floats) -> tuple[Floats, Floats]:
        """See `Predictor.observed`."""
        mean, variance = self.sums(x, np.ones((1, len(self.fit.kernels))))
        return mean[:, 0].T, variance[:, 0].T + self.noise()

    def covariances(self, x: Floats) -> Floats:
        """See `Predictor.covariances`."""
        return fit_covariances(self.fit, x)

    def _series(self, n: int, total: Floats) -> tuple[GaussianSeries, Integers]:
        """Return a series given the covariance of its components [D, D], and its observed rows."""
        seen = np.flatnonzero(self.observations.mask[n])
        V = total[np.ix_(seen, seen)]
        V.flat[:: len(V) + 1] += self.fit.noise_variance[n] + self.observations.known_of(n, seen)
        return GaussianSeries(V, self.observations.Y[n, seen], self.settings.likelihood), seen

    @cached_property
    @single_threaded()
    def posterior(self) -> tuple[Pairs, Floats]:
        """See `Predictor.posterior`."""
        if self.fit.is_drawn:
            return Pairs.of_rows(self.fit.Z), np.ones(len(self.fit.Z))
        series, rows, weights, before = [], [], [], 0
        for part in self._in_parts():
            assert isinstance(part, ByArrays)
            pairs = Pairs.around(part.fit.Z, enumerate_up_to=part.fit.Z.shape[1])
            log_joint = part._log_densities(pairs) + log_prior_weights(
                self.settings.ibp(len(part.fit.kernels)), part.fit.tau, pairs
            )
            own = softmax(pairs.by_series(log_joint, -np.inf), axis=1)
            own = np.where(own >= MIN_WEIGHT, own, 0.0)
            own = pairs.flatten(own / own.sum(axis=1, keepdims=True))
            series.append(before + pairs.series[own > 0.0])
            rows.append(pairs.configurations[own > 0.0])
            weights.append(own[own > 0.0])
            before += part.observations.num_series
        return Pairs(np.concatenate(series), np.concatenate(rows)), np.concatenate(weights)

    def _log_densities(self, pairs: Pairs) -> Floats:
        """``log p(x_n | t)`` of all pairs, [P]; minus infinity where there is none."""
        fit, engine = self.fit, engine_for(self.observations, self.settings)
        found = engine.log_densities(fit, fit.noise_variance[None], pairs)
        return np.nan_to_num(found[0], nan=-np.inf)

"""Rows of Z: the rows worth a look, and the posterior over them.

A row z_n is one of 2^K configurations.  They are kept as *pairs* of a series and a configuration,
so that every series can have its own few.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp, softmax

from ..gp.types import Floats, Integers
from ..model.ibp import IBP, FiniteIBP


@dataclass(frozen=True)
class Pairs:
    """Pairs of a series n_p and a configuration t_p.

    Parameters
    ----------
    series
        [P], sorted; every series has at least one pair.
    configurations
        [P, K], 0 or 1.
    """

    series: Integers
    configurations: Floats

    @cached_property
    def starts(self) -> Integers:
        """Place of the first pair of every series, [N]."""
        changes = np.flatnonzero(np.diff(self.series)) + 1
        return np.concatenate([[0], changes]).astype(np.int32)

    @cached_property
    def _is_there(self) -> NDArray[np.bool_]:
        """Which entries of a table of N rows are pairs: series may have different numbers."""
        counts = np.diff([*self.starts, len(self.series)])
        return np.arange(counts.max()) < counts[:, None]

    def by_series(self, values: Floats, fill: float) -> Floats:
        """Arrange one entry per pair, [P, ...], as one row per series, [N, most pairs, ...]."""
        table = np.full((*self._is_there.shape, *values.shape[1:]), fill)
        table[self._is_there] = values
        return table

    def flatten(self, table: Floats) -> Floats:
        """Undo `by_series`."""
        return table[self._is_there]

    def by_configuration(self) -> Iterator[tuple[Floats, Integers]]:
        """Yield the different configurations, each with the places of the pairs that have it."""
        # As whole numbers: sorting them is much faster than sorting rows.
        codes = self.configurations @ 2.0 ** np.arange(self.configurations.shape[1])
        _, first, which = np.unique(codes, return_index=True, return_inverse=True)
        order = np.argsort(which.reshape(-1), kind="stable").astype(np.int32)
        places = np.split(order, np.cumsum(np.bincount(which.reshape(-1)))[:-1])
        yield from zip(self.configurations[first], places, strict=True)

    @classmethod
    def of_rows(cls, Z: Floats) -> Pairs:
        """One pair a series: its row of Z."""
        return cls(np.arange(len(Z), dtype=np.int32), Z)

    @classmethod
    def around(cls, Z: Floats, enumerate_up_to: int) -> Pairs:
        """All configurations if K is at most `enumerate_up_to`, else those near the rows of Z.

        Near means at most two entries away: one component more, one less, one exchanged.
        """
        N, K = Z.shape
        if enumerate_up_to >= K:
            every = np.array(list(itertools.product((0.0, 1.0), repeat=K))).reshape(2**K, K)
            return cls(np.repeat(np.arange(N, dtype=np.int32), 2**K), np.tile(every, (N, 1)))
        flips = np.zeros((1 + K + K * (K - 1) // 2, K))
        flips[1 : K + 1] = np.eye(K)
        for row, both in enumerate(itertools.combinations(range(K), 2), start=K + 1):
            flips[row, both] = 1.0
        near = np.abs(Z[:, None, :] - flips[None, :, :])
        return cls(np.repeat(np.arange(N, dtype=np.int32), len(flips)), near.reshape(-1, K))


@dataclass(frozen=True)
class RowPosterior:
    """The enumerated posterior over rows, for fixed hyperparameters.

    Parameters
    ----------
    pairs
        The configurations that it covers.
    log_joint
        ``log p(x_n | t_p) + E log p(t_p | pi)``, [P].
    tau
        Beta parameters of q(pi), [K, 2].
    elbo
        The evidence lower bound (design of the model, enumerated posterior).
    """

    pairs: Pairs
    log_joint: Floats
    tau: Floats
    elbo: float

    @classmethod
    def infer(
        cls, prior: FiniteIBP, pairs: Pairs, log_densities: Floats, Z: Floats
    ) -> RowPosterior:
        """Coordinate ascent between q(Z) and the closed form of tau, started at Z."""
        nu, elbo = Z, -np.inf
        for _ in range(100):
            tau = prior.best_tau(nu)
            log_joint = log_densities + log_prior_weights(prior, tau, pairs)
            before, elbo = elbo, float(prior.weights_term(tau)) + _sum_of_evidence(pairs, log_joint)
            posterior = cls(pairs, log_joint, tau, elbo)
            nu = posterior.marginals
            if elbo < before + 1e-9 * (1.0 + abs(elbo)):
                break
        return posterior

    @property
    def responsibilities(self) -> Floats:
        """q(z_n = t_p), [P]; sums to one within each series."""
        return self.pairs.flatten(softmax(self.pairs.by_series(self.log_joint, -np.inf), axis=1))

    @property
    def marginals(self) -> Floats:
        """P(z_nk = 1), [N, K]."""
        weighted = self.responsibilities[:, None] * self.pairs.configurations
        return np.clip(self.pairs.by_series(weighted, 0.0).sum(axis=1), 0.0, 1.0)

    @property
    def most_probable(self) -> Floats:
        """The most probable row of every series, [N, K]."""
        best = np.argmax(self.pairs.by_series(self.log_joint, -np.inf), axis=1)
        return self.pairs.configurations[self.pairs.starts + best]

    def active(self, threshold: float) -> Pairs:
        """Return the pairs whose posterior is above a threshold."""
        keep = self.responsibilities >= threshold
        return Pairs(self.pairs.series[keep], self.pairs.configurations[keep])


def log_prior_weights(prior: IBP, tau: Floats, pairs: Pairs) -> Floats:
    """``sum_k t_k E log pi_k + (1 - t_k) E log(1 - pi_k)`` under Beta(tau), [P]."""
    if not len(tau):
        return np.zeros(len(pairs.series))
    on, off = prior.expected_logs(tau)
    return pairs.configurations @ on + (1.0 - pairs.configurations) @ off


def _sum_of_evidence(pairs: Pairs, log_joint: Floats) -> float:
    return float(sum(logsumexp(pairs.by_series(log_joint, -np.inf), axis=1)))


def best_rows(Z: Floats, prior: FiniteIBP, pairs: Pairs, log_densities: Floats) -> Integers:
    """Most probable row of each series in turn, given the others, with pi integrated out.

    Under the finite prior ``P(z_nk = 1 | rest) = (m_k + alpha / K) / (N + alpha / K)`` with m_k
    the other series that have component k.

    Returns
    -------
    The places of these rows among the pairs, [N].
    """
    Z = Z.copy()
    chosen = np.empty(len(Z), np.int32)
    ends = [*pairs.starts[1:], len(pairs.series)]
    for n, (start, end) in enumerate(zip(pairs.starts, ends, strict=True)):
        own = slice(start, end)
        rows = pairs.configurations[own]
        on, off = prior.conditional_logs(np.delete(Z, n, axis=0))
        log_prior = rows @ on + (1.0 - rows) @ off
        chosen[n] = start + np.argmax(log_densities[own] + log_prior)
        Z[n] = pairs.configurations[chosen[n]]
    return chosen

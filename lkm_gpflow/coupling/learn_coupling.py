r"""Which patterns of a fit go together in which series: correlations, learnt after the search.

The series of a latent kernel model are independent given its kernels.  Here the components of
different series may be correlated,

.. math:: \mathrm{cov}(f_n(t), f_m(t')) = \sum_k a_{nk} a_{mk} R_k[n, m] C_k(t, t'),

and so may their noise, with C the identity.  Kernels and Z are held; the amplitudes a of a series
are fitted to it alone, and also stand in for its scale where that was integrated out (amplitudes
"series"), so that it is normal here and not a Student-t.  Correlations start at one step of Fisher
scoring from independence, climb the likelihood, and stay where they pay (`Loadings.price`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from ..data.observations import Observations
from ..fit.fits import LEAST_NOISE, Fit
from ..gp.series import GaussianSeries
from ..gp.types import Booleans, Floats, Integers
from ..runtime.threads import single_threaded
from .delays import aligned, best_delays
from .density import CoupledDensity, check_number_of_cells
from .loadings import Climber, Loadings, correlations, covariances
from .patterns import Patterns

IntegerArray: TypeAlias = NDArray[np.integer[Any]]

MOST_COLUMNS = 3  # rank of what a pattern's correlation matrix has beside its diagonal
_STEP_SD = 0.7  # prior of a correlation in the step that the search starts from

_SCALE_SD = 1.5
"""Standard deviation of a factor that all log variances of a series share, in their prior."""

_OWN_SD = 0.3
"""Of a series' log variances about a factor that they share.

Chosen on the last windows of 15 tables of the benchmark that choose defaults, without the factor;
with it, 0.1 forecasts 13 of them as well, and 0.6 two per cent worse.
"""

_DELAY = 20.0
"""Nats that each series with a delay gains at least.

Planted delays gain 28 or more.  Where kernels fit badly some ten come by chance: of the tides of
`paper_experiments/lab/coupling.py`, and gaps are filled less well with that delay.
"""

_SHORT = 10  # iterations of a climb that only tries something
_PROMISING = 3.0  # nats that another column must promise to gain, before it is tried
_WORTH = 1.0  # nats that another column gains at least

STRONG = 3.0
"""Log Bayes factor from which evidence is strong (Kass and Raftery 1995: a factor of 20)."""


@dataclass(frozen=True)
class Coupling:
    """How the series of a fit go together."""

    patterns: Patterns  # what they may share
    loadings: Floats  # w, [K + 1, N, R]; those of the noise last
    # Log Bayes factor (by BIC, see `Loadings.price`) of the correlations of each pattern, and of
    # the noise, [K + 1]; zero where there are none.
    evidence: Floats
    log_likelihood: float  # of all series together
    uncoupled: float  # the same without any correlation
    delays: Integers  # rows by which each series follows those that lead, [N]

    @property
    def correlations(self) -> Floats:
        """R of the patterns and of the noise, [K + 1, N, N]."""
        return correlations(self.loadings)

    def of_series(self, places: Integers) -> Coupling:
        """Return the coupling of some of its series."""
        patterns = replace(self.patterns, amplitudes=self.patterns.amplitudes[places])
        loadings, delays = self.loadings[:, places], self.delays[places]
        return replace(
            self, patterns=patterns, loadings=loadings, delays=delays - delays.min(initial=0)
        )


def coupling_of(fit: Fit, observations: Observations, ahead: Floats | None = None) -> Coupling:
    """Learn how the series of a fit go together; its kernels and Z are held.

    Delays are looked for if the times `ahead` of `most_rows` rows after the last are given: the
    rows should be steps of one length.  CellsTooManyError says if there are too many values.
    """
    ahead = np.zeros(0) if ahead is None else ahead
    step, coupling, score = _learnt(independent(fit, observations), observations, ahead)
    least = STRONG + np.log(2.0 * len(ahead) + 1.0)
    delays = best_delays(step.gains(len(ahead)), least)
    if not delays.any():
        return coupling
    moved = aligned(observations, delays, ahead)
    _, delayed, other = _learnt(independent(fit, moved), moved)
    if other - score < _DELAY * np.count_nonzero(delays != np.bincount(delays).argmax()):
        return coupling
    return replace(delayed, delays=delays)


def _learnt(
    alone: Coupling, observations: Observations, ahead: Floats | None = None
) -> tuple[FirstStep, Coupling, float]:
    """Return the first step towards correlations, all that were learnt, and their score."""
    amplitudes, x = alone.patterns.amplitudes, observations.x
    D = len(x)
    C = alone.patterns.covariances(x if ahead is None else np.concatenate([x, ahead]))
    step = FirstStep.of(C, amplitudes, observations)
    C = C[:, :D, :D]
    climber = Climber(CoupledDensity(C, observations.Y, observations.mask), amplitudes)
    search = _Search(climber, amplitudes > 0.0, D)
    none = replace(Loadings.none(*alone.loadings.shape), log_likelihood=alone.log_likelihood)
    found, evidence = search.run(none, step.correlations)
    value = found.log_likelihood
    coupling = replace(alone, loadings=found.w, evidence=evidence, log_likelihood=value)
    return step, coupling, search.score(found)


def independent(fit: Fit, observations: Observations) -> Coupling:
    """Return the series of a fit without correlations: what coupling begins from.

    Every series gets amplitudes of its own first: series that share a variance have it on average
    alone, and correlations would make up for that.
    """
    check_number_of_cells(observations.num_observed)
    patterns = Patterns.of(fit, observations.x)
    C = patterns.covariances(observations.x)
    patterns = replace(patterns, amplitudes=adapted(C, patterns.amplitudes, observations))
    N, K = patterns.amplitudes.shape
    density = CoupledDensity(C, observations.Y, observations.mask)
    none = Loadings.none(K, N, MOST_COLUMNS)
    value = Climber(density, patterns.amplitudes).value(none.u)
    return Coupling(patterns, none.w, np.zeros(K), value, value, np.zeros(N, np.int32))


def predict_cells(
    coupling: Coupling, observations: Observations, series: IntegerArray, x: Floats
) -> tuple[Floats, Floats]:
    """Mean [P] and covariance [P, P] of new observations of series [P] at scaled times x [P].

    Noise is included: that of a new observation goes together with that of all observations at the
    same time, as far as the noises of their series are correlated.  A ValueError says if the
    covariance of the data is not positive definite.
    """
    times, where = np.unique(np.concatenate([observations.x, x]), return_inverse=True)
    rows, new = np.split(where.reshape(-1), [len(observations.x)])
    C = coupling.patterns.covariances(times)  # [K + 1, T, T], those of the noise last
    n, d = np.nonzero(observations.mask)  # the observed cells
    B = covariances(coupling.loadings, coupling.patterns.amplitudes)  # [K + 1, N, N]
    V = _of_cells(B, C, (n, rows[d]), (n, rows[d]))
    # Two observations of one series and time share only this part of their noise.
    noise = B[-1].diagonal().copy()
    shared = noise * np.square(coupling.loadings[-1]).sum(axis=1)
    np.fill_diagonal(B[-1], shared)
    cross = _of_cells(B, C, (n, rows[d]), (series, new))
    prior = _of_cells(B, C, (series, new), (series, new)) + np.diag((noise - shared)[series])
    together = GaussianSeries(V.T, observations.Y[n, d], overwrite=True)
    if np.isnan(together.q):
        raise ValueError("the covariance of the series together is not positive definite")
    return together.predict(cross, prior)


def _of_cells(
    B: Floats,
    C: Floats,
    cells: tuple[IntegerArray, IntegerArray],
    others: tuple[IntegerArray, IntegerArray],
) -> Floats:
    """Sum over k of ``B_k[n, m] C_k[t, t']`` between cells (n, t) and (m, t'), [P, P2]."""
    (n, t), (m, u) = cells, others
    total = np.zeros((len(n), len(m)))
    for between, over in zip(B, C, strict=True):
        total += between[np.ix_(n, m)] * over[np.ix_(t, u)]
    return total


def adapted(C: Floats, amplitudes: Floats, observations: Observations) -> Floats:
    """Amplitudes [N, K] at which each series alone has its highest posterior density."""
    found = amplitudes.copy()
    for n, (y, mask) in enumerate(zip(observations.Y, observations.mask, strict=True)):
        own = np.flatnonzero(amplitudes[n])
        alone = CoupledDensity(C[own], y[None], mask[None])
        before, P = 2.0 * np.log(amplitudes[n, own]), log_variance_precision(len(own))

        def loss(
            h: Floats, alone: CoupledDensity = alone, before: Floats = before, P: Floats = P
        ) -> tuple[float, Floats]:
            variance = np.exp(before + h)
            value, G = alone.value_and_gradient(variance[:, None, None])
            if np.isnan(value):
                return 1e30, np.zeros_like(h)
            return 0.5 * float(h @ P @ h) - value, P @ h - G[:, 0, 0] * variance

        best = minimize(loss, np.zeros(len(own)), jac=True, method="L-BFGS-B")
        found[n, own] = np.exp(0.5 * (before + best.x))
    found[:, -1] = np.maximum(found[:, -1], np.sqrt(LEAST_NOISE))
    return found


def log_variance_precision(count: int) -> Floats:
    r"""Precision of the prior of a series' log variances around those of the fit, [K, K].

    .. math:: \log a_k^2 - \log \hat a_k^2 = s + d_k, \qquad
       s \sim \mathcal{N}(0, 1.5^2), \quad d_k \sim \mathcal{N}(0, 0.3^2)

    A series may be larger or smaller as a whole, as in the fit, which integrates that out; its
    components keep about the proportions that the fit gives them.
    """
    covariance = _OWN_SD**2 * np.eye(count) + _SCALE_SD**2
    return np.asarray(np.linalg.inv(covariance))


@dataclass(frozen=True)
class _Pair:
    """Two series and the patterns that both have: what the data say of their correlations."""

    n: int
    m: int
    patterns: IntegerArray  # [k]
    aa: Floats  # products of their amplitudes, [k]
    covariance: Floats  # of the correlations, if the two were independent, [k, k]


@dataclass(frozen=True)
class FirstStep:
    r"""Correlations one step of Fisher scoring away from independence.

    .. math:: s_k = a_{nk} a_{mk} b_n^\top C_k b_m, \qquad
       F_{kl} = a_{nk} a_{mk} a_{nl} a_{ml} \operatorname{tr}(V_n^{-1} C_k V_m^{-1} C_l), \qquad
       b_n = V_n^{-1} y_n

    for every pair of series: where nothing is coupled, the information of different pairs is
    separate.  The prior of a correlation is normal, of mean 0 and standard deviation 0.7.
    """

    b: Floats  # [N, D]
    parts: Floats  # C_k b_n, [K, N, D + L]
    pairs: tuple[_Pair, ...]

    @classmethod
    @single_threaded()  # one series or two at a time
    def of(cls, C: Floats, amplitudes: Floats, observations: Observations) -> FirstStep:
        """Weigh the data for every pair of series; C may go on for L rows, [K, D + L, D + L]."""
        N, K = amplitudes.shape
        D = len(observations.x)
        longer, C = C[:, :, :D], C[:, :D, :D]
        b, P = np.zeros((N, D)), np.zeros((N, K, D, D))
        for n, mask in enumerate(observations.mask):
            seen = np.flatnonzero(mask)
            V = np.tensordot(np.square(amplitudes[n]), C, axes=1)[np.ix_(seen, seen)]
            inverse = np.zeros((D, D))
            inverse[np.ix_(seen, seen)] = np.linalg.inv(V)
            b[n] = inverse @ observations.Y[n]
            P[n] = inverse @ C
        pairs = []
        for m, n in combinations(range(N), 2):
            both = np.flatnonzero((amplitudes[n] > 0.0) & (amplitudes[m] > 0.0))
            aa = amplitudes[n, both] * amplitudes[m, both]
            left = P[n, both].reshape(len(both), -1)
            right = P[m, both].transpose(0, 2, 1).reshape(len(both), -1)
            F = np.outer(aa, aa) * (left @ right.T)
            covariance = np.linalg.inv(0.5 * (F + F.T) + np.eye(len(both)) / _STEP_SD**2)
            pairs.append(_Pair(n, m, both, aa, covariance))
        return cls(b, b @ longer.transpose(0, 2, 1), tuple(pairs))

    def slope(self, pair: _Pair, rows: int = 0) -> Floats:
        """Slopes s [k] of the log likelihood if m follows n by so many rows."""
        first, last = (pair.n, pair.m) if rows >= 0 else (pair.m, pair.n)
        begin = abs(rows)  # of the rows of the last one, as the first one is moved
        part = self.parts[pair.patterns, last, begin : begin + self.b.shape[1]]
        return pair.aa * (part @ self.b[first])

    @property
    def correlations(self) -> Floats:
        """[K, N, N]; zero where series do not both have the pattern."""
        found = np.zeros((len(self.parts), *[len(self.b)] * 2))
        for pair in self.pairs:
            step = pair.covariance @ self.slope(pair)
            found[pair.patterns, pair.n, pair.m] = found[pair.patterns, pair.m, pair.n] = step
        return np.clip(found, -0.95, 0.95)

    def gains(self, most: int) -> Floats:
        """Nats that correlations promise if m follows n by -most to most rows, [., N, N]."""
        found = np.zeros((2 * most + 1, *[len(self.b)] * 2))
        for pair in self.pairs:
            for rows in range(-most, most + 1):
                s = self.slope(pair, rows)
                gain = 0.5 * float(s @ pair.covariance @ s)
                found[most + rows, pair.n, pair.m] = found[most - rows, pair.m, pair.n] = gain
        return found


class _Search:
    """Columns of loadings that pay, one after the other."""

    def __init__(self, climber: Climber, owners: Booleans, num_times: int) -> None:
        self._climber, self._owners, self._D = climber, owners, num_times

    def run(self, none: Loadings, step: Floats) -> tuple[Loadings, Floats]:
        """Begin with a column for every pattern, leave out what does not pay, add what does.

        Returns the loadings, and the evidence for the correlations of each pattern, [K].
        """
        first, promise = none, self._promise(none)
        for k in self._able():
            if promise[k][0] > _PROMISING:
                first = first.column(k, 0, _unbounded(_leading(step[k])), self._owners[:, k])
        begun, evidence = self._pruned(self._thinned(self._climber.climb(first), first.free))
        found = self._extended(begun)
        return (found, evidence) if found is begun else self._pruned(found)

    def _promise(self, found: Loadings) -> list[tuple[float, Floats]]:
        """What another column of each pattern may gain, in nats, and in which direction, [N].

        With slope s along a direction, a quadratic that has its top at a correlation of one gains
        half of s.
        """
        _, slope = self._climber.slope(found.u)
        directions = np.linalg.eigh(slope)[1][:, :, -1]
        directions /= np.abs(directions).max(axis=1, keepdims=True)
        gains = 0.5 * np.einsum("kn,knm,km->k", directions, slope, directions)
        return [(float(gain), direction) for gain, direction in zip(gains, directions, strict=True)]

    def score(self, at: Loadings) -> float:
        """Log likelihood less what its freedom costs."""
        return at.log_likelihood - at.price(self._owners, self._D)

    def _able(self) -> Sequence[int]:
        """Patterns that at least two series have."""
        return [int(k) for k in np.flatnonzero(self._owners.sum(axis=0) > 1)]

    def _pruned(self, found: Loadings) -> tuple[Loadings, Floats]:
        """Take out the correlations of patterns, the least first, until evidence for all is strong.

        Returns what is left, and how much the score falls without those of each pattern, [K].
        """
        while True:
            evidence = np.zeros(len(found.u))
            others: dict[int, Loadings] = {}
            for k in np.flatnonzero(found.free.any(axis=(1, 2))):
                others[k] = self._climber.climb(found.without(int(k)), _SHORT)
                evidence[k] = self.score(found) - self.score(others[k])
            weakest = min(others, key=lambda k: evidence[k], default=None)
            if weakest is None or evidence[weakest] >= STRONG:
                return found, evidence
            found = others[weakest]

    def _thinned(self, found: Loadings, asked: Booleans) -> Loadings:
        """Take out those of the loadings asked about [K, N, R] that do not pay, if it is better."""
        free = found.free.copy()
        price = 0.5 * np.log(self._D)
        for k, n, r in np.argwhere(found.free & asked):
            tried = found.u.copy()
            tried[k, n, r] = 0.0
            free[k, n, r] = found.log_likelihood - self._climber.value(tried) > price
        free &= free.sum(axis=1, keepdims=True) > 1
        if np.array_equal(free, found.free):
            return found
        fewer = replace(found, u=np.where(free, found.u, 0.0), free=free)
        return max(self._climber.climb(fewer, _SHORT), found, key=self.score)

    def _extended(self, found: Loadings) -> Loadings:
        """Add columns to the patterns where the likelihood rises most, for as long as they pay."""
        tried: set[int] = set()
        while True:
            columns = found.free.any(axis=1).sum(axis=1)
            promise = self._promise(found)
            able = [
                k for k in self._able()
                if k not in tried and columns[k] < min(MOST_COLUMNS, self._owners[:, k].sum() - 1)
            ]  # fmt: skip
            if not able:
                return found
            k = max(able, key=lambda k: promise[k][0])
            gain, direction = promise[k]
            if gain < _PROMISING:
                return found
            r = int(np.argmin(found.free[k].any(axis=0)))
            more = found.column(k, r, 0.3 * direction, self._owners[:, k])
            asked = more.free & ~found.free
            more = self._thinned(self._climber.climb(more, _SHORT), asked)
            if more.free[k, :, r].any() and self.score(more) > self.score(found) + _WORTH:
                found, tried = self._climber.climb(more), set()
            else:
                tried.add(k)


def _leading(correlation: Floats) -> Floats:
    """Loadings [N] of one column that come near to correlations off the diagonal, [N, N]."""
    communality = np.abs(correlation).max(axis=1)
    for _ in range(10):
        values, vectors = np.linalg.eigh(correlation + np.diag(communality))
        w = np.sqrt(max(float(values[-1]), 0.0)) * vectors[:, -1]
        w = np.clip(w, -0.9, 0.9)
        communality = np.square(w)
    return w


def _unbounded(w: Floats) -> Floats:
    """Return the u of loadings that are not almost zero, from which L-BFGS could not leave."""
    w = np.where(np.abs(w) < 0.05, 0.05, w)
    return w / np.sqrt(1.0 - np.square(w))

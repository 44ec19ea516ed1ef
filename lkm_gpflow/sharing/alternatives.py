r"""What a series might have instead: probabilities that leave open what a fit takes for granted.

A fit is sure of too much.  Its P(z_nk = 1) holds if its kernels, their variances and its list of
components are the true ones, but all three were estimated from the same data.  Here every series
chooses among more.  Its candidates c are

- the rows of Z of the fit;
- those of them that are not far behind the best, with the variance of one component multiplied by
  1/64, 1/16, 1/4, 4, 16 or 64;
- the same rows, whole or without one of their components, with one component added that the fit
  does not have: one of the other fits, at these seven variances, or a pattern of no special kind
  (smooth changes over 3, 10 or 30% of the time, a random walk, a straight line), at a tenth, half
  or twice the variance of the data.

Their posterior is a coarsened one,

.. math:: P(c \mid x_n) \propto P(c)\, p(x_n \mid c)^{1/3},

and P(z_nk = 1) the sum over the candidates that have the component or, in its place, a pattern much
like it.  That of a family (`families`) is the sum over those that have any of its components; an
added pattern counts as a pattern, and as a slow movement if it is slow, whatever it is like.  P(c)
is that of the row, times the shares below.  Source of the power of the likelihood: Miller and
Dunson 2019, *Robust Bayesian inference via coarsening*.  The average over fits is told with its log
odds drawn by three tenths towards those of one in four (`consensus.softened`).  Powers, factors and
shares were chosen on planted tables (`lab/calibration.py`, seeds 0 to 199), and judged on
others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import logsumexp

from ..data.observations import Observations
from ..fit.fits import Fit, FitSettings
from ..fit.initialization import walks_begin
from ..fit.model_covariances import fit_covariances
from ..gp.likelihoods import GAUSSIAN, SeriesLikelihood
from ..gp.series import log_density
from ..gp.types import Booleans, Floats, Integers
from ..kernels.grammar import parse
from ..runtime.threads import single_threaded
from .consensus import Consensus
from .families import are_slow
from .matching import MUCH_LIKE, correlation, shapes_of, thinned

_POWER = 1.0 / 3.0
"""Of the likelihood."""

_SOFTNESS = 0.7
"""Of the average over fits; see `consensus.softened`.

A search may have missed what there is, and all its fits with it; and what it doubts is seldom true.
On the 200 planted tables that chose settings the log loss of what is said is 0.442 as it is, 0.429
with odds to the power 0.7 alone, 0.421 drawn to one in four as well, and 0.421 with the two numbers
that are best there (0.68, 0.25).
"""

_FACTORS = {
    1 / 64: 0.05,
    1 / 16: 0.1,
    1 / 4: 0.2,
    1.0: 0.3,
    4.0: 0.2,
    16.0: 0.1,
    64.0: 0.05,
}
"""Of the variance of a component, and how probable they are."""

_BY_OTHERS = 0.2
"""Probability that a series has a component that other fits have and this one has not."""

_BY_NONE = 0.4
"""Probability that it has a pattern that no fit has."""

_LENGTHSCALES = (0.03, 0.1, 0.3)
"""Of the smooth patterns, as shares of the time."""

_VARIANCES = (0.1, 0.5, 2.0)
"""Of the patterns, in series of variance one."""

_FAR = 8.0
"""Rows that are so many nats behind the best of a series are not varied."""

_MOST_SERIES = 64
"""Of more series the probabilities stay those of the fits: every series has its own candidates."""

_MOST_COMPONENTS = 8
"""Fits of more components keep their probabilities: there are 2^K rows."""


@dataclass(frozen=True)
class _Addition:
    """A covariance that may be added to a row, its prior probability, and which it counts as.

    Parameters
    ----------
    covariance
        [D, D].
    probability
        That a series has it, before anything is seen.
    counts_as
        Which consensus components, and then families, it counts as, [I].
    """

    covariance: Floats
    probability: float
    counts_as: Booleans


@dataclass(frozen=True)
class _Series:
    """What was seen of a series [d], and what its fit explains it by.

    Covariances of its points are flat: of the components [K, d d], of the noise [d d].
    """

    seen: Floats
    components: Floats
    noise: Floats
    likelihood: SeriesLikelihood
    where: tuple[Integers, ...]

    def with_noise(self, more: Floats) -> Floats:
        """From a covariance of all times [D, D] to one of what was seen, noise included, flat."""
        return more[self.where].ravel() + self.noise

    def log_density(self, factors: Floats, rest: Floats | None = None) -> float:
        """``log p(x_n)`` with the components multiplied by factors [K].

        The rest is `with_noise`; None: it is the noise alone.
        """
        V = factors @ self.components
        V += self.noise if rest is None else rest
        value = log_density(V.reshape(2 * self.seen.shape).T, self.seen, self.likelihood)
        return value if np.isfinite(value) else -np.inf


@single_threaded()
def with_alternatives(
    consensus: Consensus, observations: Observations, settings: FitSettings
) -> Consensus:
    """Return the consensus with probabilities, and evidence, that leave alternatives open.

    The paper's model (Gaussian noise) keeps its probabilities, as published; so do tables of
    more than 64 series, and fits of more than 8 components.
    """
    too_many = observations.num_series > _MOST_SERIES
    if settings.likelihood == GAUSSIAN or too_many or not consensus.kernels:
        return consensus
    known = fit_covariances(consensus.fits[0], observations.x, consensus.kernels)
    families = consensus.families
    asked = [*((k,) for k in range(len(known))), *(family.members for family in families)]
    is_asked = np.array([np.isin(range(len(known)), members) for members in asked])
    from_no_fit = list(_from_no_fit(consensus, is_asked, observations.x))
    by_fit = np.stack(
        [*np.moveaxis(consensus.by_fit, 2, 0), *(family.by_fit for family in families)], 2
    )
    for m, (fit, places) in enumerate(zip(consensus.fits, consensus.places, strict=True)):
        if len(fit.kernels) <= _MOST_COMPONENTS:
            additions = [*_from_other_fits(known, is_asked, places), *from_no_fit]
            by_fit[m] = _probabilities(fit, places, additions, is_asked, observations, settings)
    evidence = [
        consensus.evidence_of_any(members, by_fit[:, :, i], settings)
        for i, members in enumerate(asked)
    ]
    K = len(known)
    return replace(
        consensus,
        by_fit=by_fit[:, :, :K],
        evidence=np.stack(evidence[:K], axis=1),
        families=tuple(
            replace(family, by_fit=by_fit[:, :, K + i], evidence=evidence[K + i])
            for i, family in enumerate(families)
        ),
        softness=_SOFTNESS,
    )


def _from_other_fits(known: Floats, asked: Booleans, places: Integers) -> Iterator[_Addition]:
    """Yield the consensus components, of covariances [K, D, D], that a fit has not."""
    missing = np.setdiff1d(np.arange(len(known)), places)
    for k in missing:
        for factor, p in _FACTORS.items():
            yield _Addition(factor * known[k], _BY_OTHERS / len(missing) * p, asked[:, k])


def _from_no_fit(consensus: Consensus, asked: Booleans, x: Floats) -> Iterator[_Addition]:
    """Yield patterns of no special kind.

    They count as the components that are alike, as patterns, and as slow movements if they are.
    """
    first, span = x[0], x[-1] - x[0]
    patterns = [
        *(parse(f"1.0 x SE(lengthscale={share * span})") for share in _LENGTHSCALES),
        parse(f"1.0 x RW(start={walks_begin(x)})"),
        parse(f"1.0 x LIN(location={first + 0.5 * span})"),
    ]
    grid = thinned(x)
    alike = correlation(shapes_of(patterns, grid), shapes_of(consensus.kernels, grid)) >= MUCH_LIKE
    counts_as = (alike[:, None, :] & asked).any(axis=2)
    kinds = np.array([""] * len(consensus.kernels) + [each.kind for each in consensus.families])
    counts_as |= are_slow(patterns, x)[:, None] & (kinds == "slow movement")
    counts_as |= kinds == "pattern"
    share = _BY_NONE / len(patterns) / len(_VARIANCES)
    for C, own in zip(fit_covariances(consensus.fits[0], x, patterns), counts_as, strict=True):
        for variance in _VARIANCES:
            yield _Addition(variance / np.diag(C).mean() * C, share, own)


def _probabilities(
    fit: Fit,
    places: Integers,
    additions: Sequence[_Addition],
    asked: Booleans,
    observations: Observations,
    settings: FitSettings,
) -> Floats:
    """P(n has any of some consensus components) by one fit and the alternatives to it, [N, I].

    What is `asked` are I sets of components, [I, K].
    """
    C = fit_covariances(fit, observations.x)
    on, off = settings.ibp(len(fit.kernels)).expected_logs(fit.tau)
    is_place = places[:, None] == np.arange(asked.shape[1])  # [K_m, K]
    is_one = (is_place[:, None, :] & asked).any(axis=2)  # [K_m, I]
    total = np.zeros((observations.num_series, len(asked)))
    for n in range(observations.num_series):
        where = np.ix_(*[np.flatnonzero(observations.mask[n] > 0.0)] * 2)
        series = _Series(
            observations.Y[n, where[1][0]],
            np.array([c[where].ravel() for c in C]),
            (fit.noise_variance[n] * np.eye(where[1].size)).ravel(),
            settings.likelihood,
            where,
        )
        candidates, scores = zip(*_candidates(series, on - off, additions), strict=True)
        weights = np.exp(np.array(scores) - logsumexp(scores))
        for (factors, number), weight in zip(candidates, weights, strict=True):
            has = is_one[factors > 0.0].any(axis=0)
            total[n] += weight * (has if number is None else has | additions[number].counts_as)
    return np.minimum(total, 1.0)


def _candidates(
    series: _Series, odds: Floats, additions: Sequence[_Addition]
) -> Iterator[tuple[tuple[Floats, int | None], float]]:
    """Yield candidates (factors [K], number of the addition), and log posteriors up to a constant.

    Parameters
    ----------
    series
        Of which.
    odds
        Log prior odds of the components of the fit, [K].
    additions
        What may be added.
    """
    K = len(odds)
    as_it_is = float(np.log1p(-sum(addition.probability for addition in additions)))

    def prior(factors: Floats) -> float:
        chances = [_FACTORS[float(factor)] for factor in factors if factor]
        return float(np.log(chances).sum() + (factors > 0.0) @ odds)

    rows = (np.arange(2**K)[:, None] >> np.arange(K) & 1).astype(np.float64)
    values = np.array([series.log_density(row) for row in rows])
    for row, value in zip(rows, values, strict=True):
        yield (row, None), _POWER * value + prior(row) + as_it_is
    posterior = values + rows @ odds
    near = rows[posterior > posterior.max() - _FAR]
    others = {float(factor) for factor in _FACTORS} - {1.0}
    for factors in _changed(near, others):
        yield (factors, None), _POWER * series.log_density(factors) + prior(factors) + as_it_is
    rows = np.unique(np.concatenate([near, _changed(near, {0.0})]), axis=0)
    for number, addition in enumerate(additions):
        rest, chance = series.with_noise(addition.covariance), float(np.log(addition.probability))
        for row in rows:
            yield (row, number), _POWER * series.log_density(row, rest) + prior(row) + chance


def _changed(rows: Floats, values: set[float]) -> Floats:
    """Return rows [., K] with one entry replaced by one of the values, each of them once."""
    K = rows.shape[1]
    changed = [
        np.where(np.arange(K) == k, v, row) for row in rows for k in range(K) for v in values
    ]
    return np.unique(np.array(changed).reshape(-1, K), axis=0)

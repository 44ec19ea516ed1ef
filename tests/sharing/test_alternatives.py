"""Probabilities that leave alternatives open, against an enumeration by SciPy and GPflow."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import digamma
from scipy.stats import multivariate_t
from small import made_by_hand, small_table

import lkm_gpflow as lkm
from lkm_gpflow.fit.fits import FitSettings
from lkm_gpflow.forecast.forecasters import Member
from lkm_gpflow.forecast.predictors import Predictors
from lkm_gpflow.gp.likelihoods import ScaledNoise
from lkm_gpflow.gp.types import Floats
from lkm_gpflow.kernels.component import to_kernel
from lkm_gpflow.kernels.grammar import parse
from lkm_gpflow.sharing.alternatives import with_alternatives
from lkm_gpflow.sharing.consensus import Consensus, agree, softened
from lkm_gpflow.sharing.families import Family

SETTINGS = FitSettings(likelihood=ScaledNoise(), alpha=1.0)
FIRST = ("0.5 x SE(lengthscale=0.2)", "0.8 x PER(period=0.25,lengthscale=0.8)")
SECOND = ("0.5 x SE(lengthscale=0.2)", "2.0 x RW(start=-0.1)")
TAU = np.array([[2.0, 1.5], [1.2, 3.0]])


def two_fits(weight: float = 0.6) -> tuple[Consensus, lkm.Discovery]:
    """What two fits agree upon, the second of which has a walk in the place of the cycle."""
    frame = small_table(num_times=15)[["a", "b"]].set_axis(np.linspace(0.0, 1.0, 15))
    members = []
    for share, kernels in ((weight, FIRST), (1.0 - weight, SECOND)):
        found = made_by_hand(frame, kernels, [[1, 1], [1, 0]])
        fit = replace(found.entries[0].fit, tau=TAU)
        members.append(Member(fit, share))
    return agree(members, Predictors(found.table.observations, SETTINGS)), found


def by_enumeration(
    consensus: Consensus, found: lkm.Discovery, m: int, together: set[int], slow: set[int]
) -> NDArray[np.float64]:
    """The same for complete series, all rows near the best, in the words of the docstring.

    The last columns have the probability of any of the components that are taken `together`, and
    of any that is `slow`.
    """
    o, fit, places = found.table.observations, consensus.fits[m], consensus.places[m]
    X, D = o.x[:, None], len(o.x)

    def covariance(kernel: object) -> NDArray[np.float64]:
        return np.asarray(to_kernel(parse(str(kernel)))(X))

    own = [covariance(kernel) for kernel in fit.kernels]
    known = [covariance(kernel) for kernel in consensus.kernels]
    missing = [k for k in range(len(known)) if k not in places]
    odds = digamma(TAU[:, 0]) - digamma(TAU[:, 1])
    heights = {64.0: 0.05, 16.0: 0.1, 4.0: 0.2}
    chance = {0.0: 1.0, 1.0: 0.3, **heights, **{1 / a: p for a, p in heights.items()}}
    generic = []
    patterns = [f"1 x SE(lengthscale={l})" for l in (0.03, 0.1, 0.3)]
    for text in (*patterns, f"1 x RW(start={-1 / 3})", "1 x LIN(location=0.5)"):
        C = covariance(text)
        generic.append((text, C / np.trace(C) * D))
    alike = {
        (i, k): like(text, str(kernel), o.x) > 0.85
        for i, (text, _) in enumerate(generic)
        for k, kernel in enumerate(consensus.kernels)
    }
    is_slow = [False, True, True, True, True]
    total = np.zeros((2, len(known) + 3))
    for n in range(2):

        def likelihood(V: NDArray[np.float64], n: int = n) -> float:
            V = V + fit.noise_variance[n] * np.eye(D)
            return float(multivariate_t(np.zeros(D), V, df=4.0).logpdf(o.Y[n]))

        scored: list[tuple[float, set[int], int | None]] = []
        for levels in itertools.product(chance, repeat=2):
            if sum(level not in (0.0, 1.0) for level in levels) > 1:
                continue
            V = sum(a * C for a, C in zip(levels, own, strict=True))
            prior = np.log([chance[a] for a in levels]).sum() + odds @ (np.array(levels) > 0)
            has = {int(places[i]) for i in range(2) if levels[i] > 0}
            assert isinstance(V, np.ndarray)
            scored.append((likelihood(V) / 3 + prior + np.log(0.4), has, None))
            if any(level not in (0.0, 1.0) for level in levels):
                continue
            for k, (a, p) in itertools.product(missing, list(chance.items())[1:]):
                more = likelihood(V + a * known[k]) / 3 + np.log(0.2 * p / len(missing))
                scored.append((more + prior, has | {k}, None))
            for (i, (_, C)), a in itertools.product(enumerate(generic), (0.1, 0.5, 2.0)):
                more = likelihood(V + a * C) / 3 + np.log(0.4 / 15)
                as_known = {k for k in range(len(known)) if alike[i, k]}
                scored.append((more + prior, has | as_known, i))
        scores = np.array([score for score, *_ in scored])
        weights = np.exp(scores - scores.max())
        weights /= weights.sum()
        for weight, (_, has, added) in zip(weights, scored, strict=True):
            total[n, list(has)] += weight
            total[n, -3] += weight * bool(has & together)
            moves = added is not None and is_slow[added]
            total[n, -2] += weight * (moves or bool(has & slow))
            total[n, -1] += weight * (added is not None or bool(has))
    return total


def like(a: str, b: str, x: NDArray[np.float64]) -> float:
    """Correlation of the roots of centred covariances."""
    roots = []
    for text in (a, b):
        H = np.eye(len(x)) - 1.0 / len(x)
        values, U = np.linalg.eigh(H @ np.asarray(to_kernel(parse(text))(x[:, None])) @ H)
        root = (U * np.sqrt(np.maximum(values, 0.0))) @ U.T
        roots.append(root / np.linalg.norm(root))
    return float((roots[0] * roots[1]).sum())


def test_against_enumeration(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lkm_gpflow.sharing.alternatives._FAR", np.inf)
    consensus, found = two_fits()
    assert len(consensus.kernels) == 3
    o = found.table.observations
    assert o.x[0] == 0.0
    assert o.x[-1] == 1.0
    slow = {k for k, each in enumerate(consensus.kernels) if str(each.structure) in ("SE", "RW")}
    assert len(slow) == 2
    families = tuple(
        Family(kind, tuple(members), np.full((2, 2), np.nan), np.full(2, np.nan))
        for kind, members in (
            ("cycle", (0, 2)), ("slow movement", sorted(slow)), ("pattern", range(3)),
        )
    )  # fmt: skip
    told = with_alternatives(replace(consensus, families=families), o, SETTINGS)
    for m in range(2):
        enumerated = by_enumeration(consensus, found, m, {0, 2}, slow)
        np.testing.assert_allclose(told.by_fit[m], enumerated[:, :-3], rtol=1e-6, atol=1e-9)
        for i, family in enumerate(told.families):
            by_hand = enumerated[:, 3 + i]
            np.testing.assert_allclose(family.by_fit[m], by_hand, rtol=1e-6, atol=1e-9)
    for family in told.families:
        assert np.all(family.by_fit > told.by_fit[:, :, list(family.members)].max(axis=2))
        assert np.isfinite(family.evidence).all()
    assert not np.allclose(told.probabilities, consensus.probabilities, atol=0.02)
    np.testing.assert_array_equal(told.weights, consensus.weights)


def test_what_is_told_is_nearer_to_one_in_four() -> None:
    """Odds are a mean of those of the average and of one to three: a geometric one, 7 to 3."""
    consensus, found = two_fits()
    told = with_alternatives(consensus, found.table.observations, SETTINGS)

    def drawn(average: Floats) -> Floats:
        odds = (average / (1.0 - average)) ** 0.7 / 3.0**0.3
        return odds / (1.0 + odds)

    average = np.tensordot(told.weights, told.by_fit, axes=1)
    np.testing.assert_allclose(told.probabilities, drawn(average))
    for family in told.families:
        any_of = told.weights @ family.by_fit
        np.testing.assert_allclose(told.probabilities_of(family), drawn(any_of))
    unmoved = np.array([0.0, 0.25, 1.0])
    np.testing.assert_allclose(softened(unmoved, 0.7), unmoved)
    np.testing.assert_array_equal(told.Z, (told.probabilities > 0.5) & (told.evidence > 0.0))


def test_rows_that_are_far_behind_do_not_matter_much(monkeypatch: pytest.MonkeyPatch) -> None:
    consensus, found = two_fits()
    near = with_alternatives(consensus, found.table.observations, SETTINGS)
    monkeypatch.setattr("lkm_gpflow.sharing.alternatives._FAR", np.inf)
    every = with_alternatives(consensus, found.table.observations, SETTINGS)
    np.testing.assert_allclose(near.probabilities, every.probabilities, atol=0.02)


def test_gaps_are_left_out() -> None:
    """A series of which half was not seen is surer of nothing than before."""
    consensus, found = two_fits()
    o = found.table.observations
    mask = o.mask.copy()
    mask[0, 3:] = 0.0
    gappy = replace(o, mask=mask, Y=o.Y * mask)
    whole, part = (with_alternatives(consensus, each, SETTINGS) for each in (o, gappy))
    np.testing.assert_allclose(part.by_fit[:, 1], whole.by_fit[:, 1])
    assert not np.allclose(part.by_fit[:, 0], whole.by_fit[:, 0], atol=1e-3)


def test_the_papers_model_and_large_tables_keep_theirs(monkeypatch: pytest.MonkeyPatch) -> None:
    consensus, found = two_fits()
    o = found.table.observations
    assert with_alternatives(consensus, o, FitSettings()) is consensus
    monkeypatch.setattr("lkm_gpflow.sharing.alternatives._MOST_SERIES", 1)
    assert with_alternatives(consensus, o, SETTINGS) is consensus
    monkeypatch.setattr("lkm_gpflow.sharing.alternatives._MOST_SERIES", 64)
    monkeypatch.setattr("lkm_gpflow.sharing.alternatives._MOST_COMPONENTS", 1)
    kept = with_alternatives(consensus, o, SETTINGS)
    np.testing.assert_array_equal(kept.by_fit, consensus.by_fit)
    np.testing.assert_allclose(kept.evidence, consensus.evidence)


def test_best_alone_is_the_fit() -> None:
    found = lkm.discover(small_table(), restarts=1, depth=0, bases=("SE",), progress=False)
    np.testing.assert_array_equal(found.best.probabilities, found.fit.probabilities)

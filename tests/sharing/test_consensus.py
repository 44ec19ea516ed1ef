"""What several fits agree upon: matched one to one, folded, averaged."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from scipy.linalg import sqrtm
from scipy.special import digamma, logsumexp
from scipy.stats import multivariate_normal
from small import agreed, made_by_hand, small_table

import lkm_gpflow as lkm
from lkm_gpflow.fit.fits import Fit, FitSettings
from lkm_gpflow.forecast.by_model import to_model
from lkm_gpflow.kernels.component import to_kernel
from lkm_gpflow.kernels.grammar import parse
from lkm_gpflow.sharing.matching import (
    ALIKE,
    SAME,
    correlation,
    groups_of_same,
    one_to_one,
    shapes_of,
)

X = np.linspace(0.0, 1.0, 40)


def shapes(*kernels: str) -> NDArray[np.float64]:
    return shapes_of([parse(kernel) for kernel in kernels], X)


def alike(a: str, b: str) -> float:
    return float(correlation(shapes(a), shapes(b))[0, 0])


def test_shapes_are_roots_of_centred_covariances() -> None:
    kernels = ("0.3 x SE(lengthscale=0.1)", "5 x RW(start=-0.02)", "1 x LIN(location=0.2)")
    H = np.eye(40) - 1.0 / 40
    for text, shape in zip(kernels, shapes(*kernels), strict=True):
        C = H @ to_kernel(parse(text))(X[:, None]).numpy() @ H
        root = np.real(sqrtm(C + 1e-12 * np.eye(40)))
        np.testing.assert_allclose(shape.reshape(40, 40), root / np.linalg.norm(root), atol=2e-4)


def test_what_is_the_same_and_what_is_not() -> None:
    assert alike("1 x SE(lengthscale=0.2)", "9 x SE(lengthscale=0.25)") > SAME
    assert alike("1 x RW(start=-0.02)", "1 x IOU(lengthscale=0.005,start=-0.02)") > SAME
    walk = "1 x RW(start=-0.02)"
    assert all(alike(walk, f"1 x SE(lengthscale={l})") < ALIKE for l in (0.05, 0.1, 0.2, 0.4, 1.0))
    assert alike("1 x SE(lengthscale=0.1)", "1 x SE(lengthscale=0.4)") < ALIKE
    wave = "1 x PER(period=0.2,lengthscale=0.8)"
    assert alike(wave, "1 x PER(period=0.202,lengthscale=0.8)") > SAME
    assert alike(wave, "1 x PER(period=0.22,lengthscale=0.8)") < ALIKE


def test_a_constant_is_like_a_constant_alone() -> None:
    told = correlation(shapes("1 x C", "2 x LIN(location=0)"), shapes("3 x C", "1 x WN"))
    assert told[0, 0] == 1.0
    assert told[0, 1] == 0.0
    assert abs(told[1, 0]) < 1e-12


def test_matching_is_one_to_one_and_of_largest_total() -> None:
    rng = np.random.default_rng(0)
    a, b = (np.abs(rng.normal(size=(4, 6))) for _ in range(2))
    a, b = (rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (a, b))
    pairs = one_to_one(a, b, 0.0)
    assert len({i for i, _ in pairs}) == len({j for _, j in pairs}) == 4
    best = max(
        sum(a[i] @ b[j] for i, j in enumerate(order)) for order in itertools.permutations(range(4))
    )
    assert sum(a[i] @ b[j] for i, j in pairs) == pytest.approx(best)
    assert one_to_one(a, -a, 0.5) == []


def test_near_duplicates_have_one_number() -> None:
    own = shapes("1 x SE(lengthscale=0.2)", "1 x LIN(location=0)", "2 x SE(lengthscale=0.23)")
    assert groups_of_same(own).tolist() == [0, 1, 0]


def brute_force(
    found: lkm.Discovery, fit: Fit, group: Sequence[int], n: int
) -> tuple[float, float]:
    """P(any of a group) and the log Bayes factor, by all rows of Z and SciPy's density."""
    o = found.table.observations
    C = np.array([to_kernel(kernel)(o.x[:, None]).numpy() for kernel in fit.kernels])
    seen = o.mask[n] > 0.0
    on, off = (digamma(fit.tau[:, i]) for i in (0, 1))
    log_with, log_without, prior_with, prior_without = [], [], [], []
    for row in itertools.product([0.0, 1.0], repeat=len(C)):
        z = np.array(row)
        V = np.tensordot(z, C, 1) + fit.noise_variance[n] * np.eye(len(o.x))
        likelihood = multivariate_normal(cov=V[np.ix_(seen, seen)]).logpdf(o.Y[n][seen])
        prior = float(z @ on + (1.0 - z) @ off)
        has = bool(z[list(group)].any())
        (log_with if has else log_without).append(likelihood + prior)
        (prior_with if has else prior_without).append(prior)
    posterior_odds = logsumexp(log_with) - logsumexp(log_without)
    prior_odds = logsumexp(prior_with) - logsumexp(prior_without)
    return 1.0 / (1.0 + np.exp(-posterior_odds)), float(posterior_odds - prior_odds)


NEAR_COPIES = ["0.5 x SE(lengthscale=45)", "0.3 x SE(lengthscale=52)", "2e-5 x LIN(location=130)"]


def test_folded_probability_and_evidence_by_brute_force() -> None:
    found = agreed(small_table(), [(1.0, NEAR_COPIES, [[1, 0, 0], [1, 1, 1], [0, 0, 1]])])
    (fit,) = found.consensus.fits
    places = found.consensus.places[0]
    assert places[0] == places[1] != places[2]
    assert len(found.names) == 2
    is_there = (found.probabilities > 0.5) & (found.evidence > 0.0)
    np.testing.assert_array_equal(found.structure, is_there)
    for group in ((0, 1), (2,)):
        k = int(places[group[0]])
        for n in range(3):
            probability, evidence = brute_force(found, fit, group, n)
            assert found.probabilities.iloc[n, k] == pytest.approx(probability, abs=2e-3)
            if abs(evidence) < 20.0:  # beyond, a probability near one has no digits left
                assert found.evidence.iloc[n, k] == pytest.approx(evidence, rel=0.02, abs=0.05)


def test_a_series_has_what_is_likely_and_what_its_own_data_speak_for() -> None:
    found = agreed(small_table(), [(1.0, NEAR_COPIES[1:], [[1, 0], [1, 1], [0, 1]])])
    probabilities = np.array([[0.8, 0.8], [0.51, 0.4], [0.97, 0.0]])
    evidence = np.array([[0.5, -0.5], [0.01, 2.0], [9.0, -9.0]])
    told = replace(found.consensus, probabilities=probabilities, evidence=evidence)
    assert told.Z.tolist() == [[1.0, 0.0], [1.0, 0.0], [1.0, 0.0]]


def test_probabilities_are_averaged_over_fits() -> None:
    wave, line = "0.5 x PER(period=85,lengthscale=1)", "2e-5 x LIN(location=130)"
    found = agreed(
        small_table(),
        [
            (0.7, [wave, line], [[1, 0], [1, 1], [0, 1]]),
            (0.3, [line, "0.4 x PER(period=85.3,lengthscale=1)"], [[0, 1], [1, 1], [1, 0]]),
        ],
    )
    assert sorted(found.names) == ["LIN", "PER"]
    first, second = (member.fit.probabilities for member in found.searched)
    np.testing.assert_allclose(found.probabilities["PER"], 0.7 * first[:, 0] + 0.3 * second[:, 1])
    np.testing.assert_allclose(found.probabilities["LIN"], 0.7 * first[:, 1] + 0.3 * second[:, 0])
    k = found.names.index("PER")
    assert found.kernels[k].factors[0].values[0] == pytest.approx(85.0)


def test_a_fit_without_a_component_counts_as_zero() -> None:
    wave, line = "0.5 x PER(period=85,lengthscale=1)", "2e-5 x LIN(location=130)"
    found = agreed(
        small_table(),
        [(0.6, [wave, line], [[1, 0], [1, 1], [0, 1]]), (0.4, [wave], [[1], [1], [0]])],
    )
    alone = found.searched[0].fit.probabilities[:, 1]
    np.testing.assert_allclose(found.probabilities["LIN"], 0.6 * alone)


def test_what_few_fits_have_is_not_spoken_of_but_counts() -> None:
    wave, line = "0.5 x PER(period=85,lengthscale=1)", "2e-5 x LIN(location=130)"
    found = agreed(
        small_table(),
        [(0.95, [wave], [[1], [1], [0]]), (0.05, [wave, line], [[1, 0], [1, 1], [0, 1]])],
    )
    assert found.names == ["PER"]
    parts = found.components("b", 3).xs("mean", axis=1, level="moment")
    assert list(parts.columns) == ["PER", "others"]
    x = found.table.scaled_times(parts.index)[:, None]
    observations, settings = found.table.observations, FitSettings()
    whole = sum(
        member.weight
        * np.asarray(to_model(member.fit, observations, settings).predict_f(x)[0])[:, 1]
        for member in found.searched
    )
    np.testing.assert_allclose(parts.sum(axis=1), whole * found.table.scale[1], atol=1e-8)


def test_walks_that_were_added_are_not_among_what_was_found() -> None:
    wave = "0.5 x PER(period=85,lengthscale=1)"
    found = agreed(
        small_table(),
        [(0.2, [wave], [[1], [1], [0]]), (0.8, ["1 x RW(start=-7)"], [[1], [1], [1]])],
    )
    found = replace(found, stacked=(found.stacked[0], replace(found.stacked[1], kind="walk")))
    assert found.names == ["PER"]
    assert [member.weight for member in found.searched] == [1.0]
    np.testing.assert_allclose(found.probabilities["PER"], found.stacked[0].fit.probabilities[:, 0])


def test_without_averaging_the_consensus_is_the_fit() -> None:
    found = made_by_hand(small_table(), NEAR_COPIES, [[1, 0, 0], [1, 1, 1], [0, 0, 1]])
    assert found.best is found
    assert found.consensus.kernels == found.fit.kernels
    np.testing.assert_array_equal(found.probabilities, found.fit.probabilities)
    np.testing.assert_array_equal(found.structure, found.fit.Z)


def test_some_series_have_what_they_had_among_all(small_found: lkm.Discovery) -> None:
    some = small_found.select(["c", "a"])
    assert some.names == small_found.names
    pd.testing.assert_frame_equal(some.probabilities, small_found.probabilities.loc[["c", "a"]])
    pd.testing.assert_frame_equal(
        some.components("a", 2), small_found.components("a", 2), rtol=1e-6, atol=1e-9
    )


def test_the_best_fit_alone_stays_available(small_found: lkm.Discovery) -> None:
    best = small_found.best
    assert best.bic == small_found.bic == small_found.ledger["bic"].min()
    assert [str(kernel) for kernel in best.fit.kernels] == [
        str(kernel) for kernel in small_found.fit.kernels
    ]
    np.testing.assert_allclose(best.model.probabilities(), best.probabilities, atol=1e-6)
    assert best.best is best


def test_kept_in_a_file(small_found: lkm.Discovery, tmp_path: Path) -> None:
    small_found.save(tmp_path / "small.lkm")
    back = lkm.load(tmp_path / "small.lkm")
    pd.testing.assert_frame_equal(back.probabilities, small_found.probabilities)
    pd.testing.assert_frame_equal(back.evidence, small_found.evidence)


def agreement(one: lkm.Discovery, other: lkm.Discovery) -> float:
    """Share of the entries of Z that agree, components matched; one that is alone disagrees."""
    grid = one.table.observations.x
    pairs = one_to_one(
        shapes_of(one.consensus.kernels, grid), shapes_of(other.consensus.kernels, grid), ALIKE
    )
    Z, W = one.consensus.Z, other.consensus.Z
    same = sum(float(np.sum(Z[:, i] == W[:, j])) for i, j in pairs)
    rest_of_one = [k for k in range(Z.shape[1]) if k not in [i for i, _ in pairs]]
    rest_of_other = [k for k in range(W.shape[1]) if k not in [j for _, j in pairs]]
    # What neither gives to a series they agree about.
    same += float(np.sum(Z[:, rest_of_one] == 0.0) + np.sum(W[:, rest_of_other] == 0.0))
    return same / (len(Z) * (len(pairs) + len(rest_of_one) + len(rest_of_other)))


def test_seeds_agree_about_a_small_table() -> None:
    def searched(seed: int) -> lkm.Discovery:
        return lkm.discover(
            small_table(), bases=("LIN", "SE", "PER"), depth=1, restarts=2, seed=seed,
            averaging="tempered", progress=False,
        )  # fmt: skip

    found = [searched(seed) for seed in range(3)]
    told = [agreement(a, b) for a, b in itertools.combinations(found, 2)]
    assert np.mean(told) >= 0.9

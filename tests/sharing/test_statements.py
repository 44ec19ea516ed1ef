"""Who has which component: shares of draws, or what the best fit says."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.special import digamma, logit, logsumexp
from scipy.stats import multivariate_normal
from small import agreed, made_by_hand, small_table

import lkm_gpflow as lkm
from lkm_gpflow.data.observations import Observations
from lkm_gpflow.fit.fits import FitSettings
from lkm_gpflow.gp.likelihoods import GAUSSIAN
from lkm_gpflow.kernels.component import to_kernel
from lkm_gpflow.kernels.grammar import parse
from lkm_gpflow.sharing.posterior import DrawnFunctions, PosteriorDraws
from lkm_gpflow.sharing.statements import by_draws, stand_for
from lkm_gpflow.sharing.states import Draw

X = np.linspace(0.0, 1.0, 12)
WAVE, LINE = "0.5 x PER(period=85,lengthscale=1)", "2e-5 x LIN(location=130)"


def test_columns_stand_for_what_does_the_same() -> None:
    texts = (
        "1 x SE(lengthscale=0.15)",
        "9 x SE(lengthscale=0.2)",
        "1 x SE(lengthscale=2)",
        "1 x LIN(location=0)",
        "1 x PER(period=0.2, lengthscale=1)",
        "1 x PER(period=0.21, lengthscale=0.3) x SE(lengthscale=0.5)",
        "1 x PER(period=0.3, lengthscale=1)",
    )
    kernels = list(map(parse, texts))
    expected = np.zeros((7, 7), bool)
    for group in ([0, 1], [2, 3], [4, 5], [6]):
        expected[np.ix_(group, group)] = True
    np.testing.assert_array_equal(stand_for(kernels, kernels, X), expected)
    assert stand_for([], kernels, X).shape == (0, 7)


def test_statements_are_shares_of_draws() -> None:
    """Of four draws; functions are given, and the second series shows the curve in one."""
    columns = tuple(map(parse, ("0.6 x SE(lengthscale=0.2)", "1 x PER(period=0.3,lengthscale=1)")))
    data = Observations(X, np.tile(np.cos(9.0 * X), (2, 1)), np.ones((2, 12)))
    has = np.array([[1, 0], [1, 0]], bool)
    draws = [Draw(columns, has, np.zeros((2, 2)), np.zeros(2), 0.0)] * 3
    without = np.array([[1, 0], [0, 0]], bool)
    draws.append(Draw(columns, without, np.zeros((2, 2)), np.zeros(2), 0.0))
    shape = np.cos(9.0 * X)
    drawn = [
        np.array([[shape, 0 * shape], [height * shape, 0 * shape]]) for height in (0.5, 0.1, 0.1, 0)
    ]
    posterior = PosteriorDraws((tuple(draws[:2]), tuple(draws[2:])), np.arange(12), 0.125)
    fit = made_by_hand(
        pd.DataFrame(data.Y.T), ["5 x SE(lengthscale=2.4)", "1 x C"], [[1, 1], [1, 0]]
    ).fit
    k, level = (0, 1) if str(fit.kernels[0].structure) == "SE" else (1, 0)
    told = by_draws(posterior, DrawnFunctions(data, GAUSSIAN), drawn, fit, FitSettings())
    assert told.probabilities[:, k].tolist() == [1.0, 0.25]
    assert told.memberships[:, k].tolist() == [1.0, 0.75]
    # The first series has it always, the second in three draws: what each knows of the other.
    prior = np.array([(3 * 1.125 + 0.125) / 4 / 2.125, 1.125 / 2.125])
    p = np.array([4.5 / 5.0, 1.5 / 5.0])
    np.testing.assert_allclose(told.evidence[:, k], logit(p) - logit(prior))
    assert told.Z[:, k].tolist() == [1.0, 0.0]
    # Draws have no levels: the fit tells who has one.
    assert told.Z[:, level].tolist() == [1.0, 0.0]
    (lengthscale,) = told.marginals[k]
    assert lengthscale.values.tolist() == [0.2] * 4
    assert told.of_series(np.array([1])).probabilities[:, k].tolist() == [0.25]


def test_of_a_fit_probability_and_evidence_by_brute_force() -> None:
    """By all rows of Z and SciPy's density."""
    kernels = ["0.5 x SE(lengthscale=45)", LINE]
    found = agreed(small_table(), [(1.0, kernels, [[1, 0], [1, 1], [0, 1]])])
    fit, o = found.fit, found.table.observations
    C = np.array([to_kernel(kernel)(o.x[:, None]).numpy() for kernel in fit.kernels])
    on, off = (digamma(fit.tau[:, i]) for i in (0, 1))
    rows = np.array(list(itertools.product([0.0, 1.0], repeat=2)))
    for n, k in itertools.product(range(3), range(2)):
        seen = np.flatnonzero(o.mask[n])
        V = np.tensordot(rows, C, 1) + fit.noise_variance[n] * np.eye(len(o.x))
        likelihood = [
            multivariate_normal(cov=v[np.ix_(seen, seen)]).logpdf(o.Y[n, seen]) for v in V
        ]
        prior = rows @ on + (1.0 - rows) @ off
        has = rows[:, k] == 1.0
        joint = likelihood + prior
        odds = logsumexp(joint[has]) - logsumexp(joint[~has])
        evidence = odds - (logsumexp(prior[has]) - logsumexp(prior[~has]))
        p = 1.0 / (1.0 + np.exp(-odds))
        assert found.probabilities.iloc[n, k] == pytest.approx(p, abs=2e-3)
        if abs(evidence) < 20.0:  # beyond, a probability near one has no digits left
            assert found.evidence.iloc[n, k] == pytest.approx(evidence, rel=0.02, abs=0.05)


def test_components_are_those_of_the_best_fit() -> None:
    found = agreed(
        small_table(),
        [(0.2, [WAVE, LINE], [[1, 0], [1, 1], [0, 1]]), (0.8, [WAVE], [[1], [1], [0]])],
    )
    assert found.names == [str(kernel.structure) for kernel in found.fit.kernels]
    np.testing.assert_array_equal(found.probabilities, found.fit.probabilities)
    np.testing.assert_array_equal(found.structure, found.fit.Z)


def test_walks_that_were_added_are_not_among_what_was_found(disagreeing: lkm.Discovery) -> None:
    first, *_, walk = disagreeing.stacked
    found = replace(disagreeing, stacked=(first, replace(walk, kind="walk")))
    assert [member.fit for member in found.searched] == [first.fit]


def test_some_series_have_what_they_had_among_all(small_found: lkm.Discovery) -> None:
    some = small_found.select(["c", "a"])
    assert some.names == small_found.names
    pd.testing.assert_frame_equal(some.probabilities, small_found.probabilities.loc[["c", "a"]])
    pd.testing.assert_frame_equal(
        some.components("a", 2), small_found.components("a", 2), rtol=1e-6, atol=1e-9
    )


def test_seeds_agree_about_a_small_table() -> None:
    """Which series have a cycle, a trend and changes of a sort."""

    def has(seed: int) -> set[tuple[str, object]]:
        found = lkm.discover(
            small_table(), bases=("LIN", "SE", "PER"), depth=0, restarts=2, seed=seed,
            averaging="tempered", progress=False,
        )  # fmt: skip
        told = found.patterns().reset_index()
        return set(told.loc[told["verdict"] == "has", ["kind", "series"]].itertuples(index=False))

    first, *others = map(has, range(2))
    assert len(first) >= 3
    assert all(len(first ^ other) <= 1 for other in others)

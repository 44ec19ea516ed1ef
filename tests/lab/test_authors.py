"""The authors' learner: what is wrong with its objective, shown without its formula."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import beta
from small import small_table

import lkm_gpflow as lkm
from lkm_gpflow.discovery.keywords import DiscoverSettings
from lkm_gpflow.kernels.grammar import PAPER_BASES, parse
from lkm_gpflow.model.lkm import LKM
from paper_experiments.lab.authors import AuthorsLearner, AuthorsLKM, hard, start
from paper_experiments.lab.sensitivity import VARIANTS, PaperVariant

TAU = np.array([[1.7, 2.2]])


def indifferent(kind: type[LKM], alpha: float = 1.0, N: int = 2) -> LKM:
    """A model of one component of no variance: the data say nothing about Z."""
    rng = np.random.default_rng(0)
    kernel = lkm.kernels.to_kernel(parse("1e-12 x SE(lengthscale=1)"))
    data = np.arange(5.0)[:, None], rng.normal(size=(5, N))
    model = kind(data, [kernel], alpha=alpha, posterior="relaxed", noise_variance=1.0)
    model.tau.assign(TAU)
    return model


def expected(value: object) -> float:
    """The mean of a function of pi under q(pi), by quadrature."""
    q = beta(*TAU[0])
    assert callable(value)
    return quad(lambda pi: value(pi) * q.pdf(pi), 0.0, 1.0)[0]


def test_their_objective_lacks_the_prior_of_pi() -> None:
    """It does not know alpha, which in a finite model enters through p(pi) alone."""
    few, many = 0.3, 4.0
    theirs = [float(indifferent(AuthorsLKM, alpha).elbo(seed=1)) for alpha in (few, many)]
    assert theirs[0] == pytest.approx(theirs[1], abs=1e-9)
    ours = [float(indifferent(LKM, alpha).elbo(seed=1)) for alpha in (few, many)]
    change = expected(lambda pi: beta(many, 1.0).logpdf(pi) - beta(few, 1.0).logpdf(pi))
    assert ours[1] - ours[0] == pytest.approx(change, abs=1e-6)


@pytest.mark.parametrize(("kind", "temperature"), [(LKM, 1.0), (AuthorsLKM, 2.0)])
def test_a_second_entropy_flattens_the_posterior_of_z(kind: type[LKM], temperature: float) -> None:
    """Where the data say nothing, nu is the prior's own; with two entropies at temperature 2."""
    model = indifferent(kind, N=1)
    odds = expected(lambda pi: np.log(pi) - np.log1p(-pi))
    logits = np.linspace(-3.0, 3.0, 601)
    values = []
    for each in logits:
        model.posterior.logits.assign([[each]])
        values.append(float(model.elbo(seed=0)))
    assert logits[np.argmax(values)] == pytest.approx(odds / temperature, abs=0.01)
    assert abs(odds) > 0.2


def test_their_objective_is_no_lower_bound() -> None:
    """The evidence is that of noise alone, whatever Z; theirs is above it, ours is not."""
    evidence = float(np.sum(indifferent(LKM).log_likelihood(np.zeros((2, 1)))))
    assert float(indifferent(LKM).elbo(seed=0)) < evidence
    theirs = indifferent(AuthorsLKM)
    theirs.tau.assign([[1.0, 1.0]])
    assert float(theirs.elbo(seed=0)) > evidence + 0.5


def test_their_hard_z_is_the_largest_of_a_row() -> None:
    relaxed = np.array([[1.0, 0.2, 1.0], [0.3, 0.4, 1e-9], [1.0, 1.0 - 1e-9, 0.0]])
    assert hard(relaxed).tolist() == [[1, 0, 1], [0, 1, 0], [1, 0, 0]]


def test_starts_are_theirs() -> None:
    rng = np.random.default_rng(0)
    drawn = [start(parse("PER x SE"), rng) for _ in range(400)]
    period, ratio, length = np.array(
        [np.concatenate([f.values for f in d.factors]) for d in drawn]
    ).T
    for values, low, high in ((period, 5, 20), (ratio, 1, 3), (length, 0.5, 1.5)):
        assert low <= values.min() < low + 0.1 * (high - low)
        assert high - 0.1 * (high - low) < values.max() <= high
    variances = np.array([each.variance for each in drawn])
    assert 0.25 <= variances.min() <= variances.max() <= 2.25
    assert start(parse("LIN"), rng).factors[0].values == (0.0,)


def test_two_rounds_forecast() -> None:
    table = small_table()
    learner = AuthorsLearner(rounds=2)
    forecast = learner.fit(table.iloc[:-3], seed=0).forecast(table.index[-3:])
    again = learner.fit(table.iloc[:-3], seed=0).forecast(table.index[-3:])
    assert np.isfinite(forecast).all(axis=None)
    assert forecast.equals(again)


def test_variants_differ_from_the_papers_method_as_they_say() -> None:
    known = DiscoverSettings(
        learner="relaxed", bases=PAPER_BASES, restarts=6, priors=False, seed=3
    ).search
    assert PaperVariant().search(3) == known
    found = [variant for variant in VARIANTS.values() if variant == PaperVariant()]
    assert not found
    assert len(set(VARIANTS.values())) == len(VARIANTS)


def test_the_hard_z_is_climbed_at() -> None:
    """Its forecast is that of one Z, whose likelihood is not below that of the search's end."""
    table = small_table()
    quick = VARIANTS["lkm-paper 1 start"]
    learning = PaperVariant(1, 0, quick.learning, hard_steps=30)
    forecast = learning.fit(table.iloc[:-3], seed=0).forecast(table.index[-3:])
    soft = PaperVariant(1, 0, quick.learning).fit(table.iloc[:-3], seed=0)
    assert np.isfinite(forecast).all(axis=None)
    assert not np.allclose(forecast["mean"], soft.forecast(table.index[-3:])["mean"])

"""The paper's learner of one structure: its bound, its traces, priors over Z, subclasses."""

from __future__ import annotations

import gc
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import psutil
import pytest
from small import numbers, small_table

import lkm_gpflow as lkm
from lkm_gpflow.data.observations import Observations
from lkm_gpflow.data.tables import Table
from lkm_gpflow.fit import relaxed
from lkm_gpflow.fit.fits import FitSettings, State
from lkm_gpflow.fit.initialization import Ranges, typical_step
from lkm_gpflow.fit.layout import Layout
from lkm_gpflow.fit.relaxed import learn_relaxed, relaxed_model
from lkm_gpflow.kernels.grammar import parse
from lkm_gpflow.model.annealing import Annealing
from lkm_gpflow.model.subclasses import model_class, name_of
from paper_experiments.lab.planted import smooth_and_periodic
from paper_experiments.lab.recovery import from_planted, is_planted

SHORT = Annealing(num_steps=40, most_blocks=2, block_steps=10)
QUICK = FitSettings(learner="relaxed", annealing=SHORT, num_samples=3)
BASES = [parse(text) for text in ("LIN", "SE", "PER")]


@pytest.fixture(scope="module")
def observations() -> Observations:
    return Table.of(small_table()).observations


def test_the_fit_is_that_of_the_model_it_names(observations: Observations) -> None:
    """BIC by hand, from the likelihood at the thresholded nu; the posterior as it was learnt."""
    fit = learn_relaxed(observations, BASES, seed=0, settings=QUICK)
    model = relaxed_model(fit, fit.relaxed, observations, FitSettings())
    assert isinstance(model.posterior, lkm.RelaxedPosterior)
    np.testing.assert_allclose(model.probabilities(), fit.probabilities, rtol=1e-12)
    np.testing.assert_array_equal(fit.Z, fit.probabilities > 0.5)
    np.testing.assert_allclose(model.tau, model.prior.best_tau(fit.probabilities), rtol=0.5)
    log_likelihood = float(np.sum(model.log_likelihood(fit.Z)))
    count = sum(kernel.num_parameters for kernel in fit.kernels) + 3
    assert fit.log_likelihood == pytest.approx(log_likelihood)
    expected = -2.0 * log_likelihood + count * np.log(observations.num_observed)
    assert fit.bic == pytest.approx(expected)
    assert fit.Z.any(axis=0).all()


def test_learning_begins_with_what_the_parents_series_had(observations: Observations) -> None:
    """P(z = 1) is 0.88 where the parent has a one, 0.12 elsewhere, one half of what is new."""
    Z = np.array([[1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])
    kernels = parse("2 x LIN(location=0.3)"), parse("0.8 x PER(period=0.3, lengthscale=0.9)")
    still = Annealing(num_steps=1, learning_rate=1e-9)
    fit = learn_relaxed(
        observations, [parse("SE")], seed=0, settings=replace(QUICK, annealing=still),
        start=State(kernels, Z, np.full(3, 0.1)),
    )  # fmt: skip
    np.testing.assert_array_equal(fit.Z[:, :2], Z)
    np.testing.assert_allclose(fit.probabilities[:, :2], np.where(Z == 1.0, 0.88, 0.12), atol=2e-3)
    np.testing.assert_allclose(fit.probabilities[:, 2:], 0.5, atol=1e-6)


def test_weak_priors_are_those_of_the_other_learner(observations: Observations) -> None:
    """But for constants, on the scale of learning; without them nothing is said."""
    step, noise = typical_step(observations.x), np.full(3, 0.1)
    values: dict[str, list[float]] = {"ours": [], "theirs": [], "none": []}
    for second in ("2 x SE(lengthscale=4)", "3 x SE(lengthscale=0.05)"):
        products = (parse("0.8 x PER(period=0.3, lengthscale=0.9)"), parse(second))
        for name, priors in (("ours", True), ("none", False)):
            bench = relaxed._bench_for(observations, replace(QUICK, priors=priors), products)
            bench.begin(products, np.zeros((3, 2)), noise)
            values[name].append(float(bench.model.log_prior_density()))
        layout = Layout(products, num_series=3)
        values["theirs"].append(Ranges.of(layout, step).log_prior(layout.pack(noise))[0])
    difference = {name: each[0] - each[1] for name, each in values.items()}
    assert difference["ours"] == pytest.approx(difference["theirs"], abs=1e-8)
    assert abs(difference["ours"]) > 0.1
    assert difference["none"] == pytest.approx(0.0, abs=1e-8)


def test_starts_of_a_planted_table_reach_the_planted_bound() -> None:
    """Table 0 of the experiment: the target, and the best of two starts."""
    planted = smooth_and_periodic(0)
    settings = FitSettings(learner="relaxed", priors=False)
    target = from_planted(planted, settings)
    assert is_planted(target, planted)
    observations = Table.of(planted.frame).observations
    members = [parse("SE"), parse("PER")]
    found = learn_relaxed(observations, members, seed=(0, 0), settings=settings)
    assert is_planted(found, planted)
    assert found.elbo > target.elbo - 1.0


def test_the_infinite_prior_learns_tau_by_gradient(observations: Observations) -> None:
    settings = replace(QUICK, prior="infinite")
    fit = learn_relaxed(observations, BASES, seed=0, settings=settings)
    model = relaxed_model(fit, fit.relaxed, observations, settings)
    assert isinstance(model.prior, lkm.ibp.InfiniteIBP)
    np.testing.assert_allclose(model.tau, fit.tau)
    start = lkm.LKM(observations.table, model.kernels, posterior="relaxed", prior="infinite").tau
    assert np.abs(fit.tau - start.numpy()).max() > 0.1


def test_threads_learn_side_by_side(observations: Observations) -> None:
    """The same seeds, the same fits: no thread sees another's variables."""
    seeds = range(2)
    alone = [numbers(learn_relaxed(observations, BASES, seed=s, settings=QUICK)) for s in seeds]
    with ThreadPoolExecutor(2) as threads:
        jobs = [
            threads.submit(learn_relaxed, observations, BASES, seed=s, settings=QUICK)
            for s in seeds
        ]
        assert [numbers(job.result()) for job in jobs] == alone


def test_classes_are_found_by_name() -> None:
    assert model_class(name_of(lkm.LKM)) is lkm.LKM
    with pytest.raises(ValueError, match=r"named 'nowhere:Model', but there is none: define it"):
        model_class("nowhere:Model")


@pytest.mark.slow
def test_memory_does_not_grow_with_every_fit(observations: Observations) -> None:
    """After 20 fits at most 25 MB above that after 5: every traced model would stay for good."""
    structures = [["SE"], ["PER", "SE"], ["LIN", "PER x SE"], ["LIN", "SE", "PER"], ["SE"] * 4]
    very_short = replace(QUICK, annealing=Annealing(num_steps=3, most_blocks=0))
    used = []
    for number in range(20):
        members = [parse(text) for text in structures[number % 5]]
        learn_relaxed(observations, members, seed=number, settings=very_short)
        if number + 1 in (5, 20):
            gc.collect()
            used.append(psutil.Process().memory_info().rss)
    assert used[1] - used[0] < 25e6, used

"""Both posteriors over Z: samples, seeds, entropies, weighted rows, limits."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_probability as tfp
from gpflow.kernels import Linear, SquaredExponential
from scipy.stats import bernoulli, ks_2samp

from lkm_gpflow.model.bound import bernoulli_entropy
from lkm_gpflow.model.lkm import LKM
from lkm_gpflow.model.posteriors import EnumeratedPosterior, Posterior
from lkm_gpflow.model.relaxation import RelaxedPosterior

X = np.linspace(0.0, 5.0, 10)[:, None]
Y = np.hstack([np.sin(X), 2.0 * X - 4.0, np.cos(3.0 * X)])


def model_with(posterior: Posterior, num_components: int = 3) -> LKM:
    kernels = [SquaredExponential(lengthscales=0.5 + k) for k in range(num_components - 1)]
    return LKM((X, Y), [*kernels, Linear()], posterior=posterior, noise_variance=0.1)


# --- samples -------------------------------------------------------------------------------------


def posterior_with(logits: object, temperature: float, num_samples: int) -> RelaxedPosterior:
    posterior = RelaxedPosterior(num_samples, temperature)
    posterior.build(*np.shape(logits))
    posterior.logits.assign(logits)
    return posterior


@pytest.mark.parametrize("kind", [RelaxedPosterior, EnumeratedPosterior])
def test_samples_of_Z_have_the_weights_of_the_configurations(kind: type[Posterior]) -> None:
    model = model_with(kind(), 2)
    drawn = model.posterior.sample(model, 20_000, seed=1).numpy()  # [S, N, K]
    rows = model.posterior.configurations(model)
    for n in range(3):
        own = rows.series == n
        for row, weight in zip(rows.rows[own], rows.weights[own], strict=True):
            share = np.mean(np.all(drawn[:, n] == row, axis=1))
            assert share == pytest.approx(float(weight), abs=4.0 * np.sqrt(0.25 / 20_000))
    assert np.array_equal(drawn, model.posterior.sample(model, 20_000, seed=1))
    assert not np.array_equal(drawn, model.posterior.sample(model, 20_000))


def test_the_objective_from_its_public_parts() -> None:
    """As somebody writes it who wants another estimate of the expected log likelihood."""
    model = model_with(RelaxedPosterior())
    Z = model.posterior.relaxed_sample(model, seed=4)
    own = tf.reduce_mean(tf.reduce_sum(model.log_likelihood(Z), axis=-1))
    assert model.posterior.bound(model, own) == model.elbo(seed=4)


@pytest.mark.parametrize("temperature", [0.3, 1.0])
@pytest.mark.parametrize("logit", [-2.0, 0.0, 1.0])
def test_the_distribution_is_tfps(temperature: float, logit: float) -> None:
    """The same law as TFP's class: its own samples, and its density."""
    posterior = posterior_with([[logit]], temperature, 10)
    ours = posterior.distribution(model_with(RelaxedPosterior()))
    theirs = tfp.distributions.RelaxedBernoulli(
        temperature, logits=tf.constant([[logit]], tf.float64)
    )
    assert isinstance(ours, tfp.distributions.RelaxedBernoulli)
    assert ours.batch_shape == (1, 1)
    drawn = ours.sample(5000, seed=[1, 2]).numpy().ravel()
    assert ks_2samp(drawn, theirs.sample(5000, seed=[2, 3]).numpy().ravel()).pvalue > 0.01
    z = np.linspace(0.01, 0.99, 50)[:, None, None]
    np.testing.assert_allclose(ours.log_prob(z), theirs.log_prob(z), rtol=1e-12)


@pytest.mark.parametrize("temperature", [1.0, 0.3, 0.1, 0.05, 1e-3])
def test_gradients_are_finite_at_low_temperatures(temperature: float) -> None:
    posterior = posterior_with([[-30.0, -1.0, 0.0, 2.0, 30.0]], temperature, 1000)
    variables = [posterior.logits.unconstrained_variable]
    variables += posterior.temperature.trainable_variables
    with tf.GradientTape() as tape:
        Z = posterior.distribution(model_with(RelaxedPosterior())).sample(1000, seed=[0, 0])
    assert np.isfinite(Z).all()
    for gradient in tape.gradient(Z, variables):
        assert np.isfinite(gradient).all()


def test_draws_are_kept_until_others_are_asked_for() -> None:
    model = model_with(RelaxedPosterior())
    compiled = tf.function(model.elbo)
    kept = model.elbo()
    assert model.elbo() == kept
    np.testing.assert_allclose(compiled(), kept, rtol=1e-12)
    model.posterior.resample()
    assert model.elbo() != kept
    np.testing.assert_allclose(compiled(), model.elbo(), rtol=1e-12)
    model.posterior.resample(seed=0)
    assert model.elbo() == kept
    other = model_with(RelaxedPosterior(seed=5))
    assert other.elbo() == other.elbo(seed=5) == model.elbo(seed=5) != kept


def test_seeds_say_which_draws() -> None:
    model = model_with(RelaxedPosterior())
    assert model.elbo(seed=3) == model.elbo(seed=3) != model.elbo(seed=4)
    assert model.elbo(seed=3) == model.elbo(seed=tf.constant([3, 0]))
    assert model.training_loss(seed=3) == -model.elbo(seed=3)
    compiled = tf.function(model.elbo)
    np.testing.assert_allclose(compiled(seed=tf.constant([3, 0])), model.elbo(seed=3), rtol=1e-12)


# --- arithmetic ----------------------------------------------------------------------------------


def test_entropy_is_scipys_and_finite_at_large_logits() -> None:
    logits = np.array([[-3.0, 0.0, 0.5], [1.0, 8.0, -20.0]])
    expected = bernoulli.entropy(1.0 / (1.0 + np.exp(-logits))).sum()
    np.testing.assert_allclose(bernoulli_entropy(logits), expected, rtol=1e-10)
    extreme = tf.constant([[-1e4, 1e4]], tf.float64)
    with tf.GradientTape() as tape:
        tape.watch(extreme)
        entropy = bernoulli_entropy(extreme)
    assert entropy == 0.0
    np.testing.assert_array_equal(tape.gradient(entropy, extreme), 0.0)


# --- weighted rows -------------------------------------------------------------------------------


@pytest.mark.parametrize("posterior", [RelaxedPosterior, EnumeratedPosterior])
def test_rows_have_the_posteriors_margins(posterior: type[Posterior]) -> None:
    model = model_with(posterior())
    series, rows, weights = model.posterior.configurations(model)
    assert rows.shape == (len(series), 3)
    assert np.all(np.diff(series) >= 0)
    assert np.all(weights.numpy() >= 1e-4)
    np.testing.assert_allclose(tf.math.segment_sum(weights, series), np.ones(3), rtol=1e-12)
    margins = tf.math.segment_sum(weights[:, None] * rows, series)
    np.testing.assert_allclose(margins, model.probabilities(), atol=1e-3)


def test_many_components_are_rounded_but_for_the_most_uncertain() -> None:
    posterior, K = RelaxedPosterior(), 15
    model = model_with(posterior, K)
    logits = np.full((3, K), 9.0)
    logits[:, ::2] *= -1.0
    logits[0, [3, 4]] = 0.3, -0.2
    logits[1, 14] = 1.0
    posterior.logits.assign(logits)
    series, rows, weights = (value.numpy() for value in posterior.configurations(model))
    margins = np.stack([weights[series == n] @ rows[series == n] for n in range(3)])
    np.testing.assert_allclose(margins, 1.0 / (1.0 + np.exp(-logits)), atol=2e-3)
    assert np.bincount(series).max() < 32


def test_posteriors_survive_copying() -> None:
    for posterior in (RelaxedPosterior(num_samples=4), EnumeratedPosterior()):
        model = model_with(posterior)
        twin = copy.deepcopy(model)
        assert twin.elbo(seed=0) == model.elbo(seed=0)
        twin.tau.assign(twin.tau + 1.0)
        assert twin.elbo(seed=0) != model.elbo(seed=0)


# --- errors --------------------------------------------------------------------------------------


def test_errors_say_what_was_expected() -> None:
    for number in (0, 2.5):
        with pytest.raises(ValueError, match=f"num_samples as a whole number .* got {number}"):
            RelaxedPosterior(num_samples=number)
    with pytest.raises(ValueError, match=r"temperature: expected a positive number, got -1\.0"):
        RelaxedPosterior(temperature=-1.0)
    with pytest.raises(ValueError, match=r"at most 12 components .* got 13: use RelaxedPosterior"):
        model_with(EnumeratedPosterior(), 13)
    relaxed = RelaxedPosterior()
    model = model_with(relaxed, 13)
    with pytest.raises(ValueError, match="at most 12 components"):
        relaxed.mean_field_elbo(model)
    with pytest.raises(ValueError, match="expected a new object for each LKM"):
        model_with(relaxed)

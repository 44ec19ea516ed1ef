"""Both posteriors over Z: samples, seeds, entropies, weighted rows, limits."""

from __future__ import annotations

import copy

import gpflow
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_probability as tfp
from gpflow.kernels import Linear, SquaredExponential
from scipy.stats import bernoulli, ks_2samp

from lkm_gpflow.models.lkm import LKM
from lkm_gpflow.models.posteriors import (
    EnumeratedPosterior,
    Posterior,
    RelaxedPosterior,
    all_configurations,
    bernoulli_entropy,
    independent_weights,
    relaxed_bernoulli,
)

X = np.linspace(0.0, 5.0, 10)[:, None]
Y = np.hstack([np.sin(X), 2.0 * X - 4.0, np.cos(3.0 * X)])


def model_with(posterior: Posterior, num_components: int = 3) -> LKM:
    kernels = [SquaredExponential(lengthscales=0.5 + k) for k in range(num_components - 1)]
    return LKM((X, Y), [*kernels, Linear()], posterior=posterior, noise_variance=0.1)


# --- samples -------------------------------------------------------------------------------------


@pytest.mark.parametrize("temperature", [0.3, 1.0])
@pytest.mark.parametrize("logit", [-2.0, 0.0, 1.0])
def test_samples_are_distributed_as_tfps(temperature: float, logit: float) -> None:
    ours = relaxed_bernoulli(np.array([[logit]]), temperature, 5000, seed=1)
    theirs = tfp.distributions.RelaxedBernoulli(
        temperature, logits=tf.constant(logit, tf.float64)
    ).sample(5000, seed=tf.constant([2, 3]))
    assert ks_2samp(ours.numpy().ravel(), theirs.numpy()).pvalue > 0.01


@pytest.mark.parametrize("temperature", [1.0, 0.1, 0.01, 1e-3])
def test_gradients_are_finite_at_low_temperatures(temperature: float) -> None:
    logits = tf.constant([[-30.0, -1.0, 0.0, 2.0, 30.0]], tf.float64)
    with tf.GradientTape() as tape:
        tape.watch(logits)
        Z = relaxed_bernoulli(logits, temperature, 1000, seed=0)
    assert np.isfinite(Z).all()
    assert np.isfinite(tape.gradient(Z, logits)).all()


def test_draws_depend_on_the_seed_alone() -> None:
    model = model_with(RelaxedPosterior())
    compiled = tf.function(model.elbo)
    assert model.elbo() != model.elbo()
    assert compiled() != compiled(), "fresh draws inside tf.function too"
    assert model.elbo(seed=3) == model.elbo(seed=3) != model.elbo(seed=4)
    assert model.elbo(seed=3) == model.elbo(seed=tf.constant([3, 0]))
    np.testing.assert_allclose(compiled(seed=tf.constant([3, 0])), model.elbo(seed=3), rtol=1e-12)


def test_temperature_changes_without_retracing() -> None:
    posterior = RelaxedPosterior(temperature=1.0)
    model = model_with(posterior)
    traces = []

    @tf.function
    def objective() -> tf.Tensor:
        traces.append(1)
        return model.elbo(seed=0)

    warm = objective()
    posterior.temperature.assign(0.1)
    np.testing.assert_allclose(objective(), model.elbo(seed=0), rtol=1e-12)
    assert objective() != warm
    assert len(traces) == 1


def test_configuration_is_never_trained() -> None:
    for posterior, hidden in (
        (RelaxedPosterior(), "temperature"),
        (EnumeratedPosterior(), "active"),
    ):
        model = model_with(posterior)
        gpflow.set_trainable(model, False)
        gpflow.set_trainable(model, True)
        assert not getattr(posterior, hidden).trainable
        gpflow.optimizers.Scipy().minimize(
            lambda model=model: -model.elbo(seed=0),
            model.trainable_variables,
            options={"maxiter": 2},
        )


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


def test_configurations_are_all_different_rows() -> None:
    rows = all_configurations(4).numpy()
    assert rows.shape == (16, 4)
    assert len({tuple(row) for row in rows}) == 16
    np.testing.assert_array_equal(rows[0b0101], [1.0, 0.0, 1.0, 0.0])


def test_independent_weights_are_a_distribution_with_these_margins() -> None:
    logits = np.random.default_rng(0).normal(scale=2.0, size=(5, 4))
    weights = independent_weights(logits, all_configurations(4))
    np.testing.assert_allclose(tf.reduce_sum(weights, axis=1), 1.0, rtol=1e-12)
    np.testing.assert_allclose(weights @ all_configurations(4), tf.sigmoid(logits), rtol=1e-12)


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


# --- enumeration ---------------------------------------------------------------------------------


def test_refresh_keeps_the_bound_and_comes_back() -> None:
    posterior = EnumeratedPosterior()
    model = model_with(posterior, 4)
    model.noise_variance.assign([1e-4, 1e-4, 1e-4])
    compiled = tf.function(model.elbo)
    full, probabilities = compiled().numpy(), model.probabilities()
    posterior.refresh(model)
    assert tf.size(posterior.active) < 16
    assert full - 1e-5 < compiled().numpy() <= full, "still a lower bound, and no looser than this"
    np.testing.assert_allclose(model.probabilities(), probabilities, atol=1e-6)

    kept = set(posterior.active.numpy())
    model.noise_variance.assign([50.0, 50.0, 50.0])  # now hardly anything is certain
    restricted = compiled().numpy()
    posterior.refresh(model)
    assert kept < set(posterior.active.numpy())
    assert restricted < compiled().numpy()


def test_enumeration_is_deterministic() -> None:
    model = model_with(EnumeratedPosterior())
    assert model.elbo() == model.elbo(seed=1)


def test_posteriors_survive_copying() -> None:
    for posterior in (RelaxedPosterior(num_samples=4), EnumeratedPosterior()):
        model = model_with(posterior)
        twin = copy.deepcopy(model)
        assert twin.elbo(seed=0) == model.elbo(seed=0)
        twin.tau.assign(twin.tau + 1.0)
        assert twin.elbo(seed=0) != model.elbo(seed=0)


# --- errors --------------------------------------------------------------------------------------


def test_errors_say_what_was_expected() -> None:
    with pytest.raises(ValueError, match="num_samples: expected at least 1, given 0"):
        RelaxedPosterior(num_samples=0)
    with pytest.raises(ValueError, match=r"temperature: expected a positive number, given -1\.0"):
        RelaxedPosterior(temperature=-1.0)
    with pytest.raises(
        ValueError, match=r"at most 12 components .* given 13: use RelaxedPosterior"
    ):
        model_with(EnumeratedPosterior(), 13)
    relaxed = RelaxedPosterior()
    model = model_with(relaxed, 13)
    with pytest.raises(ValueError, match="at most 12 components"):
        relaxed.mean_field_elbo(model)
    with pytest.raises(ValueError, match="expected a new object for each LKM"):
        model_with(relaxed)

"""The bound from minibatches: unbiased, equal to that of the full model, as GPflow expects it."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import gpflow
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_probability as tfp
from gpflow.keras import tf_keras
from gpflow.kernels import Kernel, Linear, Matern32, SquaredExponential
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit, log_expit, logsumexp
from scipy.stats import multivariate_normal

import lkm_gpflow as lkm
from lkm_gpflow.model.configurations import all_configurations

Array = NDArray[np.float64]
POSTERIORS = ["enumerated", "relaxed"]
X = np.linspace(0.0, 5.0, 16)[:, None]
TAU = np.array([[3.0, 5.0], [6.0, 2.0], [1.0, 7.0]])


def kernels() -> list[Kernel]:
    return [SquaredExponential(lengthscales=0.7), Linear(0.2), Matern32(lengthscales=2.0)]


def series(num_series: int, gaps: bool = False, seed: int = 0) -> Array:
    """Waves, lines, both and neither, with noise of different size."""
    rng = np.random.default_rng(seed)
    waves = np.sin(2.0 * X + rng.uniform(0.0, 6.0, num_series)) * rng.integers(0, 2, num_series)
    lines = 0.5 * (X - 2.0) * rng.normal(size=num_series) * rng.integers(0, 2, num_series)
    noise = rng.uniform(0.1, 0.6, num_series) * rng.normal(size=(len(X), num_series))
    Y = waves + lines + noise
    if gaps:
        Y[3:6, 0] = Y[3:6, 2] = Y[10, 1] = np.nan
    return Y


def model_of(num_series: int, posterior: Any) -> lkm.MinibatchLKM:
    model = lkm.MinibatchLKM(kernels(), num_series, posterior=posterior)
    model.tau.assign(TAU)
    return model


def exact_bound(model: lkm.LKM) -> tf.Tensor:
    """The bound of the full model, a true one for both posteriors."""
    if isinstance(model.posterior, lkm.RelaxedPosterior):
        return model.posterior.mean_field_elbo(model)
    return model.elbo()


def value_and_gradients(model: Any, bound: Any) -> Any:
    """A compiled function: a bound, its gradients in tau and in every number of the kernels."""
    variables = [model.tau.unconstrained_variable]
    variables += [v for kernel in model.kernels for v in kernel.trainable_variables]

    @tf.function
    def run(*data: tf.Tensor) -> Any:
        with tf.GradientTape() as tape:
            value = bound(*data)
        return value, tape.gradient(value, variables)

    return run


# --- the estimate ---------------------------------------------------------------------------------


@pytest.mark.parametrize("posterior", POSTERIORS)
def test_mean_over_all_batches_is_the_bound(posterior: str) -> None:
    """Every subset of 2 out of 6 series, some with gaps; value and gradient."""
    Y = series(6, gaps=True)
    model = model_of(6, posterior)
    run = value_and_gradients(model, lambda Y: model.elbo((X, Y)))
    whole, whole_gradients = run(tf.constant(Y))
    batches = [Y[:, list(chosen)] for chosen in combinations(range(6), 2)]
    assert len(batches) == 15
    values, gradients = zip(*(run(tf.constant(batch)) for batch in batches), strict=True)
    assert np.std(values) > 1.0, "single estimates differ"
    np.testing.assert_allclose(np.mean(values), whole, rtol=1e-10)
    for parts, expected in zip(zip(*gradients, strict=True), whole_gradients, strict=True):
        np.testing.assert_allclose(np.mean(parts, axis=0), expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize("posterior", POSTERIORS)
def test_all_series_at_once_are_the_full_model(posterior: str, gaps: bool) -> None:
    """Value and gradients of `LKM`, which come by other ways, at the same noise and q(Z)."""
    data = (X, series(9, gaps))
    model = model_of(9, posterior)
    full = model.to_lkm(data)
    np.testing.assert_allclose(model.probabilities(data), full.probabilities(), atol=1e-10)
    np.testing.assert_array_equal(model.assignment(data), full.assignment())
    ours, our_gradients = value_and_gradients(model, lambda: model.elbo(data))()
    theirs, their_gradients = value_and_gradients(full, lambda: exact_bound(full))()
    np.testing.assert_allclose(ours, theirs, rtol=1e-8)
    for one, other in zip(our_gradients, their_gradients, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("posterior", POSTERIORS)
def test_a_natural_step_of_rate_one_on_all_series_is_update_tau(posterior: str) -> None:
    data = (X, series(9, gaps=True))
    model = model_of(9, posterior)
    full = model.to_lkm(data)
    full.update_tau()
    half = model_of(9, posterior)
    half.update_tau(data, rate=0.5)
    model.update_tau(data)
    np.testing.assert_allclose(model.tau, full.tau, rtol=1e-10)
    np.testing.assert_allclose(half.tau, 0.5 * (TAU + full.tau.numpy()), rtol=1e-10)


def test_natural_steps_are_unbiased_too() -> None:
    Y = series(6)
    moved = []
    for chosen in combinations(range(6), 2):
        model = model_of(6, "enumerated")
        model.update_tau((X, Y[:, list(chosen)]), rate=0.3)
        moved.append(model.tau.numpy())
    whole = model_of(6, "enumerated")
    whole.update_tau((X, Y), rate=0.3)
    np.testing.assert_allclose(np.mean(moved, axis=0), whole.tau, rtol=1e-10)


# --- what is local --------------------------------------------------------------------------------


NOISE = np.geomspace(0.005, 2.0, 40)


def log_joints(x: Array, noise_variances: Array) -> Array:
    """``log p(x, t)`` of one series by SciPy, over its observed points, for every noise, [G, T]."""
    on = ~np.isnan(x)
    C = np.stack([kernel(X[on]).numpy() for kernel in kernels()])
    prior = lkm.ibp.FiniteIBP(1.0, 3)
    a, b = prior.expected_log_on(TAU).numpy(), prior.expected_log_off(TAU).numpy()
    t = all_configurations(3).numpy()
    density = [
        [
            multivariate_normal.logpdf(
                x[on], cov=np.tensordot(row, C, 1) + noise * np.eye(on.sum())
            )
            for row in t
        ]
        for noise in noise_variances
    ]
    return np.array(density) + t @ a + (1.0 - t) @ b


def best_mean_field(log_joint: Array) -> float:
    """The best bound with independent components, by L-BFGS from near every configuration."""
    t = all_configurations(3).numpy()

    def loss(logits: Array) -> float:
        log_q = t @ log_expit(logits) + (1.0 - t) @ log_expit(-logits)
        return float(-np.exp(log_q) @ (log_joint - log_q))

    starts = 4.0 * t - 2.0
    bounds = [(-30.0, 30.0)] * 3
    return -min(minimize(loss, start, method="L-BFGS-B", bounds=bounds).fun for start in starts)


def test_noise_and_q_are_the_best_of_any_form() -> None:
    Y = series(4, gaps=True)
    terms = model_of(4, "enumerated").local_terms((X, Y))
    for n in range(4):
        best = logsumexp(log_joints(Y[:, n], NOISE), axis=1).max()
        assert best - 1e-9 <= terms.bounds[n].numpy() < best + 0.05
        (log_q,) = log_joints(Y[:, n], terms.noise_variance[n : n + 1].numpy())
        np.testing.assert_allclose(log_q - logsumexp(log_q), terms.log_weights[n], atol=1e-8)


def test_noise_and_independent_q_are_the_best() -> None:
    Y = series(4, gaps=True)
    any_form = model_of(4, "enumerated").local_terms((X, Y)).bounds.numpy()
    found = model_of(4, "relaxed").local_terms((X, Y)).bounds.numpy()
    assert np.all(found <= any_form)
    for n in range(4):
        best = max(best_mean_field(row) for row in log_joints(Y[:, n], NOISE))
        assert best - 1e-6 <= found[n] < best + 0.05


@pytest.mark.parametrize("posterior", POSTERIORS)
def test_noise_from_nothing_to_everything(posterior: str) -> None:
    """A series without noise ends at the least that there is, pure noise at its variance."""
    rng = np.random.default_rng(3)
    noise = 20.0 * rng.normal(size=len(X))
    Y = np.column_stack([0.3 * X[:, 0], noise])
    model = lkm.MinibatchLKM([Linear(0.1)], 2, posterior=posterior)  # type: ignore[arg-type]
    found = model.local_terms((X, Y)).noise_variance.numpy()
    assert 1e-6 < found[0] < 3e-6
    assert 0.7 < found[1] / np.mean(np.square(noise)) < 1.02
    assert np.isfinite(model.to_lkm((X, Y)).elbo(seed=0))


# --- a GPflow model -------------------------------------------------------------------------------


def test_training_loss_follows_gpflow() -> None:
    """A closure over an iterator of a `tf.data.Dataset`, an optimiser of Keras, a prior."""
    Y = series(12)
    model = model_of(12, "enumerated")
    zero, one = (gpflow.utilities.to_default_float(value) for value in (0.0, 1.0))
    model.kernels[0].lengthscales.prior = tfp.distributions.LogNormal(zero, one)
    loss = model.training_loss((X, Y)).numpy()
    np.testing.assert_allclose(
        loss, -(model.maximum_log_likelihood_objective((X, Y)) + model.log_prior_density())
    )
    batches = tf.data.Dataset.from_tensor_slices(Y.T).repeat().shuffle(12, seed=0).batch(4)
    pairs = batches.map(lambda rows: (X, tf.transpose(rows)))
    closure = model.training_loss_closure(iter(pairs))
    optimizer = tf_keras.optimizers.Adam(0.05)
    for _ in range(30):
        optimizer.minimize(closure, model.trainable_variables)
    assert model.training_loss((X, Y)).numpy() < loss - 3.0


def test_covariances_can_be_overridden() -> None:
    class Doubled(lkm.MinibatchLKM):
        def component_covariances(self, X: tf.Tensor) -> tf.Tensor:
            return 2.0 * super().component_covariances(X)

    Y = series(3)
    model = Doubled(kernels(), 3)
    twice = lkm.MinibatchLKM([SquaredExponential(2.0, 0.7), Linear(0.4), Matern32(2.0, 2.0)], 3)
    np.testing.assert_allclose(model.elbo((X, Y)), twice.elbo((X, Y)), rtol=1e-10)
    with pytest.raises(ValueError, match="Doubled: expected lkm_class = a subclass of LKM"):
        model.to_lkm((X, Y))


def test_overridden_covariances_are_those_of_the_ordinary_model_too() -> None:
    """With B = N both bounds are the same, also with parameters of their own."""

    class HigherLKM(lkm.LKM):
        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **options)
            self.height = gpflow.Parameter(1.0)

        def component_covariances(self, X: tf.Tensor, X2: Any = None) -> tf.Tensor:
            return self.height * super().component_covariances(X, X2)

    class Higher(lkm.MinibatchLKM):
        lkm_class = HigherLKM

        def __init__(self, *args: Any) -> None:
            super().__init__(*args)
            self.height = gpflow.Parameter(3.0)

        def component_covariances(self, X: tf.Tensor) -> tf.Tensor:
            return self.height * super().component_covariances(X)

    data = (X, series(3))
    model = Higher(kernels(), 3)
    model.tau.assign(TAU)
    full = model.to_lkm(data)
    assert isinstance(full, HigherLKM)
    np.testing.assert_allclose(full.elbo(), model.elbo(data), rtol=1e-10)


def test_predictions_are_those_of_an_ordinary_model() -> None:
    data = (X, series(5, gaps=True))
    model = model_of(5, "enumerated")
    full = model.to_lkm(data)
    mean, variance = full.predict_y(X)
    assert mean.shape == variance.shape == (16, 5)
    observed = ~np.isnan(data[1])
    residuals = np.where(observed, data[1] - mean.numpy(), 0.0)
    assert np.mean(np.square(residuals) < 4.0 * variance) > 0.9
    full.kernels[0].lengthscales.assign(9.0)
    assert model.kernels[0].lengthscales.numpy() == 0.7, "kernels are copies"


def test_margins_that_are_all_but_certain_survive() -> None:
    """Logits of the full model are taken from log weights, which do not underflow."""
    Y = 30.0 * np.sin(2.0 * X)
    model = lkm.MinibatchLKM([SquaredExponential(900.0), Linear(0.2)], 1, posterior="relaxed")
    logits = model.to_lkm((X, Y)).posterior.logits.numpy()
    assert np.all(np.isfinite(logits))
    assert logits[0, 0] > 20.0
    np.testing.assert_allclose(model.probabilities((X, Y)), expit(logits), atol=1e-12)


# --- errors ---------------------------------------------------------------------------------------


def test_errors_say_what_was_expected() -> None:
    for wrong in (0, 2.5, float("nan")):
        with pytest.raises(ValueError, match=f"num_series as a whole number .* got {wrong}"):
            lkm.MinibatchLKM(kernels(), wrong)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"posterior: expected one of .* got 'exact'"):
        lkm.MinibatchLKM(kernels(), 3, posterior="exact")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"at most 12 components .* got 13"):
        lkm.MinibatchLKM([Linear() for _ in range(13)], 3)
    with pytest.raises(ValueError, match="kernels: expected a list"):
        lkm.MinibatchLKM(Linear(), 3)  # type: ignore[arg-type]
    model = model_of(3, "enumerated")
    with pytest.raises(ValueError, match="rate: expected a number above 0 and at most 1, got 0"):
        model.update_tau((X, series(3)), rate=0)


def test_errors_of_batches_say_where() -> None:
    model, Y = model_of(3, "enumerated"), series(3)
    with pytest.raises(ValueError, match=r"Y \[D, B\] as in X .* got shapes \(16, 1\) and \(3, 16"):
        model.local_terms((X, Y.T))
    for X_bad, Y_bad in ((X[:, 0], Y), (np.hstack([X, X]), Y), (X, Y[:, 0]), (X, Y[:, :0])):
        with pytest.raises(ValueError, match=r"expected X \[D, 1\] and Y \[D, B\] with at least"):
            model.local_terms((X_bad, Y_bad))
    with pytest.raises(ValueError, match=r"got a mean square of .* in column 1 of Y"):
        model.local_terms((X, Y * [1.0, 1e5, 1.0]))
    Y[2, 1] = np.inf
    with pytest.raises(ValueError, match="got inf in row 2, column 1"):
        model.local_terms((X, Y))
    with pytest.raises(tf.errors.InvalidArgumentError, match="expected finite numbers"):
        model.training_loss_closure((X, Y))()
    Y[:, 1] = np.nan
    with pytest.raises(ValueError, match="only missing ones in column 1"):
        model.probabilities((X, Y))

"""The spike and slab multi-task Gaussian process: its bound, its updates, its forecasts."""

from __future__ import annotations

import itertools

import gpflow
import numpy as np
import pandas as pd
import pytest
import tensorflow as tf
from numpy.typing import NDArray

from lkm_gpflow.comparators.lbfgs import MultiStart
from lkm_gpflow.comparators.spike_slab import SpikeSlabGP

Array = NDArray[np.float64]


def squared_exponential(lengthscale: float) -> gpflow.kernels.Kernel:
    kernel = gpflow.kernels.SquaredExponential(lengthscales=lengthscale)
    gpflow.set_trainable(kernel.variance, False)
    return kernel


def se_matrix(x: Array, x2: Array, lengthscale: float) -> Array:
    return np.exp(-0.5 * ((x[:, None] - x2[None, :]) / lengthscale) ** 2)


def random_table(
    seed: int = 0, num_times: int = 12, num_series: int = 3, gaps: bool = True
) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    x = np.sort(rng.uniform(size=num_times))
    Y = rng.normal(size=(num_times, num_series)) + np.sin(8.0 * x)[:, None]
    if gaps:
        Y[rng.uniform(size=Y.shape) < 0.2] = np.nan
    return x[:, None], Y


def random_model(seed: int = 0, **changes: int) -> SpikeSlabGP:
    """A model with every parameter at a random value."""
    rng = np.random.default_rng(seed)
    data = random_table(seed, **changes)
    model = SpikeSlabGP(data, [squared_exponential(l) for l in (0.08, 0.3)], seed=seed)
    shape = model.weight_mean.shape
    model.switch_logits.assign(2.0 * rng.normal(size=shape))
    model.weight_variance.assign(rng.uniform(0.05, 0.5, size=shape))
    model.noise_variance.assign(rng.uniform(0.1, 0.8, size=shape[0]))
    model.slab_variance.assign(rng.uniform(0.5, 2.0))
    model.inclusion.assign(rng.uniform(0.2, 0.8))
    return model


def fix_weights(model: SpikeSlabGP, W: Array) -> None:
    """Nearly certain weights, with switches that are on."""
    model.weight_mean.assign(W)
    model.weight_variance.assign(np.full(W.shape, 1e-10))
    model.switch_logits.assign(np.full(W.shape, 40.0))


def log_normal_density(y: Array, V: Array) -> float:
    sign, log_determinant = np.linalg.slogdet(V)
    quadratic = y @ np.linalg.solve(V, y)
    return float(-0.5 * (quadratic + log_determinant + len(y) * np.log(2.0 * np.pi)))


def stacked(X: Array, Y: Array, W: Array, lengthscales: list[float], noise: Array) -> tuple:
    """Observed cells as one vector, the covariance of these, and their series and times."""
    times, series = np.nonzero(~np.isnan(Y))
    V = np.diag(noise[series])
    for m, lengthscale in enumerate(lengthscales):
        K = se_matrix(X[times, 0], X[times, 0], lengthscale)
        V = V + np.outer(W[series, m], W[series, m]) * K
    return Y[times, series], V, times, series


# --- the bound against exact evidence -----------------------------------------------------------


def test_with_known_weights_and_one_latent_function_all_is_exact() -> None:
    """Then the model is a linear Gaussian one: its evidence and its predictions, by NumPy."""
    X, Y = random_table(seed=1)
    W, noise = np.array([[1.3], [-0.7], [0.4]]), np.array([0.2, 0.5, 0.1])
    model = SpikeSlabGP((X, Y), [squared_exponential(0.2)], noise_variance=noise)
    fix_weights(model, W)
    y, V, times, series = stacked(X, Y, W, [0.2], noise)
    divergence = float(model._weight_divergence().numpy())
    evidence = log_normal_density(y, V)
    assert float(model.elbo().numpy()) + divergence == pytest.approx(evidence, abs=1e-6)

    new = np.array([0.05, 0.5, 1.3])
    mean, variance = model.predict_y(new[:, None])
    for n in range(3):
        cross = W[n, 0] * W[series, 0] * se_matrix(new, X[times, 0], 0.2)
        exact = W[n, 0] ** 2 + noise[n] - np.sum(cross * np.linalg.solve(V, cross.T).T, axis=1)
        np.testing.assert_allclose(mean[:, n], cross @ np.linalg.solve(V, y), atol=1e-6)
        np.testing.assert_allclose(variance[:, n], exact, atol=1e-6)


def log_evidence(X: Array, Y: Array, lengthscales: list[float], model: SpikeSlabGP) -> float:
    """Sum over all switches, Gauss-Hermite quadrature over the weights that are on."""
    noise, N, M = model.noise_variance.numpy(), Y.shape[1], len(lengthscales)
    pi, slab = float(model.inclusion.numpy()), float(model.slab_variance.numpy())
    nodes, node_weights = np.polynomial.hermite_e.hermegauss(14)
    log_node_weights = np.log(node_weights / node_weights.sum())
    terms = []
    for S in itertools.product((0, 1), repeat=N * M):
        on = np.flatnonzero(S)
        prior = len(on) * np.log(pi) + (N * M - len(on)) * np.log1p(-pi)
        for choice in itertools.product(range(len(nodes)), repeat=len(on)):
            W = np.zeros(N * M)
            W[on] = np.sqrt(slab) * nodes[list(choice)]
            y, V, *_ = stacked(X, Y, W.reshape(N, M), lengthscales, noise)
            weight = log_node_weights[list(choice)].sum()
            terms.append(prior + weight + log_normal_density(y, V))
    return float(np.logaddexp.reduce(terms))


@pytest.mark.parametrize("seed", [0, 1])
def test_bound_lies_below_the_evidence_and_not_far(seed: int) -> None:
    lengthscales = [0.1, 0.6]
    X, Y = random_table(seed, num_times=3, num_series=1, gaps=False)
    Y = np.column_stack([Y, [0.4, np.nan, -0.9]])[:, : 1 + seed]
    kernels = [squared_exponential(l) for l in lengthscales[: 2 - seed]]
    model = SpikeSlabGP((X, Y), kernels, noise_variance=0.2, inclusion=0.4, seed=seed)
    exact = log_evidence(X, Y, lengthscales[: 2 - seed], model)
    assert model.elbo() < exact
    for _ in range(50):
        model.update_weights()
    assert exact - 3.0 < model.elbo() < exact


# --- the bound and the updates against plain mean field ------------------------------------------


def test_updated_weights_are_the_posterior_given_the_moments_of_phi() -> None:
    """Of a slab and a spike, by quadrature over the weight."""
    model = random_model(10)
    latent, Y = model.latent_posterior(), model.data[1].numpy().T
    phi = latent.mean.numpy()[0]
    second = phi**2 + np.diagonal(latent.covariance.numpy()[0])
    noise, slab = model.noise_variance.numpy(), float(model.slab_variance.numpy())
    pi = float(model.inclusion.numpy())
    other = (model.probabilities() * model.weight_mean).numpy()[:, 1, None] * latent.mean.numpy()[1]
    model.update_weights()
    w = np.linspace(-8.0, 8.0, 20_001)
    for n in range(3):
        seen = ~np.isnan(Y[n])
        fit = w * (phi * (Y[n] - other[n]))[seen].sum() - 0.5 * w**2 * second[seen].sum()
        log_slab = fit / noise[n] - 0.5 * w**2 / slab - 0.5 * np.log(2.0 * np.pi * slab)
        density = np.exp(log_slab - log_slab.max())
        mean = np.sum(density * w) / density.sum()
        evidence = log_slab.max() + np.log(density.sum() * (w[1] - w[0]))
        logit = np.log(pi / (1.0 - pi)) + evidence
        assert model.switch_logits.numpy()[n, 0] == pytest.approx(logit, rel=1e-6)
        assert model.weight_mean.numpy()[n, 0] == pytest.approx(mean, rel=1e-6)
        variance = np.sum(density * (w - mean) ** 2) / density.sum()
        assert model.weight_variance.numpy()[n, 0] == pytest.approx(variance, rel=1e-6)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_no_update_lowers_the_bound(seed: int) -> None:
    model = random_model(seed)
    bounds = [float(model.elbo().numpy())]
    for _ in range(8):
        for update in (model.update_weights, model.update_hyperparameters):
            update()
            bounds.append(float(model.elbo().numpy()))
    assert np.diff(bounds).min() > -1e-8
    assert bounds[-1] > bounds[0] + 1.0


def test_gradient_is_that_of_finite_differences() -> None:
    """Though nothing is differentiated through the solution for q(phi)."""
    model = random_model(5)
    variables = model.trainable_variables
    with tf.GradientTape() as tape:
        bound = model.elbo()
    for variable, gradient in zip(variables, tape.gradient(bound, variables), strict=True):
        value = variable.numpy()
        direction = np.random.default_rng(0).normal(size=value.shape)
        ends = []
        for sign in (1.0, -1.0):
            variable.assign(value + sign * 1e-5 * direction)
            ends.append(float(model.elbo().numpy()))
        variable.assign(value)
        slope = (ends[0] - ends[1]) / 2e-5
        assert np.sum(gradient.numpy() * direction) == pytest.approx(slope, rel=1e-5, abs=1e-6)


# --- missing data, moments -----------------------------------------------------------------------


def test_predictions_have_the_moments_of_draws_from_q() -> None:
    model = random_model(9)
    rng = np.random.default_rng(9)
    X, S = model.data[0].numpy(), 400_000
    new = np.array([0.2, 0.75, 1.1])
    latent = model.latent_posterior()
    phi = []
    for m, lengthscale in enumerate((0.08, 0.3)):
        # phi at the new times given phi at the data is the prior's conditional.
        K = se_matrix(X[:, 0], X[:, 0], lengthscale) + 1e-9 * np.eye(len(X))
        cross = se_matrix(new, X[:, 0], lengthscale)
        gain = np.linalg.solve(K, cross.T).T
        rest = se_matrix(new, new, lengthscale) - gain @ cross.T
        mean = gain @ latent.mean.numpy()[m]
        covariance = rest + gain @ latent.covariance.numpy()[m] @ gain.T
        phi.append(rng.multivariate_normal(mean, covariance, size=S))
    gamma = model.probabilities().numpy()
    on = rng.uniform(size=(S, *gamma.shape)) < gamma
    sd = np.sqrt(model.weight_variance.numpy())
    w = model.weight_mean.numpy() + sd * rng.normal(size=on.shape)
    f = np.einsum("snm,mst->stn", on * w, np.array(phi))
    noise = np.sqrt(model.noise_variance.numpy()) * rng.normal(size=f.shape)
    mean, variance = model.predict_y(new[:, None])
    np.testing.assert_allclose(mean, f.mean(axis=0), atol=0.01)
    np.testing.assert_allclose(variance, (f + noise).var(axis=0), rtol=0.02)
    np.testing.assert_allclose(model.predict_f(new[:, None])[1], f.var(axis=0), rtol=0.02)


# --- planted data --------------------------------------------------------------------------------

PLANTED_SWITCHES = np.array([[1, 0], [1, 0], [1, 0], [0, 1], [0, 1], [0, 1], [1, 1], [0, 0]])


def planted(seed: int, num_times: int = 80) -> pd.DataFrame:
    """Eight series of the model itself, with two latent functions."""
    rng = np.random.default_rng(seed)
    x = np.linspace(0.0, 1.0, num_times)
    phi = [
        rng.multivariate_normal(np.zeros(num_times), se_matrix(x, x, l), method="eigh")
        for l in (0.08, 0.25)
    ]
    W = rng.choice([-1.0, 1.0], size=PLANTED_SWITCHES.shape) * rng.uniform(0.7, 1.5, size=(8, 2))
    Y = (PLANTED_SWITCHES * W) @ np.array(phi) + 0.1 * rng.normal(size=(8, num_times))
    return pd.DataFrame(Y.T, columns=list("abcdefgh"))


def scaled(table: pd.DataFrame) -> tuple[Array, Array]:
    Y = table.to_numpy()
    return np.linspace(0.0, 1.0, len(Y))[:, None], (Y - Y.mean(axis=0)) / Y.std(axis=0)


@pytest.mark.slow
def test_planted_switches_are_an_optimum() -> None:
    """Learning from the truth keeps it, and prunes the third latent function."""
    kernels = [squared_exponential(l) for l in (0.08, 0.25, 0.5)]
    model = SpikeSlabGP(scaled(planted(0)), kernels, noise_variance=0.02)
    wanted = np.column_stack([PLANTED_SWITCHES, np.zeros(8)])
    model.switch_logits.assign(4.0 * (2.0 * wanted - 1.0))
    learner = MultiStart(model)
    for _ in range(2):
        learner.run(100)
        for _ in range(10):
            model.update_weights()
            model.update_hyperparameters()
    np.testing.assert_array_equal(model.probabilities().numpy() > 0.5, wanted > 0.5)


def test_wrong_arguments_are_refused() -> None:
    data, kernels = random_table(), [squared_exponential(0.1)]
    with pytest.raises(ValueError, match=r"inclusion: expected a number between 0 and 1, got 1\.0"):
        SpikeSlabGP(data, kernels, inclusion=1.0)
    with pytest.raises(ValueError, match=r"slab_variance: expected a positive number, got -1\.0"):
        SpikeSlabGP(data, kernels, slab_variance=-1.0)
    with pytest.raises(ValueError, match="noise_variance: expected a number or 3 numbers above"):
        SpikeSlabGP(data, kernels, noise_variance=np.ones(2))

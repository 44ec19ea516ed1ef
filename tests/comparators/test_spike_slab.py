"""The spike and slab multi-task Gaussian process: its bound, its updates, its forecasts."""

from __future__ import annotations

import itertools

import gpflow
import numpy as np
import pandas as pd
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from lkm_gpflow.comparators.lbfgs import MultiStart
from lkm_gpflow.comparators.naive import LastValue
from lkm_gpflow.comparators.spike_slab import SpikeSlab, SpikeSlabGP
from lkm_gpflow.evaluation import metrics

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


def test_one_series_of_weight_one_is_gpflows_regression() -> None:
    X, Y = random_table(seed=2, num_series=1, gaps=False)
    model = SpikeSlabGP((X, Y), [squared_exponential(0.2)], noise_variance=0.3)
    fix_weights(model, np.ones((1, 1)))
    gpr = gpflow.models.GPR((X, Y), squared_exponential(0.2), noise_variance=0.3)
    bound = model.elbo() + model._weight_divergence()
    np.testing.assert_allclose(bound, gpr.log_marginal_likelihood(), atol=1e-6)
    new = np.linspace(-0.2, 1.4, 9)[:, None]
    for ours, theirs in zip(model.predict_y(new), gpr.predict_y(new), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-6)


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


def plain_bound(model: SpikeSlabGP, X: Array, Y: Array, lengthscales: list[float]) -> float:
    """``E log p(y, phi, w) + entropies`` of Gaussians q(phi_m) and q(w_nm), without switches.

    q(phi) is found by coordinate ascent over m with explicit inverses.
    """
    mask, Y = ~np.isnan(Y.T), np.nan_to_num(Y.T)
    noise, slab = model.noise_variance.numpy(), float(model.slab_variance.numpy())
    W, v = model.weight_mean.numpy(), model.weight_variance.numpy()
    D = len(X)
    inverses = [
        np.linalg.inv(se_matrix(X[:, 0], X[:, 0], l) + 1e-10 * np.eye(D)) for l in lengthscales
    ]
    precision = mask / noise[:, None]
    phi = np.zeros((len(lengthscales), D))
    covariances = [
        np.linalg.inv(inverse + np.diag((W[:, m] ** 2 + v[:, m]) @ precision))
        for m, inverse in enumerate(inverses)
    ]
    for _ in range(2000):
        for m, covariance in enumerate(covariances):
            rest = Y - np.delete(W, m, axis=1) @ np.delete(phi, m, axis=0)
            phi[m] = covariance @ (W[:, m] @ (precision * rest))
    value = 0.0
    for n, d in zip(*np.nonzero(mask), strict=True):
        second = np.outer(phi[:, d], phi[:, d]) + np.diag([S[d, d] for S in covariances])
        weights = np.outer(W[n], W[n]) + np.diag(v[n])
        error = Y[n, d] ** 2 - 2.0 * Y[n, d] * W[n] @ phi[:, d] + np.sum(weights * second)
        value -= 0.5 * (np.log(2.0 * np.pi * noise[n]) + error / noise[n])
    for mean, S, inverse in zip(phi, covariances, inverses, strict=True):
        value += 0.5 * (D + np.linalg.slogdet(S)[1] + np.linalg.slogdet(inverse)[1])
        value -= 0.5 * (mean @ inverse @ mean + np.trace(inverse @ S))
    entropies = 0.5 * (np.log(2.0 * np.pi * v) + 1.0)
    return float(value + np.sum(entropies - 0.5 * (np.log(2.0 * np.pi * slab) + (W**2 + v) / slab)))


def without_switches(seed: int) -> SpikeSlabGP:
    model = random_model(seed)
    model.inclusion.assign(1.0 - 1e-8)
    gpflow.set_trainable(model.inclusion, False)
    model.switch_logits.assign(np.full(model.switch_logits.shape, 40.0))
    return model


def test_with_all_switches_on_the_bound_is_that_of_plain_mean_field() -> None:
    model = without_switches(3)
    X, Y = model.data[0].numpy(), model.data[1].numpy()
    expected = plain_bound(model, X, Y, [0.08, 0.3])
    assert float(model.elbo().numpy()) == pytest.approx(expected, abs=1e-4)
    model.update_weights()
    assert np.all(model.probabilities().numpy() > 1.0 - 1e-6)
    expected = plain_bound(model, X, Y, [0.08, 0.3])
    assert float(model.elbo().numpy()) == pytest.approx(expected, abs=1e-4)


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


@pytest.mark.slow
def test_updates_end_where_the_gradient_vanishes() -> None:
    """In the limit of the closed-form steps every parameter but the kernels' is stationary."""
    model = random_model(4, num_times=20)
    for _ in range(400):
        before = model.switch_logits.numpy()
        model.update_weights()
        model.update_hyperparameters()
        if np.abs(model.switch_logits.numpy() - before).max() < 1e-6:
            break
    parameters = [model.switch_logits, model.weight_mean, model.weight_variance]
    parameters += [model.noise_variance, model.slab_variance, model.inclusion]
    variables = [parameter.unconstrained_variable for parameter in parameters]
    with tf.GradientTape() as tape:
        bound = model.elbo()
    for gradient in tape.gradient(bound, variables):
        np.testing.assert_allclose(gradient, 0.0, atol=1e-3)


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


def test_fixed_hyperparameters_stay() -> None:
    model = random_model(6)
    gpflow.set_trainable(model.inclusion, False)
    before = float(model.inclusion.numpy())
    slab = float(model.slab_variance.numpy())
    model.update_hyperparameters()
    assert float(model.inclusion.numpy()) == before
    assert float(model.slab_variance.numpy()) != slab


@settings(deadline=None, max_examples=25)
@given(
    lengthscales=st.lists(st.floats(1e-3, 1e3), min_size=2, max_size=2),
    log_noise=st.floats(-11.0, 3.0),
    logit=st.floats(-60.0, 60.0),
)
def test_bound_gradient_and_covariances_are_sound_everywhere(
    lengthscales: list[float], log_noise: float, logit: float
) -> None:
    model = random_model(7)
    for kernel, lengthscale in zip(model.kernels, lengthscales, strict=True):
        kernel.lengthscales.assign(lengthscale)
    model.noise_variance.assign(np.full(3, np.exp(log_noise)))
    model.switch_logits.assign(np.full((3, 2), logit))
    with tf.GradientTape() as tape:
        bound = model.elbo()
    assert np.isfinite(bound.numpy())
    for gradient in tape.gradient(bound, model.trainable_variables):
        assert np.all(np.isfinite(gradient.numpy()))
    assert np.linalg.eigvalsh(model.latent_posterior().covariance.numpy()).min() > -1e-7
    assert np.all(model.predict_y(np.array([[0.3], [2.0]]))[1].numpy() > 0.0)


# --- missing data, moments -----------------------------------------------------------------------


def test_missing_rows_are_as_if_they_had_never_been() -> None:
    X, Y = random_table(8, num_times=14, gaps=False)
    gone = np.array([2, 3, 9])
    with_gaps = Y.copy()
    with_gaps[gone] = np.nan
    models = []
    for data in ((X, with_gaps), (np.delete(X, gone, 0), np.delete(Y, gone, 0))):
        model = SpikeSlabGP(data, [squared_exponential(l) for l in (0.1, 0.4)], seed=8)
        for _ in range(5):
            model.update_weights()
            model.update_hyperparameters()
        models.append(model)
    np.testing.assert_allclose(models[0].elbo(), models[1].elbo(), rtol=1e-8)
    new = np.linspace(0.0, 1.5, 7)[:, None]
    for one, other in zip(models[0].predict_y(new), models[1].predict_y(new), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-9)


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


def area_under_curve(probabilities: Array) -> float:
    """Of telling the planted switches from the others, at the best order of latent functions."""
    unused = probabilities.shape[1] - PLANTED_SWITCHES.shape[1]
    wanted = np.column_stack([PLANTED_SWITCHES, np.zeros((8, unused))]).astype(bool)
    areas = []
    for order in itertools.permutations(range(probabilities.shape[1])):
        ours = probabilities[:, list(order)]
        difference = ours[wanted][:, None] - ours[~wanted][None, :]
        areas.append(np.mean((difference > 0.0) + 0.5 * (difference == 0.0)))
    return float(max(areas))


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


@pytest.mark.slow
def test_planted_switches_are_recovered_from_random_starts() -> None:
    """Mostly: the bound has local optima in which the latent functions are mixed."""
    method = SpikeSlab(3, starts=4, keep=1, max_iterations=80)
    areas = [
        area_under_curve(method.learn(scaled(planted(table)), seed=0).probabilities().numpy())
        for table in (0, 1)
    ]
    assert np.mean(areas) > 0.8


@pytest.mark.slow
def test_planted_data_are_forecast_better_than_by_the_last_value() -> None:
    scores = {"ours": [], "last": []}
    for seed in range(2):
        table = planted(seed)
        train, test = table.iloc[:76], table.iloc[76:]
        for name, method in (
            ("ours", SpikeSlab(2, starts=3, keep=1, max_iterations=60)),
            ("last", LastValue()),
        ):
            forecast = method.fit(train, seed=0).forecast(test.index)
            mean, sd = (forecast[c].unstack("series").to_numpy() for c in ("mean", "sd"))
            y = test.to_numpy()
            scores[name].append([metrics.rmse(y, mean), metrics.mnlp(y, mean, sd**2)])
    ours_mean, last_mean = (np.mean(scores[name], axis=0) for name in ("ours", "last"))
    assert ours_mean[0] < 0.7 * last_mean[0]
    assert ours_mean[1] < last_mean[1] - 0.3


# --- the comparator ------------------------------------------------------------------------------


def test_wrong_arguments_are_refused() -> None:
    with pytest.raises(ValueError, match="latent functions as a whole number of 1 or more, got 0"):
        SpikeSlab(num_latent=0)
    data, kernels = random_table(), [squared_exponential(0.1)]
    with pytest.raises(ValueError, match=r"inclusion: expected a number between 0 and 1, got 1\.0"):
        SpikeSlabGP(data, kernels, inclusion=1.0)
    with pytest.raises(ValueError, match=r"slab_variance: expected a positive number, got -1\.0"):
        SpikeSlabGP(data, kernels, slab_variance=-1.0)
    with pytest.raises(ValueError, match="noise_variance: expected a number or 3 numbers above"):
        SpikeSlabGP(data, kernels, noise_variance=np.ones(2))


def test_seed_decides() -> None:
    quick = SpikeSlab(1, starts=1, sweeps=2, short=3, keep=1, max_iterations=5)
    table, times = planted(1, num_times=30), pd.Index([30, 31])
    one, same, other = (quick.fit(table, seed=s).forecast(times) for s in (0, 0, 1))
    assert one.equals(same)
    assert not one.equals(other)

"""Independent formulations of the model agree; a bound lies below what it bounds."""

from __future__ import annotations

from itertools import product

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from gpflow.kernels import Kernel, Linear, Matern32, SquaredExponential
from numpy.typing import NDArray
from scipy.special import betaln, digamma, logsumexp
from scipy.stats import multivariate_normal

from lkm_gpflow.model.lkm import LKM
from lkm_gpflow.model.relaxation import RelaxedPosterior

Array = NDArray[np.float64]
ALPHA = 1.3


def table(
    num_points: int, num_series: int, missing: float = 0.0, seed: int = 0
) -> tuple[Array, Array]:
    """Smooth curves with noise at uneven times, some of them missing."""
    rng = np.random.default_rng(seed)
    X = np.sort(rng.uniform(0.0, 6.0, size=(num_points, 1)), axis=0)
    Y = np.sin(X + rng.uniform(0.0, 6.0, num_series)) + 0.3 * rng.normal(
        size=(num_points, num_series)
    )
    Y[rng.random(Y.shape) < missing] = np.nan
    return X, Y


def kernels(num_components: int) -> list[Kernel]:
    everything = [
        SquaredExponential(variance=1.2, lengthscales=1.5),
        Linear(variance=0.1),
        Matern32(variance=0.7, lengthscales=0.8),
        SquaredExponential(variance=0.4, lengthscales=0.3),
    ]
    return everything[:num_components]


def numpy_covariances(X: Array, X2: Array, num_components: int) -> Array:
    """The covariances of `kernels`, from their formulas, [K, D, D2]."""
    r = np.abs(X - X2.T)
    scaled = np.sqrt(3.0) * r / 0.8
    return np.stack(
        [
            1.2 * np.exp(-0.5 * (r / 1.5) ** 2),
            0.1 * X * X2.T,
            0.7 * (1.0 + scaled) * np.exp(-scaled),
            0.4 * np.exp(-0.5 * (r / 0.3) ** 2),
        ]
    )[:num_components]


def numpy_log_likelihood(X: Array, Y: Array, noise: Array, Z: Array) -> Array:
    """``log p(x_n | z_n)`` [N] of one Z [N, K], by SciPy, on the observed points only."""
    C = numpy_covariances(X, X, Z.shape[1])
    values = []
    for x, variance, z in zip(Y.T, noise, Z, strict=True):
        seen = ~np.isnan(x)
        V = np.tensordot(z, C, axes=1) + variance * np.eye(len(x))
        values.append(multivariate_normal.logpdf(x[seen], cov=V[np.ix_(seen, seen)]))
    return np.array(values)


def numpy_weight_terms(tau: Array) -> tuple[Array, Array, float]:
    """E log pi_k, E log(1 - pi_k), and E log p(pi) + H[q(pi)] of the finite prior."""
    (t1, t2), total, first = tau.T, tau.sum(axis=1), ALPHA / len(tau)
    log_on, log_off = digamma(t1) - digamma(total), digamma(t2) - digamma(total)
    prior = np.sum(np.log(first) + (first - 1.0) * log_on)
    entropy = np.sum(betaln(t1, t2) - (t1 - 1.0) * log_on - (t2 - 1.0) * log_off)
    return log_on, log_off, float(prior + entropy)


def all_rows(num_components: int) -> Array:
    return np.array(list(product([0.0, 1.0], repeat=num_components)))


# --- given Z every series is a regression with a sum kernel -------------------------------------


def mean_functions(shared: bool) -> gpflow.functions.MeanFunction:
    """A line for all three series, or one for each."""
    slopes, levels = np.array([[0.5, -0.2, 0.1]]), np.array([1.0, 0.0, -2.0])
    if shared:
        return gpflow.functions.Linear(slopes[:, :1], levels[:1])
    return gpflow.functions.Linear(slopes, levels)


@pytest.mark.parametrize("missing", [0.0, 0.2])
@pytest.mark.parametrize("shared", [True, False])
def test_given_Z_series_are_regressions_with_a_mean_and_a_sum_kernel(
    shared: bool, missing: float
) -> None:
    X, Y = table(15, 3, missing)
    Z, Xnew = np.array([[1, 0, 0], [0, 1, 1], [1, 1, 1]]), np.linspace(-1.0, 8.0, 7)[:, None]
    parts, mean, noise = kernels(3), mean_functions(shared), np.array([0.1, 0.3, 0.05])
    model = LKM((X, Y), parts, noise_variance=noise, mean_function=mean)
    regressions = []
    for n in range(3):
        seen = ~np.isnan(Y[:, n])
        own = mean if shared else gpflow.functions.Linear(mean.A[:, n : n + 1], mean.b[n : n + 1])
        whole = gpflow.kernels.Sum([k for k, z in zip(parts, Z[n], strict=True) if z])
        data = X[seen], Y[seen, n : n + 1]
        regressions.append(gpflow.models.GPR(data, whole, own, noise_variance=noise[n]))

    variables = [variable for part in parts for variable in part.trainable_variables]
    variables += mean.trainable_variables if shared else ()
    noises = [gpr.likelihood.variance.unconstrained_variable for gpr in regressions]
    with tf.GradientTape() as tape:
        found = model.log_likelihood(Z)
    gradients = tape.gradient(found, [*variables, *model.noise_variance.trainable_variables])
    with tf.GradientTape() as tape:
        expected = tf.stack([gpr.log_marginal_likelihood() for gpr in regressions])
    expected_gradients = tape.gradient(expected, [*variables, *noises])
    np.testing.assert_allclose(found, expected, rtol=1e-8)
    for ours, theirs in zip(gradients[:-1], expected_gradients[:-3], strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-7)
    np.testing.assert_allclose(gradients[-1], expected_gradients[-3:], rtol=1e-7)
    rows = model.configuration_log_likelihood(Z).numpy()
    np.testing.assert_allclose(np.diag(rows), expected, rtol=1e-8)

    for predict in ("predict_f", "predict_y"):
        found = getattr(model, predict)(Xnew, Z=Z)
        for n, gpr in enumerate(regressions):
            for ours, theirs in zip(found, getattr(gpr, predict)(Xnew), strict=True):
                np.testing.assert_allclose(ours[:, n], theirs[:, 0], atol=1e-8)
    means, covariances = model.predict_f(Xnew, full_cov=True, Z=Z)
    density = model.predict_log_density((Xnew, np.tile(np.cos(Xnew), 3)), Z=Z)
    for n, gpr in enumerate(regressions):
        gpr_mean, gpr_covariance = gpr.predict_f(Xnew, full_cov=True)
        np.testing.assert_allclose(means[:, n], gpr_mean[:, 0], atol=1e-8)
        np.testing.assert_allclose(covariances[n], gpr_covariance[0], atol=1e-8)
        gpr_density = gpr.predict_log_density((Xnew, np.cos(Xnew)))
        np.testing.assert_allclose(density[:, n], gpr_density, atol=1e-8)


def test_draws_have_the_moments_of_the_predictions() -> None:
    """Over all rows of Z: means, variances, and covariances between times."""
    X, Y = table(12, 2, 0.1)
    model = LKM(
        (X, Y), kernels(2), posterior="enumerated", noise_variance=0.3, likelihood="scaled",
        mean_function=gpflow.functions.Constant(2.0),
    )  # fmt: skip
    Xnew, S = np.array([[2.0], [2.2], [7.0]]), 4000
    mean, covariance = (part.numpy() for part in model.predict_f(Xnew, full_cov=True))
    drawn = model.predict_f_samples(Xnew, S, seed=0).numpy()  # [S, M, N]
    alone = model.predict_f_samples(Xnew, S, full_cov=False, seed=1).numpy()
    sd = np.sqrt(np.diagonal(covariance, axis1=1, axis2=2)).T  # [M, N]
    for samples in (drawn, alone):
        np.testing.assert_allclose(samples.mean(axis=0), mean, atol=4.0 * sd.max() / np.sqrt(S))
        np.testing.assert_allclose(samples.std(axis=0), sd, rtol=0.08)
    for n in range(2):
        np.testing.assert_allclose(np.cov(drawn[:, :, n].T), covariance[n], atol=0.1 * sd.max())


def test_draws_are_those_of_their_seed() -> None:
    X, Y = table(8, 2)
    model, Xnew = LKM((X, Y), kernels(2)), np.linspace(0.0, 8.0, 6)[:, None]
    one = model.predict_f_samples(Xnew, seed=3)
    assert one.shape == (6, 2)
    np.testing.assert_array_equal(one, model.predict_f_samples(Xnew, 1, seed=3)[0])
    first, second = (model.predict_f_samples(Xnew, 4) for _ in range(2))
    assert first.shape == (4, 6, 2)
    assert not np.array_equal(first, second)
    compiled = tf.function(lambda X: model.predict_f_samples(X, 4, Z=np.ones((2, 2)), seed=3))
    expected = model.predict_f_samples(Xnew, 4, Z=np.ones((2, 2)), seed=3)
    np.testing.assert_allclose(compiled(tf.constant(Xnew)), expected, atol=1e-6)
    with pytest.raises(NotImplementedError, match="full_output_cov"):
        model.predict_f_samples(Xnew, full_output_cov=True)


# --- the log likelihood --------------------------------------------------------------------------


@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_both_routes_to_the_log_likelihood_are_scipys(missing: float) -> None:
    (X, Y), K, noise = table(12, 3, missing), 3, np.array([0.1, 0.2, 0.3])
    model = LKM((X, Y), kernels(K), noise_variance=noise)
    rows = all_rows(K)
    expected = np.stack([numpy_log_likelihood(X, Y, noise, np.tile(t, (3, 1))) for t in rows])
    by_cholesky = model.log_likelihood(np.tile(rows[:, None, :], (1, 3, 1)))
    np.testing.assert_allclose(by_cholesky, expected, rtol=1e-10)
    np.testing.assert_allclose(model.configuration_log_likelihood(rows).numpy().T, expected, 1e-10)
    fractional = np.random.default_rng(1).uniform(0.0, 2.0, size=(3, K))
    np.testing.assert_allclose(
        model.log_likelihood(fractional), numpy_log_likelihood(X, Y, noise, fractional), rtol=1e-10
    )


# --- the enumerated bound ------------------------------------------------------------------------


@pytest.mark.parametrize("missing", [0.0, 0.2])
@pytest.mark.parametrize("num_components", [1, 2, 4])
def test_enumerated_bound_is_brute_force(num_components: int, missing: float) -> None:
    (X, Y), K, N = table(10, 3, missing), num_components, 3
    noise, rng = np.array([0.1, 0.2, 0.3]), np.random.default_rng(3)
    model = LKM((X, Y), kernels(K), ALPHA, "enumerated", noise_variance=noise)
    tau = rng.uniform(0.3, 4.0, size=(K, 2))
    model.tau.assign(tau)

    log_on, log_off, weight_terms = numpy_weight_terms(tau)
    rows = all_rows(K)
    joint = np.stack([numpy_log_likelihood(X, Y, noise, np.tile(t, (N, 1))) for t in rows])
    joint += (rows @ log_on + (1.0 - rows) @ log_off)[:, None]
    np.testing.assert_allclose(
        model.elbo(), logsumexp(joint, axis=0).sum() + weight_terms, rtol=1e-8
    )

    responsibilities = np.exp(joint - logsumexp(joint, axis=0))
    np.testing.assert_allclose(model.probabilities(), responsibilities.T @ rows, atol=1e-8)
    np.testing.assert_array_equal(model.assignment(), rows[responsibilities.argmax(axis=0)])


@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_mean_field_bound_is_brute_force(missing: float) -> None:
    (X, Y), K, N = table(10, 3, missing), 3, 3
    noise, rng = np.array([0.1, 0.2, 0.3]), np.random.default_rng(3)
    model = LKM((X, Y), kernels(K), ALPHA, noise_variance=noise)
    tau, nu = rng.uniform(0.3, 4.0, size=(K, 2)), rng.uniform(0.05, 0.95, size=(N, K))
    model.tau.assign(tau)
    model.posterior.logits.assign(np.log(nu / (1.0 - nu)))

    log_on, log_off, expected = numpy_weight_terms(tau)
    expected += np.sum(nu * log_on + (1.0 - nu) * log_off)
    expected -= np.sum(nu * np.log(nu) + (1.0 - nu) * np.log(1.0 - nu))
    for t in all_rows(K):
        weights = np.prod(np.where(t == 1.0, nu, 1.0 - nu), axis=1)
        expected += weights @ numpy_log_likelihood(X, Y, noise, np.tile(t, (N, 1)))
    np.testing.assert_allclose(model.posterior.mean_field_elbo(model), expected, rtol=1e-8)


def test_bounds_are_ordered() -> None:
    """Best mean-field bound <= best enumerated bound <= log p(X), the sum over all Z."""
    (X, Y), K, N, noise = table(8, 3), 2, 3, np.full(3, 0.3)
    shared = {"alpha": ALPHA, "noise_variance": noise}
    rows = all_rows(K)
    by_row = np.stack([numpy_log_likelihood(X, Y, noise, np.tile(t, (N, 1))) for t in rows])
    terms = []
    for choice in product(range(len(rows)), repeat=N):
        on = rows[list(choice)].sum(axis=0)
        log_prior = np.sum(np.log(ALPHA / K) + betaln(on + ALPHA / K, N - on + 1.0))
        terms.append(log_prior + sum(by_row[t, n] for n, t in enumerate(choice)))
    exact = logsumexp(terms)

    enumerated = LKM((X, Y), kernels(K), posterior="enumerated", **shared)
    bounds = [enumerated.elbo().numpy()]
    for _ in range(25):
        enumerated.update_tau()
        bounds.append(enumerated.elbo().numpy())
    assert np.diff(bounds).min() > -1e-10, "a coordinate step must not lower the bound"

    mean_field = LKM((X, Y), kernels(K), posterior="relaxed", **shared)
    gpflow.optimizers.Scipy().minimize(
        lambda: -mean_field.posterior.mean_field_elbo(mean_field),
        [*mean_field.posterior.trainable_variables, *mean_field.tau.trainable_variables],
    )
    best = mean_field.posterior.mean_field_elbo(mean_field).numpy()
    assert best < bounds[-1] < exact
    assert exact - best < 3.0, "loose bounds would make the order trivial"

    enumerated.tau.assign(mean_field.tau)
    assert best <= enumerated.elbo().numpy(), "the same order at the same tau"


def test_bounds_meet_when_nothing_is_uncertain() -> None:
    """With Z certain the mean-field bound is the enumerated one of the only configuration left."""
    data = table(10, 2)
    mean_field = LKM(data, kernels(2))
    mean_field.posterior.logits.assign(np.array([[60.0, -60.0], [-60.0, 60.0]]))
    Z = mean_field.assignment()
    expected = (
        tf.reduce_sum(mean_field.log_likelihood(Z))
        + mean_field.prior.expected_log_weights(mean_field.tau)
        + mean_field.prior.expected_log_assignments(mean_field.tau, Z)
        + mean_field.prior.entropy(mean_field.tau)
    )
    for bound in (
        mean_field.posterior.mean_field_elbo(mean_field),
        mean_field.posterior.hard_elbo(mean_field),
        mean_field.elbo(),
    ):
        np.testing.assert_allclose(bound, expected, rtol=1e-10)


# --- the relaxed bound ---------------------------------------------------------------------------


def test_relaxed_objective_tends_to_the_mean_field_bound() -> None:
    """Within four standard errors of 20,000 draws at lambda = 0.001, and far off at lambda = 1."""
    posterior = RelaxedPosterior(num_samples=20_000)
    model = LKM(table(6, 2), kernels(2), posterior=posterior, noise_variance=0.3)
    posterior.logits.assign(np.array([[0.4, -1.0], [1.5, 0.2]]))
    exact = posterior.mean_field_elbo(model).numpy()

    rows, nu = all_rows(2), model.probabilities().numpy()
    weights = np.prod(np.where(rows[None] == 1.0, nu[:, None], 1.0 - nu[:, None]), axis=-1)
    values = model.configuration_log_likelihood(rows).numpy()
    mean = np.sum(weights * values, axis=1, keepdims=True)
    standard_error = np.sqrt(np.sum(weights * (values - mean) ** 2) / posterior.num_samples)

    gaps = {}
    for temperature in (1.0, 0.1, 0.001):
        posterior.temperature.assign(temperature)
        gaps[temperature] = abs(model.elbo(seed=0).numpy() - exact)
    assert gaps[0.001] < 4.0 * standard_error
    assert gaps[0.001] < gaps[0.1] < gaps[1.0]
    assert gaps[1.0] > 10.0 * standard_error
    assert abs(posterior.hard_elbo(model, seed=0).numpy() - exact) < 4.0 * standard_error


# --- components ----------------------------------------------------------------------------------


def dense_components(
    X: Array, x: Array, noise: float, z: Array, Xnew: Array
) -> tuple[Array, Array]:
    """Condition the joint Gaussian of (f_1, ..., f_K, x) on the observed part of x."""
    K, M, seen = len(z), len(Xnew), ~np.isnan(x)
    cross = numpy_covariances(Xnew, X[seen], K) * z[:, None, None]
    prior = numpy_covariances(Xnew, Xnew, K) * z[:, None, None]
    joint = np.zeros((K * M, K * M))
    for k in range(K):
        joint[k * M : (k + 1) * M, k * M : (k + 1) * M] = prior[k]
    to_data = cross.reshape(K * M, -1)
    V = np.tensordot(z, numpy_covariances(X[seen], X[seen], K), 1) + noise * np.eye(seen.sum())
    mean = to_data @ np.linalg.solve(V, x[seen])
    covariance = joint - to_data @ np.linalg.solve(V, to_data.T)
    return mean.reshape(K, M), covariance


@pytest.mark.parametrize("missing", [0.0, 0.2])
@pytest.mark.parametrize("posterior", ["given Z", "relaxed", "enumerated"])
def test_predictions_are_mixtures_of_dense_joint_gaussians(posterior: str, missing: float) -> None:
    """Over the posterior, or for one Z."""
    (X, Y), noise, Z = table(6, 2, missing), np.array([0.1, 0.3]), None
    if posterior == "given Z":
        posterior, Z = "relaxed", np.array([[1.0, 1.0], [1.0, 0.0]])
    model = LKM((X, Y), kernels(2), posterior=posterior, noise_variance=noise)
    Xnew = np.linspace(-1.0, 8.0, 5)[:, None]
    mean, variance = model.predict_f(Xnew, Z=Z)
    _, covariance = model.predict_f(Xnew, full_cov=True, Z=Z)
    parts, part_variances = model.predict_components(Xnew, Z=Z)
    if Z is None:
        series, rows, weights = (part.numpy() for part in model.posterior.configurations(model))
        assert np.bincount(series).min() > 1
    else:
        series, rows, weights = np.arange(2), Z, np.ones(2)
        np.testing.assert_array_equal(parts[1, :, 1], 0.0)
        np.testing.assert_array_equal(part_variances[1, :, 1], 0.0)
    for n in range(2):
        w = weights[series == n]
        dense = [dense_components(X, Y[:, n], noise[n], z, Xnew) for z in rows[series == n]]
        means = np.stack([m for m, _ in dense])  # [P, K, M]
        variances = np.stack([np.diag(v).reshape(2, -1) for _, v in dense])
        overall = np.einsum("p,pkm->km", w, means)
        spread = np.einsum("p,pkm->km", w, variances + (means - overall) ** 2)
        np.testing.assert_allclose(parts[:, :, n], overall, atol=1e-8)
        np.testing.assert_allclose(part_variances[:, :, n], spread, atol=1e-8)
        whole = np.stack([v.reshape(2, 5, 2, 5).sum(axis=(0, 2)) for _, v in dense])
        deviation = means.sum(axis=1) - overall.sum(axis=0)
        expected = np.einsum("p,pij->ij", w, whole + deviation[:, :, None] * deviation[:, None, :])
        np.testing.assert_allclose(covariance[n], expected, atol=1e-8)
        np.testing.assert_allclose(variance[:, n], np.diag(expected), atol=1e-8)
    np.testing.assert_allclose(tf.reduce_sum(parts, axis=0), mean, atol=1e-8)

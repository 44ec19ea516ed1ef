"""The sparse bound: below the exact one, equal to it in the limit, GPflow's SGPR for one series."""

from __future__ import annotations

from itertools import product

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from gpflow.inducing_variables import InducingPoints
from gpflow.kernels import Kernel
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import multivariate_normal

import lkm_gpflow as lkm
from lkm_gpflow.kernels.component import to_kernel
from lkm_gpflow.model.sparse import SparseLKM, place_inducing

Array = NDArray[np.float64]

TEXTS = (
    "1.0 x SE(lengthscale=0.2)",
    "0.5 x PER(period=0.15, lengthscale=1.0)",
    "0.7 x LIN(location=0.4)",
    "0.6 x PER(period=0.2, lengthscale=1.5) x SE(lengthscale=0.5)",
)
ROWS = np.array(list(product((0.0, 1.0), repeat=len(TEXTS))))
XNEW = np.linspace(-0.1, 1.2, 9)[:, None]


def kernels(texts: tuple[str, ...] = TEXTS) -> list[Kernel]:
    return [to_kernel(lkm.parse(text)) for text in texts]


def table(
    num_points: int = 40, num_series: int = 3, missing: float = 0.0, seed: int = 0
) -> tuple[Array, Array]:
    """Sums of some of the components and noise, at even times, some values missing."""
    rng = np.random.default_rng(seed)
    X = np.linspace(0.0, 1.0, num_points)[:, None]
    Y = 0.3 * rng.normal(size=(num_points, num_series))
    for k, kernel in enumerate(kernels()):
        C = kernel(X).numpy() + 1e-9 * np.eye(num_points)
        draws = np.linalg.cholesky(C) @ rng.normal(size=(num_points, num_series))
        Y += draws * (np.arange(num_series) % len(TEXTS) != k)
    Y[rng.random(Y.shape) < missing] = np.nan
    return X, Y


def both(
    num_points: int = 40, missing: float = 0.0, inducing: object = 30, posterior: str = "enumerated"
) -> tuple[SparseLKM, lkm.LKM]:
    data, noise = table(num_points, missing=missing), np.array([0.1, 0.05, 0.2])
    shared = {"posterior": posterior, "noise_variance": noise}
    sparse = SparseLKM(data, kernels(), inducing=inducing, **shared)  # type: ignore[arg-type]
    return sparse, lkm.LKM(data, kernels(), **shared)  # type: ignore[arg-type]


def value_and_gradient(model: lkm.LKM, seed: int = 0) -> tuple[Array, list[Array]]:
    with tf.GradientTape() as tape:
        value = model.elbo(seed)
    return value.numpy(), [g.numpy() for g in tape.gradient(value, model.trainable_variables)]


# --- what it is ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text", [*TEXTS, "2.0 x RW(start=-0.02)", "1.0 x IOU(lengthscale=0.1, start=-0.02)"]
)
def test_one_series_of_one_component_is_gpflows_sgpr(text: str) -> None:
    X, Y = table(num_series=1)
    (kernel,), Z = kernels((text,)), np.linspace(0.01, 0.97, 8)[:, None]
    if "LIN" in text:
        Z = Z[:1]
    model = SparseLKM((X, Y), [kernel], inducing=Z, noise_variance=0.2)
    jitter = 1e-8 * float(np.mean(kernel(Z, full_cov=False)))
    with gpflow.config.as_context(gpflow.config.Config(jitter=jitter)):
        sgpr = gpflow.models.SGPR((X, Y), kernel, InducingPoints(Z), noise_variance=0.2)
        on = np.ones((1, 1))
        np.testing.assert_allclose(model.log_likelihood(on)[0], sgpr.elbo(), rtol=1e-6)
        np.testing.assert_allclose(model.upper_bound(on)[0], sgpr.upper_bound(), rtol=1e-6)
        for full_cov in (False, True):
            expected = sgpr.predict_f(XNEW, full_cov=full_cov)
            for ours, theirs in zip(model.predict_f(XNEW, full_cov, Z=on), expected, strict=True):
                np.testing.assert_allclose(ours, theirs, atol=1e-6)


@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_both_routes_are_the_formula(missing: float) -> None:
    """log N(x | 0, sum_k z_k Q_k + sigma^2 I) - sum_k z_k tr(C_k - Q_k) / 2 sigma^2, by SciPy."""
    model, _ = both(missing=missing, inducing=18)
    X, Y = (part.numpy() for part in model.data)

    Q, lost = [], []
    for kernel, points in zip(model.kernels, model.inducing_variables, strict=True):
        U = points.Z.numpy()
        K_uu, K_uf = kernel(U).numpy(), kernel(U, X).numpy()
        K_uu += 1e-8 * np.mean(np.diag(K_uu)) * np.eye(len(U))
        Q.append(K_uf.T @ np.linalg.solve(K_uu, K_uf))
        lost.append(kernel(X, full_cov=False).numpy() - np.diag(Q[-1]))

    def expected(Z: Array) -> Array:
        values = []
        for x, noise, z in zip(Y.T, model.noise_variance.numpy(), Z, strict=True):
            seen = ~np.isnan(x)
            V = np.tensordot(z, Q, axes=1)[np.ix_(seen, seen)] + noise * np.eye(seen.sum())
            trace = np.sum((z @ np.array(lost))[seen])
            values.append(multivariate_normal.logpdf(x[seen], cov=V) - 0.5 * trace / noise)
        return np.array(values)

    by_row = np.stack([expected(np.tile(t, (3, 1))) for t in ROWS])
    np.testing.assert_allclose(
        model.configuration_log_likelihood(ROWS).numpy().T, by_row, rtol=1e-7
    )
    by_cholesky = model.log_likelihood(np.tile(ROWS[:, None, :], (1, 3, 1)))
    np.testing.assert_allclose(by_cholesky, by_row, rtol=1e-7)
    real = np.random.default_rng(1).uniform(0.0, 2.0, size=(3, len(TEXTS)))
    np.testing.assert_allclose(model.log_likelihood(real), expected(real), rtol=1e-7)


@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_inducing_inputs_at_all_inputs_give_the_exact_model(missing: float) -> None:
    sparse, exact = both(missing=missing, inducing=np.linspace(0.0, 1.0, 40)[:, None])
    np.testing.assert_allclose(sparse.elbo(), exact.elbo(), rtol=1e-6)
    np.testing.assert_allclose(sparse.probabilities(), exact.probabilities(), atol=1e-6)
    np.testing.assert_allclose(sparse.bic(), exact.bic(), rtol=1e-6)
    Z = np.random.default_rng(0).uniform(0.0, 1.0, (5, 3, 4))
    np.testing.assert_allclose(sparse.log_likelihood(Z), exact.log_likelihood(Z), rtol=1e-6)
    for full_cov in (False, True):
        found, expected = (model.predict_f(XNEW, full_cov) for model in (sparse, exact))
        for ours, theirs in zip(found, expected, strict=True):
            np.testing.assert_allclose(ours, theirs, atol=1e-4)
    for ours, theirs in zip(
        sparse.predict_components(XNEW), exact.predict_components(XNEW), strict=True
    ):
        np.testing.assert_allclose(ours, theirs, atol=1e-4)


# --- a bound -------------------------------------------------------------------------------------

positive = st.floats(0.03, 3.0)


@settings(max_examples=8, deadline=None)
@given(
    variances=st.lists(positive, min_size=4, max_size=4),
    lengthscale=st.floats(0.02, 2.0),
    period=st.floats(0.05, 0.6),
    noise=st.floats(1e-3, 1.0),
    count=st.integers(4, 40),
    missing=st.sampled_from([0.0, 0.3]),
    seed=st.integers(0, 100),
)
def test_exact_values_lie_between_the_bounds(
    variances: list[float],
    lengthscale: float,
    period: float,
    noise: float,
    count: int,
    missing: float,
    seed: int,
) -> None:
    data = table(25, 2, missing, seed)
    components = kernels()
    for component, variance in zip(components, variances, strict=True):
        component.variance.assign(variance)
    components[0].factors[0].lengthscale.assign(lengthscale)
    components[1].factors[0].period.assign(period)
    sparse = SparseLKM(data, components, inducing=count, noise_variance=noise)
    exact = lkm.LKM(data, components, noise_variance=noise)
    lower, value = (model.configuration_log_likelihood(ROWS).numpy() for model in (sparse, exact))
    upper = sparse.upper_bound(np.tile(ROWS[:, None, :], (1, 2, 1))).numpy().T
    slack = 1e-6 * (1.0 + np.abs(value))
    assert np.all(lower <= value + slack)
    assert np.all(value <= upper + slack)
    assert np.all(sparse.trace_term(np.ones((2, 4))) >= -1e-6)


@pytest.mark.slow
def test_200_inducing_variables_are_enough_for_1000_points() -> None:
    data, noise = table(1000, 4, seed=3), 0.09
    shared = {"posterior": "enumerated", "noise_variance": noise}
    sparse = SparseLKM(data, kernels(), inducing=200, **shared)  # type: ignore[arg-type]
    exact = lkm.LKM(data, kernels(), **shared)  # type: ignore[arg-type]
    assert sum(len(points.Z.numpy()) for points in sparse.inducing_variables) <= 200
    value, bound = float(exact.elbo()), float(sparse.elbo())
    assert bound <= value
    np.testing.assert_allclose(bound, value, rtol=0.01)
    # The promise is one percent; what it does is far better, or something is wrong.
    assert value - bound < 0.1
    Z = sparse.assignment()
    for ours, theirs in zip(sparse.predict_y(XNEW, Z=Z), exact.predict_y(XNEW, Z=Z), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=0.02)
    few = SparseLKM(data, kernels(), inducing=12, **shared)  # type: ignore[arg-type]
    assert few.elbo() < bound - 100.0
    assert np.sum(few.trace_term()) > 100.0 * np.sum(sparse.trace_term())


# --- how it is computed --------------------------------------------------------------------------


@pytest.mark.parametrize("posterior", ["enumerated", "relaxed"])
@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_gradient_is_that_of_finite_differences(posterior: str, missing: float) -> None:
    model, _ = both(missing=missing, inducing=25, posterior=posterior)
    gpflow.set_trainable(model.inducing_variables[0], True)
    variables = model.trainable_variables
    assert any(v is model.inducing_variables[0].Z.unconstrained_variable for v in variables)
    with tf.GradientTape() as tape:
        value = model.elbo(7)
    gradients = tape.gradient(value, variables)
    rng, step = np.random.default_rng(0), 1e-5
    for variable, gradient in zip(variables, gradients, strict=True):
        before = variable.numpy()
        direction = rng.normal(size=before.shape)
        sides = []
        for sign in (1.0, -1.0):
            variable.assign(before + sign * step * direction)
            sides.append(float(model.elbo(7)))
        variable.assign(before)
        expected = (sides[0] - sides[1]) / (2.0 * step)
        np.testing.assert_allclose(
            np.sum(gradient * direction), expected, rtol=1e-4, atol=1e-4, err_msg=variable.name
        )


@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_chunks_do_not_matter(missing: float) -> None:
    model, _ = both(missing=missing)
    whole, gradients = value_and_gradient(model)
    for rows in (7, 39):
        model.chunk_size = rows * sum(len(points.Z.numpy()) for points in model.inducing_variables)
        value, again = value_and_gradient(model)
        np.testing.assert_allclose(value, whole, rtol=1e-10)
        for one, other in zip(again, gradients, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("given_Z", [False, True])
def test_components_add_up(given_Z: bool) -> None:
    model, _ = both(missing=0.2, inducing=12)
    Z = np.array([[1.0, 0.0, 1.0, 0.0], [0.3, 0.5, 0.0, 1.0], [0.0] * 4]) if given_Z else None
    mean, variance = model.predict_components(XNEW, Z=Z)
    whole, _ = model.predict_f(XNEW, Z=Z)
    np.testing.assert_allclose(tf.reduce_sum(mean, axis=0), whole, atol=1e-10)
    assert np.all(variance.numpy() >= 0.0)
    if Z is not None:
        np.testing.assert_allclose(mean.numpy()[:, :, 2], 0.0, atol=1e-30)
        np.testing.assert_allclose(variance.numpy()[1, :, 0], 0.0, atol=1e-30)
        prior = model.kernels[0](XNEW, full_cov=False)
        assert np.all(variance.numpy()[0, :, 0] < prior)


# --- where inducing inputs go --------------------------------------------------------------------


def test_inducing_variables_go_where_they_pay() -> None:
    X = np.linspace(0.0, 1.0, 200)[:, None]
    texts = ("1.0 x SE(lengthscale=0.5)", "1.0 x SE(lengthscale=0.03)", "1.0 x LIN(location=0.5)")
    few, many, one = (
        len(p.Z.numpy()) for p in place_inducing(kernels(texts), X, 120, np.full(3, 10.0))
    )
    assert one == 1
    assert 3 < few < 20 < many < 100
    assert [len(p.Z.numpy()) for p in place_inducing(kernels(texts), X, 3, np.ones(3))] == [1, 1, 1]
    placed = place_inducing(kernels(texts), X, 40, np.full(3, 10.0))
    assert sum(len(p.Z.numpy()) for p in placed) == 40
    assert not any(p.trainable_variables for p in placed)


def test_wrong_inducing_inputs_are_refused() -> None:
    data = table()
    with pytest.raises(ValueError, match="expected at least 4, one for each component, got 3"):
        SparseLKM(data, kernels(), inducing=3)
    with pytest.raises(ValueError, match=r"one InducingPoints for each of 4 components, got 1"):
        SparseLKM(data, kernels(), inducing=[InducingPoints(XNEW)])
    for wrong in ((5, 2), (0, 1)):
        with pytest.raises(ValueError, match=r"inducing\[0\]: .* at least one row and 1 column"):
            SparseLKM(data, kernels(), inducing=np.zeros(wrong))


def test_a_constructor_that_fails_leaves_the_posterior_free() -> None:
    data, posterior = table(), lkm.EnumeratedPosterior()
    for wrong in (3, np.zeros((5, 2)), [InducingPoints(XNEW)]):
        with pytest.raises(ValueError, match="inducing"):
            SparseLKM(data, kernels(), posterior=posterior, inducing=wrong)
    assert np.isfinite(SparseLKM(data, kernels(), posterior=posterior, inducing=8).elbo())


def test_covariances_of_a_subclass_are_refused() -> None:
    class Warped(SparseLKM):
        def component_covariances(self, X: tf.Tensor, X2: tf.Tensor | None = None) -> tf.Tensor:
            return 2.0 * super().component_covariances(X, X2)

    with pytest.raises(ValueError, match="Warped: expected component_covariances of LKM"):
        Warped(table(), kernels())

"""Gaussian process regression networks: the bound, its updates and the predictions."""

from __future__ import annotations

import gpflow
import numpy as np
import pandas as pd
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp
from scipy.stats import multivariate_normal
from walks import accuracy

from lkm_gpflow.comparators.gprn import GPRN, GPRegressionNetwork, NetworkMoments, SiteFactor
from lkm_gpflow.comparators.lbfgs import MultiStart
from lkm_gpflow.comparators.naive import LastValue
from lkm_gpflow.gp.types import Floats

SE = gpflow.kernels.SquaredExponential


def network(num_nodes: int = 2, num_inputs: int = 12) -> GPRN:
    """A network with random data and a random state, of three series; the first has gaps."""
    rng = np.random.default_rng(num_nodes)
    X = np.sort(rng.uniform(size=(num_inputs, 1)), axis=0)
    Y = rng.normal(size=(num_inputs, 3))
    Y[1:3, 0] = np.nan
    kernels = [SE(0.8 + k, 0.1 + 0.2 * k) + gpflow.kernels.White(0.02) for k in range(num_nodes)]
    weight = SE(1.2, 0.4) + gpflow.kernels.White(0.01)
    model = GPRN((X, Y), kernels, weight, noise_variance=[0.1, 0.2, 0.3])
    model.node_mean.assign(rng.normal(size=model.node_mean.shape))
    model.node_variance.assign(rng.uniform(0.1, 1.0, size=model.node_variance.shape))
    model.weight_mean.assign(rng.normal(size=model.weight_mean.shape))
    return model


def dense(K: Floats, factor: SiteFactor) -> tuple[Floats, Floats]:
    """Mean and covariance of a factor, by inverses."""
    S = np.linalg.inv(np.linalg.inv(K) + np.diag(np.asarray(factor.precision)))
    return S @ np.asarray(factor.linear), S


@settings(deadline=None, max_examples=25)
@given(
    lengthscale=st.floats(0.02, 1.0),
    variance=st.floats(0.05, 5.0),
    scale=st.sampled_from([0.0, 1.0, 1e4]),
)
def test_factor_is_the_dense_gaussian(lengthscale: float, variance: float, scale: float) -> None:
    """Moments by inverses, the divergence by GPflow, predictions by conditioning; batch of two."""
    rng = np.random.default_rng(3)
    X, Xnew = np.linspace(0, 1, 7)[:, None], rng.uniform(-0.2, 1.5, size=(4, 1))
    kernel = SE(variance, lengthscale) + gpflow.kernels.White(0.01)
    K, cross = kernel(X).numpy(), kernel(X, Xnew).numpy()
    precision = scale * rng.uniform(size=(2, 7)) * np.array([1, 1, 0, 1, 0, 1, 1.0])
    factor = SiteFactor.of(K, precision, precision * rng.normal(size=(2, 7)))
    predicted = factor.predict(kernel, tf.constant(X), tf.constant(Xnew))
    assert np.all(factor.moments.variance > 0.0)
    for i in range(2):
        part = SiteFactor(precision[i], factor.linear[i], factor.moments, factor.log_determinant)
        m, S = dense(K, part)
        np.testing.assert_allclose(factor.moments.mean[i], m, atol=1e-7)
        np.testing.assert_allclose(factor.moments.variance[i], np.diag(S), rtol=1e-6)
        divergence = gpflow.kullback_leiblers.gauss_kl(
            m[:, None], np.linalg.cholesky(S)[None], K[None]
        )
        np.testing.assert_allclose(factor.divergence[i], divergence, atol=1e-6)
        B = np.linalg.solve(K, cross)
        np.testing.assert_allclose(predicted.mean[i], B.T @ m, atol=1e-6)
        conditional = kernel(Xnew).numpy() - B.T @ cross
        np.testing.assert_allclose(
            predicted.variance[i], np.diag(conditional + B.T @ S @ B), atol=1e-6
        )


def known_weights(model: GPRN, W: Floats) -> list[NetworkMoments]:
    return [NetworkMoments(tf.constant(w), tf.zeros_like(w)) for w in W]


def log_evidence_given_weights(model: GPRN, W: Floats) -> float:
    """log p(y | W), W [K, N, D]: cells (n, t) and (m, s) covary by sum_k W_nkt W_mks k_k(t, s)."""
    X, Y = (part.numpy() for part in model.data)
    K, N, D = W.shape
    V = np.zeros((N * D, N * D))
    for kernel, w in zip(model.node_kernels, W, strict=True):
        V += np.outer(w, w) * np.tile(kernel(X).numpy(), (N, N))
    V += np.diag(np.repeat(model.noise_variance.numpy(), D))
    y = Y.T.ravel()
    seen = np.isfinite(y)
    return float(multivariate_normal.logpdf(y[seen], cov=V[np.ix_(seen, seen)]))


def bound_given_weights(model: GPRN, W: Floats, sweeps: int) -> float:
    """The bound less the divergence of the weights, after updates of the nodes alone."""
    y = np.nan_to_num(model.data[1].numpy().T)
    moments = known_weights(model, W)
    means = np.zeros((len(W), W.shape[2]))
    for _ in range(sweeps):
        nodes = []
        for k in range(len(W)):
            others = sum(W[j] * means[j] for j in range(len(W)) if j != k)
            nodes.append(model.node_factor(k, moments[k], tf.constant(y - others)))
            means[k] = nodes[k].moments.mean
    likelihood = model.expected_log_likelihood([node.moments for node in nodes], moments)
    return float(likelihood - sum(node.divergence for node in nodes))


def test_bound_given_the_weights_of_two_nodes() -> None:
    """Below the evidence where nodes share series; where they do not all is Gaussian, and exact."""
    model = network(2)
    W = np.random.default_rng(0).normal(size=(2, 3, 12))
    exact = log_evidence_given_weights(model, W)
    assert exact - 20.0 < bound_given_weights(model, W, sweeps=15) < exact - 0.1
    W[0, 0] = W[1, 1:] = 0.0
    exact = log_evidence_given_weights(model, W)
    assert bound_given_weights(model, W, sweeps=2) == pytest.approx(exact, abs=1e-8)


def log_evidence_by_quadrature(model: GPRN) -> float:
    """Log evidence of one node on two inputs: Gauss-Hermite over f, Gaussian in y given f."""
    X, Y = (part.numpy() for part in model.data)
    points, weights = np.polynomial.hermite_e.hermegauss(100)
    total = np.log(np.outer(weights, weights) / (2.0 * np.pi))
    grid = np.stack(np.meshgrid(points, points, indexing="ij"), axis=-1)
    f = grid @ np.linalg.cholesky(model.node_kernels[0](X).numpy()).T
    K_weight = model.weight_kernel(X).numpy()
    for y, noise in zip(Y.T, model.noise_variance.numpy(), strict=True):
        seen = np.isfinite(y)
        K = K_weight[np.ix_(seen, seen)]
        V = f[..., seen, None] * K * f[..., None, seen] + noise * np.eye(seen.sum())
        quadratic = np.einsum("...i,...ij,...j", y[seen], np.linalg.inv(V), y[seen])
        total += -0.5 * (quadratic + np.log(np.linalg.det(2.0 * np.pi * V)))
    return float(logsumexp(total))


@pytest.mark.parametrize("gap", [False, True])
def test_bound_is_below_the_evidence(gap: bool) -> None:
    """Two times, two series, one node; close to the evidence where there is much noise."""
    Y = np.array([[1.0, -0.4], [0.7, np.nan if gap else 0.3]])
    X = np.array([[0.0], [0.3]])
    model = GPRN((X, Y), [SE(1.0, 0.5)], SE(1.0, 0.8))
    update = tf.function(model.update, autograph=False)
    gaps = []
    for noise in (0.1, 20.0):
        model.noise_variance.assign([noise, noise])
        model.node_mean.assign(np.ones((1, 2)))
        for _ in range(300):
            bound = float(update())
        gaps.append(log_evidence_by_quadrature(model) - bound)
    assert 0.05 < gaps[0] < 3.0
    assert 0.0 < gaps[1] < 0.05


@pytest.mark.parametrize("num_nodes", [1, 3])
def test_updates_raise_the_bound(num_nodes: int) -> None:
    model = network(num_nodes)
    update = tf.function(model.update, autograph=False)
    bounds = np.array([float(update()) for _ in range(60)])
    assert np.all(np.diff(bounds) >= -1e-9)
    assert bounds[-1] > bounds[0] + 0.1
    assert float(model.elbo()) >= bounds[-1]


@pytest.mark.parametrize("num_nodes", [1, 2])
def test_gradient_is_that_of_finite_differences(num_nodes: int) -> None:
    model = network(num_nodes, num_inputs=6)
    learner = MultiStart(model)
    values = learner.values
    _, gradient = learner._evaluate(values)
    for i in np.random.default_rng(0).permutation(len(values))[:25]:
        sides = []
        for change in (1e-5, -1e-5):
            changed = values + change * np.eye(len(values))[i]
            sides.append(float(learner._evaluate(changed)[0]))
        assert gradient[i] == pytest.approx((sides[0] - sides[1]) / 2e-5, rel=1e-5, abs=1e-6)


def test_predictions_are_the_moments_of_draws() -> None:
    """Draws of nodes and weights from q, by dense conditionals, multiplied and added."""
    model = network(2)
    Xnew = np.array([[0.1], [0.5], [1.3]])
    X = model.data[0].numpy()
    rng = np.random.default_rng(2)
    count = 200_000

    def draw(kernel: gpflow.kernels.Kernel, factor: SiteFactor) -> Floats:
        m, S = dense(kernel(X).numpy(), factor)
        B = np.linalg.solve(kernel(X).numpy(), kernel(X, Xnew).numpy())
        conditional = kernel(Xnew).numpy() - B.T @ kernel(X, Xnew).numpy()
        return rng.multivariate_normal(B.T @ m, conditional + B.T @ S @ B, size=count)

    nodes, weights = model.posterior()
    mean, variance = model.predict_y(Xnew)
    for n, noise in enumerate(model.noise_variance.numpy()):
        y = np.sqrt(noise) * rng.normal(size=(count, 3))
        for kernel, node, weight in zip(model.node_kernels, nodes, weights, strict=True):
            one = SiteFactor(
                weight.precision[n].numpy(), weight.linear[n].numpy(), weight.moments, tf.zeros([])
            )
            y += draw(model.weight_kernel, one) * draw(kernel, node)
        np.testing.assert_allclose(mean[:, n], y.mean(axis=0), atol=0.02)
        np.testing.assert_allclose(variance[:, n], y.var(axis=0), rtol=0.03)


def planted() -> pd.DataFrame:
    """Six series from a network of one node; the weights change slowly, the node waves."""
    rng = np.random.default_rng(5)
    t = np.arange(100.0)[:, None]
    jitter = 1e-8 * np.eye(100)
    f = rng.multivariate_normal(np.zeros(100), SE(1.0, 6.0)(t) + jitter)
    W = rng.multivariate_normal(np.zeros(100), SE(1.0, 150.0)(t) + jitter, size=6)
    return pd.DataFrame((W * f).T + 0.05 * rng.normal(size=(100, 6)), columns=list("abcdef"))


@pytest.mark.slow
def test_planted_data_beat_the_last_value() -> None:
    """Four of six series are forecast; the two that go on tell what the node does.

    The last row holds the others, so that the forecast's times are inside the table.
    """
    frame = planted()
    times = frame.index[85:99]
    hidden = list("abcd")
    train = frame.copy()
    train.loc[times, hidden] = np.nan
    method = GPRegressionNetwork(num_nodes=(1, 2), restarts=2, max_iterations=60)
    test = frame.loc[times, hidden]
    rmse, mnlp = accuracy(method.fit(train, seed=0), test)
    naive_rmse, naive_mnlp = accuracy(LastValue().fit(train.iloc[:85], seed=0), test)
    assert rmse < 0.3 * naive_rmse
    assert mnlp < naive_mnlp - 1.0


def test_bad_noise_is_refused() -> None:
    with pytest.raises(ValueError, match="noise_variance: expected a number or 3 numbers"):
        GPRN(network().data, [SE()], SE(), noise_variance=0.0)

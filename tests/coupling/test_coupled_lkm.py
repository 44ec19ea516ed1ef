"""The coupled model, against brute force, plain linear algebra, and `LKM`."""

from __future__ import annotations

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from scipy.stats import multivariate_normal

from lkm_gpflow.coupling.coupled_lkm import CoupledLKM
from lkm_gpflow.model.lkm import LKM

X = np.linspace(0.0, 1.0, 9)[:, None]
XNEW = np.array([[0.5], [1.1], [1.3]])  # 0.5 is among the times of the data
Z = np.array([[1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])
HEIGHTS = np.array([[0.5, 1.0], [2.0, 0.7], [1.0, 1.5]])
NOISE = np.array([0.1, 0.3, 0.2])


def kernels() -> list[gpflow.kernels.Kernel]:
    return [
        gpflow.kernels.SquaredExponential(lengthscales=0.2),
        gpflow.kernels.Matern12(lengthscales=0.5),
    ]


def table() -> np.ndarray:
    Y = np.random.default_rng(0).normal(size=(9, 3))
    Y[4, 0] = Y[2:6, 2] = np.nan
    return Y


def loadings() -> np.ndarray:
    w = np.random.default_rng(1).normal(size=(3, 3, 2))
    return 0.9 * w / np.linalg.norm(w, axis=-1, keepdims=True)


def model(w: np.ndarray | None = None) -> CoupledLKM:
    return CoupledLKM((X, table()), kernels(), Z, heights=HEIGHTS, noise_variance=NOISE, loadings=w)


def covariance_by_hand(cells: list[tuple[int, float, int]], w: np.ndarray) -> np.ndarray:
    """Of new observations of cells (series, time, number of the observation)."""

    def k(i: int, s: float, t: float) -> float:
        return float(np.exp(-0.5 * (s - t) ** 2 / 0.2**2) if i == 0 else np.exp(-abs(s - t) / 0.5))

    def one(a: tuple[int, float, int], b: tuple[int, float, int]) -> float:
        (n, s, i), (m, t, j) = a, b
        total = 0.0
        for c in range(2):
            R = 1.0 if n == m else w[c, n] @ w[c, m]
            total += np.sqrt(Z[n, c] * HEIGHTS[n, c] * Z[m, c] * HEIGHTS[m, c]) * R * k(c, s, t)
        if s == t:
            R = 1.0 if n == m and i == j else w[2, n] @ w[2, m]
            total += np.sqrt(NOISE[n] * NOISE[m]) * R
        return float(total)

    return np.array([[one(a, b) for b in cells] for a in cells])


def observed() -> tuple[list[tuple[int, float, int]], np.ndarray]:
    Y = table()
    cells = [(n, float(X[d, 0]), 0) for n in range(3) for d in range(9) if np.isfinite(Y[d, n])]
    return cells, Y.T[np.isfinite(Y.T)]


def test_covariance_and_likelihood_by_brute_force() -> None:
    w = loadings()
    cells, y = observed()
    V = covariance_by_hand(cells, w)
    np.testing.assert_allclose(model(w).covariance(), V, atol=1e-12)
    expected = multivariate_normal(np.zeros(len(y)), V).logpdf(y)
    np.testing.assert_allclose(model(w).log_likelihood(), expected, rtol=1e-8)
    R = model(w).correlations().numpy()
    np.testing.assert_allclose(np.diagonal(R, axis1=1, axis2=2), 1.0)
    assert np.linalg.eigvalsh(R).min() > 0.0


def test_conditionals_by_plain_linear_algebra() -> None:
    w = loadings()
    cells, y = observed()
    new = [(n, float(t), 1) for t in XNEW[:, 0] for n in range(3)]
    V = covariance_by_hand(cells + new, w)
    M = len(cells)
    gain = V[M:, :M] @ np.linalg.inv(V[:M, :M])
    mean, covariance = gain @ y, V[M:, M:] - gain @ V[:M, M:]
    coupled = model(w)
    told, whole = coupled.predict_y(XNEW, full_cov=True, full_output_cov=True)
    np.testing.assert_allclose(np.ravel(told), mean, atol=1e-10)
    np.testing.assert_allclose(np.reshape(whole, (9, 9)), covariance, atol=1e-10)
    whole = np.asarray(whole)
    for over_time, over_series, subscripts in [
        (True, False, "tnsn->nts"), (False, True, "tntm->tnm"), (False, False, "tntn->tn"),
    ]:  # fmt: skip
        _, part = coupled.predict_y(XNEW, full_cov=over_time, full_output_cov=over_series)
        np.testing.assert_allclose(part, np.einsum(subscripts, whole), atol=1e-12)


def test_without_correlations_it_is_the_latent_kernel_model() -> None:
    plain = LKM((X, table()), kernels(), noise_variance=NOISE, amplitudes="component")
    plain.heights.assign(HEIGHTS)
    coupled = model()
    np.testing.assert_allclose(
        coupled.log_likelihood(), tf.reduce_sum(plain.log_likelihood(Z)), rtol=1e-10
    )
    for predict in ("predict_f", "predict_y"):
        told, expected = getattr(coupled, predict)(XNEW), getattr(plain, predict)(XNEW, Z=Z)
        np.testing.assert_allclose(told[0], expected[0], atol=1e-10)
        np.testing.assert_allclose(told[1], expected[1], atol=1e-10)
    _, over_time = coupled.predict_f(XNEW, full_cov=True)
    np.testing.assert_allclose(over_time, plain.predict_f(XNEW, full_cov=True, Z=Z)[1], atol=1e-10)


def test_two_observations_at_one_time() -> None:
    """Their noises differ: without correlations as in LKM, with them by brute force."""
    twice = np.array([[0.0], [0.1], [0.1], [0.2], [0.5]])
    Y, w = np.random.default_rng(2).normal(size=(5, 3)), loadings()
    plain = LKM((twice, Y), kernels(), noise_variance=NOISE)
    alone = CoupledLKM((twice, Y), kernels(), Z, noise_variance=NOISE)
    np.testing.assert_allclose(alone.log_likelihood(), tf.reduce_sum(plain.log_likelihood(Z)))
    new = twice[1:4]
    for told, expected in zip(alone.predict_y(new), plain.predict_y(new, Z=Z), strict=True):
        np.testing.assert_allclose(told, expected, atol=1e-10)
    coupled = CoupledLKM(
        (twice, Y), kernels(), Z, heights=HEIGHTS, noise_variance=NOISE, loadings=w
    )
    cells = [(n, float(t), i) for n in range(3) for i, t in enumerate(twice[:, 0])]
    np.testing.assert_allclose(coupled.covariance(), covariance_by_hand(cells, w), atol=1e-12)
    # Two new observations of one series and time share what their noises have in common.
    _, both = coupled.predict_cells(np.array([0, 0]), np.array([[9.0], [9.0]]))
    _, f = coupled.predict_cells(np.array([0, 0]), np.array([[9.0], [9.0]]), noise=False)
    shared = NOISE[0] * np.sum(w[2, 0] ** 2)
    np.testing.assert_allclose(both - f, [[NOISE[0], shared], [shared, NOISE[0]]], atol=1e-10)


def test_predictions_are_traced_for_inputs_of_any_number() -> None:
    """As GPflow says how a model is saved."""
    coupled = model(loadings())
    signature = [tf.TensorSpec([None, 1], tf.float64)]
    for predict in (coupled.predict_f, coupled.predict_y):
        traced = tf.function(predict, input_signature=signature)
        for new in (XNEW, XNEW[:1]):
            for told, expected in zip(traced(new), predict(new), strict=True):
                np.testing.assert_allclose(told, expected, atol=1e-12)


def test_it_learns_as_any_gpflow_model() -> None:
    coupled = model(0.3 * loadings())
    before = float(coupled.training_loss())
    closure = coupled.training_loss_closure()
    variables = coupled.trainable_variables
    assert any(v is coupled.u.unconstrained_variable for v in variables)
    gpflow.optimizers.Scipy().minimize(closure, variables, options={"maxiter": 20})
    assert float(coupled.training_loss()) < before - 1.0


def test_wrong_arguments_are_refused() -> None:
    with pytest.raises(ValueError, match=r"Z: expected zeros and ones of shape \(3, 2\)"):
        CoupledLKM((X, table()), kernels(), 0.5 * Z)
    with pytest.raises(ValueError, match=r"loadings: expected an array of shape \(3, 3, R\)"):
        CoupledLKM((X, table()), kernels(), Z, loadings=np.zeros((2, 3, 1)))
    with pytest.raises(ValueError, match=r"below one, given shape \(3, 3, 1\) and lengths up to 2"):
        CoupledLKM((X, table()), kernels(), Z, loadings=np.full((3, 3, 1), 2.0))
    for wrong in (HEIGHTS.T, 0.0 * HEIGHTS, -HEIGHTS, np.inf * HEIGHTS):
        with pytest.raises(ValueError, match=r"heights: expected positive .* shape \(3, 2\)"):
            CoupledLKM((X, table()), kernels(), Z, heights=wrong)
    long = np.linspace(0.0, 1.0, 1200)[:, None]
    with pytest.raises(ValueError, match="at most 3,400 observed values to couple"):
        CoupledLKM((long, np.zeros((1200, 3))), kernels(), Z)

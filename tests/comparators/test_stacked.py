"""Several series as one Gaussian process."""

from __future__ import annotations

import gpflow
import numpy as np
import tensorflow as tf
from small import small_table

from lkm_gpflow.comparators.stacked import StackedGPR, stack, stacked_log_density
from lkm_gpflow.data.tables import Table


def coregional() -> gpflow.kernels.Kernel:
    coregion = gpflow.kernels.Coregion(3, 1, active_dims=[1])
    coregion.W.assign([[1.0], [0.5], [-0.7]])
    coregion.kappa.assign([0.2, 0.3, 0.4])
    return gpflow.kernels.RBF(lengthscales=0.3, active_dims=[0]) * coregion


def model() -> StackedGPR:
    data = stack(Table.of(small_table()).observations)
    stacked = StackedGPR(data, coregional(), 3)
    stacked.likelihood.variance.variance.assign([0.1, 0.2, 0.3])
    return stacked


def joint() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Inputs, values and covariance of the observed cells, series by series, in plain NumPy."""
    frame = small_table()
    standardised = (frame - frame.mean()) / frame.std(ddof=0)
    t = np.linspace(0.0, 1.0, len(frame))
    cells = [(t[i], n, v) for n, c in enumerate(frame) for i, v in enumerate(standardised[c])]
    x, series, y = np.array([cell for cell in cells if np.isfinite(cell[2])]).T
    W = np.array([1.0, 0.5, -0.7])
    B = np.outer(W, W) + np.diag([0.2, 0.3, 0.4])
    s = series.astype(int)
    K = B[np.ix_(s, s)] * np.exp(-0.5 * np.subtract.outer(x, x) ** 2 / 0.3**2)
    return np.column_stack([x, series]), y, K + np.diag(np.array([0.1, 0.2, 0.3])[s])


def test_log_likelihood_is_gpflows() -> None:
    """Value and gradient."""
    own = model()
    plain = gpflow.models.GPR(own.data, own.kernel, likelihood=own.likelihood)
    results = []
    for each in (own, plain):
        with tf.GradientTape() as tape:
            value = each.log_marginal_likelihood()
        results.append([value, *tape.gradient(value, own.trainable_variables)])
    for a, b in zip(*results, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-8)


def test_a_covariance_that_is_not_positive_definite_has_no_density() -> None:
    V = tf.Variable([[1.0, 2.0], [2.0, 1.0]], dtype=tf.float64)
    with tf.GradientTape() as tape:
        value = stacked_log_density(V, tf.zeros(2, tf.float64), tf.zeros(2, tf.float64))
    assert np.isnan(value)
    assert np.isnan(tape.gradient(value, V)).all()


def test_predictions_condition_the_joint_gaussian() -> None:
    inputs, y, V = joint()
    x = np.array([0.13, 1.1])
    mean, variance = model().predict_series(x)
    assert mean.shape == variance.shape == (2, 3)
    kernel = coregional()
    for n in range(3):
        cross = kernel(np.column_stack([x, [n, n]]), inputs).numpy()
        prior = kernel(np.column_stack([x, [n, n]]), full_cov=False).numpy()
        expected = prior - np.einsum("ij,ji->i", cross, np.linalg.solve(V, cross.T))
        np.testing.assert_allclose(mean[:, n], cross @ np.linalg.solve(V, y), atol=1e-8)
        np.testing.assert_allclose(variance[:, n], expected + [0.1, 0.2, 0.3][n], atol=1e-8)

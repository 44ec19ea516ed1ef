"""Base kernels in NumPy against those in TensorFlow: values, and gradients by its tape."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf
from numpy.typing import NDArray

from lkm_gpflow.gp.lags import LagGrid, matrix
from lkm_gpflow.kernels import arrays
from lkm_gpflow.kernels.arrays import evaluate
from lkm_gpflow.kernels.base import KERNELS
from lkm_gpflow.kernels.grammar import BaseKernel, UnknownBaseError, base_kernel

GRIDS = {
    "regular": np.linspace(0.0, 1.0, 12),
    "irregular": np.sort(np.random.default_rng(0).uniform(size=12)),
}
CASES = [
    ("WN", ()), ("C", ()), ("LIN", (0.3,)), ("LIN", (-7.0,)), ("SE", (0.2,)), ("SE", (20.0,)),
    *[("PER", (period, length)) for period in (0.07, 0.31, 0.6) for length in (0.05, 1.3, 1.5, 20)],
    ("RW", (-0.1,)), ("RW", (0.4,)), ("IOU", (0.1, -0.1)), ("IOU", (20.0, -0.01)),
    ("IOU", (0.01, 0.4)), ("OU", (0.2,)), ("OU", (20.0,)),
    *[(name, (0.42, width)) for name in ("UNTIL", "FROM") for width in (0.001, 0.05, 0.5)],
]  # fmt: skip


@pytest.mark.parametrize("use_own", [True, False], ids=["NumPy", "TensorFlow"])
@pytest.mark.parametrize("grid", list(GRIDS))
@pytest.mark.parametrize(("name", "values"), CASES, ids=str)
def test_values_and_gradients_are_tensorflows(
    name: str,
    values: tuple[float, ...],
    grid: str,
    use_own: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if not use_own:  # as for a kernel that a user registered
        monkeypatch.setattr(arrays, "_BUILT_IN", {})
    times = LagGrid(GRIDS[grid])
    kernel, stationary = KERNELS[name], base_kernel(name).stationary
    found, pull = evaluate(kernel.base, times, values)
    learnt = [np.log(v) if kind.positive else v for v, (_, kind) in zip(
        values, base_kernel(name).parameters, strict=True)]  # fmt: skip
    upstream = np.random.default_rng(1).normal(size=found.shape)
    if not stationary:
        upstream = np.tril(upstream)
        lower = matrix(len(times.x))
        lower[...] = upstream
    variables = [tf.Variable(value, dtype=tf.float64) for value in learnt]
    with tf.GradientTape() as tape:
        own = [tf.exp(v) if kind.positive else v for v, (_, kind) in zip(
            variables, base_kernel(name).parameters, strict=True)]  # fmt: skip
        x, x2 = (times.lags[:, None], np.zeros((1, 1))) if stationary else (
            times.x[:, None], times.x[None])  # fmt: skip
        k = kernel.covariance(tf.constant(x), tf.constant(x2), *[v[None, None] for v in own])
        k = tf.broadcast_to(k, (len(x), x2.shape[1]))
        total = tf.reduce_sum(upstream * (k[:, 0] if stationary else k))
    expected = k.numpy()[:, 0] if stationary else k.numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-13)
    slopes = tape.gradient(total, variables, unconnected_gradients="zero")
    scale = np.abs(upstream).sum()
    np.testing.assert_allclose(
        pull(upstream if stationary else lower), slopes, rtol=1e-7, atol=1e-9 * scale
    )


def test_what_is_evaluated_may_not_change_what_others_see() -> None:
    """Walks are remembered."""
    times = LagGrid(GRIDS["regular"])
    before: NDArray[np.float64] = evaluate(base_kernel("RW"), times, (-0.1,))[0].copy()
    evaluate(base_kernel("IOU"), times, (0.2, -0.1))
    np.testing.assert_array_equal(evaluate(base_kernel("RW"), times, (-0.1,))[0], before)


def test_a_worker_that_lacks_the_module_says_so() -> None:
    """A product travels to a worker, the class that was registered in a cell does not."""
    unknown = BaseKernel("NEVER")
    with pytest.raises(UnknownBaseError, match=r"NEVER to be registered in every process.*module"):
        evaluate(unknown, LagGrid(np.linspace(0.0, 1.0, 5)), ())

"""A bank of kernels: the same covariances as kernels of their own, and one trace for all."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from lkm_gpflow.kernels.bank import KernelBank, stacked_covariances
from lkm_gpflow.kernels.component import to_kernel
from lkm_gpflow.kernels.grammar import parse

PRODUCTS = (
    "0.5 x PER(period=0.2, lengthscale=0.7) x SE(lengthscale=0.3)",
    "2.0 x LIN(location=0.4) x LIN(location=0.1) x PER(period=0.4, lengthscale=2.0)",
    "0.3 x RW(start=-0.1)",
    "1.5 x C",
    "0.2 x IOU(lengthscale=0.1, start=-0.1) x SE(lengthscale=2.0)",
    "0.7 x OU(lengthscale=0.3)",
)
X = np.linspace(0.0, 1.0, 9)[:, None]
X2 = np.linspace(-0.5, 2.0, 4)[:, None]


def bank_of(texts: tuple[str, ...]) -> KernelBank:
    bank = KernelBank(len(texts), 3)
    bank.load([parse(text) for text in texts])
    return bank


@pytest.mark.parametrize("other", [None, X2])
def test_covariances_are_those_of_kernels_of_their_own(other: np.ndarray | None) -> None:
    bank = bank_of(PRODUCTS)
    expected = np.stack([to_kernel(parse(text))(X, other) for text in PRODUCTS])
    np.testing.assert_allclose(bank.covariances(X, other), expected, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(stacked_covariances(bank.kernels, X, other), expected, atol=1e-12)
    alone = np.stack([kernel(X, other) for kernel in bank.kernels])
    np.testing.assert_allclose(alone, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("texts", [PRODUCTS, PRODUCTS[2:3], PRODUCTS[3:4]], ids=["all", "RW", "C"])
@pytest.mark.parametrize("times", [np.array([0.0, 0.1, 0.35, 0.35, 0.9, 1.0]), X[::-1, 0]])
def test_times_may_be_irregular_repeated_or_in_any_order(
    texts: tuple[str, ...], times: np.ndarray
) -> None:
    """Known times go by their lags; unknown ones, as in a traced function, pair by pair."""
    bank, column = bank_of(texts), times[:, None]
    expected = np.stack([to_kernel(parse(text))(column) for text in texts])
    np.testing.assert_allclose(bank.covariances(column), expected, rtol=1e-12, atol=1e-12)
    by_pair = tf.function(bank.covariances).get_concrete_function(
        tf.TensorSpec([None, 1], tf.float64)
    )
    np.testing.assert_allclose(by_pair(tf.constant(column)), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("times", [X[:, 0], np.array([0.0, 0.1, 0.35, 0.35, 0.9, 1.0])])
def test_gradients_are_those_of_kernels_of_their_own(times: np.ndarray) -> None:
    bank, column, D = bank_of(PRODUCTS), times[:, None], len(times)
    weights = np.random.default_rng(0).normal(size=(len(PRODUCTS), D, D))
    with tf.GradientTape() as tape:
        value = tf.reduce_sum(weights * bank.covariances(column))
    variables = (
        bank.values.unconstrained_variable, bank.log_variances.unconstrained_variable
    )  # fmt: skip
    values, log_variances = tape.gradient(value, variables)
    values = tf.convert_to_tensor(values).numpy()
    for k, text in enumerate(PRODUCTS):
        kernel = to_kernel(parse(text))
        with tf.GradientTape() as tape:
            value = tf.reduce_sum(weights[k] * kernel(column))
        own = [kernel.variance, *(p for f in kernel.factors for p in f.values if p.trainable)]
        expected = tape.gradient(value, [p.unconstrained_variable for p in own])
        np.testing.assert_allclose(log_variances[k], expected[0], rtol=1e-9)
        found = [
            values[k, m, p]
            for m, factor in enumerate(kernel.factors)
            for p, parameter in enumerate(factor.values)
            if parameter.trainable
        ]
        np.testing.assert_allclose(found, expected[1:], rtol=1e-9, atol=1e-12)
    starts = values[[2, 4, 4], [0, 0, 0], [0, 1, 1]]
    np.testing.assert_array_equal(starts, 0.0)  # the starts of walks are not learnt


def test_other_products_need_no_other_trace() -> None:
    bank = bank_of(PRODUCTS[:2])
    traces = []

    @tf.function
    def covariances() -> tf.Tensor:
        traces.append(1)
        return bank.covariances(X)

    for texts in (PRODUCTS[:2], PRODUCTS[1:3], PRODUCTS[4:]):
        bank.load([parse(text) for text in texts])
        expected = np.stack([to_kernel(parse(text))(X) for text in texts])
        np.testing.assert_allclose(covariances(), expected, rtol=1e-12, atol=1e-12)
        assert [format(k, ".9g") for k in bank.to_expressions()] == [
            format(parse(text), ".9g") for text in texts
        ]
    assert len(traces) == 1


def test_priors_are_normal_on_the_scale_of_learning() -> None:
    bank = bank_of(("2.0 x SE(lengthscale=0.5)",))
    moments = np.full((*bank.values.shape, 2), [0.0, np.inf])
    flat = bank.log_variances.log_prior_density() + bank.values.log_prior_density()
    moments[0, 0, 0] = -1.0, 0.5
    bank.load_priors((0.3, 2.0), moments)
    told = bank.log_variances.log_prior_density() + bank.values.log_prior_density()
    # Against a normal density of standard deviation 1e6 where nothing is said.
    expected = sum(
        -0.5 * ((x - mean) / sd) ** 2 - np.log(sd / 1e6)
        for x, mean, sd in ((np.log(2.0), 0.3, 2.0), (np.log(0.5), -1.0, 0.5))
    )
    assert float(told - flat) == pytest.approx(expected, abs=1e-6)

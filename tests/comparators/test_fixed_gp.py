"""The Gaussian process with one fixed kernel: its kernel and priors by hand, and a forecast."""

from __future__ import annotations

import gpflow
import numpy as np
import pandas as pd
import pytest
from scipy.stats import lognorm

from lkm_gpflow.comparators import FixedKernelGP, LastValue
from lkm_gpflow.comparators.fixed_gp import fixed_kernel


def by_hand(x: np.ndarray, seasonal: bool) -> np.ndarray:
    """The kernel of Corani et al. at the medians of its priors."""
    r = x[:, None] - x[None, :]
    v = np.exp(-1.5)
    K = v * np.outer(x, x) + v + v * np.exp(-0.5 * (r / np.exp(1.1)) ** 2)
    if seasonal:
        K = K + v * np.exp(-0.5 * (np.sin(np.pi * r) / np.exp(0.2)) ** 2)
    for envelope, wave in ((1.1, 1.6), (-0.7, 0.5)):
        K = K + v * np.exp(-0.5 * (r / np.exp(envelope)) ** 2) * np.cos(r / np.exp(wave))
    return K


@pytest.mark.parametrize("seasonal", [True, False])
def test_kernel_is_that_of_the_paper(seasonal: bool) -> None:
    x = np.linspace(0.0, 7.3, 25)
    np.testing.assert_allclose(
        fixed_kernel(seasonal)(x[:, None]).numpy(), by_hand(x, seasonal), rtol=1e-10, atol=1e-12
    )


def test_every_parameter_has_its_prior() -> None:
    kernel = fixed_kernel(True)
    # Variances of LIN, C, SE, PER and two products; lengthscales of SE, PER and of two products,
    # and two of cosines.
    assert len(kernel.trainable_parameters) == 12
    for parameter in kernel.trainable_parameters:
        median = float(parameter.numpy())
        expected = lognorm(s=1.0, scale=median).logpdf(2.0 * median)
        found = float(parameter.prior.log_prob(np.float64(2.0 * median)))
        assert found == pytest.approx(expected)
    model = gpflow.models.GPR((np.zeros((1, 1)), np.zeros((1, 1))), kernel)
    assert np.isfinite(float(model.training_loss()))


def test_seasons_go_on_and_gaps_are_left_out() -> None:
    rng = np.random.default_rng(0)
    t = np.arange(72)
    values = np.column_stack(
        [2.0 * np.sin(2.0 * np.pi * t / 12.0) + 0.02 * t, np.cos(2.0 * np.pi * t / 12.0)]
    )
    values += 0.2 * rng.normal(size=values.shape)
    index = pd.date_range("2001-01-01", periods=72, freq="MS")
    train = pd.DataFrame(values, index=index).iloc[:60]
    train.iloc[20:26, 0] = np.nan
    errors = {}
    for method in (FixedKernelGP(restarts=1), LastValue()):
        found = method.fit(train, seed=0).forecast(index[60:])
        mean = found["mean"].to_numpy().reshape(2, 12).T
        errors[type(method)] = np.sqrt(np.mean((mean - values[60:]) ** 2))
        if isinstance(method, FixedKernelGP):
            z = (values[60:] - mean) / found["sd"].to_numpy().reshape(2, 12).T
            assert np.sqrt(np.mean(z**2)) < 2.0
    assert errors[FixedKernelGP] < 0.4
    assert errors[FixedKernelGP] < 0.4 * errors[LastValue]

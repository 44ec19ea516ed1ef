"""Densities of series that covary, against brute force and finite differences."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from lkm_gpflow.coupling.density import LARGEST, CellsTooManyError, CoupledDensity

N, D, K = 3, 7, 2


def drawn(gaps: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    roots = rng.normal(size=(K, D, D))
    C = roots @ roots.transpose(0, 2, 1)
    roots = rng.normal(size=(K, N, N))
    B = roots @ roots.transpose(0, 2, 1)
    mask = (rng.random((N, D)) > 0.3).astype(float) if gaps else np.ones((N, D))
    return C, B, rng.normal(size=(N, D)), mask


def brute_force(
    C: np.ndarray, B: np.ndarray, Y: np.ndarray, mask: np.ndarray
) -> tuple[np.ndarray, float]:
    cells = [(n, d) for n in range(N) for d in range(D) if mask[n, d]]
    V = [[sum(B[k, n, m] * C[k, d, e] for k in range(K)) for m, e in cells] for n, d in cells]
    y = [Y[cell] for cell in cells]
    return np.array(V), float(multivariate_normal(np.zeros(len(y)), np.array(V)).logpdf(y))


@pytest.mark.parametrize("gaps", [False, True])
def test_value_by_brute_force(gaps: bool) -> None:
    C, B, Y, mask = drawn(gaps)
    V, expected = brute_force(C, B, Y, mask)
    density = CoupledDensity(C, np.where(mask > 0, Y, 99.0), mask)
    np.testing.assert_allclose(density.covariance(B), V, atol=1e-12)
    np.testing.assert_allclose(density.value(B), expected, rtol=1e-10)
    np.testing.assert_allclose(density.value_and_gradient(B)[0], expected, rtol=1e-10)


@pytest.mark.parametrize("gaps", [False, True])
def test_gradient_by_finite_differences(gaps: bool) -> None:
    C, B, Y, mask = drawn(gaps)
    density = CoupledDensity(C, Y, mask)
    _, G = density.value_and_gradient(B)
    np.testing.assert_allclose(G, G.transpose(0, 2, 1))
    for k, n, m in [(0, 0, 0), (0, 2, 1), (1, 1, 1), (1, 0, 2)]:
        step = np.zeros_like(B)
        step[k, n, m] = step[k, m, n] = 1e-6
        slope = (brute_force(C, B + step, Y, mask)[1] - brute_force(C, B - step, Y, mask)[1]) / 2e-6
        np.testing.assert_allclose((G * step).sum() / 1e-6, slope, rtol=1e-5, atol=1e-6)


def test_what_is_not_positive_definite() -> None:
    C, B, Y, mask = drawn(False)
    density = CoupledDensity(C, Y, mask)
    assert np.isnan(density.value(-B))
    value, G = density.value_and_gradient(-B)
    assert np.isnan(value)
    assert not G.any()


def test_too_many_cells_are_refused() -> None:
    D = LARGEST // 2 + 1
    with pytest.raises(CellsTooManyError, match=r"at most 3,400 observed values.*got 3,402.*thin"):
        CoupledDensity(np.ones((1, 1, 1)), np.zeros((2, D)), np.ones((2, D)))

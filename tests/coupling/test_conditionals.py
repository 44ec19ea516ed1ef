"""Predictions of series that covary, and their density, against plain linear algebra."""

from __future__ import annotations

import numpy as np
import pytest

from lkm_gpflow.coupling.learn_coupling import Coupling, predict_cells
from lkm_gpflow.coupling.patterns import Patterns
from lkm_gpflow.data.observations import Observations
from lkm_gpflow.kernels.grammar import parse

AMPLITUDES = np.sqrt([[0.5, 0.0, 0.1], [2.0, 0.7, 0.3], [0.0, 1.5, 0.2]])
NEW = [(n, t, 1) for n in range(3) for t in (0.5, 1.1, 1.3)]  # 0.5 is among the times of the data


def observations() -> Observations:
    Y, mask = np.random.default_rng(0).normal(size=(3, 9)), np.ones((3, 9))
    mask[0, 4] = mask[2, 2:6] = 0.0
    return Observations(np.linspace(0.0, 1.0, 9), Y * mask, mask)


def coupling(w: np.ndarray) -> Coupling:
    """Of two patterns, of which series 1 has both."""
    kernels = (parse("1 x SE(lengthscale=0.2)"), parse("1 x OU(lengthscale=0.5)"))
    patterns = Patterns(kernels, AMPLITUDES, ((0,), (1,)))
    return Coupling(patterns, w, np.zeros(3), 0.0, 0.0, np.zeros(3, np.int32))


def loadings(longest: float = 0.9) -> np.ndarray:
    w = np.random.default_rng(1).normal(size=(3, 3, 2))
    return longest * w / np.linalg.norm(w, axis=-1, keepdims=True)


def covariance_by_hand(cells: list[tuple[int, float, int]], w: np.ndarray) -> np.ndarray:
    """Of new observations of cells (series, time, number of the observation)."""

    def k(i: int, s: float, t: float) -> float:
        return float(np.exp(-0.5 * (s - t) ** 2 / 0.2**2) if i == 0 else np.exp(-abs(s - t) / 0.5))

    def one(a: tuple[int, float, int], b: tuple[int, float, int]) -> float:
        (n, s, i), (m, t, j) = a, b
        total = 0.0
        for c in range(2):
            R = 1.0 if n == m else w[c, n] @ w[c, m]
            total += AMPLITUDES[n, c] * AMPLITUDES[m, c] * R * k(c, s, t)
        if s == t:
            R = 1.0 if n == m and i == j else w[2, n] @ w[2, m]
            total += AMPLITUDES[n, 2] * AMPLITUDES[m, 2] * R
        return float(total)

    return np.array([[one(a, b) for b in cells] for a in cells])


def observed() -> tuple[list[tuple[int, float, int]], np.ndarray]:
    o = observations()
    places = np.argwhere(o.mask)
    return [(int(n), float(o.x[d]), 0) for n, d in places], o.Y[o.mask > 0.0]


@pytest.mark.parametrize("longest", [0.9, 0.0])
def test_conditionals_by_plain_linear_algebra(longest: float) -> None:
    w = loadings(longest)
    cells, y = observed()
    V = covariance_by_hand(cells + NEW, w)
    M = len(cells)
    gain = V[M:, :M] @ np.linalg.inv(V[:M, :M])
    n, x = (np.array(each) for each in ([n for n, _, _ in NEW], [t for _, t, _ in NEW]))
    mean, covariance = predict_cells(coupling(w), observations(), n, x)
    np.testing.assert_allclose(mean, gain @ y, atol=1e-10)
    expected = V[M:, M:] - gain @ V[:M, M:]
    np.testing.assert_allclose(covariance, expected, atol=1e-10)


def test_two_new_observations_of_one_series_and_time_share_a_part_of_their_noise() -> None:
    w, far = loadings(), np.array([50.0, 50.0])
    _, both = predict_cells(coupling(w), observations(), np.array([0, 0]), far)
    shared = 0.5 + 0.1 * np.sum(w[2, 0] ** 2)
    np.testing.assert_allclose(both, [[0.6, shared], [shared, 0.6]], atol=1e-10)


def test_a_covariance_that_is_not_positive_definite_is_refused() -> None:
    w = np.zeros((3, 3, 1))
    w[0] = 3.0
    with pytest.raises(ValueError, match="series together is not positive definite"):
        predict_cells(coupling(w), observations(), np.array([0]), np.array([0.5]))

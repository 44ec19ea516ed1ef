"""Values by lag to matrices and sums over lags back, against plain sums."""

from __future__ import annotations

import numpy as np
import pytest

from lkm_gpflow.gp.lags import LagGrid, lag_grid, matrix

GRIDS = {
    "regular": np.linspace(0.0, 1.0, 9),
    "irregular": np.sort(np.random.default_rng(0).uniform(size=9)),
    "with holes": np.array([0.0, 1.0, 2.0, 4.0, 5.0, 6.0, 9.0, 10.0, 11.0]) / 11.0,
    "one point": np.zeros(1),
}


@pytest.mark.parametrize("name", list(GRIDS))
def test_by_lag_and_back(name: str) -> None:
    grid, rng = LagGrid(GRIDS[name]), np.random.default_rng(4)
    D = len(grid.x)
    distance = np.abs(np.subtract.outer(grid.x, grid.x))
    np.testing.assert_allclose(grid.spread(grid.lags), distance, atol=1e-12)
    by_lag = rng.normal(size=len(grid.lags))
    into = np.ones((D, D))
    grid.spread_into(by_lag, into, add=True)
    np.testing.assert_array_equal(into - 1.0, (grid.spread(by_lag) + 1.0) - 1.0)
    grid.spread_into(by_lag, into)
    np.testing.assert_array_equal(into, grid.spread(by_lag))
    lower = matrix(D)
    lower[...] = np.tril(rng.normal(size=(D, D)))
    sums = np.bincount(grid.lag_of_pair, lower.ravel(), len(grid.lags))
    np.testing.assert_allclose(grid.collect(lower), sums, atol=1e-12)
    np.testing.assert_allclose(grid.collect(np.array(lower)), sums, atol=1e-12)  # memory of others
    # The transpose of `spread`.
    assert sums @ by_lag == pytest.approx((lower * grid.spread(by_lag)).sum())


def test_walks_by_hand() -> None:
    grid = LagGrid(GRIDS["irregular"])
    for start in (-0.1, 0.3, 0.5, 0.7, 0.9, -0.1):
        expected = [[max(min(a, b) - start, 0.0) for b in grid.x] for a in grid.x]
        np.testing.assert_allclose(grid.walk(start), expected)


def test_grids_are_remembered() -> None:
    x = np.linspace(0.0, 1.0, 5)
    assert lag_grid(x) is lag_grid(x.copy())

"""Rivals of the benchmark: they forecast, and vector autoregressions add up."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from paper_experiments.lab.rivals import FITS, Rival, integrate

for needed in ("statsforecast", "statsmodels", "sklearn", "prophet"):
    pytest.importorskip(needed)


def walks(rows: int, columns: int, seed: int = 0) -> np.ndarray:
    return np.cumsum(np.random.default_rng(seed).normal(size=(rows, columns)), axis=0)


@pytest.fixture(scope="module")
def quarters() -> pd.DataFrame:
    """Three walks with a season of four quarters; the last one begins late and has a gap."""
    index = pd.date_range("2001-01-01", periods=60, freq="QS")
    values = walks(60, 3) + 3.0 * np.tile([1.0, 0.0, -1.0, 0.0], 15)[:, None]
    values[[0, 1, 2, 30, 31], 2] = np.nan
    return pd.DataFrame(values, index=index, columns=["a", "b", "c"])


@pytest.mark.parametrize("name", FITS)
def test_forecasts_are_numbers(name: str, quarters: pd.DataFrame) -> None:
    times = pd.date_range("2016-01-01", periods=6, freq="QS")
    told = Rival(name, 4).fit(quarters, seed=0).forecast(times)
    assert told.shape == (18, 2)
    assert np.isfinite(told.to_numpy()).all()
    assert (told["sd"] > 0.0).all()


# --- vector autoregressions ---


def test_integrated_forecasts_agree_with_simulated_paths() -> None:
    """A VAR(2) of two differences, 40,000 futures of six steps."""
    rng = np.random.default_rng(0)
    coefs = np.array([[[0.5, 0.2], [-0.1, 0.3]], [[0.1, 0.0], [0.2, -0.2]]])
    constant, root = np.array([0.3, -0.1]), np.array([[1.0, 0.0], [0.6, 0.5]])
    Y = walks(20, 2, seed=1)
    steps = [np.broadcast_to(row, (40_000, 2)) for row in np.diff(Y, axis=0)[-2:]]
    for _ in range(6):
        noise = rng.normal(size=(40_000, 2)) @ root.T
        steps.append(constant + steps[-1] @ coefs[0].T + steps[-2] @ coefs[1].T + noise)
    levels = Y[-1] + np.cumsum(steps[2:], axis=0)
    mean, sd = integrate(Y, coefs, constant, root @ root.T, 6)
    np.testing.assert_allclose(levels.mean(axis=1), mean, atol=0.1)
    np.testing.assert_allclose(levels.std(axis=1), sd, rtol=0.02)


@pytest.mark.parametrize("name", ["var", "ridge-var"])
def test_vectors_learn_who_follows_whom(name: str) -> None:
    """b repeats a's change a step later: its next change is known to a tenth."""
    rng = np.random.default_rng(2)
    a = rng.normal(size=301)
    b = np.concatenate([[0.0], a[:-1]]) + 0.1 * rng.normal(size=301)
    Y = pd.DataFrame(np.cumsum(np.column_stack([a, b]), axis=0), columns=["a", "b"])
    found = Rival(name, 1).fit(Y, seed=0).forecast(pd.RangeIndex(301, 302))
    assert found.loc["b", "mean"].item() - Y["b"].iloc[-1] == pytest.approx(a[-1], abs=0.3)
    assert found["sd"].to_numpy() == pytest.approx([1.0, 0.1], rel=0.15)

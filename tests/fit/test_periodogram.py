"""Periodograms of many series against SciPy's of each."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.signal import lombscargle

from lkm_gpflow.fit import initialization as periodogram
from lkm_gpflow.fit.initialization import lomb_scargle


@pytest.mark.parametrize("block", [10, 2_000_000])
@pytest.mark.parametrize("is_regular", [True, False])
def test_power_is_scipys(is_regular: bool, block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With gaps, in blocks of one frequency, and up to the highest frequency of a regular grid."""
    monkeypatch.setattr(periodogram, "_MOST_NUMBERS", block)
    rng = np.random.default_rng(0)
    x = np.linspace(0.0, 1.0, 60) if is_regular else np.sort(rng.uniform(size=60))
    Y = rng.normal(size=(4, 60))
    mask = np.ones_like(Y)
    mask[1:3] = rng.uniform(size=(2, 60)) > 0.3
    frequencies = np.append(np.arange(2.0, 29.0, 0.2), 29.49)
    found = lomb_scargle(x, Y, mask, frequencies)
    for y, seen, power in zip(Y, mask > 0.0, found, strict=True):
        expected = lombscargle(x[seen], y[seen], 2.0 * np.pi * frequencies, normalize=True)
        np.testing.assert_allclose(power, expected, rtol=1e-7, atol=1e-12)


def test_a_wave_explains_itself() -> None:
    """All of it at its own frequency; where sines vanish at all times, cosines alone count."""
    x = np.arange(20.0)
    frequencies = np.array([0.1, 0.25, 0.5])
    Y = np.array([np.cos(np.pi * x), np.sin(0.2 * np.pi * x + 1.0), np.zeros(20)])
    power = lomb_scargle(x, Y, np.ones_like(Y), frequencies)
    np.testing.assert_allclose(power, [[0, 0, 1], [1, 0, 0], [0, 0, 0]], atol=1e-9)

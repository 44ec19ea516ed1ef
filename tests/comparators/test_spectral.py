"""The spectral mixture kernel and starts from the spectrum."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from lkm_gpflow.comparators.spectral import Mixture, SpectralMixture, Spectrum
from lkm_gpflow.data.observations import Observations

MIXTURE = Mixture(np.array([0.5, 2.0]), np.array([1.5, 4.0]), np.array([0.3, 0.9]))


def test_kernel_is_the_transform_of_its_spectral_density() -> None:
    """By numerical integration of S(f) cos(2 pi f r) over all frequencies."""

    def density(f: float) -> float:
        both = norm.pdf(f, MIXTURE.frequency, MIXTURE.bandwidth) + norm.pdf(
            -f, MIXTURE.frequency, MIXTURE.bandwidth
        )
        return float(MIXTURE.weight @ both)

    lags = np.array([0.0, 0.07, 0.4, 1.3])
    expected = [
        quad(lambda f, r=r: density(f) * np.cos(2 * np.pi * f * r), 0.0, 15.0, limit=300)[0]
        for r in lags
    ]
    kernel = SpectralMixture(MIXTURE)
    np.testing.assert_allclose(kernel(np.zeros((1, 1)), lags[:, None])[0], expected, atol=1e-8)
    np.testing.assert_allclose(kernel(lags[:, None], full_cov=False), 2.5)


def waves(noise: float = 0.3) -> Observations:
    rng = np.random.default_rng(0)
    x = np.linspace(0.0, 1.0, 80)
    Y = np.array([np.sin(2 * np.pi * 8.0 * x), np.cos(2 * np.pi * 3.0 * x)])
    mask = (rng.uniform(size=Y.shape) < 0.8).astype(float)
    return Observations(x, mask * (Y + noise * rng.normal(size=Y.shape)), mask)


@pytest.mark.parametrize(("series", "frequency"), [(0, 8.0), (1, 3.0)])
def test_spectrum_has_its_peak_at_the_wave(series: int, frequency: float) -> None:
    spectrum = Spectrum.of(waves(), series)
    assert spectrum.frequency[np.argmax(spectrum.power)] == pytest.approx(frequency, abs=0.3)
    drawn = spectrum.draw(500, np.random.default_rng(1))
    near = np.abs(np.log(drawn.frequency / frequency)) < 0.3
    assert near.mean() > 0.4
    assert drawn.weight.sum() == pytest.approx(1.0)

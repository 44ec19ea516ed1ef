"""The multi-output spectral mixture kernel, its fast evaluation, and what is learnt with it."""

from __future__ import annotations

from dataclasses import fields

import gpflow
import numpy as np
import pandas as pd
import pytest
import tensorflow as tf
from scipy.stats import norm

from lkm_gpflow.comparators.lbfgs import MultiStart
from lkm_gpflow.comparators.mosm import (
    CrossMixture,
    CrossSpectrum,
    MultiOutputGPR,
    MultiOutputSpectralMixture,
)
from lkm_gpflow.comparators.stacked import grid
from lkm_gpflow.data.observations import Observations
from lkm_gpflow.data.tables import Table


def random_mixture(seed: int, num_components: int = 2, num_series: int = 3) -> CrossMixture:
    rng = np.random.default_rng(seed)
    shape = (num_components, num_series)
    return CrossMixture(
        weight=rng.gamma(1.0, size=shape) + 1e-3,
        frequency=rng.uniform(0.1, 12.0, size=shape),
        bandwidth=np.exp(rng.uniform(np.log(0.1), np.log(10.0), size=shape)),
        delay=rng.normal(scale=0.2, size=shape),
        phase=rng.uniform(-np.pi, np.pi, size=shape),
    )


def observations(num_series: int = 3, num_times: int = 12, irregular: bool = False) -> Observations:
    """Noise, on a grid or not, with a tenth of the values missing."""
    rng = np.random.default_rng(3)
    x = np.linspace(0.0, 1.0, num_times)
    if irregular:
        x = np.sort(rng.uniform(size=num_times))
    mask = (rng.uniform(size=(num_series, num_times)) > 0.1).astype(np.float64)
    return Observations(x, mask * rng.normal(size=mask.shape), mask)


def filtered_noise_covariance(mixture: CrossMixture, i: int, j: int, lag: float) -> float:
    """Integrate the cross spectral density of two series that filter one white noise.

    The response of a series to a wave of frequency f is the square root of its spectral density,
    and makes the wave cos(2 pi f (t - delay) - phase): no closed form is used.
    """
    f = np.linspace(-120.0, 140.0, 260_001)
    density = np.zeros_like(f, dtype=complex)
    for v, mu, s, delay, phase in zip(
        *(getattr(mixture, field.name) for field in fields(mixture)), strict=True
    ):
        response = [
            np.sqrt(v[n] * norm.pdf(f, mu[n], s[n]))
            * np.exp(-1j * (2.0 * np.pi * f * delay[n] + phase[n]))
            for n in (i, j)
        ]
        density += response[0] * response[1].conj()
    # The density vanishes at both ends: the trapezoidal rule is a plain sum.
    return float(np.sum((density * np.exp(2j * np.pi * f * lag)).real) * (f[1] - f[0]))


@pytest.mark.parametrize("seed", range(3))
def test_covariance_is_the_integral_of_the_cross_spectral_density(seed: int) -> None:
    mixture = random_mixture(seed)
    kernel = MultiOutputSpectralMixture(mixture)
    for i, j, lag in [(0, 0, 0.0), (1, 1, 0.07), (0, 1, 0.0), (1, 0, 0.11), (2, 1, -0.3)]:
        given = kernel(np.array([[0.4 + lag, i]]), np.array([[0.4, j]])).numpy().item()
        assert given == pytest.approx(filtered_noise_covariance(mixture, i, j, lag), abs=1e-9)


@pytest.mark.parametrize("irregular", [False, True])
def test_fast_likelihood_is_that_of_gpflow(irregular: bool) -> None:
    """GPflow's own model with the direct kernel, value and gradient; series with different gaps."""
    fast = MultiOutputGPR(observations(irregular=irregular), random_mixture(0))
    fast.likelihood.variance.variance.assign([0.1, 0.2, 0.3])
    X, y = fast.data
    np.testing.assert_allclose(fast.covariance(), fast.kernel(X), atol=1e-9)
    direct = gpflow.models.GPR((X, y), fast.kernel, likelihood=fast.likelihood)
    results = []
    for model in (fast, direct):
        with tf.GradientTape() as tape:
            likelihood = model.log_marginal_likelihood()
        results.append([likelihood, *tape.gradient(likelihood, fast.trainable_variables)])
    for one, other in zip(*results, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-8)
    # 2 (5 3 - 2) numbers of the kernel and three noises.
    assert fast.bic() == pytest.approx(-2.0 * float(results[1][0]) + 29 * np.log(len(y)))


def test_only_differences_of_delays_and_phases_matter() -> None:
    """So many numbers are free, by the rank of the derivative of 90 covariances."""
    kernel = MultiOutputSpectralMixture(random_mixture(4))
    rng = np.random.default_rng(0)
    X = grid(rng.uniform(size=5), 3)
    variables = kernel.trainable_variables
    with tf.GradientTape(persistent=True) as tape:
        K = tf.gather(tf.reshape(kernel(X), [-1]), rng.choice(225, 90, replace=False))
    derivatives = tape.jacobian(K, variables, experimental_use_pfor=False)
    jacobian = np.hstack([np.reshape(derivative, (len(K), -1)) for derivative in derivatives])
    assert jacobian.shape[1] == 30
    assert np.linalg.matrix_rank(jacobian, tol=1e-7 * np.linalg.norm(jacobian)) == kernel.num_free


# --- starting values and learning -----------------------------------------------------------------

DELAY, PHASE = 0.06, 2.0


def leader_and_follower(num_times: int = 100) -> pd.DataFrame:
    """Draw three series from the model itself: b follows a, c is a's opposite under more noise."""
    mixture = CrossMixture(
        weight=np.ones((1, 3)),
        frequency=np.array([[6.0, 6.0, 6.0]]),
        bandwidth=np.array([[1.5, 1.5, 1.5]]),
        delay=np.array([[0.0, DELAY, 0.0]]),
        phase=np.array([[0.0, PHASE, np.pi]]),
    )
    X = grid(np.linspace(0.0, 1.0, num_times), 3)
    K = MultiOutputSpectralMixture(mixture)(X).numpy()
    rng = np.random.default_rng(8)
    root = np.linalg.cholesky(K + 1e-9 * np.eye(len(K)))
    values = (root @ rng.normal(size=len(K))).reshape(3, num_times)
    values += np.array([0.1, 0.1, 0.3])[:, None] * rng.normal(size=values.shape)
    return pd.DataFrame(values.T * [1.0, 10.0, 3.0] + [0.0, 50.0, -2.0], columns=["a", "b", "c"])


@pytest.fixture(scope="module")
def learnt() -> MultiOutputGPR:
    """One component, learnt from all but the last fifth of b."""
    frame = leader_and_follower()
    frame.loc[frame.index[80:], "b"] = np.nan
    data = Table.of(frame).observations
    spectrum, rng = CrossSpectrum.of(data), np.random.default_rng(0)
    model = MultiOutputGPR(data, spectrum.draw(1, rng))

    def start() -> None:
        model.kernel.assign(spectrum.draw(1, rng))
        model.likelihood.variance.variance.assign(np.full(3, 0.1))

    MultiStart(model).best_of([start] * 10, short=20, keep=2, max_iterations=100)
    return model


def test_planted_delay_and_phase_are_found(learnt: MultiOutputGPR) -> None:
    mixture = learnt.kernel.mixture
    np.testing.assert_allclose(mixture.frequency, 6.0, atol=1.0)
    delay, phase = mixture.delay[0] - mixture.delay[0, 0], mixture.phase[0] - mixture.phase[0, 0]
    # The two trade off within the band; what they do to its middle is determined sharply.
    middle = phase + 12.0 * np.pi * delay
    expected = np.array([0.0, PHASE + 12.0 * np.pi * DELAY, np.pi])
    assert np.all(np.cos(middle - expected) > 0.95)
    assert delay[1] == pytest.approx(DELAY, abs=0.02)
    assert delay[2] == pytest.approx(0.0, abs=0.02)


def test_a_gap_is_filled_from_the_series_that_leads(learnt: MultiOutputGPR) -> None:
    """b is not seen in the last fifth, where a and c are: far better than its last value."""
    frame = leader_and_follower()
    gap = frame.index[80:]
    seen = frame.copy()
    seen.loc[gap, "b"] = np.nan
    table = Table.of(seen)
    mean, variance = learnt.predict_series(table.scaled_times(gap))
    truth = (frame.loc[gap, "b"].to_numpy() - table.location[1]) / table.scale[1]
    last = table.observations.Y[1, 79]
    error = truth - mean[:, 1]
    assert np.sqrt(np.mean(error**2)) < 0.4 * np.sqrt(np.mean((truth - last) ** 2))
    assert 0.3 < np.mean(error**2 / variance[:, 1]) < 3.0

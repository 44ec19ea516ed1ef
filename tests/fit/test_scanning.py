"""A rough scan of candidates against densities of the same times, and against the whole scan."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from lkm_gpflow.data.observations import Observations
from lkm_gpflow.fit.engine import Engine, Entrance
from lkm_gpflow.fit.fits import State
from lkm_gpflow.kernels.component import to_kernel
from lkm_gpflow.kernels.grammar import Product, parse

X = np.linspace(0.0, 1.0, 150)
TRUE = parse("1 x PER(period=0.13, lengthscale=1)")
CANDIDATES = [
    parse("1 x SE(lengthscale=0.02)"),
    parse("1 x LIN(location=0.4)"),
    parse("1 x PER(period=0.23, lengthscale=1)"),
    TRUE,
    parse("1 x SE(lengthscale=0.5)"),
    parse("1 x RW(start=-0.1)"),
    parse("1 x PER(period=0.3, lengthscale=1)"),
]
NOISE = np.array([[0.5, 0.5, 0.5], [0.05, 0.05, 0.05]])


def covariance(product: Product) -> np.ndarray:
    return np.asarray(to_kernel(product)(X[:, None]))


def observations(*, gaps: bool = False) -> Observations:
    rng = np.random.default_rng(1)
    own = covariance(TRUE) + 0.05 * np.eye(150)
    Y = rng.multivariate_normal(np.zeros(150), own, size=3)
    Y[2] = rng.normal(size=150)
    mask = (rng.uniform(size=Y.shape) > 0.3) * 1.0 if gaps else np.ones_like(Y)
    return Observations(X, Y * mask, mask)


def nothing_in(data: Observations) -> Entrance:
    return Engine(data).entrance(State((), np.zeros((3, 0)), NOISE[0]))


def log_densities(data: Observations, places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of the series at some of the times, by SciPy: with each candidate [M, L, N], without [N]."""
    found, without = np.empty((len(CANDIDATES), *NOISE.shape)), np.empty(len(data.Y))
    for n, (y, mask) in enumerate(zip(data.Y, data.mask, strict=True)):
        seen = places[mask[places] > 0.0]
        I = np.eye(len(seen))
        without[n] = multivariate_normal(cov=NOISE[0, n] * I).logpdf(y[seen])
        for m, candidate in enumerate(CANDIDATES):
            own = covariance(candidate)[np.ix_(seen, seen)]
            found[m, :, n] = [
                multivariate_normal(cov=own + s * I).logpdf(y[seen]) for s in NOISE[:, n]
            ]
    return found, without


@pytest.mark.parametrize("gaps", [False, True])
def test_the_best_of_a_part_of_the_times_are_kept(gaps: bool) -> None:
    """The best first, each with the noise that suits every series best there."""
    data = observations(gaps=gaps)
    kept, noise = nothing_in(data).promising(CANDIDATES, NOISE, 3)
    # Eight blocks of eight neighbours, the first and the last at the ends.
    starts = np.round(np.arange(8) * 142 / 7).astype(int)
    found, without = log_densities(data, (starts[:, None] + np.arange(8)).ravel())
    gains = np.maximum(found.max(axis=1) - without, 0.0).sum(axis=1)
    best = np.argsort(-gains)[:3]
    assert kept == [CANDIDATES[m] for m in best]
    assert kept[0] == TRUE
    level = found[best].argmax(axis=1)
    np.testing.assert_array_equal(noise, np.where(level == 0, NOISE[0], NOISE[1]))
    assert len(np.unique(noise)) == 2


def test_a_gain_is_over_the_noise_that_series_have_now() -> None:
    """With too little noise now, all candidates gain; with more of it, none of them does."""
    data = observations().at_times(np.arange(60, dtype=np.int32))
    worse, bad = parse("9 x SE(lengthscale=0.001)"), parse("3 x SE(lengthscale=0.001)")
    kept, _ = nothing_in(data).promising([worse, bad], NOISE[::-1], 2)
    assert kept == [bad, worse]
    kept, _ = nothing_in(data).promising([worse, bad], NOISE, 2)
    assert kept == [worse, bad]

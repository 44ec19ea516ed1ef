"""A rough scan of candidates against densities of the same times, and against the whole scan."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from lkm_gpflow.data.observations import Observations
from lkm_gpflow.kernels.component import to_kernel
from lkm_gpflow.kernels.grammar import Product, parse
from lkm_gpflow.learning.scanning import promising, scan

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


def gains(data: Observations, places: np.ndarray) -> np.ndarray:
    """What each candidate is worth on some of the times, by SciPy."""
    found = []
    for candidate in CANDIDATES:
        C, total = covariance(candidate), 0.0
        for y, mask in zip(data.Y, data.mask, strict=True):
            seen = places[mask[places] > 0.0]
            I = np.eye(len(seen))
            own = C[np.ix_(seen, seen)]
            with_it = [multivariate_normal(cov=own + s * I).logpdf(y[seen]) for s in NOISE[:, 0]]
            without = multivariate_normal(cov=NOISE[0, 0] * I).logpdf(y[seen])
            total += max(max(with_it) - without, 0.0)
        found.append(total)
    return np.array(found)


@pytest.mark.parametrize("gaps", [False, True])
def test_the_best_of_a_part_of_the_times_are_kept(gaps: bool) -> None:
    data = observations(gaps=gaps)
    base = np.zeros((3, 150, 150))
    kept = promising(base, CANDIDATES, NOISE, data, count=3)
    # Eight blocks of eight neighbours, the first and the last at the ends.
    starts = np.round(np.arange(8) * 142 / 7).astype(int)
    places = (starts[:, None] + np.arange(8)).ravel()
    best = np.sort(np.argsort(-gains(data, places))[:3])
    assert kept == [CANDIDATES[m] for m in best]
    assert TRUE in kept


def test_what_the_whole_scan_likes_best_is_among_them() -> None:
    data = observations()
    base = np.zeros((3, 150, 150))
    whole = scan(base, CANDIDATES, NOISE, data).max(axis=1).sum(axis=1)
    assert CANDIDATES[int(np.argmax(whole))] in promising(base, CANDIDATES, NOISE, data, count=2)


def test_short_tables_are_scanned_at_once() -> None:
    data = observations().at_times(np.arange(90, dtype=np.int32))
    kept = promising(np.zeros((3, 90, 90)), CANDIDATES, NOISE, data, count=3)
    assert kept == CANDIDATES

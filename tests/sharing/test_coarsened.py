"""The coarsened posterior against GPflow's likelihoods: quadrature, and its mode and curvature."""

from __future__ import annotations

from dataclasses import replace

import gpflow
import numpy as np
import pytest
from scipy.linalg import null_space
from scipy.optimize import minimize
from scipy.special import logsumexp
from scipy.stats import multivariate_normal

from lkm_gpflow.data.observations import Observations
from lkm_gpflow.fit.fits import Fit, FitSettings
from lkm_gpflow.fit.initialization import NOISE_VARIANCE, Range, hyperparameter_range
from lkm_gpflow.fit.initialization import VARIANCE as VARIANCE_RANGE
from lkm_gpflow.kernels.grammar import Product, parse
from lkm_gpflow.sharing.coarsened import POWER, coarsened
from lkm_gpflow.sharing.matching import average, centred

D = 40
X = np.linspace(0.0, 1.0, D)
SETTINGS = FitSettings()
HEIGHT_SD = 1.5  # of the normal prior on log heights


def by_hand(kernels: list[Product], Z: list[list[int]], noise: float) -> Fit:
    rows = np.array(Z, np.float64)
    return Fit(
        kernels=tuple(kernels), Z=rows, probabilities=rows, tau=np.ones((len(kernels), 2)),
        noise_variance=np.full(len(rows), noise), log_likelihood=0.0, bic=0.0, elbo=0.0,
        seconds=0.0,
    )  # fmt: skip


def drawn(kernel: str, num_series: int, noise: float, seed: int) -> Observations:
    rng = np.random.default_rng(seed)
    V = covariance(kernel) + noise * np.eye(D)
    Y = (np.linalg.cholesky(V) @ rng.normal(size=(D, num_series))).T
    Y -= Y.mean(axis=1, keepdims=True)
    return Observations(X, Y, np.ones_like(Y))


def covariance(kernel: str) -> np.ndarray:
    """Of an SE and a walk, by GPflow."""
    product = parse(kernel)
    (factor,) = product.factors
    if factor.base.name == "SE":
        k = gpflow.kernels.SquaredExponential(product.variance, factor.values[0])
        return np.asarray(k(X[:, None]))
    assert factor.base.name == "RW"
    start = factor.values[0]
    return product.variance * (np.minimum(X[:, None], X[None, :]) - start)


def log_prior(value: float, range_: Range) -> float:
    return -0.5 * ((value - range_.mean) / range_.sd) ** 2


def test_density_of_centred_series_is_that_of_its_contrasts() -> None:
    """The D - 1 contrasts of a series, orthonormal and orthogonal to its average."""
    V = covariance("0.7 x SE(lengthscale=0.1)") + 0.1 * np.eye(D)
    y = np.random.default_rng(0).normal(size=D)
    Q = null_space(np.ones((1, D)))
    contrasts = multivariate_normal(cov=Q.T @ V @ Q).logpdf(Q.T @ y)
    whole = multivariate_normal(cov=centred(V) + average(D)).logpdf(y - y.mean())
    assert whole == pytest.approx(contrasts - 0.5 * np.log(2.0 * np.pi), abs=1e-8)


def restricted(V: np.ndarray, y: np.ndarray) -> float:
    """Log density of the contrasts of a series."""
    Q = null_space(np.ones((1, D)))
    return float(multivariate_normal(cov=Q.T @ V @ Q).logpdf(Q.T @ y))


WALK = "0.4 x RW(start=-0.025641025641025640)"


def test_mode_and_spread_by_general_purpose_optimisation() -> None:
    """Two series of an SE, a walk in the fit: all seven unknowns by SciPy, on GPflow's kernels."""
    start = "0.8 x SE(lengthscale=0.12)"
    observations = drawn("1.0 x SE(lengthscale=0.1)", 2, 0.05, seed=3)
    # The walk, which no series has, is there so that none is added.
    fit = by_hand([parse(start), parse(WALK)], [[1, 0], [1, 0]], 0.05)
    posterior = coarsened(fit, observations, SETTINGS)

    def minus_log(flat: np.ndarray) -> float:
        v, l, *own = flat
        total = log_prior(v, VARIANCE_RANGE)
        total += log_prior(
            l, hyperparameter_range(parse("SE").factors[0].base.parameters[0][1], X[1])
        )
        for y, a, r in zip(observations.Y, own[:2], own[2:], strict=True):
            V = covariance(f"{np.exp(v + a)} x SE(lengthscale={np.exp(l)})") + np.exp(r) * np.eye(D)
            total += POWER * restricted(V, y) - 0.5 * (a / HEIGHT_SD) ** 2
            total += log_prior(r, NOISE_VARIANCE)
        return -float(total)

    begin = np.array([np.log(0.8), np.log(0.12), 0.0, 0.0, *np.log([0.05, 0.05])])
    best = minimize(minus_log, begin, method="BFGS", options={"gtol": 1e-4})
    # Scoring stops when a step gains a fiftieth of a nat: within a fifth of a standard deviation.
    sd = posterior.sd
    assert abs(posterior.mean[2] - best.x[1]) < 0.2 * sd[2]
    assert abs(posterior.mean[0] - best.x[0]) < 0.2 * sd[0]
    h = 1e-2
    hessian = np.array([
        [
            (minus_log(best.x + a + b) + minus_log(best.x - a - b)
             - minus_log(best.x + a - b) - minus_log(best.x - a + b)) / (4.0 * h * h)
            for b in h * np.eye(6)
        ]
        for a in h * np.eye(6)
    ])  # fmt: skip
    # Expected against observed information: alike, not equal.
    by_curvature = np.sqrt(np.diag(np.linalg.inv(hessian)))
    assert sd[2] == pytest.approx(by_curvature[1], rel=0.25)
    assert sd[0] == pytest.approx(by_curvature[0], rel=0.25)


def test_interval_by_quadrature() -> None:
    """One series: everything but the lengthscale summed over on a grid of four dimensions."""
    observations = drawn("1.0 x SE(lengthscale=0.08)", 1, 0.1, seed=5)
    fit = by_hand([parse("0.9 x SE(lengthscale=0.1)"), parse(WALK)], [[1, 0]], 0.1)
    posterior = coarsened(fit, observations, SETTINGS)
    lengthscales = np.linspace(np.log(0.02), np.log(0.6), 41)
    # Variance and height act as one, whose prior is that of their sum.
    sizes, noises = np.linspace(-4.0, 4.0, 33), np.linspace(np.log(0.01), np.log(1.0), 25)
    of_size = Range(-np.inf, np.inf, VARIANCE_RANGE.mean, np.hypot(VARIANCE_RANGE.sd, HEIGHT_SD))
    kind = parse("SE").factors[0].base.parameters[0][1]
    Q = null_space(np.ones((1, D)))
    values = []
    for l in lengthscales:
        C = Q.T @ covariance(f"1.0 x SE(lengthscale={np.exp(l)})") @ Q
        eigenvalues, U = np.linalg.eigh(C)
        squares = (U.T @ Q.T @ observations.Y[0]) ** 2
        v = np.exp(sizes)[:, None, None] * np.maximum(eigenvalues, 0.0) + np.exp(noises)[:, None]
        log_p = -0.5 * (squares / v + np.log(v)).sum(axis=-1)
        log_p = POWER * log_p + np.array([log_prior(a, of_size) for a in sizes])[:, None]
        log_p += np.array([log_prior(r, NOISE_VARIANCE) for r in noises])
        values.append(logsumexp(log_p) + log_prior(l, hyperparameter_range(kind, X[1])))
    p = np.exp(np.array(values) - logsumexp(values))
    mean = p @ lengthscales
    sd = np.sqrt(p @ (lengthscales - mean) ** 2)
    assert posterior.mean[2] == pytest.approx(mean, abs=0.35 * sd)
    assert posterior.sd[2] == pytest.approx(sd, rel=0.3)


def test_the_location_of_a_line_keeps_its_prior() -> None:
    """Averages were subtracted, and a line about any place is then the same."""
    rng = np.random.default_rng(1)
    Y = np.outer([1.0, -2.0], X - 0.5) + 0.1 * rng.normal(size=(2, D))
    Y -= Y.mean(axis=1, keepdims=True)
    line = by_hand([parse("12.0 x LIN(location=0.45)")], [[1], [1]], 0.01)
    posterior = coarsened(line, Observations(X, Y, np.ones_like(Y)), SETTINGS)
    assert posterior.mean[1] == pytest.approx(0.5, abs=0.01)
    assert posterior.sd[1] == pytest.approx(1.0, rel=0.01)


def test_what_no_series_has_keeps_its_prior_and_an_origin_is_certain() -> None:
    observations = drawn("1.0 x SE(lengthscale=0.1)", 1, 0.1, seed=2)
    kernels = [parse("0.5 x SE(lengthscale=0.1)"), parse(WALK)]
    posterior = coarsened(by_hand(kernels, [[0, 1]], 0.1), observations, SETTINGS)
    assert np.exp(posterior.mean[2]) == pytest.approx(0.2, rel=1e-6)
    assert posterior.sd[2] == pytest.approx(1.5)
    assert posterior.sd[3] == 0.0
    assert posterior.mean[3] == pytest.approx(-X[1])


def test_an_unseen_walk_makes_less_certain() -> None:
    observations = drawn("1.0 x SE(lengthscale=0.1)", 3, 0.1, seed=4)
    alone = by_hand([parse("0.9 x SE(lengthscale=0.1)")], [[1]] * 3, 0.1)
    with_walk = by_hand([*alone.kernels, parse(WALK)], [[1, 0]] * 3, 0.1)
    wider, narrower = (coarsened(fit, observations, SETTINGS) for fit in (alone, with_walk))
    assert wider.sd[1] > narrower.sd[2]


def test_gaps_are_left_out() -> None:
    """A gap at the end of all series is as if the times had not been there."""
    observations = drawn("1.0 x SE(lengthscale=0.1)", 2, 0.1, seed=6)
    mask = np.ones_like(observations.Y)
    mask[:, 30:] = 0.0
    fit = by_hand([parse("0.9 x SE(lengthscale=0.1)")], [[1], [1]], 0.1)
    gap = coarsened(fit, replace(observations, Y=observations.Y * mask, mask=mask), SETTINGS)
    short = Observations(X[:30], observations.Y[:, :30], np.ones((2, 30)))
    # The walk's size is relative to the times of the table.
    with_walk = by_hand([*fit.kernels, parse(WALK)], [[1, 0]] * 2, 0.1)
    own = replace(observations, Y=observations.Y * mask, mask=mask)
    np.testing.assert_allclose(
        coarsened(with_walk, own, SETTINGS).sd, coarsened(with_walk, short, SETTINGS).sd, rtol=1e-6
    )
    assert gap.sd[1] > coarsened(fit, observations, SETTINGS).sd[1]


def test_a_series_of_one_value_says_nothing() -> None:
    observations = drawn("1.0 x SE(lengthscale=0.1)", 2, 0.1, seed=8)
    mask = np.ones_like(observations.Y)
    mask[1, 1:] = 0.0
    fit = by_hand([parse("0.9 x SE(lengthscale=0.1)")], [[1], [1]], 0.1)
    both = coarsened(fit, replace(observations, mask=mask), SETTINGS)
    first = coarsened(
        by_hand(list(fit.kernels), [[1]], 0.1),
        observations.of_series(np.array([0], np.int32)),
        SETTINGS,
    )
    np.testing.assert_allclose(both.sd, first.sd)

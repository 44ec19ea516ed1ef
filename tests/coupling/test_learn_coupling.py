"""What goes together in which series: found where it is planted, and not where it is not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import tensorflow as tf
from scipy.special import logsumexp
from scipy.stats import multivariate_normal, norm
from small import made_by_hand, small_table

import lkm_gpflow as lkm
from lkm_gpflow.coupling.coupled_discovery import couple
from lkm_gpflow.coupling.delays import aligned
from lkm_gpflow.coupling.density import CoupledDensity
from lkm_gpflow.coupling.learn_coupling import (
    STRONG,
    FirstStep,
    adapted,
    coupling_of,
)
from lkm_gpflow.coupling.loadings import Climber, Loadings, correlations
from lkm_gpflow.coupling.patterns import Patterns
from lkm_gpflow.fit.engine import components
from lkm_gpflow.fit.fits import Fit
from lkm_gpflow.forecast.forecasters import Member
from lkm_gpflow.model.subclasses import name_of


def walks(seed: int, correlation: float = 0.0, num_times: int = 120) -> pd.DataFrame:
    """Six random walks of different step; those of a and b have correlated steps."""
    rng = np.random.default_rng((12, seed))
    steps = rng.normal(size=(num_times, 6))
    steps[:, 1] = correlation * steps[:, 0] + np.sqrt(1.0 - correlation**2) * steps[:, 1]
    values = np.cumsum(steps * np.exp(rng.normal(0.0, 0.5, 6)), axis=0)
    index = pd.date_range("2020-01-05", periods=num_times, freq="W")
    return pd.DataFrame(values, index=index, columns=list("abcdef"))


def fit_of(kernels: list[str], Z: list[list[int]]) -> tuple[Fit, lkm.Discovery]:
    found = made_by_hand(small_table(), kernels, Z)
    return found.fit, found


def test_components_of_one_shape_are_one_pattern() -> None:
    kernels = ["0.5 x RW(start=-1)", "0.2 x RW(start=-1)", "0.3 x C", "0.4 x SE(lengthscale=60)"]
    fit, found = fit_of(kernels, [[1, 0, 1, 0], [0, 1, 1, 1], [1, 1, 0, 1]])
    x = found.table.observations.x
    patterns = Patterns.of(fit, x)
    assert sorted(len(own) for own in patterns.components) == [1, 1, 2]
    C = components(fit.kernels, x)
    total = np.tensordot(np.square(patterns.amplitudes), patterns.covariances(x), axes=1)
    expected = np.tensordot(fit.Z, C, axes=1) + 0.05 * np.eye(len(x))
    np.testing.assert_allclose(total, expected, atol=1e-12)


def test_shapes_that_no_series_could_tell_apart_are_one_pattern() -> None:
    Z = [[1, 0], [0, 1], [1, 0]]
    short = ["0.02 x RW(start=-1)", "0.01 x IOU(lengthscale=0.2, start=-1)"]
    assert len(Patterns.of(*told(short, Z)).kernels) == 1
    long = ["0.02 x RW(start=-1)", "0.01 x IOU(lengthscale=60, start=-1)"]
    assert len(Patterns.of(*told(long, Z)).kernels) == 2


def told(kernels: list[str], Z: list[list[int]]) -> tuple[Fit, np.ndarray]:
    fit, found = fit_of(kernels, Z)
    return fit, found.table.observations.x


def small_problem() -> tuple[np.ndarray, np.ndarray, lkm.Discovery]:
    kernels = ["0.6 x RW(start=-1)", "0.4 x SE(lengthscale=60)"]
    fit, found = fit_of(kernels, [[1, 0], [1, 1], [1, 1]])
    x = found.table.observations.x
    patterns = Patterns.of(fit, x)
    return patterns.covariances(x), patterns.amplitudes, found


def by_brute_force(
    C: np.ndarray, amplitudes: np.ndarray, R: np.ndarray, found: lkm.Discovery
) -> float:
    """Log density of the observed cells, in one matrix of Kronecker products."""
    observations = found.table.observations
    B = R * amplitudes.T[:, :, None] * amplitudes.T[:, None, :]
    V = sum(np.kron(b, c) for b, c in zip(B, C, strict=True))
    seen = np.flatnonzero(observations.mask.ravel())
    y = observations.Y.ravel()[seen]
    return float(multivariate_normal(np.zeros(len(y)), V[np.ix_(seen, seen)]).logpdf(y))


def test_first_step_by_finite_differences() -> None:
    C, amplitudes, found = small_problem()
    step = FirstStep.of(C, amplitudes, found.table.observations).correlations
    K, N = len(C), len(amplitudes)

    def moved(pairs: dict[tuple[int, int, int], float]) -> float:
        R = np.tile(np.eye(N), (K, 1, 1))
        for (k, n, m), value in pairs.items():
            R[k, n, m] = R[k, m, n] = value
        return by_brute_force(C, amplitudes, R, found)

    # The slope is that of the likelihood; the information is checked by its definition.
    h = 1e-4
    slope = np.array([(moved({(k, 2, 1): h}) - moved({(k, 2, 1): -h})) / (2 * h) for k in range(K)])
    observations = found.table.observations
    inverse = []
    for n in (1, 2):
        seen = np.flatnonzero(observations.mask[n])
        V = np.tensordot(np.square(amplitudes[n]), C, axes=1)[np.ix_(seen, seen)]
        whole = np.zeros(C.shape[1:])
        whole[np.ix_(seen, seen)] = np.linalg.inv(V)
        inverse.append(whole)
    aa = amplitudes[1] * amplitudes[2]
    F = np.array([
        [aa[k] * aa[j] * np.trace(inverse[1] @ C[k] @ inverse[0] @ C[j]) for j in range(K)]
        for k in range(K)
    ])  # fmt: skip
    expected = np.linalg.solve(F + np.eye(K) / 0.7**2, slope)
    np.testing.assert_allclose(step[:, 2, 1], np.clip(expected, -0.95, 0.95), rtol=1e-5)
    assert step[1, 0, 1] == 0.0  # the first series has no SE


def test_slope_by_rows_is_that_of_aligned_series() -> None:
    """Series c is moved, or b is: what one more correlation promises is that of moved rows."""
    kernels = ["0.6 x OU(lengthscale=50)", "0.4 x SE(lengthscale=60)"]
    found = fit_of(kernels, [[1, 0], [1, 1], [1, 1]])[1]
    observations = found.table.observations
    patterns = Patterns.of(found.fit, observations.x)
    a = patterns.amplitudes
    ahead = observations.x[-1] + np.arange(1, 5) * np.diff(observations.x)[0]
    longer = patterns.covariances(np.concatenate([observations.x, ahead]))
    step = FirstStep.of(longer, a, observations)
    pair = next(each for each in step.pairs if (each.m, each.n) == (1, 2))
    for rows, delays in ((3, [0, 3, 0]), (-2, [0, 0, 2])):
        moved = aligned(observations, np.array(delays), ahead)
        assert moved.num_observed == observations.num_observed
        C = patterns.covariances(moved.x)
        expected = FirstStep.of(C, a, moved)
        other = next(each for each in expected.pairs if (each.m, each.n) == (1, 2))
        np.testing.assert_allclose(step.slope(pair, rows), expected.slope(other), rtol=1e-6)
        assert step.gains(4)[4 + rows, 2, 1] == step.gains(4)[4 - rows, 1, 2]


class Late(lkm.LKM):
    """Time is squared."""

    def component_covariances(self, X: tf.Tensor, X2: tf.Tensor | None = None) -> tf.Tensor:
        return super().component_covariances(X**2, None if X2 is None else X2**2)


def test_fits_of_a_subclass_are_coupled_by_its_covariances(tmp_path: Path) -> None:
    fit, found = fit_of(["0.5 x SE(lengthscale=20)"], [[1], [1], [1]])
    coupled = couple(found.table, [Member(replace(fit, model=name_of(Late)), 1.0)])
    patterns, x = coupled.couplings[0].patterns, found.table.observations.x
    (kernel,) = patterns.kernels
    np.testing.assert_allclose(patterns.covariances(x)[0], components([kernel], x**2)[0], atol=1e-9)
    coupled.save(tmp_path / "late.lkm")
    back = lkm.CoupledDiscovery.load(tmp_path / "late.lkm")
    pd.testing.assert_frame_equal(back.forecast(3), coupled.forecast(3), check_index_type=False)


def test_loadings_climb_along_their_gradient() -> None:
    C, amplitudes, found = small_problem()
    observations = found.table.observations
    climber = Climber(CoupledDensity(C, observations.Y, observations.mask), amplitudes)
    rng = np.random.default_rng(0)
    u = rng.normal(size=(len(C), len(amplitudes), 2))
    R = correlations(u / np.sqrt(1.0 + np.square(u).sum(axis=2, keepdims=True)))
    expected = by_brute_force(C, amplitudes, R, found)
    np.testing.assert_allclose(climber.value(u), expected, rtol=1e-8)
    begun = replace(Loadings.none(*u.shape), u=u, free=np.ones(u.shape, bool))
    top = climber.climb(begun, 200)
    # At the top of the posterior the slope of likelihood and prior is zero.

    def posterior(u: np.ndarray) -> float:
        return climber.value(u) - np.log(1.0 + np.square(u).sum(axis=2)).sum()

    assert posterior(top.u) > posterior(u)
    for place in [(0, 0, 0), (0, 2, 1), (2, 1, 0)]:
        step = np.zeros_like(u)
        step[place] = 1e-4
        assert abs(posterior(top.u + step) - posterior(top.u - step)) / 2e-4 < 0.05


@pytest.mark.parametrize(
    ("columns", "numbers", "choices"),
    [
        ([[1, 1, 0, 0, 0]], 1, 10),  # two loadings are one correlation
        ([[1, 1, 1, 0, 0]], 3, 10),
        ([[1, 1, 1, 1, 1]], 5, 1),
        ([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]], 7, 10),  # a second column may be turned by an angle
        ([[1, 1, 1, 1, 0], [1, 1, 1, 1, 0]], 6, 25),  # four series have six correlations
        ([[0, 0, 0, 0, 0]], 0, 1),
    ],
)
def test_loadings_are_charged_for_numbers_and_for_the_choice_of_series(
    columns: list[list[int]], numbers: int, choices: int
) -> None:
    """Of five series that have the pattern; a sixth has not, and none has the other pattern."""
    free = np.zeros((2, 6, len(columns)), bool)
    free[0, :5] = np.transpose(columns)
    owners = np.array([[True, False]] * 5 + [[False, False]])
    price = Loadings(free.astype(float), free).price(owners, 100)
    assert price == pytest.approx(numbers * np.log(10.0) + np.log(choices))


def test_adapted_amplitudes_are_at_their_highest_density() -> None:
    C, amplitudes, found = small_problem()
    observations = found.table.observations
    best = adapted(C, amplitudes, observations)
    assert np.array_equal(best > 0.0, amplitudes > 0.0)
    seen = np.flatnonzero(observations.mask[1])

    def density(a: np.ndarray) -> float:
        V = np.tensordot(np.square(a), C, axes=1)[np.ix_(seen, seen)]
        h = 2.0 * np.log(a / amplitudes[1])
        y = observations.Y[1][seen]
        likelihood = float(multivariate_normal(np.zeros(len(y)), V).logpdf(y))
        # Their own part and the one that all share, which is integrated out on a grid.
        shared = np.linspace(-9.0, 9.0, 2001)
        joint = norm.logpdf(h, shared[:, None], 0.3).sum(axis=1) + norm.logpdf(shared, 0.0, 1.5)
        return likelihood + float(logsumexp(joint))

    for k in range(3):
        for factor in (0.98, 1.02):
            moved = best[1].copy()
            moved[k] *= factor
            assert density(moved) < density(best[1])


@pytest.fixture(scope="module")
def planted() -> tuple[lkm.Discovery, lkm.Discovery]:
    return tuple(
        lkm.learn(walks(seed, correlation), ["C", "RW"], restarts=1, progress=False)
        for seed, correlation in ((0, 0.0), (1, -0.7))
    )  # type: ignore[return-value]


def test_independent_walks_stay_so(planted: tuple[lkm.Discovery, lkm.Discovery]) -> None:
    found = planted[0]
    coupling = coupling_of(found.fit, found.table.observations)
    assert not np.any(coupling.loadings)
    assert not coupling.evidence.any()
    assert coupling.log_likelihood == coupling.uncoupled


def test_coupled_walks_are_found(planted: tuple[lkm.Discovery, lkm.Discovery]) -> None:
    found = planted[1]
    coupling = coupling_of(found.fit, found.table.observations)
    walk = [str(kernel.structure) for kernel in coupling.patterns.kernels].index("RW")
    R = coupling.correlations[walk]
    assert R[0, 1] == pytest.approx(-0.7, abs=0.12)
    assert np.abs(R[np.triu_indices(6, 1)][1:]).max() < 0.35
    assert coupling.evidence[walk] > STRONG
    assert coupling.log_likelihood > coupling.uncoupled + 20.0


@pytest.mark.slow
def test_false_and_found_correlations_over_many_tables() -> None:
    pairs = wrong = found = 0
    for seed in range(100, 110):
        told = lkm.learn(walks(seed, 0.7 * (seed % 2), 80), ["C", "RW"], restarts=1, progress=False)
        coupling = coupling_of(told.fit, told.table.observations)
        strong = np.abs(coupling.correlations) * (coupling.evidence > STRONG)[:, None, None]
        largest = strong.max(axis=0)[np.triu_indices(6, 1)] > 0.5
        found += seed % 2 and largest[0]
        others = largest[1:] if seed % 2 else largest
        pairs, wrong = pairs + len(others), wrong + int(others.sum())
    assert wrong <= 0.02 * pairs
    assert found >= 4

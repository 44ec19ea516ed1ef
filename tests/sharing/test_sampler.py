"""The sampler: its density, its moves against brute force and against the prior, its draws."""

from __future__ import annotations

import itertools
from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import betaln, gammaln, logsumexp
from scipy.stats import beta, kstest, multivariate_t, norm

from lkm_gpflow.data.observations import Observations
from lkm_gpflow.fit.fits import FitSettings
from lkm_gpflow.fit.initialization import NOISE_VARIANCE, Range
from lkm_gpflow.gp.likelihoods import ScaledNoise
from lkm_gpflow.kernels.grammar import parse
from lkm_gpflow.sharing import moves
from lkm_gpflow.sharing.forms import Form, Forms, KernelProposal, TruncatedNormals
from lkm_gpflow.sharing.sampler import SamplerSettings, sample_posterior, sweep
from lkm_gpflow.sharing.states import ColumnModel, ColumnState, SeriesDensity

Array = NDArray[np.float64]

ALPHA, HEIGHT_SD, NOISE = 2.0, 0.7, 0.2
LOG_VARIANCES, VARIANCE_SD = (-0.5, -0.3, 1.5), 0.5
WEIGHTS = np.array([0.5, 0.3, 0.2])


def contrasts(D: int) -> Array:
    """Orthonormal contrasts, [D, D - 1]."""
    return np.linalg.svd(np.eye(D) - 1.0 / D)[0][:, : D - 1]


def test_the_density_is_a_student_t_of_contrasts_of_what_was_seen() -> None:
    rng, D = np.random.default_rng(0), 9
    mask = np.ones((2, D))
    mask[1, [2, 5]] = 0.0
    Y = rng.normal(size=(2, D)) * mask
    A = rng.normal(size=(2, D, D))
    V, log_noise = A @ A.transpose(0, 2, 1) + np.eye(D), np.log([0.3, 0.7])
    density = SeriesDensity(Observations(np.linspace(0, 1, D), Y, mask), ScaledNoise(4.0))
    for n, value in enumerate(density(V, log_noise, np.arange(2))):
        seen = np.flatnonzero(mask[n])
        own = V[n][np.ix_(seen, seen)] + np.exp(log_noise[n]) * np.eye(len(seen))
        Q = contrasts(len(seen))
        expected = multivariate_t.logpdf(Q.T @ Y[n, seen], shape=Q.T @ own @ Q, df=4.0)
        assert value == pytest.approx(expected, rel=1e-10)


class Enumerated:
    """Two series, three columns, three forms: small enough for sums over everything."""

    N, K, D = 2, 3, 8

    def __init__(self) -> None:
        x = np.linspace(0.0, 1.0, self.D)
        rng = np.random.default_rng(3)
        self.Y = np.array([np.sin(6 * x), 1.2 * x]) + 0.4 * rng.normal(size=(self.N, self.D))
        numbers = {"SE": [np.log(0.3)], "PER": [np.log(0.4), 0.0], "LIN": [0.5]}
        priors = [
            TruncatedNormals([Range(m - 9, m + 9, m, VARIANCE_SD), *map(pinned, own)])
            for m, own in zip(LOG_VARIANCES, numbers.values(), strict=True)
        ]
        forms = [Form(parse(name).structure, x, p) for name, p in zip(numbers, priors, strict=True)]
        self.model = ColumnModel(
            Observations(x, self.Y, np.ones_like(self.Y)),
            Forms(forms, list(WEIGHTS)),
            TruncatedNormals([pinned(np.log(NOISE))]),
            alpha=ALPHA,
            num_columns=self.K,
            height_sd=HEIGHT_SD,
            distinct=1.0,
        )
        self.C = np.array([
            form.covariance(np.append(0.0, form.prior.mean[1:]), self.model.grid) for form in forms
        ])  # fmt: skip

    @cache  # noqa: B019
    def log_likelihoods(self, columns: tuple[tuple[int, float], ...]) -> Array:
        """Of a series that has columns (form, log variance); heights by quadrature, [N]."""
        points, weights = normal_quadrature(5)
        grid = np.array(list(itertools.product(range(len(points)), repeat=len(columns))), int)
        V = np.full((len(grid), 1, 1), NOISE) * np.eye(self.D)
        for (form, log_variance), own in zip(columns, grid.T, strict=True):
            V = V + np.exp(log_variance + HEIGHT_SD * points[own])[:, None, None] * self.C[form]
        Q, d = contrasts(self.D), self.D - 1
        L = np.linalg.cholesky(Q.T @ V @ Q)
        y = np.broadcast_to(Q.T @ self.Y.T, (len(grid), d, self.N))
        q = np.square(np.linalg.solve(L, y)).sum(axis=1)
        log_det = np.log(np.diagonal(L, axis1=1, axis2=2)).sum(axis=1)[:, None]
        value = gammaln((4 + d) / 2) - gammaln(2.0) - 0.5 * d * np.log(4 * np.pi) - log_det
        value = value - 0.5 * (4 + d) * np.log1p(q / 4.0)
        return np.asarray(logsumexp(value + weights[grid].sum(axis=1)[:, None], axis=0))

    def expected(self) -> Array:
        """Expectations of `statistics` under the posterior."""
        points, log_weights = normal_quadrature(3)
        kinds = [
            (i, LOG_VARIANCES[i] + VARIANCE_SD * u, np.log(WEIGHTS[i]) + w)
            for i in range(3)
            for u, w in zip(points, log_weights, strict=True)
        ]
        rows = list(itertools.product([False, True], repeat=self.K))
        share = ALPHA / self.K
        log_count = [betaln(share + m, 1 + self.N - m) - betaln(share, 1) for m in range(3)]
        logs, values = [], []
        for columns in itertools.product(kinds, repeat=self.K):
            prior = sum(w for _, _, w in columns)
            number = np.array([i for i, _, _ in columns])
            by_row = [
                self.log_likelihoods(
                    tuple(sorted(c[:2] for c, has in zip(columns, row, strict=True) if has))
                )
                for row in rows
            ]
            for (a, first), (b, second) in itertools.product(enumerate(rows), repeat=2):
                Z = np.array([first, second])
                counts = sum(log_count[m] for m in Z.sum(axis=0))
                logs.append(prior + counts + by_row[a][0] + by_row[b][1])
                values.append(statistics(Z, number))
        weights = np.exp(np.array(logs) - logsumexp(logs))
        return np.asarray(weights @ np.array(values))


def statistics(Z: NDArray[np.bool_], number: NDArray[np.int_]) -> list[float]:
    """Which series has which form; how many columns are in use; whether any is shared."""
    has = [bool((row & (number == i)).any()) for row in Z for i in range(3)]
    used = [Z.any(axis=0).sum() == count for count in range(4)]
    return [float(each) for each in (*has, *used, Z.all(axis=0).any())]


def pinned(value: float) -> Range:
    """Hardly more than one value."""
    return Range(value - 1.0, value + 1.0, value, 1e-5)


def normal_quadrature(count: int) -> tuple[Array, Array]:
    """Points and log weights of a standard normal."""
    points, weights = np.polynomial.hermite_e.hermegauss(count)
    return points, np.log(weights / weights.sum())


@pytest.mark.slow
def test_draws_are_those_of_the_posterior_by_brute_force() -> None:
    tiny, rng = Enumerated(), np.random.default_rng(1)
    expected = tiny.expected()
    state = ColumnState(tiny.model)
    proposal = KernelProposal(tiny.model.forms, [])
    drawn = []
    for _ in range(3000):
        sweep(state, proposal, rng)
        drawn.append(statistics(state.Z, state.number))
    batches = np.array(drawn).reshape(40, -1, len(expected)).mean(axis=1)
    error = batches.std(axis=0, ddof=1) / np.sqrt(len(batches))
    z = (batches.mean(axis=0) - expected) / error
    assert np.abs(z).max() < 4.0  # of 11 statistics: one run in a thousand


def without_data(distinct: float) -> tuple[ColumnState, KernelProposal]:
    """Three series that say nothing, with a gap; forms with and without periods and products."""
    x = np.linspace(0.0, 1.0, 8)
    mask = np.ones((3, 8))
    mask[0, 3] = 0.0
    forms = Forms([Form(parse(text).structure, x) for text in ("SE", "PER", "LIN", "PER x SE")])
    model = ColumnModel(
        Observations(x, mask, mask),
        forms,
        TruncatedNormals([NOISE_VARIANCE]),
        alpha=ALPHA,
        num_columns=4,
        distinct=distinct,
        power=0.0,
    )
    library = [
        parse("0.3 x SE(lengthscale=0.2)"),
        parse("0.3 x PER(period=0.3, lengthscale=0.7)"),
    ]
    return ColumnState(model), KernelProposal(forms, library)


@pytest.mark.parametrize("sweeps", [600, pytest.param(2400, marks=pytest.mark.slow)])
def test_without_data_draws_are_those_of_the_prior(sweeps: int) -> None:
    rng = np.random.default_rng(0)
    state, proposal = without_data(distinct=1.0)
    state.model.density = lambda V, log_noise, series: np.zeros(len(V))  # type: ignore[assignment]
    forms, noise = state.model.forms, state.model.noise_prior
    heights = TruncatedNormals([Range(-99.0, 99.0, 0.0, state.model.height_sd)])
    used, shared, kinds, numbers = [], [], [], []
    for _ in range(sweeps):
        sweep(state, proposal, rng)
        on = np.flatnonzero(state.used)
        used.append(len(on))
        shared.append(int(state.Z.all(axis=0).sum()))
        kinds.append(np.bincount(state.number[on], minlength=4))
        numbers.append([
            *uniform(forms[0].prior, 0, [state.phi[k][0] for k in on]),
            *uniform(forms[0].prior, 1, [state.phi[k][1] for k in on if state.number[k] == 0]),
            *uniform(forms[1].prior, 1, [state.phi[k][1] for k in on if state.number[k] == 1]),
            *uniform(heights, 0, state.H[state.Z]),
            *uniform(noise, 0, state.r),
        ])  # fmt: skip
    share, N, K = ALPHA / 4, 3, 4
    nobody = np.exp(betaln(share, 1 + N) - betaln(share, 1))
    everybody = np.exp(betaln(share + N, 1) - betaln(share, 1))
    weights = np.exp(forms.log_weights)
    for values, expected in (
        (np.array(used, float), K * (1.0 - nobody)),
        (np.array(shared, float), K * everybody),
        *((np.array(kinds, float)[:, i], K * (1.0 - nobody) * weights[i]) for i in range(4)),
        *((own, 0.0) for own in np.array(numbers).T),
    ):
        batches = values.reshape(30, -1).mean(axis=1)
        error = batches.std(ddof=1) / np.sqrt(len(batches))
        assert abs(batches.mean() - expected) < 4.5 * error


def uniform(prior: TruncatedNormals, place: int, values: object) -> tuple[float, float]:
    """Sums over values of two moments that vanish where they have this prior."""
    mean, sd = prior.mean[place], prior.sd[place]
    low, high = norm(mean, sd).cdf([prior.lower[place], prior.upper[place]])
    u = (norm(mean, sd).cdf(np.asarray(values, float)) - low) / (high - low) - 0.5
    return float(u.sum()), float((np.square(u) - 1.0 / 12.0).sum())


def test_columns_in_use_stay_unlike() -> None:
    rng = np.random.default_rng(2)
    state, proposal = without_data(distinct=0.9)
    for _ in range(100):
        sweep(state, proposal, rng)
        shapes = [state.shape[k] for k in np.flatnonzero(state.used)]
        for a, b in itertools.combinations(shapes, 2):
            assert a is not None
            assert b is not None
            assert a @ b <= 0.9


@pytest.mark.parametrize("move", [moves.flip, moves.height, moves.rescale])
def test_moves_of_one_column_keep_what_follows_from_the_state(move: object) -> None:
    """V and the log densities that a move keeps up to date are those computed afresh."""
    tiny, rng = Enumerated(), np.random.default_rng(4)
    state = ColumnState(tiny.model)
    proposal = KernelProposal(tiny.model.forms, [])
    for _ in range(30):
        sweep(state, proposal, rng)
        for k in np.flatnonzero(state.used):
            move(state, int(k), rng)  # type: ignore[operator]
        V, ll = state.V.copy(), state.ll.copy()
        state.refresh()
        np.testing.assert_allclose(V, state.V, atol=1e-9)
        np.testing.assert_allclose(ll, state.ll, atol=1e-7)


def test_log_odds_of_a_column_are_those_of_its_weight() -> None:
    model, rng = Enumerated().model, np.random.default_rng(5)
    share = ALPHA / Enumerated.K
    drawn = [float(model.log_odds(np.array(1), rng)) for _ in range(2000)]
    weights = 1.0 / (1.0 + np.exp(-np.array(drawn)))
    assert kstest(weights, beta(share + 1, 2).cdf).pvalue > 1e-3


def test_truncated_normals_draw_what_they_say() -> None:
    prior, rng = TruncatedNormals([Range(-1.0, 0.5, 0.3, 1.2)]), np.random.default_rng(6)
    low, high = norm(0.3, 1.2).cdf([-1.0, 0.5])
    drawn = [float(prior.draw(rng)[0]) for _ in range(2000)]

    def distribution(value: Array) -> Array:
        return np.asarray((norm(0.3, 1.2).cdf(value) - low) / (high - low))

    assert kstest(drawn, distribution).pvalue > 1e-3
    grid = np.linspace(-1.0, 0.5, 2001)[1:-1]
    total = np.sum([np.exp(prior.log_density(np.array([at]))) for at in grid]) * (grid[1] - grid[0])
    assert total == pytest.approx(1.0, abs=2e-3)
    assert prior.log_density(np.array([0.6])) == -np.inf


def test_a_seed_decides_everything_and_chains_differ() -> None:
    tiny = Enumerated().model.observations
    settings = SamplerSettings(sweeps=20, thin=2)

    def sampled(seed: int) -> list[list[float]]:
        fit_settings = FitSettings(likelihood=ScaledNoise())
        chains = sample_posterior(tiny, [], ["SE", "PER", "LIN"], fit_settings, settings, seed=seed)
        return [[draw.log_likelihood for draw in chain] for chain in chains]

    first = sampled(0)
    assert first == sampled(0)
    assert first != sampled(1)
    assert first[0] != first[1]

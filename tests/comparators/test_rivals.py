"""Rivals by libraries: what they promise, on data of which the answer is known."""

from __future__ import annotations

from types import SimpleNamespace
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm
from small import small_table
from walks import forecast, walks

from lkm_gpflow.comparators import (
    ARIMA110,
    MSTL,
    VECM,
    BayesianVAR,
    Comparator,
    DifferencedVAR,
    DynamicFactor,
    Prophet,
    RidgeVAR,
    UnobservedComponents,
    comparator,
)
from lkm_gpflow.comparators.libraries import library
from lkm_gpflow.comparators.vector import integrate
from lkm_gpflow.data.seasons import Waves, seasons_of
from lkm_gpflow.data.tables import Table

statsmodels = pytest.mark.skipif(not pytest.importorskip("statsmodels"), reason="needs statsmodels")


# --- seasons ---


@pytest.mark.parametrize("season", [4, 7, 12])
def test_waves_find_a_season_below_a_trend_and_over_gaps(season: int) -> None:
    t = np.arange(90)
    pattern = np.random.default_rng(season).normal(size=season)
    pattern -= pattern.mean()
    y = (pattern[t % season] + 0.3 * t)[:, None]
    y[[10, 11, 40]] = np.nan
    found = Waves.of(y, [season]).at(90 + np.arange(2 * season))[:, 0]
    np.testing.assert_allclose(found, pattern[np.arange(90, 90 + 2 * season) % season], atol=1e-9)


def test_no_season_has_no_waves() -> None:
    assert np.all(Waves.of(walks(40, 2), [1, 1]).at(40 + np.arange(5)) == 0.0)


def months(values: np.ndarray) -> pd.DataFrame:
    index = pd.date_range("2001-01-01", periods=len(values), freq="MS")
    return pd.DataFrame(values, index=index)


def test_a_season_is_asked_for_or_seen_three_times() -> None:
    def table(rows: int) -> Table:
        return Table.of(months(walks(rows, 1)))

    assert seasons_of(table(36), None) == [12]
    assert seasons_of(table(35), None) == [1]
    assert seasons_of(table(35), 20) == [20]
    with pytest.raises(ValueError, match="season of 1 to 34 steps, got 35"):
        seasons_of(table(35), 35)


def partly_seen(num_seen: int) -> pd.DataFrame:
    """Four walks of eighty months, of the first one only the last rows."""
    Y = walks(80, 4)
    Y[: 80 - num_seen, 0] = np.nan
    return months(Y)


def test_every_series_must_have_seen_its_season() -> None:
    assert seasons_of(Table.of(partly_seen(36)), None) == [12, 12, 12, 12]
    assert seasons_of(Table.of(partly_seen(35)), None) == [1, 12, 12, 12]


@pytest.mark.parametrize("season", [None, 12])
@pytest.mark.parametrize("num_seen", [12, 13, 20, 30])
def test_few_observations_do_not_become_waves(num_seen: int, season: int | None) -> None:
    """Steps of sd one stay uncertain, however many coefficients could explain them."""
    times = pd.date_range("2007-09-01", periods=3, freq="MS")
    found = ARIMA110(season=season).fit(partly_seen(num_seen), seed=0).forecast(times)
    assert found.loc[0, "sd"].iloc[0] == pytest.approx(1.0, abs=0.3)


def test_gaps_are_filled_by_lines() -> None:
    frame = pd.DataFrame({"a": [1.0, np.nan, 3.0, 5.0, np.nan], "b": [1.0, 2.0, 1.0, 4.0, 0.0]})
    table = Table.of(frame)
    in_units = table.observations.filled * table.scale + table.location
    np.testing.assert_allclose(in_units[:, 0], [1.0, 2.0, 3.0, 5.0, 5.0], atol=1e-8)


# --- vector autoregressions ---


@pytest.mark.parametrize("method", [DifferencedVAR(), RidgeVAR(), VECM(), BayesianVAR()])
def test_a_series_that_ended_early_keeps_its_season(method: Comparator) -> None:
    rng, t = np.random.default_rng(0), np.arange(108)
    wave = 10.0 * np.cos(2.0 * np.pi * t[:, None] / 12.0 + rng.uniform(0.0, 6.0, size=3))
    frame = months(wave + 0.3 * walks(108, 3))
    past, truth = frame.iloc[:96].copy(), frame.iloc[96:]
    past.iloc[-4:, 0] = np.nan
    told = method.fit(past, seed=0).forecast(truth.index)["mean"].unstack(0)
    assert np.abs(told[frame.columns] - truth).to_numpy().mean() < 2.0


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


def test_without_lags_it_is_a_walk_with_drift() -> None:
    Y = walks(20, 2)
    mean, sd = integrate(Y, np.zeros((0, 2, 2)), np.array([1.0, 2.0]), np.diag([4.0, 9.0]), 3)
    np.testing.assert_allclose(mean, Y[-1] + np.outer([1, 2, 3], [1.0, 2.0]))
    np.testing.assert_allclose(sd, np.sqrt(np.outer([1, 2, 3], [4.0, 9.0])))


@pytest.mark.parametrize("method", [DifferencedVAR(), RidgeVAR(lags=1)])
def test_vectors_learn_who_follows_whom(method: Comparator) -> None:
    """b repeats a's change a step later: its next change is known to a tenth."""
    rng = np.random.default_rng(2)
    a = rng.normal(size=301)
    b = np.concatenate([[0.0], a[:-1]]) + 0.1 * rng.normal(size=301)
    Y = np.cumsum(np.column_stack([a, b]), axis=0)
    mean, sd = forecast(method, Y, 1)
    assert mean[0, 1] - Y[-1, 1] == pytest.approx(a[-1], abs=0.3)
    assert sd[0] == pytest.approx([1.0, 0.1], rel=0.15)


def least_squares(Y: np.ndarray) -> np.ndarray:
    """Forecast five levels from a VAR(2) of differences, fitted by NumPy."""
    steps, N = np.diff(Y, axis=0), Y.shape[1]
    past = np.hstack([np.ones((len(steps) - 2, 1)), steps[1:-1], steps[:-2]])
    B = np.linalg.lstsq(past, steps[2:], rcond=None)[0]
    coefs = np.stack([B[1 : N + 1].T, B[N + 1 :].T])
    return integrate(Y, coefs, B[0], np.eye(N), 5)[0]


def test_ridge_shrinks_where_there_is_nothing() -> None:
    """On independent walks, best forecast by their last values, least squares finds lags."""
    tables = [walks(60, 8, seed) for seed in range(9)]
    ridge = [forecast(RidgeVAR(lags=2), Y, 5)[0] - Y[-1] for Y in tables]
    plain = [least_squares(Y) - Y[-1] for Y in tables]
    assert np.std(ridge) < 0.7 * np.std(plain)


def test_error_correction_brings_a_pair_together() -> None:
    """Two walks whose difference reverts: its forecast goes to the mean of the difference."""
    rng = np.random.default_rng(4)
    common = np.cumsum(rng.normal(size=400))
    gap = np.zeros(400)
    for t in range(1, 400):
        gap[t] = 0.8 * gap[t - 1] + rng.normal()
    gap[-1] += 8.0
    Y = np.column_stack([common, common + gap + 3.0])
    mean, sd = forecast(VECM(), Y, 40)
    spread = mean[:, 1] - mean[:, 0]
    assert spread[0] > 6.0
    assert spread[-1] == pytest.approx(3.0, abs=1.5)
    apart, _ = forecast(DifferencedVAR(), Y, 40)
    assert np.abs(apart[-1, 1] - apart[-1, 0] - 3.0) > 3.0
    assert np.all(np.diff(sd, axis=0) > 0.0)


@pytest.mark.parametrize("shape", [(20, 3), (30, 6), (40, 12)])
def test_intervals_of_ridge_hold_what_they_say_on_short_tables(shape: tuple[int, int]) -> None:
    """Not too narrow by the coefficients that residuals have cost."""
    held = []
    for seed in range(60):
        Y = walks(shape[0] + 1, shape[1], seed)
        mean, sd = forecast(RidgeVAR(), Y[:-1], 1)
        held.append(np.abs(Y[-1] - mean[0]) < norm.ppf(0.95) * sd[0])
    assert np.mean(held) == pytest.approx(0.9, abs=0.05)


def test_residuals_of_ridge_are_those_without_the_time_in_question() -> None:
    """By fitting again without each of the times, at the penalty that all chose."""
    linear = library("sklearn.linear_model")
    Y = walks(30, 1, seed=3)
    y = (Y - Y.mean()) / Y.std()
    steps = np.diff(y[:, 0])
    past, target = np.column_stack([steps[1:-1], steps[:-2]]), steps[2:]
    alpha = linear.RidgeCV(alphas=np.logspace(-2, 4, 25)).fit(past, target).alpha_
    errors = []
    for t in range(len(target)):
        rest = np.arange(len(target)) != t
        model = linear.Ridge(alpha).fit(past[rest], target[rest])
        errors.append(target[t] - model.predict(past[[t]])[0])
    _, sd = forecast(RidgeVAR(), Y, 1)
    assert sd[0, 0] == pytest.approx(Y.std() * np.sqrt(np.mean(np.square(errors))), rel=1e-3)


def test_error_correction_that_explodes_is_not_believed() -> None:
    """Beside an exact line the fit is nearly singular: means were millions of sds away."""
    for seed in range(20):
        rng, t = np.random.default_rng(seed), np.arange(60.0)
        wave = np.sin(2 * np.pi * t / 12) + 0.1 * rng.normal(size=60)
        Y = np.column_stack([t, wave, np.cumsum(rng.normal(size=60))])
        mean, sd = forecast(VECM(), Y, 12)
        assert np.abs((mean - Y.mean(axis=0)) / Y.std(axis=0)).max() < 20.0
        assert np.isfinite(sd).all()


@pytest.mark.parametrize(
    ("method", "least"), [(DifferencedVAR(), 9), (VECM(), 10), (RidgeVAR(), 7)]
)
def test_too_few_rows_are_refused_in_words(method: Comparator, least: int) -> None:
    for num_times in (3, least - 1):
        wanted = rf"expected at least \d+ rows for 3 series, got {num_times}"
        with pytest.raises(ValueError, match=wanted):
            forecast(method, walks(num_times, 3), 2)
    for num_times in range(least, 16):
        mean, _ = forecast(method, walks(num_times, 3, seed=num_times), 2)
        assert np.isfinite(mean).all()


@pytest.mark.parametrize("method", [DifferencedVAR(), VECM()])
def test_series_that_follow_from_others_have_a_forecast(method: Comparator) -> None:
    walk = walks(60, 1)
    mean, sd = forecast(method, np.hstack([walk, 3.0 - 2.0 * walk]), 4)
    np.testing.assert_allclose(mean[:, 1], 3.0 - 2.0 * mean[:, 0], atol=1e-6)
    np.testing.assert_allclose(sd[:, 1], 2.0 * sd[:, 0], rtol=1e-6)
    assert sd[0, 0] == pytest.approx(np.diff(walk[:, 0]).std(), rel=0.1)


def test_a_single_series_is_a_vector_of_one() -> None:
    for method in (DifferencedVAR(), RidgeVAR(), VECM()):
        mean, sd = forecast(method, walks(80, 1), 3)
        assert mean.shape == sd.shape == (3, 1)


# --- state space ---


def test_arima_110_has_its_closed_form() -> None:
    """Mean y_T + phi (1 - phi^h) / (1 - phi) Dy_T; variance by its moving average weights."""
    rng, phi = np.random.default_rng(5), 0.6
    steps = np.zeros(1500)
    for t in range(1, 1500):
        steps[t] = phi * steps[t - 1] + rng.normal()
    Y = np.cumsum(steps)[:, None]
    mean, sd = forecast(ARIMA110(), Y, 8)
    h = np.arange(1, 9)
    expected = Y[-1, 0] + phi * (1.0 - phi**h) / (1.0 - phi) * steps[-1]
    np.testing.assert_allclose(mean[:, 0], expected, atol=0.1 * abs(steps[-1]) * h.max())
    theta = (1.0 - phi**h) / (1.0 - phi)
    np.testing.assert_allclose(sd[:, 0], np.sqrt(np.cumsum(theta**2)), rtol=0.1)


@pytest.mark.parametrize("every", [2, 3])
def test_arima_110_of_a_series_without_two_neighbours(every: int) -> None:
    values = walks(240, 1)
    values[np.arange(len(values)) % every > 0] = np.nan
    last = np.flatnonzero(np.isfinite(values[:, 0]))[-1]
    mean, sd = forecast(ARIMA110(), values[: last + 1], 12)
    assert abs(mean[-1, 0] - values[last, 0]) < 2.0
    assert np.all(np.diff(sd[:, 0]) > 0.0)
    assert sd[-1, 0] == pytest.approx(np.sqrt(12.0), rel=0.25)


@pytest.mark.parametrize("method", [ARIMA110(), UnobservedComponents()])
def test_missing_ends_are_forecast_like_shorter_series(method: Comparator) -> None:
    """The filter passes over gaps: three missing rows at the end are three steps more."""
    Y = walks(60, 2, seed=6)
    gappy = Y.copy()
    gappy[-3:, 0] = np.nan
    mean, sd = forecast(method, gappy, 4)
    whole_mean, whole_sd = forecast(method, Y[:57], 7)
    np.testing.assert_allclose(mean[:, 0], whole_mean[3:, 0], rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(sd[:, 0], whole_sd[3:, 0], rtol=1e-3)


def test_unobserved_components_follow_level_and_season() -> None:
    rng = np.random.default_rng(7)
    t = np.arange(132)
    season = 3.0 * np.sin(2.0 * np.pi * t / 12.0) + 2.0 * np.cos(2.0 * np.pi * t / 4.0)
    level = np.cumsum(0.2 * rng.normal(size=132))
    y = (level + season + 0.3 * rng.normal(size=132))[:, None]
    mean, sd = forecast(UnobservedComponents(season=12), y[:120], 12)
    assert np.sqrt(np.mean((mean - y[120:]) ** 2)) < 1.0
    assert np.sqrt(np.mean((y[119] - y[120:]) ** 2)) > 2.0
    assert np.abs((y[120:] - mean) / sd).max() < 3.5


def test_dynamic_factors_carry_what_others_have_seen() -> None:
    """Five series of one factor; one ends early, and the others say where it went."""
    rng = np.random.default_rng(8)
    factor = walks(150, 1, seed=9)[:, 0]
    Y = factor[:, None] * [1.0, 0.8, 1.2, 1.0, 0.9] + 0.2 * rng.normal(size=(150, 5))
    gappy = Y.copy()
    gappy[-15:, 0] = np.nan
    mean, _ = forecast(DynamicFactor(factors=1), gappy, 1)
    assert np.abs(Y[-1, 0] - Y[-16, 0]) > 1.0  # it went somewhere
    assert np.abs(mean[0, 0] - Y[-1, 0]) < 0.5 * np.abs(Y[-1, 0] - Y[-16, 0])


class Diverging:
    """In the place of the library: with more than `sound` factors the state has no variance."""

    sound = 1
    tried: ClassVar[list[int]] = []

    def __init__(self, endog: pd.DataFrame, factors: int, standardize: bool) -> None:
        self.shape, self.factors = endog.shape, factors
        self.tried.append(factors)

    def fit(self, disp: bool, maxiter: int) -> Diverging:
        return self

    def get_forecast(self, steps: int) -> SimpleNamespace:
        sd = 1.0 if self.factors <= self.sound else np.nan
        values = np.ones((steps, self.shape[1]))
        return SimpleNamespace(predicted_mean=values, se_mean=sd * values)


def test_factors_that_diverge_are_fewer_or_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two factors of four walks: in one of fifteen tables the smoother has negative variances."""
    module = library("statsmodels.tsa.statespace.dynamic_factor_mq")
    monkeypatch.setattr(module, "DynamicFactorMQ", Diverging)
    monkeypatch.setattr(Diverging, "tried", [])
    _, sd = forecast(DynamicFactor(factors=3), walks(40, 6), 2)
    assert np.isfinite(sd).all()
    assert Diverging.tried == [3, 2, 1]
    monkeypatch.setattr(Diverging, "sound", 0)
    with pytest.raises(RuntimeError, match="expected finite forecasts of 6 series by one factor"):
        forecast(DynamicFactor(), walks(40, 6), 2)


# --- MSTL, the library in own units, Prophet ---


def test_mstl_repeats_the_season_and_has_the_spread_of_the_trend() -> None:
    pytest.importorskip("statsforecast")
    pattern = np.array([5.0, -1.0, -4.0, 0.0])
    y = (pattern[np.arange(80) % 4] + 0.1 * walks(80, 1, seed=10)[:, 0])[:, None]
    mean, sd = forecast(MSTL(season=4), y, 8)
    np.testing.assert_allclose(mean[:4, 0] - mean[4:, 0], 0.0, atol=0.3)
    np.testing.assert_allclose(mean[:, 0] - y[-4:, 0].mean(), np.tile(pattern, 2), atol=0.5)
    assert 0.05 < sd[0, 0] < 0.3
    plain, _ = forecast(MSTL(season=1), y, 2)
    assert np.isfinite(plain).all()


@pytest.mark.parametrize(
    ("name", "model"),
    [("arima", "AutoARIMA"), ("ets", "AutoETS"), ("theta", "AutoTheta"), ("ces", "AutoCES")],
)
def test_own_units_are_what_the_library_says(name: str, model: str) -> None:
    """Its mean, and the half width of its 90% interval over 1.645, for a series that multiplies."""
    models = library("statsforecast.models")
    rng = np.random.default_rng(11)
    t = np.arange(60)
    y = np.exp(0.02 * t + 0.3 * np.sin(2.0 * np.pi * t / 4.0) + 0.05 * rng.normal(size=60)) * 50.0
    mean, sd = forecast(comparator(f"auto-{name}-own-units", season=4), y[:, None], 5)
    # The table is z-scored and rounded on its way.
    theirs = getattr(models, model)(season_length=4).fit(y).predict(5, level=[90])
    np.testing.assert_allclose(mean[:, 0], theirs["mean"], rtol=1e-4)
    half = (theirs["hi-90"] - theirs["lo-90"]) / 2.0
    np.testing.assert_allclose(sd[:, 0], half / norm.ppf(0.95), rtol=1e-3)


@pytest.mark.parametrize(
    ("name", "level", "rel"),
    [("arima", 1e3, 0.1), ("arima", 1e5, 0.1), ("ets", 1e9, 0.1), ("theta", 1e9, 0.25)],
)
def test_own_units_far_from_zero(name: str, level: float, rel: float) -> None:
    """The step of a walk has the walk's sd; the library made it thirty times as wide, or none."""
    library("statsforecast.models")
    method = comparator(f"auto-{name}-own-units", season=1)
    for seed in range(3):
        walk = walks(100, 1, seed)
        far = walk / walk.std() + level
        mean, sd = forecast(method, far, 1)
        step = np.sqrt(np.mean(np.diff(far, axis=0) ** 2))
        assert sd[0, 0] == pytest.approx(step, rel=rel)
        assert mean[0, 0] == pytest.approx(far[-1, 0], abs=step)


def test_prophet_gives_a_season_to_series_that_have_seen_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    prophet = pytest.importorskip("prophet").Prophet
    periods = []
    monkeypatch.setattr(prophet, "add_seasonality", lambda *_, period, **__: periods.append(period))
    Prophet().fit(partly_seen(30)[[0, 1]], seed=0)
    assert periods == [12]


def test_prophet_goes_on_with_trend_and_season_and_draws_by_the_seed(
    capfd: pytest.CaptureFixture[str],
) -> None:
    pytest.importorskip("prophet")
    rng = np.random.default_rng(12)
    t = np.arange(112)
    y = 0.1 * t + 2.0 * np.sin(2.0 * np.pi * t / 7.0) + 0.2 * rng.normal(size=112)
    y[[20, 21, 60]] = np.nan
    state = np.random.get_state()[1].copy()  # noqa: NPY002
    mean, sd = forecast(Prophet(season=7), y[:98, None], 14)
    again, again_sd = forecast(Prophet(season=7), y[:98, None], 14)
    np.testing.assert_array_equal(mean, again)
    np.testing.assert_array_equal(sd, again_sd)
    np.testing.assert_array_equal(state, np.random.get_state()[1])  # noqa: NPY002
    assert np.sqrt(np.mean((mean[:, 0] - y[98:]) ** 2)) < 0.5
    assert sd[0, 0] == pytest.approx(0.2, rel=0.4)
    assert "cmdstanpy" not in "".join(capfd.readouterr())


def test_absent_libraries_say_how_to_get_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "statsmodels.tsa.api", None)
    with pytest.raises(ModuleNotFoundError, match=r"library statsmodels .* '\.\[compar"):
        ARIMA110().fit(small_table(), seed=0)

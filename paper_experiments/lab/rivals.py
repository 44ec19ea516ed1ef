"""What the benchmark compares with beside the package's comparators, on libraries of others.

Each method is a function from a table, the steps in a season (one for none) and a seed to its
forecast.  A step is a row of the table, whatever time it takes.  Series are z-scored; the automatic
methods of statsforecast get them in their own units, as people call them.

State space models and Prophet pass over missing observations.  The vector autoregressions have
none: straight lines in time fill gaps, and a series that begins late or ends early keeps its first
or last value there, because the others need the rows.  What is filled in counts as observed, so
that sds of such series are too small.
"""

from __future__ import annotations

import logging
import math
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from types import ModuleType
from typing import Any

import gpflow
import numpy as np
import pandas as pd
import tensorflow as tf
import tensorflow_probability as tfp

from lkm_gpflow.comparators import StatsforecastModel
from lkm_gpflow.comparators.independent import fit_each_gp
from lkm_gpflow.comparators.libraries import DECIMALS, LEVEL, fit_each, normal_moments
from lkm_gpflow.comparators.protocol import MIN_SD, Ahead, ScaledForecast, fit_alone
from lkm_gpflow.data.observations import filled
from lkm_gpflow.data.seasons import seasons_of
from lkm_gpflow.data.tables import Table
from lkm_gpflow.gp.types import Floats

from .vector_autoregression import autoregression
from .waves import MOST_WAVES, Waves


@dataclass(frozen=True)
class Rival:
    """A method of `FITS` as a comparator.

    Parameters
    ----------
    name
        Its name in the benchmark.
    season
        Steps in a season, one for none.
    """

    name: str
    season: int

    def fit(self, train: pd.DataFrame, *, seed: int) -> ScaledForecast:
        """Fit; libraries' complaints about orders and optimisers that they drop are not shown."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return FITS[self.name](train, self.season, seed)


def _without_waves(
    learn: Callable[[Floats, Floats], Ahead], train: pd.DataFrame, season: int, seed: int
) -> ScaledForecast:
    """Take the season off as `Waves`, and put it back after.

    `learn` gets the times, [D], and the z-scores without their season, [D, N], NaN is missing.
    """
    table = Table.of(train)
    x, (_, Y) = table.observations.x, table.observations.table
    waves = Waves.of(Y, seasons_of(table, season))
    ahead = learn(x, Y - waves.at(np.arange(len(Y))))

    def predict(times: Floats) -> tuple[Floats, Floats]:
        mean, sd = ahead(len(times))
        return mean + waves.at(len(Y) + np.arange(len(times))), np.square(np.maximum(sd, MIN_SD))

    return ScaledForecast(table, predict)


# --- statsforecast: every series alone ---

_TOO_WIDE = 10.0
"""Sds of the series: where a multiplicative ETS says more, an additive one is taken."""


def _automatic(
    model: str, far: float, train: pd.DataFrame, season: int, seed: int
) -> ScaledForecast:
    """Fit a series that is more than `far` sds from zero from its first value on.

    Further from zero the library loses digits: ARIMA's sds of walks one step ahead are 1.2 times
    too large at 1e3 and 30 times at 1e5, those of Theta a third off at 1e6.
    """
    table, models = Table.of(train), import_module("statsforecast.models")

    def learn(n: int, z: Floats) -> Ahead:
        location, scale = table.location[n], table.scale[n]
        y = location + scale * z.round(DECIMALS)
        origin = y[0] if np.abs(location) > far * scale else 0.0
        fitted = getattr(models, model)(season_length=season).fit(y - origin)

        def ahead(h: int) -> tuple[Floats, Floats]:
            mean, sd = normal_moments(fitted.predict(h, level=[LEVEL]))
            return (origin + mean - location) / scale, sd / scale

        return ahead

    return fit_alone(table, learn)


def _auto_ets(train: pd.DataFrame, season: int, seed: int) -> ScaledForecast:
    free = _automatic("AutoETS", 1e4, train, season, seed)
    # Z-scores are not positive, which leaves additive models.
    additive = StatsforecastModel("AutoETS", {"season_length": season}).fit(train, seed=seed)

    def predict(times: Floats) -> tuple[Floats, Floats]:
        (mean, variance), other = free.predict(times), additive.predict(times)
        sound = np.isfinite(mean).all(axis=0) & (variance.max(axis=0) <= _TOO_WIDE**2)  # [N]
        return np.where(sound, mean, other[0]), np.where(sound, variance, other[1])

    return ScaledForecast(free.table, predict)


def _mstl(models: ModuleType, y: Floats, season: int) -> Ahead:
    """Season and trend by loess (Bandara et al. 2021), the trend by exponential smoothing.

    Where a season was not seen twice, exponential smoothing alone.
    """
    model = models.AutoETS(model="ZZN")
    if season > 1 and 2 * season <= len(y):
        model = models.MSTL(season_length=season, trend_forecaster=model)
    fitted = model.fit(y)
    return lambda h: normal_moments(fitted.predict(h, level=[LEVEL]))


# --- Prophet ---

_NUM_PATHS = 500


def _prophet(train: pd.DataFrame, season: int, seed: int) -> ScaledForecast:
    """Prophet (Taylor and Letham 2018) with its own settings; a row is a day."""

    def learn(x: Floats, Y: Floats) -> Ahead:
        dates = pd.date_range("2000-01-01", periods=len(Y))
        frames = [pd.DataFrame({"ds": dates, "y": y}).dropna() for y in Y.T]
        with _quiet():
            fitted = [_prophet_of(season).fit(frame, seed=seed) for frame in frames]

        def ahead(h: int) -> tuple[Floats, Floats]:
            future = pd.DataFrame({"ds": pd.date_range(dates[-1], periods=h + 1)[1:]})
            with _seeded(seed):
                moments = [_of_paths(model, future) for model in fitted]
            mean, sd = (np.column_stack(each) for each in zip(*moments, strict=True))
            return mean, sd

        return ahead

    return _without_waves(learn, train, 1, seed)


def _prophet_of(season: int) -> Any:
    off = {f"{name}_seasonality": False for name in ("yearly", "weekly", "daily")}
    model = import_module("prophet").Prophet(uncertainty_samples=_NUM_PATHS, **off)
    if season > 1:
        order = max(1, min(MOST_WAVES, season // 2))
        model.add_seasonality("season", period=season, fourier_order=order)
    return model


def _of_paths(model: Any, future: pd.DataFrame) -> tuple[Floats, Floats]:
    # Uncertain trends are not symmetric in the library's quantiles: the sd is that of its paths.
    paths = np.asarray(model.predictive_samples(future)["yhat"])
    mean = model.predict(future[["ds"]], vectorized=True)["yhat"].to_numpy()
    return mean, paths.std(axis=1)


@contextmanager
def _seeded(seed: int) -> Iterator[None]:
    """Let the library, which draws from NumPy's global state, draw by a seed."""
    state = np.random.get_state()  # noqa: NPY002
    np.random.seed(seed)  # noqa: NPY002
    try:
        yield
    finally:
        np.random.set_state(state)  # noqa: NPY002


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence the accounts of the library and of its compiler."""
    before = logging.root.manager.disable
    logging.disable()
    try:
        yield
    finally:
        logging.disable(before)


# --- statsmodels: state space models, whose Kalman filter passes over missing observations ---

_TRENDS: tuple[dict[str, Any], ...] = (
    {"level": "local level"},
    {"level": "local level", "autoregressive": 1},
    {"level": "local linear trend"},
)

_NUM_FACTORS = 2
"""At most half as many as there are series, and fewer where the estimates diverge."""


def _arimas(x: Floats, Y: Floats) -> Ahead:
    """ARIMA(1, 1, 0) without a constant, every series alone."""
    return _joined([_arima(y) for y in Y.T])


def _arima(y: Floats) -> Any:
    model = import_module("statsmodels.tsa.api").SARIMAX(y, order=(1, 1, 0))
    start = model.start_params
    if not np.isfinite(start).all():
        # Of quarters in a table of months no two neighbours are seen: it starts from a walk.
        seen = np.flatnonzero(np.isfinite(y))
        start = np.array([0.0, np.mean(np.square(np.diff(y[seen])) / np.diff(seen))])
    return model.fit(start_params=start, disp=False)


def _unobserved_components(train: pd.DataFrame, season: int, seed: int) -> ScaledForecast:
    """Trend by AIC among `_TRENDS`, waves whose amplitudes wander, irregular (Harvey 1989)."""
    waves = {"period": season, "harmonics": min(MOST_WAVES, season // 2)}
    seasonal = {"freq_seasonal": [waves]} if season > 1 else {}

    def best(y: Floats) -> Any:
        model = partial(import_module("statsmodels.tsa.api").UnobservedComponents, y, **seasonal)
        fitted = [model(**trend).fit(disp=False) for trend in _TRENDS]
        return min(fitted, key=lambda each: each.aic if np.isfinite(each.aic) else np.inf)

    return _without_waves(lambda x, Y: _joined([best(y) for y in Y.T]), train, 1, seed)


def _dynamic_factors(x: Floats, Y: Floats) -> Ahead:
    """Factors with a vector autoregression, and an autoregression of what they leave.

    Bańbura and Modugno 2014, by expectation maximisation.
    """
    model = import_module("statsmodels.tsa.statespace.dynamic_factor_mq").DynamicFactorMQ
    endog = pd.DataFrame(Y).add_prefix("y")
    for count in range(max(1, min(_NUM_FACTORS, Y.shape[1] // 2)), 0, -1):
        fitted = model(endog, factors=count, standardize=False).fit(disp=False, maxiter=200)
        ahead = _joined([fitted])
        if all(np.isfinite(each).all() for each in ahead(1)):
            return ahead
    raise RuntimeError(
        f"expected finite forecasts of {Y.shape[1]} series by one factor, got NaN: "
        "expectation maximisation has diverged"
    )


def _joined(fitted: list[Any]) -> Ahead:
    """Put forecasts of statsmodels side by side."""

    def ahead(h: int) -> tuple[Floats, Floats]:
        told = [each.get_forecast(h) for each in fitted]
        mean = np.hstack([np.asarray(t.predicted_mean, np.float64).reshape(h, -1) for t in told])
        return mean, np.hstack([np.asarray(t.se_mean, np.float64).reshape(h, -1) for t in told])

    return ahead


# --- vector autoregressions ---

_MOST_LAGS = 4

_MOST_ROOT = 1.05
"""By how much a forecast of levels may grow in one step for ever; those of walks do by one."""


def _differences(x: Floats, Y: Floats) -> Ahead:
    """Differences by least squares, the order by AIC (Lütkepohl 2005, chapter 3).

    AIC has no value where the covariance of errors is singular, as of two equal series, and the
    library no vector of one: there by ridge.
    """
    Y = filled(x, Y)
    if Y.shape[1] == 1:
        return _shrunk(Y, 1)
    _check_rows(Y, 2 * Y.shape[1] + 3)
    steps = np.diff(Y, axis=0)
    model = import_module("statsmodels.tsa.api").VAR(steps)
    # At least three equations' worth of times for each coefficient.
    most = max(1, min(_MOST_LAGS, (len(Y) // 3 - 1) // Y.shape[1]))
    try:
        fitted = model.fit(maxlags=most, ic="aic", trend="c")
    except np.linalg.LinAlgError:
        return _shrunk(Y, 1)
    sigma = np.asarray(fitted.sigma_u)
    if fitted.k_ar == 0:
        return partial(integrate, Y, np.zeros((0, *sigma.shape)), steps.mean(axis=0), sigma)
    return partial(integrate, Y, fitted.coefs, fitted.intercept, sigma)


def _ridge(x: Floats, Y: Floats) -> Ahead:
    return _shrunk(filled(x, Y), lags=2)


def _shrunk(Y: Floats, lags: int) -> Ahead:
    """Differences, coefficients shrunk to zero by penalties that leave one time out.

    The covariance of errors is that of residuals of equations that were fitted without the time.
    """
    _check_rows(Y, lags + 5)
    linear = import_module("sklearn.linear_model")
    steps, N = np.diff(Y, axis=0), Y.shape[1]
    past = np.hstack([steps[lags - i : len(steps) - i] for i in range(1, lags + 1)])
    target = steps[lags:]
    coefs, constant, residuals = np.empty((lags, N, N)), np.empty(N), np.empty_like(target)
    left, values, _ = np.linalg.svd(past - past.mean(axis=0), full_matrices=False)
    for n in range(N):
        model = linear.RidgeCV(alphas=np.logspace(-2, 4, 25)).fit(past, target[:, n])
        coefs[:, n], constant[n] = model.coef_.reshape(lags, N), model.intercept_
        leverage = np.square(left) @ (values**2 / (values**2 + model.alpha_)) + 1.0 / len(past)
        residuals[:, n] = (target[:, n] - model.predict(past)) / (1.0 - leverage)
    return partial(integrate, Y, coefs, constant, residuals.T @ residuals / len(target))


def _error_correction(x: Floats, Y: Floats) -> Ahead:
    """Vector error correction (Johansen 1995) with a constant and one lagged difference.

    The rank is that of Johansen's trace test at 5%.  At rank zero, or where the fit is singular or
    explodes, it is a VAR of differences.
    """
    Y = filled(x, Y)
    if Y.shape[1] == 1:
        return _shrunk(Y, 1)
    vecm = import_module("statsmodels.tsa.vector_ar.vecm")
    _check_rows(Y, 2 * Y.shape[1] + 4)
    try:
        rank = vecm.select_coint_rank(Y, det_order=0, k_ar_diff=1, signif=0.05).rank
        if rank == 0:
            return _differences(x, Y)
        fitted = vecm.VECM(Y, k_ar_diff=1, coint_rank=rank, deterministic="co").fit()
    except np.linalg.LinAlgError:
        return _differences(x, Y)
    p, N, _ = fitted.var_rep.shape
    companion = np.eye(p * N, k=-N)
    companion[:N] = np.hstack(list(fitted.var_rep))
    if np.abs(np.linalg.eigvals(companion)).max() > _MOST_ROOT:
        return _differences(x, Y)

    def ahead(h: int) -> tuple[Floats, Floats]:
        told = fitted.predict(steps=h, alpha=1.0 - LEVEL / 100)
        names = ("mean", f"lo-{LEVEL}", f"hi-{LEVEL}")
        return normal_moments(dict(zip(names, told, strict=True)))

    return ahead


def _check_rows(Y: Floats, least: int) -> None:
    if len(Y) < least:
        raise ValueError(f"expected at least {least} rows for {Y.shape[1]} series, got {len(Y)}")


def integrate(
    Y: Floats, coefs: Floats, constant: Floats, sigma: Floats, h: int
) -> tuple[Floats, Floats]:
    r"""Forecast levels from a vector autoregression of their differences.

    From levels Y [D, N] and A [p, N, N], c [N] and the covariance of errors [N, N] to means and sds
    of the next h levels, [h, N] each.  With the moving average weights :math:`\Psi_0 = I, \Psi_j =
    \sum_i A_i \Psi_{j-i}` of the differences, an error of h steps in the levels is
    :math:`\sum_j \Theta_j e_{h-j}` with :math:`\Theta_j = \sum_{i \le j} \Psi_i`.
    """
    p, N = len(coefs), Y.shape[1]
    steps = list(np.diff(Y, axis=0)[len(Y) - 1 - p :])
    psi: list[Floats] = [np.eye(N)]
    for j in range(h):
        lagged = [coefs[i] @ steps[-1 - i] for i in range(p)]
        steps.append(constant + np.sum(lagged, axis=0) if p else constant)
        terms = [coefs[i] @ psi[j - i] for i in range(min(p, j + 1))]
        psi.append(np.sum(terms, axis=0) if terms else np.zeros((N, N)))
    theta = np.cumsum(psi[:h], axis=0)
    variance = np.cumsum(np.einsum("hij,jk,hik->hi", theta, sigma, theta), axis=0)
    return Y[-1] + np.cumsum(steps[p:], axis=0), np.sqrt(variance)


def _bayesian_var(train: pd.DataFrame, season: int, seed: int) -> ScaledForecast:
    """Levels, with a Minnesota prior."""
    return _without_waves(partial(autoregression, seed=seed), train, season, seed)


# --- one Gaussian process with one fixed kernel and no search: what the search must beat ---

_ROWS = 12
"""Rows in a unit of time where there is no season: the months of a year."""

_VARIANCE, _SE, _PERIODIC = -1.5, 1.1, 0.2
_MIXTURE = ((1.1, 1.6), (-0.7, 0.5))
"""Medians of the priors, as logarithms: of variances, of lengthscales, and of the lengthscale and
that of the cosine of each spectral component.  All sds are one."""

_STARTS = 2
"""The medians of the priors, and a draw from them."""


def _fixed_gp(train: pd.DataFrame, season: int, seed: int) -> ScaledForecast:
    r"""The kernel of Corani, Benavoli and Zaffalon (2021), every series alone.

    *Time series forecasting with Gaussian processes needs priors*, ECML-PKDD 2021:

    .. math:: k = \mathrm{LIN} + \mathrm{C} + \mathrm{SE} + \mathrm{PER} + \sum_{q=1}^{2}
              \mathrm{SE}_q \times \cos_q

    with log-normal priors learnt by its authors on other tables (monthly and quarterly M3), time
    in seasons, and a maximum a posteriori estimate.  PER is left out where there is no season.
    """
    table = Table.of(train)
    # Time from 0 to 1 becomes time in seasons.
    span = (len(table.frame) - 1) / (season if season > 1 else _ROWS)
    kernel = _fixed_kernel(season > 1)
    parameters = kernel.trainable_parameters
    medians = np.log([parameter.numpy() for parameter in parameters])
    shifts = np.random.default_rng(seed).normal(size=(_STARTS - 1, len(medians)))
    starts = np.exp(medians + np.vstack([np.zeros(len(medians)), shifts]))

    def start(series: int, number: int) -> None:
        for parameter, value in zip(parameters, starts[number], strict=True):
            parameter.assign(value)

    stretched = replace(table.observations, x=table.observations.x * span)
    prior = _log_normal(_VARIANCE)
    models = fit_each_gp(stretched, kernel, start, _STARTS, noise_prior=prior)

    def predict(x: Floats) -> tuple[Floats, Floats]:
        means, variances = zip(*(m.predict_y(span * x[:, None]) for m in models), strict=True)
        return np.hstack(means), np.hstack(variances)

    return ScaledForecast(table, predict)


def _fixed_kernel(seasonal: bool) -> gpflow.kernels.Kernel:
    """Return the kernel with its priors, at their medians; time is in seasons."""
    k = gpflow.kernels
    linear, constant, smooth = k.Linear(), k.Constant(), k.SquaredExponential()
    terms = [linear, constant, smooth]
    _give(smooth.lengthscales, _SE)
    if seasonal:
        periodic = k.Periodic(k.SquaredExponential(), period=1.0)
        gpflow.set_trainable(periodic.period, False)
        _give(periodic.base_kernel.lengthscales, _PERIODIC)
        _give(periodic.base_kernel.variance, _VARIANCE)
        terms.append(periodic)
    for term in (linear, constant, smooth):
        _give(term.variance, _VARIANCE)
    for lengthscale, cosine in _MIXTURE:
        envelope, wave = k.SquaredExponential(), k.Cosine()
        gpflow.set_trainable(wave.variance, False)
        _give(envelope.variance, _VARIANCE)
        _give(envelope.lengthscales, lengthscale)
        # GPflow's cosine is of 2 pi r / l, that of the paper's library of r / l.
        _give(wave.lengthscales, cosine + math.log(2.0 * math.pi))
        terms.append(k.Product([envelope, wave]))
    return k.Sum(terms)


def _give(parameter: gpflow.Parameter, log_median: float) -> None:
    parameter.prior = _log_normal(log_median)
    parameter.assign(math.exp(log_median))


def _log_normal(log_median: float) -> tfp.distributions.Distribution:
    return tfp.distributions.LogNormal(tf.constant(log_median, tf.float64), tf.ones((), tf.float64))


FITS: dict[str, Callable[[pd.DataFrame, int, int], ScaledForecast]] = {
    "arima-110": partial(_without_waves, _arimas),
    "auto-arima": partial(_automatic, "AutoARIMA", 100.0),
    "auto-ets": _auto_ets,
    "auto-theta": partial(_automatic, "AutoTheta", 1e4),
    "auto-ces": partial(_automatic, "AutoCES", math.inf),
    "mstl": lambda train, season, seed: fit_each(train, season, _mstl),
    "var": partial(_without_waves, _differences),
    "ridge-var": partial(_without_waves, _ridge),
    "vecm": partial(_without_waves, _error_correction),
    "bayesian-var": _bayesian_var,
    "dynamic-factor": partial(_without_waves, _dynamic_factors),
    "unobserved-components": _unobserved_components,
    "prophet": _prophet,
    "gp-fixed": _fixed_gp,
}
"""By their names in the benchmark."""

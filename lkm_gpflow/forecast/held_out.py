"""Windows of the past, forecast by a structure that is learnt again from what came before them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.stats import t

from ..data.checks import MIN_OBSERVED
from ..data.observations import Observations
from ..fit.fits import LEAST_NOISE, Fit, FitSettings, State
from ..fit.training import Learner
from ..gp.types import Floats
from ..runtime.threads import single_threaded

TAILS = 4.0
"""Degrees of freedom of the density that scores a window."""

_WINDOWS = 5

_MAX_ITERATIONS = 30
"""Of L-BFGS, when a fit is learnt again from a part of the data: it starts near its optimum."""

_FEW_ITERATIONS = 10
"""Of L-BFGS on a long table, of which a part says nearly what the whole does."""

_CONSTANT = 1e-6
"""A series of a smaller standard deviation cannot be scaled by it."""

IMPOSSIBLE = -1e6
"""Log density where no forecast could be had."""


@dataclass(frozen=True)
class Window:
    """A part of the past that is forecast from what came before it.

    Parameters
    ----------
    begin, end
        Rows ``begin`` to ``end - 1`` are forecast, those before ``begin`` are known.
    """

    begin: int
    end: int


def windows(num_times: int) -> list[Window]:
    """Up to five windows over the second half of the data, the last one at its end.

    Parameters
    ----------
    num_times
        D.  A window has a ninth of the rows: what comes next is to be forecast as far as a tenth
        of the longer table.
    """
    horizon = max(1, round(num_times / 9))
    first = max(num_times // 2, min(num_times - horizon, 4))
    begins = np.linspace(num_times - horizon, first, _WINDOWS).round().astype(int)
    return [Window(int(begin), int(begin) + horizon) for begin in np.unique(begins)]


@dataclass(frozen=True)
class HeldOut:
    """A forecast of a window from what came before it, in the units of the scaled table.

    Parameters
    ----------
    mean, variance
        Of the window's observations, [N, M]; NaN in series of whose past too little is known.
    """

    mean: Floats
    variance: Floats


def held_out_score(
    fit: Fit, observations: Observations, window: Window, settings: FitSettings
) -> float:
    """Return `score_of_window` of a fit's structure; very low where nothing can be forecast."""
    try:
        forecast = held_out_forecast(fit, observations, window, settings)
    except ValueError:  # not positive definite
        return IMPOSSIBLE
    return score_of_window(forecast, observations, window)


def score_of_window(forecast: HeldOut, observations: Observations, window: Window) -> float:
    """Score a forecast of a window.

    Log densities are those of a Student-t of `TAILS` degrees of freedom about the forecast, with
    the forecast's standard deviations as its scale.  Otherwise one window with a break, far outside
    all intervals, would decide alone.

    Returns
    -------
    The mean log density of the window's observations, each series counting alike; zero where
    nothing can be said.
    """
    rows = slice(window.begin, window.end)
    unseen = (observations.mask[:, rows] == 0.0) | np.isnan(forecast.mean)
    if np.all(unseen):
        return 0.0
    seen = np.where(unseen, forecast.mean, observations.Y[:, rows])
    own = 0.0 if observations.known is None else observations.known[:, rows]
    sd = np.sqrt(forecast.variance + own)
    log_density: Any = np.ma.masked_array(t.logpdf(seen, TAILS, forecast.mean, sd), unseen)
    return float(log_density.mean(axis=1).mean())


def nothing_told(observations: Observations, window: Window) -> HeldOut:
    """Return the forecast of a window of which nothing can be said."""
    shape = 2, observations.num_series, window.end - window.begin
    return HeldOut(*np.full(shape, np.nan))


def held_out_forecast(
    fit: Fit, observations: Observations, window: Window, settings: FitSettings, rounds: int = 2
) -> HeldOut:
    """Learn a fit's structure again on what came before a window, and forecast the window.

    Learning begins at the fit's numbers, and takes turns of hyperparameters and Z at most `rounds`
    times, on a long table once; the past is scaled anew, as if the table ended there.

    Raises
    ------
    ValueError
        If a covariance is not positive definite.
    """
    told = nothing_told(observations, window)
    before = observations.at_times(np.arange(window.begin, dtype=np.int32))
    known = before.mask.sum(axis=1) >= MIN_OBSERVED
    known[known] &= before.of_series(np.flatnonzero(known)).standard()[1] > _CONSTANT
    rows = slice(window.begin, window.end)
    if not np.any(known & (observations.mask[:, rows].sum(axis=1) > 0.0)):
        return told
    past, location, scale, span = _scaled_anew(before.of_series(np.flatnonzero(known)))
    begin = observations.x[0]
    state = State(
        kernels=tuple(kernel.change_units(1.0 / span, -begin / span) for kernel in fit.kernels),
        Z=fit.Z[known],
        noise_variance=fit.noise_variance[known] / np.square(scale),
        parameters=fit.parameters,
    )
    learner = Learner(past, settings, np.random.default_rng(0))
    most = (1, _FEW_ITERATIONS) if observations.is_long else (rounds, _MAX_ITERATIONS)
    with single_threaded():
        state = learner.refine(state, *most)
    state = replace(state, noise_variance=np.maximum(state.noise_variance, LEAST_NOISE))
    mean, variance = learner.engine.predict(state, (observations.x[rows] - begin) / span)
    told.mean[known] = mean * scale[:, None] + location[:, None]
    told.variance[known] = variance * np.square(scale)[:, None]
    return told


def _scaled_anew(before: Observations) -> tuple[Observations, Floats, Floats, float]:
    """Return observations as if the table were these, with their location, scale and span."""
    location, scale = before.standard()
    begin, span = before.x[0], float(before.x[-1] - before.x[0])
    Y = np.where(before.mask > 0.0, (before.Y - location[:, None]) / scale[:, None], 0.0).round(9)
    own = None if before.known is None else before.known / np.square(scale)[:, None]
    past = Observations(x=(before.x - begin) / span, Y=Y, mask=before.mask, known=own)
    return past, location, scale, span

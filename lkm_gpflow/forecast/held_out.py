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
from ..gp.types import Booleans, Floats
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


@dataclass(frozen=True)
class Past:
    """What came before a window, scaled anew as if the table ended there.

    Series of which too little is known are left out.

    Parameters
    ----------
    observations
        Of the series that are told, over a span of one.
    told
        Which series they are, of all, [N].
    location, scale
        Of these series, in the units of the whole table.
    begin, span
        Of the times, in the units of the whole table.
    """

    observations: Observations
    told: Booleans
    location: Floats
    scale: Floats
    begin: float
    span: float

    @classmethod
    def of(cls, observations: Observations, window: Window) -> Past | None:
        """Return the past of a window; None if it tells nothing of what the window has."""
        rows = slice(window.begin, window.end)
        before = observations.at_times(np.arange(window.begin, dtype=np.int32))
        told = before.mask.sum(axis=1) >= MIN_OBSERVED
        told[told] &= before.of_series(np.flatnonzero(told)).standard()[1] > _CONSTANT
        if not np.any(told & (observations.mask[:, rows].sum(axis=1) > 0.0)):
            return None
        before = before.of_series(np.flatnonzero(told))
        location, scale = before.standard()
        begin, span = observations.x[0], observations.x[window.begin - 1] - observations.x[0]
        past = Observations(
            x=(observations.x[: window.begin] - begin) / span,
            Y=np.where(
                before.mask > 0.0, (before.Y - location[:, None]) / scale[:, None], 0.0
            ).round(9),
            mask=before.mask,
            known=None if before.known is None else before.known / np.square(scale)[:, None],
        )
        return cls(past, told, location, scale, begin, span)

    def back(self, mean: Floats, variance: Floats) -> HeldOut:
        """Return a forecast [n, M] of the told series in the units of the whole table.

        So windows compare.
        """
        of_all = (len(self.told), mean.shape[1])
        found = HeldOut(np.full(of_all, np.nan), np.full(of_all, np.nan))
        found.mean[self.told] = mean * self.scale[:, None] + self.location[:, None]
        found.variance[self.told] = variance * np.square(self.scale)[:, None]
        return found


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
    past = Past.of(observations, window)
    if past is None:
        return nothing_told(observations, window)
    told, scale = past.told, past.scale
    units = 1.0 / past.span, -past.begin / past.span
    state = State(
        kernels=tuple(kernel.change_units(*units) for kernel in fit.kernels),
        Z=fit.Z[told],
        noise_variance=fit.noise_variance[told] / np.square(scale),
        parameters=fit.parameters,
    )
    learner = Learner(past.observations, settings, np.random.default_rng(0))
    most = (1, _FEW_ITERATIONS) if observations.is_long else (rounds, _MAX_ITERATIONS)
    with single_threaded():
        state = learner.refine(state, *most)
    x = (observations.x[window.begin : window.end] - past.begin) / past.span
    state = replace(state, noise_variance=np.maximum(state.noise_variance, LEAST_NOISE))
    return past.back(*learner.engine.predict(state, x))

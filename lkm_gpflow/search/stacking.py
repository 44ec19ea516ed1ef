"""Weights of several fits from windows that they have not seen.

How well a structure explains the past says little about how well it goes on: the likelihood
compares one-step forecasts, and the richer structure nearly always wins.  So every fit is asked to
forecast windows of the past: it is learnt again from what came before a window, and scored on it.
Beside the best fits of a search stand the walks: what one would forecast who had found nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular
from scipy.linalg.lapack import dpotrf
from scipy.special import softmax
from scipy.stats import t

from ..data.checks import MIN_OBSERVED
from ..data.observations import Observations
from ..kernels.grammar import parse
from ..learning.engine import components
from ..learning.fits import Fit, FitSettings, State
from ..learning.learner import Learner
from ..learning.training import fit
from ..models.amplitudes import degrees_of
from ..numerics.types import Floats
from ..runtime.budget import Spent, never_spent
from ..runtime.executors import run_all, single_threaded
from ..runtime.progress import Progress
from .averaging import Member, different
from .ledger import Ledger, fit_from_json, fit_key, fit_to_json
from .settings import SearchSettings

WALKS = (("C", "RW", "RW", "RW"), ("C", "IOU", "IOU"))
"""Structures that only wander; walks of different variance let series differ in theirs.

Each is learnt twice: seen with noise, and seen almost exactly (`FitSettings.exact`).
"""

WALKS_SHARE = 0.9
"""What the walks weigh together before any window is looked at."""

MOST = 10
"""How many fits of the search are asked."""

NUM_STARTS = 4
"""Walks are cheap: they are learnt from more starts, so that every seed finds the same."""

OLD_WINDOWS = 10.0
"""Windows in which forecasts are taken to have erred as they said they would, before any look."""

_MAX_ITERATIONS = 30
"""Of L-BFGS, when a fit is learnt again from a part of the data: it starts near its optimum."""

_LEAST_NOISE = 1.1e-6
"""Noise variance of a forecast, in that of the series; models take no less either."""

_CONSTANT = 1e-6
"""A series of a smaller standard deviation cannot be scaled by it."""

_IMPOSSIBLE = -1e6
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


def windows(num_times: int, count: int = 5) -> list[Window]:
    """Windows over the second half of the data, the last one at its end.

    Parameters
    ----------
    num_times
        D.  A window has a ninth of the rows: what comes next is to be forecast as far as a tenth
        of the longer table.
    count
        How many windows at most.
    """
    horizon = max(1, round(num_times / 9))
    first = max(num_times // 2, min(num_times - horizon, 4))
    begins = np.linspace(num_times - horizon, first, count).round().astype(int)
    return [Window(int(begin), int(begin) + horizon) for begin in np.unique(begins)]


def stack(
    fits: Sequence[Fit],
    observations: Observations,
    settings: SearchSettings,
    ledger: Ledger,
    *,
    executor: Executor | None = None,
    progress: bool = True,
    spent: Spent = never_spent,
) -> list[Member]:
    r"""Weigh the best fits of a search, and walks, by how they forecast windows of the past.

    .. math:: w_m \propto \pi_m \exp \sum_w \ell_{mw}

    with l the mean log density of the observations in window w: errors within a window go
    together, over time and over series, so a window counts as one observation.  The prior
    :math:`\pi` gives `WALKS_SHARE` to the walks (those of `WALKS` whose kernels are among the
    search's bases) and the rest to the fits of the search, in equal parts.

    The windows also say how far errors were from what was said: with :math:`\chi^2_{mw}` the mean
    squared error in forecast standard deviations, W windows and :math:`W_0` = `OLD_WINDOWS`, a
    member's forecast variance is multiplied by

    .. math:: c_m = \frac{W_0 + \sum_w \chi^2_{mw}}{W_0 + W}.

    Parameters
    ----------
    fits
        All fits of the search; the best that differ are asked.
    observations
        The scaled data.
    settings
        Of the search.
    ledger
        Keeps what is learnt here too, so that it can be gone on with.
    executor
        Runs the fits and the windows; None: this process.
    progress
        Whether to show a progress bar.
    spent
        Says when to stop.

    Raises
    ------
    OutOfBudget
        If it was stopped so; `weigh` makes the best of what the ledger has noted.
    """
    jobs = {
        f"walk {i}": partial(_learn, observations, structure, own, (settings.seed, i))
        for i, (structure, own) in enumerate(_walks(settings))
    }
    _remember(ledger, jobs, "walks", executor, progress, spent)
    candidates = _candidates(fits, settings, ledger)
    # The best fit of the search first: it is in the forecast whenever the budget ends.
    best = next(candidate for candidate in candidates if not candidate.is_walk)
    candidates.sort(key=lambda candidate: candidate is not best)
    asked = {
        candidate.key: partial(_scores, candidate.fit, observations, candidate.settings)
        for candidate in candidates
    }
    _remember(ledger, asked, "held-out windows", executor, progress, spent)
    return weigh(fits, settings, ledger)


def weigh(fits: Sequence[Fit], settings: SearchSettings, ledger: Ledger) -> list[Member]:
    """Weigh the fits and walks whose held-out windows the ledger has noted; see `stack`.

    Returns
    -------
    The members, or nothing where no fit of the search is among them.
    """
    noted = [each for each in _candidates(fits, settings, ledger) if each.key in ledger.notes]
    is_walk = np.array([each.is_walk for each in noted], bool)
    if np.all(is_walk):
        return []
    held_out = np.array([ledger.notes[each.key] for each in noted])
    score, error = held_out[:, :, 0].sum(axis=1), held_out[:, :, 1].sum(axis=1)
    spread = (OLD_WINDOWS + error) / (OLD_WINDOWS + held_out.shape[1])
    prior = np.full(len(noted), (1.0 - WALKS_SHARE) / np.sum(~is_walk))
    prior[is_walk] = WALKS_SHARE / max(np.sum(is_walk), 1)
    weights = softmax(score + np.log(prior))
    members = [
        Member(each.fit, float(weights[i]), float(spread[i]), each.is_walk, each.settings.exact)
        for i, each in enumerate(noted)
    ]
    return sorted(members, key=lambda member: -member.weight)


@dataclass(frozen=True)
class _Candidate:
    """A fit that may be a member, and how it was learnt."""

    fit: Fit
    settings: FitSettings
    is_walk: bool

    @property
    def key(self) -> str:
        """Of the note of its windows: another search may have the same number of fits."""
        return f"held out {fit_key(self.fit)}"


def _walks(settings: SearchSettings) -> list[tuple[Sequence[str], FitSettings]]:
    """Structures of the walks that the bases allow, and how each is learnt."""
    return [
        (structure, replace(settings.fit, exact=exact, num_starts=NUM_STARTS))
        for structure in WALKS
        for exact in (False, True)
        if set(structure) <= set(settings.bases)
    ]


def _candidates(fits: Sequence[Fit], settings: SearchSettings, ledger: Ledger) -> list[_Candidate]:
    """Return the walks that the ledger has, and the best fits of the search that differ."""
    learnt = [
        _Candidate(fit_from_json(ledger.notes[f"walk {i}"]), own, True)
        for i, (_, own) in enumerate(_walks(settings))
        if f"walk {i}" in ledger.notes
    ]
    return learnt + [_Candidate(fit, settings.fit, False) for fit in different(fits)[:MOST]]


def _remember(
    ledger: Ledger,
    jobs: Mapping[str, Callable[[], Any]],
    label: str,
    executor: Executor | None,
    progress: bool,
    spent: Spent,
) -> None:
    """Run the jobs that the ledger has no note of, and note what comes out."""
    missing = {key: job for key, job in jobs.items() if key not in ledger.notes}
    with Progress(label, len(missing), shown=progress) as bar:
        for key, result in run_all(missing, executor, spent, bar.hear):
            ledger.note(key, result)
            bar.update()


def _learn(
    observations: Observations, structure: Sequence[str], settings: FitSettings, seed: Sequence[int]
) -> dict[str, Any]:
    """Learn a walk, in JSON's types."""
    # Far from the seeds of the search, which are (seed, step, restart).
    first, *rest = seed
    members = [parse(name) for name in structure]
    found = fit(observations, members, seed=(first, 1_000_000, *rest), settings=settings)
    return fit_to_json(found)


def _scores(
    fit: Fit, observations: Observations, settings: FitSettings
) -> list[tuple[float, float]]:
    every = windows(len(observations.x))
    with single_threaded():
        return [held_out_score(fit, observations, window, settings) for window in every]


@dataclass(frozen=True)
class HeldOut:
    """A forecast of a window from what came before it, in the units of the scaled table.

    Parameters
    ----------
    mean, variance
        Of the window's observations, [N, M]; NaN in series of whose past too little is known.
    degrees
        Of freedom of their Student-t, [N]; infinite where they are normal.
    """

    mean: Floats
    variance: Floats
    degrees: Floats


def held_out_score(
    fit: Fit, observations: Observations, window: Window, settings: FitSettings
) -> tuple[float, float]:
    """Score a fit's structure on a window; see `held_out_forecast`.

    Returns
    -------
    The mean log density of the window's observations, and their mean squared error in forecast
    standard deviations, each series counting alike.  Zero and one where nothing can be said.
    """
    rows = slice(window.begin, window.end)
    try:
        forecast = held_out_forecast(fit, observations, window, settings)
    except ValueError:  # not positive definite
        return _IMPOSSIBLE, 1.0
    unseen = (observations.mask[:, rows] == 0.0) | np.isnan(forecast.mean)
    if np.all(unseen):
        return 0.0, 1.0
    seen: Any = np.ma.masked_array(observations.Y[:, rows], unseen)
    squared = np.square(seen - forecast.mean) / forecast.variance
    log_density = _log_density(squared, forecast)
    return float(log_density.mean(axis=1).mean()), float(squared.mean(axis=1).mean())


def _log_density(squared: Any, forecast: HeldOut) -> Any:
    """Log densities from squared errors in forecast variances, masked [N, M]."""
    if np.all(np.isinf(forecast.degrees)):
        return -0.5 * (np.log(2.0 * np.pi * forecast.variance) + squared)
    degrees = forecast.degrees[:, None]
    unit = (degrees - 2.0) / degrees
    at: Any = np.ma.masked_array(
        t.logpdf(np.sqrt(squared / unit).filled(0.0), degrees), squared.mask
    )
    return at - 0.5 * np.log(unit * forecast.variance)


def held_out_forecast(
    fit: Fit, observations: Observations, window: Window, settings: FitSettings, rounds: int = 2
) -> HeldOut:
    """Learn a fit's structure again on what came before a window, and forecast the window.

    Learning begins at the fit's numbers, and takes turns of hyperparameters and Z at most `rounds`
    times; the past is scaled anew, as if the table ended there.

    Raises
    ------
    ValueError
        If a covariance is not positive definite.
    """
    rows = slice(window.begin, window.end)
    mask = observations.mask[:, : window.begin]
    told = mask.sum(axis=1) >= MIN_OBSERVED
    Y = np.where(mask > 0.0, observations.Y[:, : window.begin], np.nan)
    told[told] &= np.nanstd(Y[told], axis=1) > _CONSTANT
    mean: Floats = np.full((len(Y), window.end - window.begin), np.nan)
    variance = mean.copy()
    prior_degrees = degrees_of(settings.amplitudes)
    degrees = prior_degrees + mask.sum(axis=1)
    if not np.any(told & (observations.mask[:, rows].sum(axis=1) > 0.0)):
        return HeldOut(mean, variance, degrees)
    # Series of which too little is known are left out.
    location, scale = np.nanmean(Y[told], axis=1), np.nanstd(Y[told], axis=1)
    begin, span = observations.x[0], observations.x[window.begin - 1] - observations.x[0]
    past = Observations(
        x=(observations.x[: window.begin] - begin) / span,
        Y=np.nan_to_num((Y[told] - location[:, None]) / scale[:, None]).round(9),
        mask=mask[told],
    )
    state = State(
        kernels=tuple(kernel.change_units(1.0 / span, -begin / span) for kernel in fit.kernels),
        Z=fit.Z[told],
        noise_variance=fit.noise_variance[told] / np.square(scale),
        log_heights=None
        if fit.heights is None
        else np.log(fit.heights[told] / np.square(scale)[:, None]),
    )
    learner = Learner(past, settings, np.random.default_rng(0))
    with single_threaded():
        state = learner.refine(state, rounds, _MAX_ITERATIONS)
    x = (observations.x[rows] - begin) / span
    scaled_mean, scaled_variance = _predict(state, past, x, prior_degrees)
    # In the units of the whole table, so that windows compare.
    mean[told] = scaled_mean * scale[:, None] + location[:, None]
    variance[told] = scaled_variance * np.square(scale)[:, None]
    return HeldOut(mean, variance, degrees)


def _predict(state: State, past: Observations, x: Floats, degrees: float) -> tuple[Floats, Floats]:
    r"""Mean and variance of new observations at times x, [N, M].

    .. math:: C_* V^{-1} y, \qquad \mathrm{diag}(C_{**} - C_* V^{-1} C_*^\top) + \sigma^2,

    the variance times ``(v + y' V^-1 y) / (v + D - 2)`` for scales of v degrees of freedom.
    """
    D, noise_variance = len(past.x), np.maximum(state.noise_variance, _LEAST_NOISE)
    C = components(state.kernels, np.concatenate([past.x, x]))
    moments = []
    for y, mask, z, noise in zip(past.Y, past.mask, state.loadings, noise_variance, strict=True):
        seen = np.flatnonzero(mask)
        total = np.tensordot(z, C, axes=1)
        L, failed = dpotrf(total[np.ix_(seen, seen)] + noise * np.eye(len(seen)), lower=1)
        if failed:
            raise ValueError("the covariance of a series is not positive definite")
        white = solve_triangular(L, np.column_stack([total[seen, D:], y[seen]]), lower=True)
        K, own = white[:, :-1], white[:, -1]
        variance = total.diagonal()[D:] - np.square(K).sum(axis=0) + noise
        if np.isfinite(degrees):
            variance *= (degrees + own @ own) / (degrees + len(own) - 2.0)
        moments.append((own @ K, variance))
    mean, variance = zip(*moments, strict=True)
    return np.array(mean), np.array(variance)

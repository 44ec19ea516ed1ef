"""A discovery goes on to a longer table: what was found moves with the data, nothing is searched.

No forecaster has seen the new rows, so they are one more window of the past for the weights
(`stacking.weigh`); and what was forecast of them says whether the patterns still hold.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pandas as pd
from scipy.special import ndtr, ndtri, softmax

from ..data.checks import checked
from ..data.foreign import Tabular
from ..data.observations import Observations
from ..data.suspicious import without
from ..data.tables import Suspicious, Table
from ..fit.fits import Fit, FitSettings, State
from ..fit.initialization import walks_begin
from ..fit.training import Learner, most_times
from ..forecast.forecasters import Ensemble, Member, counting
from ..forecast.held_out import HeldOut, Window, score_of_window, windows
from ..forecast.predictors import Predictors
from ..forecast.stacking import shared_out
from ..gp.types import Floats
from ..runtime.executors import run_all
from ..runtime.progress import Progress, part_of
from ..runtime.text import counted, listed, quoted
from ..runtime.threads import single_threaded
from ..runtime.warn import warn

_ROUNDS = 2
"""Of hyperparameters and the posterior over Z, in turn: they begin near their optimum."""

_DRAWS = 1000
"""Paths that a forecast is compared with."""

_LEVEL = 0.9
"""Probability of the intervals that new values are counted in."""

STRANGE = 0.01
"""A new search is advised if new values are so improbable, whatever the number of series."""

_MOST_NAMED = 6

_LEAST = 1e-300
"""Weight of a forecaster that has none."""


# --- the table ---


def longer(before: Table, frame: Tabular, suspicious: Suspicious, settings: FitSettings) -> Table:
    """Return the longer table; a ValueError says what does not go on from the one before."""
    old, sound = before.frame, checked(frame)
    if set(sound.columns) != set(old.columns):
        raise ValueError(
            f"expected the series of the discovery, {quoted(old.columns)}, got "
            f"{quoted(sound.columns)}: leave out others, or discover the table anew"
        )
    before.axis.to_numbers(sound.index)  # or say that its times are of another sort
    table = Table.of(sound[list(old.columns)], before.transform, suspicious, before.kinds or "none")
    absent = old.index.difference(table.frame.index)
    if len(absent):
        raise ValueError(
            f"expected all {len(old)} times of the discovery and later ones, got a table without "
            f"{len(absent)} of them, the first {absent[0]}: append the new rows to the old table, "
            "with NaN for values that are no longer known, or discover the table anew"
        )
    if len(table.frame) > (most := most_times(table.observations, settings)):
        raise ValueError(
            f"expected at most {most:g} times, got {len(table.frame)}: "
            "drop old ones, or bring them to larger steps, and discover the table anew"
        )
    _check_steps(old.index, table)
    _warn_of_what_was_left_out(old, table)
    return table


def _warn_of_what_was_left_out(old: pd.DataFrame, table: Table) -> None:
    """Warn of values that look wrong, where the discovery has none: it may have left them out."""
    again = table.frame.loc[old.index]
    left = without(table.frame, table.with_suspicious).loc[old.index]
    back = old.isna() & again.notna() & left.isna()
    if back.to_numpy().any():
        names = list(old.columns[back.any()])
        warn(
            f"{counted(int(back.to_numpy().sum()), 'value')} of {quoted(names)} that look wrong, "
            f"the first at {old.index[back.any(axis=1)][0]}, were missing before: "
            "suspicious='missing' (--drop-suspicious) leaves them out again"
        )


def _check_steps(old: pd.Index, table: Table) -> None:
    """Refuse new rows that are far denser than the old ones, or far sparser."""
    new = table.frame.index[table.frame.index >= old[-1]]
    if len(new) < 2:
        return
    before, after = (np.diff(table.axis.to_numbers(each)) for each in (old, new))
    # A gap is no other step, unless all steps are as long.
    is_sparse = len(after) > 2 and after.min() > 1.5 * before.max()
    if after.min() < 0.5 * before.min() or is_sparse:
        k, unit = int(np.argmin(after)), table.axis.unit
        raise ValueError(
            f"expected new rows at steps of about {np.median(before):g} {unit or 'units'}, as "
            f"before, got {after[k]:.3g} from {new[k]} to {new[k + 1]}: bring them to the same "
            "steps, or discover the table anew"
        )


def differences(old: pd.DataFrame, new: pd.DataFrame) -> tuple[pd.Index, int, int]:
    """Return the times after the old ones, and count other new rows, and values that have changed.

    A value that has appeared or gone at a time that was there has changed, too.
    """
    later = new.index[new.index > old.index[-1]]
    a, b = old.to_numpy(), new.loc[old.index].to_numpy()
    revised = int(np.sum((a != b) & ~(np.isnan(a) & np.isnan(b))))
    return later, len(new.index.difference(old.index).difference(later)), revised


# --- the fits ---


def moved(
    members: Sequence[Member],
    before: Table,
    table: Table,
    settings: FitSettings,
    executor: Executor | None,
    progress: bool | Progress,
) -> list[Member]:
    """Learn fits again on a table that has changed a little, each from its own numbers."""
    heavy = {id(each.fit) for each in counting(members)}
    jobs = {
        number: partial(
            _moved, each, before, table, settings, rounds=_ROUNDS if id(each.fit) in heavy else 0
        )
        for number, each in enumerate(members)
    }
    fits = {}
    with part_of(progress, "new rows", len(jobs)) as bar:
        for number, fit in run_all(jobs, executor, hear=bar.hear):
            fits[number] = fit
            bar.update()
    return [replace(each, fit=fits[number]) for number, each in enumerate(members)]


def _moved(member: Member, before: Table, table: Table, settings: FitSettings, rounds: int) -> Fit:
    began = time.perf_counter()
    observations = table.observations
    first, last = table.scaled_times(before.frame.index[[0, -1]])
    start = walks_begin(observations.x)
    state = State.of(member.fit)
    state = replace(
        state,
        kernels=tuple(
            kernel.change_units(float(last - first), float(first)).beginning_at(start)
            for kernel in state.kernels
        ),
        noise_variance=state.noise_variance * np.square(before.scale / table.scale),
    )
    settings = replace(settings, exact=member.exact)
    learner = Learner(observations, settings, np.random.default_rng(0))
    with single_threaded():
        return learner.finish(state, began, rounds)


def weighed(
    every: Ensemble, table: Table, moved: Sequence[Member], new: pd.Index
) -> tuple[Member, ...]:
    r"""Weigh forecasters by how they forecast the new rows, on top of what they weighed before.

    .. math:: w_f' \propto w_f \exp(m \ell_f / h)

    with l the score of the m new rows as if they were a window (`held_out.score_of_window`), and h
    the rows of a window.  The fits of the search divide what they have together as in `weigh`.
    """
    x, seen = every.table.scaled_times(new), _of_rows(every.table, table.frame.loc[new])
    size = windows(len(table.frame))[-1]
    scores = [_score(each, x, seen, every.predictors) for each in every.members]
    weights = np.array([each.weight for each in every.members])
    parts = len(new) / (size.end - size.begin)
    weights = softmax(np.log(np.maximum(weights, _LEAST)) + parts * np.array(scores))
    return shared_out(
        [replace(each, weight=w) for each, w in zip(moved, weights.tolist(), strict=True)]
    )


def _of_rows(before: Table, rows: pd.DataFrame) -> Observations:
    """Return new rows on the scales of the table before them."""
    values = (before.transforms.forward(rows.to_numpy()) - before.location) / before.scale
    mask = np.isfinite(values).T.astype(np.float64)
    return Observations(before.scaled_times(rows.index), np.nan_to_num(values).T, mask)


def _score(each: Member, x: Floats, seen: Observations, asked: Predictors) -> float:
    """Mean log density of the new rows in the forecast that was made of them; see `weighed`."""
    if not len(x):
        return 0.0
    mean, variance = each.moments(x, asked)
    return score_of_window(HeldOut(mean.T, variance.T), seen, Window(0, len(x)))


# --- the new rows ---


@dataclass(frozen=True)
class Surprise:
    r"""New values beside what was forecast of them.

    The mean log density of the new values of a series is compared with that of paths drawn from
    the forecast itself: p is the share of paths that are at least as improbable.  Its normal scores
    z add up over all updates since the search, so that small surprises that never end count, too:

    .. math:: p_n = P(\ell_n^{\mathrm{path}} \le \ell_n), \qquad z_n = \Phi^{-1}(p_n), \qquad
       p_n^{\mathrm{all}} = \Phi\Big(\frac{1}{\sqrt U} \sum_{u=1}^U z_{nu}\Big)

    Both are multiplied by the number of series (Bonferroni), which allows for any dependence of
    the series.

    Parameters
    ----------
    names
        Of the series.
    scores
        z of each series; NaN where nothing was observed.
    sums
        The sum of z over all updates, divided by the root of their number.
    inside, count
        How many of how many new values fell into the intervals that were forecast.
    """

    names: tuple[str, ...]
    scores: tuple[float, ...]
    sums: tuple[float, ...]
    inside: int
    count: int

    @classmethod
    def of(
        cls,
        ensemble: Ensemble,
        rows: pd.DataFrame,
        earlier: Sequence[Sequence[float]],
        seed: int,
    ) -> Surprise:
        """Compare new rows with what was forecast of their times; z of `earlier` updates count."""
        N, M = len(rows.columns), len(rows)
        names, values = tuple(ensemble.table.names), rows.to_numpy().T.ravel()
        seen = np.isfinite(values)
        if not seen.any():
            nothing = (np.nan,) * N
            return cls(names, nothing, nothing, 0, 0)
        told = ensemble.at(rows.index)
        drawn = told.samples(_DRAWS, seed=seed).to_numpy().T  # [T, N M]
        every = np.where(seen, told.log_density(np.vstack([values, drawn])), 0.0)
        own = every.reshape(-1, N, M).sum(axis=2)  # [1 + T, N]
        sd = own[1:].std(axis=0)
        z = (own - own[1:].mean(axis=0)) / np.where(sd > 0.0, sd, 1.0)
        # Forecasts of one length err in one way: the paths of all series stand for each.
        is_seen = seen.reshape(N, M).any(axis=1)
        paths = np.sort(z[1:, is_seen].ravel())
        p = (np.searchsorted(paths, z[0], side="right") + 0.5) / (len(paths) + 1.0)
        scores = np.where(is_seen, ndtri(p), np.nan)
        history = np.array([*earlier, scores]).reshape(-1, N)
        counts = np.isfinite(history).sum(axis=0)
        sums = np.nansum(history, axis=0) / np.sqrt(np.maximum(counts, 1))
        lower, upper = told.quantile(0.5 - 0.5 * _LEVEL), told.quantile(0.5 + 0.5 * _LEVEL)
        inside = int(((values >= lower) & (values <= upper)).sum())
        return cls(names, tuple(scores.tolist()), tuple(sums.tolist()), inside, int(seen.sum()))

    @property
    def advice(self) -> str:
        """Advise a new search if new values are too improbable; empty if they are not."""
        now, ever = (
            np.nan_to_num(ndtr(np.array(each)) * len(self.names), nan=1.0)
            for each in (self.scores, self.sums)
        )
        strange = np.minimum(now, ever) < STRANGE
        if not strange.any():
            return ""
        names = [name for name, each in zip(self.names, strange, strict=True) if each]
        when = "" if np.any(now[strange] < STRANGE) else " since the search"
        return (
            "Search again (`discover`; at the command line --force): the new values of "
            f"{listed(names, _MOST_NAMED)}{when} are further from the forecast than "
            "chance explains, so the patterns may have changed."
        )


def said(new: pd.Index, others: int, revised: int, surprise: Surprise) -> str:
    """Say what is new in a table, how it compares with its forecast, and what to do."""
    parts = []
    if len(new):
        parts.append(f"{counted(len(new), 'new row')} up to {new[-1]:{_date_format(new)}}")
    if others:
        parts.append(f"{counted(others, 'row')} between or before the old ones")
    if revised:
        parts.append(counted(revised, "revised value"))
    text = listed(parts)
    if surprise.count:
        text += (
            f": {surprise.inside} of {counted(surprise.count, 'new value')} fell into "
            f"the {_LEVEL:.0%} intervals that were forecast"
        )
    return " ".join(filter(None, [f"{text}.", surprise.advice]))


def _date_format(times: pd.Index) -> str:
    """Format of times in a sentence: no hours where there are none."""
    if not isinstance(times, pd.DatetimeIndex):
        return ".10g"
    return "%Y-%m-%d" if (times == times.normalize()).all() else "%Y-%m-%d %H:%M"

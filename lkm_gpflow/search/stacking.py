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
from scipy.special import softmax

from ..data.observations import Observations
from ..kernels.grammar import parse
from ..learning.fits import Fit, FitSettings
from ..learning.training import fit
from ..runtime.budget import Spent, never_spent
from ..runtime.executors import run_all, single_threaded
from ..runtime.progress import Progress
from .averaging import Member, different
from .held_out import held_out_score, windows
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

"""Weights of several forecasters from windows that they have not seen.

How well a structure explains the past says little about how well it forecasts: the likelihood
compares one-step forecasts, and the richer structure nearly always wins.  So every fit forecasts
windows of the past: it is learnt again from what came before a window, and scored on it.  Walks,
with and without a season, compete with the best fits of a search: somebody who found nothing would
forecast like them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np
from scipy.special import softmax

from ..data.observations import Observations
from ..fit.fits import Fit, FitSettings
from ..fit.training import fit
from ..kernels.grammar import Product, parse
from ..runtime.budget import Spent, never_spent
from ..runtime.executors import num_workers, run_all
from ..runtime.progress import Progress, part_of
from ..search.ledger import Ledger, different, fit_from_json, fit_to_json
from ..search.settings import SearchSettings, size_of_work
from .forecasters import LITTLE_WEIGHT, Kind, Member, weighted

TEMPERATURE = 3.0
"""T of the weights: ten searches of one table agree on Z up to 3, and no longer with 4 and more
(`paper_experiments`: recovery, agreement and calibration)."""

MOST = 10
"""How many fits of the search are asked."""


def average_fits(fits: Sequence[Fit], temperature: float = TEMPERATURE) -> list[Member]:
    r"""Weigh the best fits of a search, `MOST` at most.

    .. math:: w_m \propto \exp(-\mathrm{BIC}_m / 2 T)

    With T = 1 a single fit would have nearly all of the weight, as if BIC were the evidence: it is
    an approximation, and two searches of one table end several nats apart.  With a larger T fits
    that are so many nats behind still count.

    Parameters
    ----------
    fits
        All fits; of those that found the same optimum one counts.
    temperature
        T.
    """
    best = different(fits)[:MOST]
    weights = softmax([-fit.criterion / (2.0 * temperature) for fit in best])
    return [Member(fit, float(w)) for fit, w in zip(best, weights, strict=True)]


WALKS: tuple[tuple[Kind, tuple[str, ...]], ...] = (
    ("walk", ("C", "RW", "RW", "RW")),
    ("walk", ("C", "IOU", "IOU")),
    ("seasonal walk", ("C", "IOU", "IOU", "PER", "PER x RW")),
    ("seasonal walk", ("C", "OU", "OU", "PER", "PER x RW")),
    ("seasonal walk", ("C", "RW", "OU", "SE", "PER")),
)
"""Structures that only wander, and those that also have a season or return to their mean, where
series do.

Walks of different variance let series differ in theirs.  A "walk" is learnt twice: seen with noise,
and seen almost exactly (`FitSettings.exact`).  OU, which returns, need not be among the bases.
{C, OU, OU} as a "walk" would lower CRPS of the benchmark by another 0.3%, but its forecasts of
prices return too soon: at rolling origins of the paper's tables CRPS is 0.4 to 3% higher.
"""

PRIOR: Mapping[Kind, float] = MappingProxyType({"walk": 0.96, "seasonal walk": 0.02, "found": 0.02})
"""What each kind of forecaster weighs before any window is looked at.

Chosen on windows of the 24 tables of the benchmark that choose, of 24 others, and on rolling
origins of the paper's tables, while a vector autoregression had half of the weight beside them.
How it is divided hardly matters on the former two; on the latter CRPS is 1.7% larger with 0.2 for
the search and 0.2 for walks with a season.
"""

PRIOR_OF_CYCLES: Mapping[Kind, float] = MappingProxyType(
    {"walk": 1.0 / 3.0, "seasonal walk": 1.0 / 3.0, "found": 1.0 / 3.0}
)
"""The same where the fits of the search agree that something repeats in cycles (`AGREED`).

Chosen in the same way with the last two `WALKS` on the 24 tables of the benchmark that choose:
together they lower CRPS by 1.1% or, with other random numbers, 0.7% (standard errors 0.6, 0.5%).
Rolling origins of the paper's tables have no such cycle.
"""

AGREED = 0.9
"""From this weight on, of the fits of the search that have a cycle, they agree on one."""

_DOUBT = 8.0
"""Temperature of the weights by which they agree, flatter than that of their average.

Fits that are well behind the best have little weight, but that they need no cycle is a reason not
to presume one.
"""

_LEAST = 1e-300
"""Weight of the fits of the search where walks forecast infinitely better."""

NUM_STARTS = 4
"""Walks are cheap: they are learnt from more starts, so that every seed finds the same."""


_SECONDS = 8e-5
"""Processor seconds of `hold_out`, per series and squared number of times."""


def expected_seconds_of_windows(observations: Observations, parallel: int = 1) -> float:
    """Return about how long `hold_out` takes, so many jobs at a time."""
    N, D = observations.Y.shape
    return _SECONDS * size_of_work(D, N) / parallel


def hold_out(
    fits: Sequence[Fit],
    observations: Observations,
    settings: SearchSettings,
    ledger: Ledger,
    *,
    executor: Executor | None = None,
    progress: bool | Progress = True,
    spent: Spent = never_spent,
) -> None:
    """Let the best fits of a search, and walks, forecast windows of the past; `weigh` comes next.

    Parameters
    ----------
    fits
        All fits of the search; the best that differ take part, of a long table (`limits.LONG`)
        those that have any weight by BIC.
    observations
        The scaled data.
    settings
        Of the search.
    ledger
        Notes the walks, and the scores of each forecaster, so that a stopped call can continue.
    executor
        Runs the fits and the windows; None: this process.
    progress
        Whether to show a progress bar; or one that is open.
    spent
        Says when to stop.

    Raises
    ------
    OutOfBudget
        If it was stopped so; `weigh` makes the best of what the ledger has noted.
    """
    walks = {
        f"walk {i}": partial(_learn, observations, walk, (settings.seed, i))
        for i, walk in enumerate(_walks(settings))
        # On a long table the prior of the noise counts for nothing.
        if walk[2].exact == settings.fit.exact or not observations.is_long
    }
    found = _found(fits, settings)
    if observations.is_long:  # there fits are far apart, and windows dear
        shares = [each.weight for each in average_fits(fits, _DOUBT)]
        found = [each for each, w in zip(found, shares, strict=True) if w > LITTLE_WEIGHT]
    total = 2 * len(walks) + len(found)
    with part_of(progress, "forecast weights", total) as bar:
        bar.left(expected_seconds_of_windows(observations, num_workers(executor)))
        remember = partial(_remember, ledger, executor=executor, bar=bar, spent=spent)
        remember(walks)
        # The best fit of the search first: it is in the forecast whenever the budget ends.
        asked = [*found[:1], *_learnt(settings, ledger), *found[1:]]
        remember(
            {each.note: partial(each.held_out_scores, observations, settings.fit) for each in asked}
        )


def weigh(fits: Sequence[Fit], settings: SearchSettings, ledger: Ledger) -> tuple[Member, ...]:
    r"""Weigh the best fits of a search, and walks, by how they forecast windows of the past.

    .. math:: w_m \propto \pi_m \exp \Big( \sum_w \ell_{mw} \Big)

    with l the mean log density of the observations in window w (`held_out.score_of_window`): errors
    within a window are correlated, over time and over series, so a window counts as one
    observation, however many it has.  The prior :math:`\pi` gives each kind of forecaster its share
    of `PRIOR`, or of `PRIOR_OF_CYCLES`, in equal parts.
    What the fits of the search come to together is then divided among them, see `shared_out`.

    Parameters
    ----------
    fits, settings, ledger
        As of `hold_out`; those whose windows the ledger has noted are weighed.

    Returns
    -------
    The forecasters, the heaviest first; their weights add up to one.  Nothing where no fit of the
    search is among them.
    """
    found = _noted(_found(fits, settings), ledger)
    if not found:
        return ()
    noted = [*_noted(_learnt(settings, ledger), ledger), *found]
    is_agreed = _agree_on_a_cycle(average_fits([each.fit for each in found], _DOUBT))
    prior = PRIOR_OF_CYCLES if is_agreed else PRIOR
    sizes = Counter(each.kind for each in noted)
    score = np.array([sum(ledger.notes[each.note]) for each in noted])
    weights = softmax(score + np.log([prior[each.kind] / sizes[each.kind] for each in noted]))
    return shared_out(
        [replace(each, weight=w) for each, w in zip(noted, weights.tolist(), strict=True)]
    )


def shared_out(members: Sequence[Member]) -> tuple[Member, ...]:
    """Divide what the fits of the search weigh together by how well they explain all of the data.

    A few windows tell a search from a walk, but not which of its fits is right, and statements
    about components rest on these weights, too (`average_fits`).

    Returns
    -------
    The forecasters, the heaviest first.
    """
    walks = [each for each in members if each.is_walk]
    found = [each for each in members if not each.is_walk]
    share = max(sum(each.weight for each in found), _LEAST)
    found = weighted(average_fits([each.fit for each in found]), share)
    return tuple(sorted([*walks, *found], key=lambda each: -each.weight))


def _agree_on_a_cycle(found: Sequence[Member]) -> bool:
    """Whether nearly all of the weight is on fits in which some series has a cycle."""
    cyclic = [
        member.weight
        for member in found
        if any(factor.base.name == "PER" for k in member.fit.kernels for factor in k.factors)
    ]
    return sum(cyclic) >= AGREED


_Walk: TypeAlias = tuple[Kind, list[Product], FitSettings]
"""A structure that is learnt beside the search, and how."""


def _walks(settings: SearchSettings) -> list[_Walk]:
    """Walks that the bases allow; OU is allowed always."""
    walks: list[_Walk] = []
    for kind, structure in WALKS:
        kernels = list(map(parse, structure))
        if {factor.base.name for each in kernels for factor in each.factors} <= {
            *settings.bases,
            "OU",
        }:
            ways = [settings.fit]
            if kind == "walk":
                ways = [
                    replace(settings.fit, exact=e, num_starts=NUM_STARTS) for e in (False, True)
                ]
            walks += [(kind, kernels, way) for way in ways]
    return walks


def _learnt(settings: SearchSettings, ledger: Ledger) -> list[Member]:
    """Return the walks that the ledger has."""
    return [
        Member(fit_from_json(ledger.notes[f"walk {i}"]), 0.0, kind, way.exact)
        for i, (kind, _, way) in enumerate(_walks(settings))
        if f"walk {i}" in ledger.notes
    ]


def _found(fits: Sequence[Fit], settings: SearchSettings) -> list[Member]:
    """Return the best fits of the search that differ."""
    return [Member(fit, 0.0) for fit in different(fits)[:MOST]]


def _noted(forecasters: Sequence[Member], ledger: Ledger) -> list[Member]:
    """Return the forecasters whose windows the ledger has a note of."""
    return [each for each in forecasters if each.note in ledger.notes]


def _remember(
    ledger: Ledger,
    jobs: Mapping[str, Callable[[], Any]],
    executor: Executor | None,
    bar: Progress,
    spent: Spent,
) -> None:
    """Run the jobs that the ledger has no note of, and note what comes out."""
    jobs = {key: job for key, job in jobs.items() if key not in ledger.notes}
    for key, result in run_all(jobs, executor, spent, bar.hear):
        ledger.note(key, result)
        bar.update()


def _learn(observations: Observations, walk: _Walk, seed: Sequence[int]) -> dict[str, Any]:
    """Learn a walk, in JSON's types."""
    # Far from the seeds of the search, which are (seed, step, restart).
    (first, *rest), (_, kernels, way) = seed, walk
    return fit_to_json(fit(observations, kernels, seed=(first, 1_000_000, *rest), settings=way))

"""From a table of series to a discovered model: the package's main entry."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from pathlib import Path
from typing import TYPE_CHECKING

from ..data.doubts import doubts
from ..data.foreign import Tabular
from ..data.tables import Table
from ..data.transforms import Transform
from ..fit.fits import Criterion, LearnerName, PriorName
from ..forecast.autoregression import Autoregression, Calendar, OfTable
from ..forecast.averaging import LITTLE_WEIGHT
from ..gp.likelihoods import LikelihoodName, SeriesLikelihood
from ..kernels.grammar import EXTENDED_BASES
from ..model.annealing import Annealing
from ..runtime.budget import Guard
from ..runtime.executors import check_executor, kept_in
from ..runtime.warn import warn
from ..search.ledger import Ledger
from ..search.settings import SearchSettings, Strategy, base_names, check_size, ledger_header
from .options import choose_averaging, fit_settings
from .pipeline import Learnt, learn_in_steps
from .result import Averaging, Discovery

if TYPE_CHECKING:
    from ..model.lkm import LKM


def discover(
    frame: Tabular,
    *,
    transform: Transform | None = None,
    bases: Sequence[str] = EXTENDED_BASES,
    depth: int = 2,
    restarts: int = 3,
    strategy: Strategy = "partial",
    alpha: float = 1.0,
    priors: bool = True,
    learner: LearnerName = "scan",
    prior: PriorName = "finite",
    model: type[LKM] | None = None,
    annealing: Annealing | None = None,
    likelihood: LikelihoodName | SeriesLikelihood | None = None,
    criterion: Criterion | None = None,
    averaging: Averaging | None = None,
    subset: int | None = None,
    seed: int = 0,
    ledger: str | Path | None = None,
    executor: Executor | None = None,
    time_budget: float | str | None = None,
    memory_budget: float | str | None = None,
    progress: bool = True,
) -> Discovery:
    """Discover which patterns several time series share and which are their own.

    Parameters
    ----------
    frame
        Rows are times (dates or numbers), columns are series, NaN is a missing observation; of
        pandas, polars, PyArrow or xarray (see `data.foreign.as_frame`).
    transform
        "log": model the logarithms of the series, which must be positive; results are in the units
        of the data, and patterns are percentages.  ``{"Gold": "log"}``: only of these series.
        "auto": only of series whose swings clearly grow with their level
        (`data.box_cox.log_gain`).  By default "auto", with the paper's learners "none".
    bases
        Base kernels of the grammar; `PAPER_BASES` are those of the paper.  With "CP" among them the
        search also tries change points: patterns that end or begin at some time (`change_point`).
    depth
        How often every component may be expanded into products.
    restarts
        Fits of each structure from different random numbers.
    strategy
        "partial" set expansion (the paper's algorithm 1; with the learner "scan", pairs of
        components are multiplied in the end, and products split) or "full".
    alpha
        Concentration of the Indian Buffet Process; larger means more components per series.
    priors
        Weak priors on the hyperparameters.
    learner
        "scan": components enter one by one, and the rows of Z are enumerated (see `training`).
        "relaxed": the paper's section 4 and algorithm 1, nothing else (see `relaxed`); of its
        `restarts` the one with the largest bound wins.
    prior
        Over Z: "finite"; with the learner "relaxed" also "infinite" (stick breaking).  The others
        need log p(Z) in closed form, which the infinite prior does not have.
    model
        A subclass of `LKM` that overrides `component_covariances`; its trainable parameters are
        learnt with the others.  It is built with the arguments of `LKM`.  None: `LKM`.
    annealing
        How the learner "relaxed" climbs its bound; None: 300 steps of Adam while the temperature
        falls from 1 to 0.3, then blocks of 50, at most ten, until one gains less than half a nat.
    likelihood
        How a series scatters around its covariance: "gaussian" (the paper), "scaled" (a scale of
        each series is integrated out, so that series may show a pattern at different heights), or
        an object (see `gp.likelihoods`).  By default "scaled", with the learner "relaxed"
        "gaussian".
    criterion
        The score that compares structures: "bic" (the paper) or "bic+prior" (with the prior of Z).
        By default "bic+prior", with the learner "relaxed" "bic".
    averaging
        "stacked": forecasts average over the best fits, over walks and, of 2 to 50 series, over a
        vector autoregression, weighted by how they forecast windows of the past (see `stacking`);
        "tempered": over the best fits, weighted by BIC; "none": the best fit alone (the paper).
        Components and probabilities are those on
        which the fits of the search agree, with the same weights.  By default "stacked", with a
        subset "tempered", with the learner "relaxed" "none".
    subset
        For thousands of series: search on this many, drawn at random, then learn the best fits
        again on all series; of more than 1,000 series, learn the best fits on 1,000 first, and the
        best of these on all (see `search.many_series`).
        The subset decides which structures are tried and where learning on all series begins;
        bound, probabilities and BIC of the result are exact, for all series.
    seed
        The same seed gives the same result, whatever the executor.
    ledger
        File to which every fit is written when it is done.  A search that was stopped continues
        from it.
    executor
        Runs the fits, for example `lkm_gpflow.process_pool()` or that of a Dask client; None:
        this process.
    time_budget
        Seconds, or a text such as "10m", after which search and averaging end with the best result
        so far, and `Discovery.stopped` says so.  If averaging follows, the search ends after three
        quarters of the time.  The first fit, and a fit under way in this process, are always
        finished; fits of an executor are not waited for.  A later call with the same ledger
        continues.
    memory_budget
        The same for bytes, or a text such as "4GB"; see `budget.resident_memory`.
    progress
        Whether to show a progress bar.

    Raises
    ------
    ValueError
        If the table or a setting is wrong; the message says what was expected, what was given, and
        where.  Also if the table has more than ``LKM.LONGEST`` times: see `thin` and
        `refit_sparse`.
    OSError, WorkersLost
        If the ledger cannot be written, or workers are lost for good; the message says how to
        continue.
    KeyboardInterrupt
        After Ctrl-C; the message says how to continue.

    Warns
    -----
    UserWarning
        If the table has more than 1,000 times, more than 50 series without a subset, fewer than
        20 times, only one series, or a value far from all others.
    """
    steps = discover_steps(
        frame,
        transform=transform,
        bases=bases,
        depth=depth,
        restarts=restarts,
        strategy=strategy,
        alpha=alpha,
        priors=priors,
        learner=learner,
        prior=prior,
        model=model,
        annealing=annealing,
        likelihood=likelihood,
        criterion=criterion,
        averaging=averaging,
        subset=subset,
        seed=seed,
        ledger=ledger,
        executor=executor,
        time_budget=time_budget,
        memory_budget=memory_budget,
        progress=progress,
    )
    try:
        (found,) = deque(steps, maxlen=1)
    except KeyboardInterrupt as stopped:
        raise stopped.with_traceback(None) from None
    return found


def discover_steps(
    frame: Tabular,
    *,
    transform: Transform | None = None,
    bases: Sequence[str] = EXTENDED_BASES,
    depth: int = 2,
    restarts: int = 3,
    strategy: Strategy = "partial",
    alpha: float = 1.0,
    priors: bool = True,
    learner: LearnerName = "scan",
    prior: PriorName = "finite",
    model: type[LKM] | None = None,
    annealing: Annealing | None = None,
    likelihood: LikelihoodName | SeriesLikelihood | None = None,
    criterion: Criterion | None = None,
    averaging: Averaging | None = None,
    subset: int | None = None,
    seed: int = 0,
    ledger: str | Path | None = None,
    executor: Executor | None = None,
    time_budget: float | str | None = None,
    memory_budget: float | str | None = None,
    progress: bool = True,
) -> Iterator[Discovery]:
    """Discover as `discover` does, and yield a result each time a better one is found.

    The first comes when the first fit is done, long before the search ends: it has components,
    probabilities and a forecast.  The last is what `discover` returns.  Leave the loop, or press
    Ctrl-C, to keep the last result.  With a `ledger` the same call later continues from there, and
    its first result is the best in the ledger.

    >>> for found in lkm.discover_steps(frame, ledger="prices.jsonl"):    # doctest: +SKIP
    ...     print(found.bic, found.kernels)

    Parameters
    ----------
    frame, transform, bases, depth, restarts, strategy, alpha, priors, learner, prior, model
        As of `discover`.
    annealing
        As of `discover`.
    likelihood, criterion
        As of `discover`.
    averaging, subset, seed, ledger
        As of `discover`.  Forecasts average over the fits so far, weighted by BIC, until held-out
        windows weigh them at the end.  With a subset only the last result is yielded.
    executor, time_budget, memory_budget, progress
        As of `discover`; a time budget begins with the call.

    Yields
    ------
    Discovery
        Each of a lower BIC than the one before, then the whole.

    Raises
    ------
    ValueError
        As `discover`, at once.
    OSError, WorkersLost
        As `discover`.

    Warns
    -----
    UserWarning
        As `discover`.
    """
    guard = Guard(time_budget, memory_budget)
    fit = fit_settings(
        learner, prior, model, annealing, likelihood, criterion,
        alpha=alpha, priors=priors,
    )  # fmt: skip
    averaging = choose_averaging(averaging, learner, subset)
    if transform is None:
        transform = "auto" if learner == "scan" else "none"
    check_executor(executor)
    settings = SearchSettings(base_names(bases), depth, restarts, strategy, seed, fit)
    table = Table.of(frame, transform)
    check_size(*table.frame.shape, subset)
    for doubt in doubts(table.frame):
        warn(doubt)
    observations = table.observations
    header = ledger_header(settings, table, subset)
    kept = Ledger(header, None if ledger is None else Path(ledger))
    learnt = learn_in_steps(
        observations, settings, kept, guard,
        subset=subset, stacks=averaging == "stacked", calendar=Calendar.of(table),
        executor=executor, progress=progress,
    )  # fmt: skip
    return _discoveries(table, settings, averaging, learnt, ledger)


def _discoveries(
    table: Table,
    settings: SearchSettings,
    averaging: Averaging,
    steps: Iterator[Learnt],
    ledger: str | Path | None,
) -> Iterator[Discovery]:
    with kept_in(ledger, "ledger"):
        for learnt in steps:
            weight = learnt.stack.autoregression
            yield Discovery(
                table, settings, averaging, learnt.entries, learnt.stack.members, learnt.stopped,
                Autoregression(OfTable(table, settings.seed), weight)
                if weight > LITTLE_WEIGHT
                else None,
            )  # fmt: skip

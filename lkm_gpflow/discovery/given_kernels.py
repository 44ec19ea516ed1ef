"""Learn kernels that are given: no search, any number of series."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import Executor
from functools import partial
from pathlib import Path

import numpy as np

from ..data.foreign import Tabular
from ..data.tables import Table
from ..data.transforms import Transform
from ..fit.fits import FitSettings
from ..fit.training import fit
from ..gp.likelihoods import LikelihoodName, SeriesLikelihood, likelihood_of
from ..kernels.grammar import Kind, Product, parse
from ..runtime.arguments import check_switch
from ..runtime.executors import check_executor, kept_in, run_all
from ..runtime.progress import part_of
from ..search.ledger import Entry, Ledger
from ..search.many_series import decided, extend_best, extended
from ..search.settings import SearchSettings, draw, ledger_header
from .result import Discovery

_LONGEST = {Kind.PERIOD: 1.0, Kind.DURATION: 20.0, Kind.MEMORY: 20.0}
"""Largest times that make sense, as shares of the table's: longer periods were not seen to repeat.
"""


def learn(
    frame: Tabular,
    structure: Sequence[str | Product],
    *,
    transform: Transform = "none",
    subset: int | None = None,
    restarts: int = 3,
    alpha: float = 1.0,
    priors: bool = True,
    likelihood: LikelihoodName | SeriesLikelihood = "gaussian",
    seed: int = 0,
    ledger: str | Path | None = None,
    executor: Executor | None = None,
    progress: bool = True,
) -> Discovery:
    """Learn which series has which of the given components, and their hyperparameters.

    Parameters
    ----------
    frame
        Rows are times (dates or numbers), columns are series, NaN is a missing observation; of
        pandas, polars, PyArrow or xarray (see `data.foreign.as_frame`).
    structure
        The components, for example ``["SE", "SE", "PER x SE"]``; numbers that they have are where
        learning begins.  They are shares of the time that the table spans: `Discovery.kernels`,
        which are in days or numbers of the index, must be divided by it.
    transform
        As of `discover`.
    subset
        For thousands of series: find the components on so many of them, drawn at random, then
        learn hyperparameters, noise and probabilities on all from there; beyond 1,000 series only
        the restart that is best on 1,000 (see `search.many_series`).  The bound is exact,
        but the optimum that is found need not be the highest.  Memory and time of a round
        grow in proportion to the number of series.
    restarts
        Fits from different random numbers; the one of lowest BIC is the result.
    alpha
        Concentration of the Indian Buffet Process.
    priors
        Weak priors on the hyperparameters.
    likelihood
        As of `discover`.
    seed
        The same seed gives the same result, whatever the executor.
    ledger
        File to which every fit is written when it is done; learning that was stopped continues from
        it.
    executor
        Runs the fits, for example `lkm_gpflow.process_pool()`; None: this process.
    progress
        Whether to show a progress bar.

    Returns
    -------
    A discovery whose entries are the restarts, with a subset those learnt on all series.  No
    component is dropped for its price in BIC; one that no series has any more is.

    Raises
    ------
    ValueError
        If the table, the structure or a setting is wrong: what was expected, what was given.
    OSError, WorkersLost
        If the ledger cannot be written, or workers are lost for good; the message says how to
        continue.
    """
    check_executor(executor)
    if isinstance(structure, str) or not isinstance(structure, Iterable):
        raise ValueError(
            f"expected a list of components such as ['SE', 'PER x SE'], got {structure!r}"
        )
    members = [_component(member) for member in structure]
    if not members:
        raise ValueError("expected a structure of at least one component, got none")
    bases = dict.fromkeys(factor.base.name for member in members for factor in member.factors)
    settings = SearchSettings(
        tuple(bases),
        depth=0,
        restarts=restarts,
        seed=seed,
        fit=FitSettings(
            alpha=alpha,
            priors=check_switch(priors, "priors"),
            prune=False,
            likelihood=likelihood_of(likelihood),
        ),
    )
    table = Table.of(frame, transform)
    _check_times(members, table)
    observations = some = table.observations
    names = tuple(str(member) for member in members)
    header = {**ledger_header(settings, table, subset), "structure": list(names)}
    if subset is not None:
        some = observations.of_series(draw(observations.num_series, subset, seed))
    kept = Ledger(header, None if ledger is None else Path(ledger))
    jobs = {
        restart: partial(fit, some, members, seed=(seed, 0, restart), settings=settings.fit)
        for restart in range(restarts)
        if (0, restart) not in kept.entries
    }
    with kept_in(ledger, "ledger"):
        with part_of(progress, "fits", len(jobs)) as bar:
            for restart, found in run_all(jobs, executor, hear=bar.hear):
                kept.add(Entry(0, restart, 0, "start", -1, names, found))
                bar.update()
        if subset is not None:
            extend_best(observations, settings.fit, kept, executor=executor, progress=progress)
    entries = decided(kept.rows) if subset is None else extended(kept)
    return Discovery(table, settings, "none", tuple(entries))


def _check_times(members: Iterable[Product], table: Table) -> None:
    """Refuse lengths of time that are given in the table's own time, not in its span."""
    for member in members:
        for factor in member.factors:
            for (name, kind), value in zip(factor.base.parameters, factor.values, strict=True):
                if value is not None and value > _LONGEST.get(kind, np.inf):
                    structure = [str(each.structure) for each in members]
                    unit = table.axis.unit or "units of the index"
                    raise ValueError(
                        f"expected the {name} of {factor.base.name} as a share of the time that "
                        f"the table spans, at most {_LONGEST[kind]:g}, got {value:g}: divide it by "
                        f"{table.span:g} {unit}, or give structures without numbers, {structure}"
                    )


def _component(member: object) -> Product:
    """Return a component that is given as such or as a text."""
    if isinstance(member, str):
        return parse(member)
    if not isinstance(member, Product):
        raise ValueError(f"expected a component such as 'PER x SE', got {member!r}")
    return member

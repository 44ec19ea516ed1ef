r"""The posterior over structures, sampled: the search proposes, a Markov chain weighs.

The chain is over columns (forms and numbers), who has them, heights and noise, given all data; see
`states` for the model and `moves` for what a sweep does.  One chain begins at the best fit of the
search and one at nothing, so that their difference says how far they are from having forgotten
where they began.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial

import numpy as np

from ..data.observations import Observations
from ..fit.fits import Fit, FitSettings
from ..fit.initialization import (
    EXACT_NOISE_VARIANCE,
    NOISE_VARIANCE,
    likely_periods,
    walks_begin,
)
from ..gp.types import Floats
from ..kernels.grammar import Product, parse, with_windows
from ..runtime.executors import num_workers, run_all
from ..runtime.news import tell
from ..runtime.progress import Progress, part_of
from ..runtime.threads import single_threaded
from ..search.settings import size_of_work
from . import moves
from .forms import Form, Forms, KernelProposal, TruncatedNormals
from .states import ColumnModel, ColumnState, Draw

_SECONDS = 2e-4
"""Processor seconds of two chains, per series and squared number of times."""


@dataclass(frozen=True)
class SamplerSettings:
    """How the posterior is sampled.

    Parameters
    ----------
    chains
        How many; the first begins at the best fit, the others at nothing.
    sweeps
        Of each chain.
    burn
        Share of the sweeps, the first ones, that is not kept.
    thin
        Every so many sweeps a draw is kept.
    num_columns
        K, most columns in use.
    height_sd
        Prior sd of log heights.
    distinct
        Largest correlation of the shapes of two columns in use.
    """

    chains: int = 2
    sweeps: int = 400
    burn: float = 0.3
    thin: int = 4
    num_columns: int = 8
    height_sd: float = 1.0
    distinct: float = 0.95


def sweep(state: ColumnState, proposal: KernelProposal, rng: np.random.Generator) -> None:
    """Every move once or a few times; then rounding errors are cleared."""
    for k in np.flatnonzero(state.used):
        moves.flip(state, k, rng)
    for k in np.flatnonzero(state.used):
        moves.height(state, k, rng)
        moves.rescale(state, k, rng)
        moves.hyperparameters(state, k, rng)
        moves.hyperparameters(state, k, rng)
        moves.jump(state, k, rng)
        moves.replace(state, k, proposal, rng)
    moves.swap(state, rng)
    moves.noise(state, rng)
    moves.swap(state, rng)
    for _ in range(2):
        moves.split_or_merge(state, rng)
    for _ in range(3):
        moves.birth_or_death(state, proposal, rng)
    state.refresh()


def library_of(fits: Sequence[Fit], observations: Observations) -> list[Product]:
    """Kernels of the fits, generic ones, and cycles at the peaks of the periodogram."""
    found = [kernel for fit in fits for kernel in fit.kernels if is_pattern(kernel)]
    texts = [f"0.5 x SE(lengthscale={lengthscale})" for lengthscale in (0.03, 0.1, 0.3, 1.0)]
    texts += [
        f"0.5 x PER(period={float(period)!r}, lengthscale=1.0)"
        for period in likely_periods(observations)
        if period < 0.6
    ]
    start = walks_begin(observations.x)
    texts += ["1.0 x LIN(location=0.5)", f"1.0 x RW(start={start!r})"]
    return [*found, *map(parse, texts)]


def is_pattern(kernel: Product) -> bool:
    """Whether a column may be such: a level is integrated out, and noise is each series' own."""
    return str(kernel.structure) not in ("C", "WN")


def forms_of(bases: Sequence[str], fits: Sequence[Fit], x: Floats) -> Forms:
    """Each base kernel that makes a pattern, and the structures of the fits."""
    own = map(parse, with_windows(bases))
    found = [kernel for fit in fits for kernel in fit.kernels]
    structures = [kernel.structure for kernel in [*own, *found] if is_pattern(kernel)]
    return Forms([Form(structure, x) for structure in dict.fromkeys(structures)])


def run_chain(
    model: ColumnModel,
    library: Sequence[Product],
    start: Fit | None,
    settings: SamplerSettings,
    seed: int | Sequence[int],
) -> tuple[Draw, ...]:
    """Run one chain from a fit, or from nothing, and return its draws."""
    rng = np.random.default_rng(seed)
    proposal = KernelProposal(model.forms, library)
    state = ColumnState(model)
    if start is not None:
        state.start(start.kernels, start.Z, start.noise_variance)
    burn = int(settings.burn * settings.sweeps)
    with single_threaded():
        draws = []
        for t in range(1, settings.sweeps + 1):
            sweep(state, proposal, rng)
            tell(partial("sweep {} of {}".format, t, settings.sweeps))
            if t > burn and (t - burn) % settings.thin == 0:
                draws.append(state.draw())
        return tuple(draws)


def expected_seconds_of_chains(observations: Observations, parallel: int) -> float:
    """Return about how long chains of the default length take, so many at a time."""
    N, D = observations.Y.shape
    return _SECONDS * size_of_work(D, N) / parallel


def sample_posterior(
    observations: Observations,
    fits: Sequence[Fit],
    bases: Sequence[str],
    fit_settings: FitSettings,
    settings: SamplerSettings,
    *,
    seed: int = 0,
    executor: Executor | None = None,
    progress: bool | Progress = False,
) -> tuple[tuple[Draw, ...], ...]:
    """Sample the posterior of a table, beginning where a search has ended.

    Parameters
    ----------
    observations
        Scaled data; gaps are left out exactly.
    fits
        The fits of the search, the best first: a proposal, and where the first chain begins.
    bases
        Names of the base kernels that columns may be made of.
    fit_settings
        With which the fits were learnt: likelihood, alpha, prior of the noise.
    settings
        See `SamplerSettings`.
    seed
        Everything random follows from it.
    executor
        Runs the chains; None: this process.
    progress
        Whether to show a progress bar; or one that is open.

    Returns
    -------
    The draws of each chain.
    """
    forms = forms_of(bases, fits, observations.x)
    if not forms.forms:
        return ((),) * settings.chains
    noise = EXACT_NOISE_VARIANCE if fit_settings.exact else NOISE_VARIANCE
    model = ColumnModel(
        observations,
        forms,
        TruncatedNormals([noise]),
        alpha=fit_settings.ibp(1).alpha,
        num_columns=settings.num_columns,
        height_sd=settings.height_sd,
        likelihood=fit_settings.likelihood,
        distinct=settings.distinct,
    )
    library = library_of(fits, observations)
    jobs = {
        c: partial(
            run_chain, model, library, fits[0] if c == 0 and fits else None, settings, (seed, c)
        )
        for c in range(settings.chains)
    }
    chains: dict[int, tuple[Draw, ...]] = {}
    parallel = min(len(jobs), num_workers(executor))
    began = time.monotonic()

    def hear(news: str) -> None:
        bar.hear(news)
        t, sweeps = map(int, news.removeprefix("sweep ").split(" of "))
        share = parallel * (len(chains) // parallel + t / sweeps) / len(jobs)
        bar.left((time.monotonic() - began) * max(1.0 / share - 1.0, 0.0))

    with part_of(progress, "statements", len(jobs)) as bar:
        bar.left(expected_seconds_of_chains(observations, parallel))
        for c, draws in run_all(jobs, executor, hear=hear):
            chains[c] = draws
    return tuple(chains[c] for c in sorted(chains))

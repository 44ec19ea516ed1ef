"""The experiment of figure 4: nu as learning goes on, with the relaxed posterior."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from lkm_gpflow.data.observations import Observations
from lkm_gpflow.data.tables import Table
from lkm_gpflow.fit.initialization import Proposer
from lkm_gpflow.gp.types import Floats
from lkm_gpflow.kernels.component import to_kernel
from lkm_gpflow.kernels.grammar import Product, parse
from lkm_gpflow.model.annealing import Annealing
from lkm_gpflow.model.lkm import LKM
from lkm_gpflow.model.relaxation import RelaxedPosterior, anneal

STRUCTURE = ("SE", "SE", "PER", "PER", "LIN")


@dataclass(frozen=True)
class WatchedLearning:
    """A relaxed fit, on scaled data, and what it looked like on the way.

    `history` [T, N, K] has nu after every step; `bounds`, by step, the objective ("relaxed", no
    bound) and the mean-field bound by the sum over all rows ("exact").
    """

    table: Table
    model: LKM
    starts: tuple[Product, ...]
    history: Floats
    bounds: pd.DataFrame

    @property
    def kernels(self) -> tuple[Product, ...]:
        """What the kernels became, in the data's own time."""
        span, start = self.table.span, self.table.start
        return tuple(k.to_expression().change_units(span, start) for k in self.model.kernels)


def starting_kernels(
    observations: Observations, structure: Sequence[str], seed: int
) -> tuple[Product, ...]:
    """Draw the kernels that learning begins with: unit variances, everything else from the data.

    Periods are the highest peaks of the averaged periodogram, one for each PER; see
    `initialization.Proposer`.
    """
    rng = np.random.default_rng(seed)
    proposer = Proposer.of(observations)
    periods = iter(proposer.periods)
    starts = []
    for text in structure:
        member = parse(text)
        if text == "PER":
            member = parse(f"PER(period={next(periods)!r}, lengthscale=1.0)")
        starts.append(replace(proposer.propose(member, 1, rng)[0], variance=1.0))
    return tuple(starts)


def watch_learning(
    frame: pd.DataFrame,
    structure: Sequence[str] = STRUCTURE,
    annealing: Annealing | None = None,
    *,
    num_samples: int = 5,
    every: int = 10,
    seed: int = 0,
) -> WatchedLearning:
    """Learn Z and all hyperparameters with the relaxed posterior, and keep nu at every step.

    `structure` has at most one PER for each peak of the periodogram; `every` is the number of steps
    between two looks at the bounds.
    """
    table = Table.of(frame)
    observations = table.observations
    starts = starting_kernels(observations, structure, seed)
    posterior = RelaxedPosterior(num_samples=num_samples, temperature=1.0)
    model = LKM(
        observations.table,
        kernels=[to_kernel(start) for start in starts],
        posterior=posterior,
        noise_variance=0.1,
    )
    history: list[Floats] = []
    bounds: dict[int, tuple[float, float]] = {}

    def look(step: int, watched: LKM) -> None:
        history.append(np.asarray(watched.probabilities()))
        if step % every == 0:
            relaxed = float(watched.elbo(seed=(seed, step)))
            bounds[step] = relaxed, float(posterior.mean_field_elbo(watched))

    anneal(model, annealing, seed=seed, callback=look)
    table_of_bounds = pd.DataFrame.from_dict(bounds, orient="index", columns=["relaxed", "exact"])
    table_of_bounds.index.name = "step"
    return WatchedLearning(table, model, starts, np.array(history), table_of_bounds)

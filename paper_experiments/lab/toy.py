"""The toy experiment (figure 1): two realisations of one periodic process, two periodic kernels."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

import gpflow
import numpy as np
import pandas as pd

from lkm_gpflow import datasets
from lkm_gpflow.data.tables import Table
from lkm_gpflow.gp.types import Floats
from lkm_gpflow.kernels.component import to_kernel
from lkm_gpflow.kernels.grammar import Product, parse
from lkm_gpflow.model.annealing import Annealing
from lkm_gpflow.model.lkm import LKM
from lkm_gpflow.model.relaxation import RelaxedPosterior, anneal
from lkm_gpflow.runtime.replacing import replacing

from . import RESULTS

PosteriorName = Literal["relaxed", "enumerated"]

START_PERIODS = (0.7, 1.1)
"""In the time of the toy, whose period is 1: one kernel begins far away, the other close."""


@dataclass(frozen=True)
class ToyResult:
    """What was learnt, on scaled data.

    `history` [T, 2, 2] has nu at every step for the relaxed posterior, none for the enumerated one.
    """

    table: Table
    model: LKM
    history: Floats

    @property
    def kernels(self) -> tuple[Product, ...]:
        """The two kernels in the time of the toy."""
        span, start = self.table.span, self.table.start
        return tuple(
            kernel.to_expression().change_units(span, start) for kernel in self.model.kernels
        )

    @property
    def probabilities(self) -> pd.DataFrame:
        """P(z_nk = 1), series x kernels."""
        return self._frame(self.model.probabilities())

    @property
    def assignment(self) -> pd.DataFrame:
        """Z, series x kernels."""
        return self._frame(self.model.assignment()).astype(int)

    @property
    def is_one_kernel(self) -> bool:
        """Whether Z is [0, 1; 0, 1] or [1, 0; 1, 0]: both series have one kernel, the same."""
        Z = self.assignment.to_numpy()
        return bool((Z.sum(axis=1) == 1).all() and (Z[0] == Z[1]).all())

    def _frame(self, values: object) -> pd.DataFrame:
        return pd.DataFrame(np.asarray(values), self.table.frame.columns, ["C1", "C2"])


def learn_toy(
    posterior: PosteriorName = "relaxed",
    *,
    periods: tuple[float, float] = START_PERIODS,
    data_seed: int = 0,
    seed: int = 0,
    annealing: Annealing | None = None,
) -> ToyResult:
    """Learn Z and two periodic kernels from the toy.

    The relaxed posterior is learnt by Adam while the temperature falls (the paper), the enumerated
    one by L-BFGS on the exact bound; `periods` are where the periods begin, in the toy's time.
    """
    table = Table.of(datasets.load("toy", seed=data_seed).frame)
    starts = [
        parse(f"1.0 x PER(period={period / table.span!r}, lengthscale=1.0)") for period in periods
    ]
    model = LKM(
        table.observations.table,
        kernels=[to_kernel(start) for start in starts],
        posterior=RelaxedPosterior(temperature=1.0) if posterior == "relaxed" else posterior,
        noise_variance=0.1,
    )
    history: list[Floats] = []
    if posterior == "relaxed":
        anneal(
            model,
            annealing,
            seed=seed,
            callback=lambda _, m: history.append(np.asarray(m.probabilities())),
        )
    else:
        gpflow.optimizers.Scipy().minimize(
            model.training_loss, model.trainable_variables, options={"maxiter": 500}
        )
    return ToyResult(table, model, np.array(history))


STARTS = ((0.7, 1.1), (1.1, 0.7), (0.8, 1.25), (0.5, 0.9), (1.5, 1.1))
"""Pairs of starting periods for `toy_starts`."""


def toy_starts(
    results: Path | str = RESULTS, data_seeds: Sequence[int] = (0, 1, 2)
) -> pd.DataFrame:
    """Learn from several starts and several realisations, or read what was learnt.

    Returns
    -------
    DataFrame with one row per run: posterior, data_seed, start_1, start_2, one_kernel, and period,
    that of the kernel that explains most of both series.
    """
    path = Path(results or RESULTS) / "toy_starts.csv"
    parts = [pd.read_csv(path)] if path.exists() else []
    done = {seed for part in parts for seed in part["data_seed"]}
    if todo := [seed for seed in data_seeds if seed not in done]:
        parts.append(_learn_starts(todo))
        with replacing(path) as unfinished:
            pd.concat(parts).to_csv(unfinished, index=False)
    kept = pd.concat(parts, ignore_index=True)
    return kept[kept["data_seed"].isin(data_seeds)].reset_index(drop=True)


def _learn_starts(data_seeds: Sequence[int]) -> pd.DataFrame:
    rows = []
    for posterior in get_args(PosteriorName):
        for data_seed, periods in itertools.product(data_seeds, STARTS):
            found = learn_toy(posterior, periods=periods, data_seed=data_seed)
            most = int(found.probabilities.sum().to_numpy().argmax())
            period = found.kernels[most].factors[0].values[0]
            rows.append((posterior, data_seed, *periods, found.is_one_kernel, period))
    columns = ["posterior", "data_seed", "start_1", "start_2", "one_kernel", "period"]
    return pd.DataFrame(rows, columns=columns).round(6)

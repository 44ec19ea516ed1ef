"""What coupling is worth: gaps filled from neighbours, and ends that series miss.

Tables are those of the benchmark that are not held back.  In one task a block of rows is blanked in
half of the series, in the other a third of the series end early.  The coupled and the uncoupled
model are the same fit of given kernels, learnt on what is left.  Coupling first gives every series
amplitudes of its own; so does the model that is called refitted, and the difference is coupling.
"""

from __future__ import annotations

import itertools
import time
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import pandas as pd

from lkm_gpflow.comparators.lmc import LMC
from lkm_gpflow.coupling.coupled_discovery import CoupledDiscovery
from lkm_gpflow.coupling.learn_coupling import independent
from lkm_gpflow.data.tables import Table
from lkm_gpflow.discovery.given_kernels import learn
from lkm_gpflow.discovery.result import Discovery
from lkm_gpflow.evaluation.metrics import score
from lkm_gpflow.forecast.forecasters import counting
from lkm_gpflow.gp.types import Floats

from . import RESULTS
from .bench_tables import load_table, tables_of
from .journals import opened

Task = Literal["gaps", "ends"]

STRUCTURE = ("C", "RW", "SE", "PER")
"""Kernels that every table is learnt with: a level, a walk, something smooth, and a season."""

LMC_SETTINGS: Mapping[str, Any] = {
    "kernels": (("RW(start=-1)",), ("SE", "RW(start=-1)")),
    "restarts": 2,
    "max_iterations": 60,
}
"""Half of the kernels, a third of the restarts and two fifths of the iterations of the default."""

Moments: TypeAlias = "tuple[Floats, Floats]"
"""Means and standard deviations [D, N] of new observations."""


@dataclass(frozen=True)
class Blanked:
    """A table, and what is left of it for a method."""

    whole: pd.DataFrame
    left: pd.DataFrame

    @property
    def hidden(self) -> pd.DataFrame:
        """Values that were taken out, NaN elsewhere."""
        return self.whole.where(self.left.isna())


def blanked(table: str, task: Task) -> Blanked:
    """Take cells out of a table of the benchmark; the same ones every time.

    "gaps": in half of the series a block of 5 to 15% of the rows, neither first nor last.  "ends":
    the last tenth of the rows, in a third of the series.
    """
    frame = load_table(table)
    D, N = frame.shape
    rng = np.random.default_rng(zlib.crc32(f"{table} {task}".encode()))
    left = frame.copy()
    share = 2 if task == "gaps" else 3
    for n in rng.choice(N, max(1, round(N / share)), replace=False):
        if task == "gaps":
            length = round(D * rng.uniform(0.05, 0.15))
            begin = int(rng.integers(1, D - length))
            left.iloc[begin : begin + length, n] = np.nan
        else:
            left.iloc[D - round(0.1 * D) :, n] = np.nan
    return Blanked(frame, left)


def lines(left: pd.DataFrame) -> Moments:
    """Straight lines between the neighbours in time, with the variance of a walk between them."""
    mean = left.interpolate(method="linear", limit_direction="both")
    step = left.diff().std().to_numpy()
    seen = left.notna().to_numpy()
    place = np.arange(len(left))[:, None]
    before = np.maximum.accumulate(np.where(seen, place, -1), axis=0)
    after = np.minimum.accumulate(np.where(seen, place, len(left))[::-1], axis=0)[::-1]
    back = np.where(before >= 0, place - before, np.inf)
    ahead = np.where(after < len(left), after - place, np.inf)
    with np.errstate(divide="ignore"):
        steps = 1.0 / (1.0 / back + 1.0 / ahead)
    return mean.to_numpy(), np.sqrt(np.maximum(steps, 1e-3)) * step


def neighbours(left: pd.DataFrame) -> Moments:
    """The mean of the other series after scaling, with the error that it has where all is seen."""
    z = ((left - left.mean()) / left.std()).to_numpy()
    mean = np.empty_like(z)
    for n in range(z.shape[1]):
        others = np.delete(z, n, axis=1)
        seen = np.isfinite(others)
        mean[:, n] = np.where(seen, others, 0.0).sum(axis=1) / np.maximum(seen.sum(axis=1), 1)
    sd = np.asarray(np.nanstd(z - mean, axis=0))
    scale, location = left.std().to_numpy(), left.mean().to_numpy()
    return mean * scale + location, np.tile(sd * scale, (len(z), 1))


def lmc(left: pd.DataFrame) -> Moments:
    """The linear model of coregionalisation, with `LMC_SETTINGS`."""
    table = Table.of(left)
    observations = table.observations
    mean, variance = LMC(**LMC_SETTINGS).learn(observations, seed=0).predict_series(observations.x)
    return mean * table.scale + table.location, np.sqrt(variance) * table.scale


METHODS = ("lines", "neighbours", "lkm", "lmc")
RIVALS = ("uncoupled", "refitted", "lmc", "neighbours", "lines")
ALONE: Mapping[str, Callable[[pd.DataFrame], Moments]] = {
    "lines": lines,
    "neighbours": neighbours,
    "lmc": lmc,
}


def compare(table: str, task: Task, method: str) -> list[dict[str, Any]]:
    """Run a method on a table; "lkm" is three: uncoupled, the same refitted, and coupled.

    Returns
    -------
    A record for each method: table, task, method, the scores (errors in standard deviations of
    the series), number of cells, processor seconds.

    Raises
    ------
    ValueError
        If there is no such task or method.
    """
    if task not in get_args(Task):
        raise ValueError(f"expected a task among {get_args(Task)}, got {task!r}")
    if method not in ("lkm", *ALONE):
        raise ValueError(f"expected a method among {('lkm', *ALONE)}, got {method!r}")
    cut = blanked(table, task)
    begin = time.process_time()

    def record(name: str, moments: Moments, **more: Any) -> dict[str, Any]:
        nonlocal begin
        end = time.process_time()
        seconds, begin = end - begin, end
        found = {"table": table, "task": task, "method": name, **scores(cut, moments)}
        return {**found, "processor_seconds": round(seconds, 2), **more}

    if method != "lkm":
        return [record(method, ALONE[method](cut.left))]
    found = learn(cut.left, STRUCTURE, restarts=1, seed=0, progress=False)
    records = [record("uncoupled", _spread(found.fill(), cut.left))]
    records.append(record("refitted", _spread(refitted(found).fill(), cut.left)))
    coupled = found.couple()
    evidence = [round(float(value), 2) for value in coupled.couplings[0].evidence]
    patterns = [str(kernel.structure) for kernel in coupled.couplings[0].patterns.kernels]
    moments = _spread(coupled.fill(), cut.left)
    return [*records, record("coupled", moments, patterns=patterns, evidence=evidence)]


def refitted(found: Discovery) -> CoupledDiscovery:
    """Give every series amplitudes of its own, as coupling does, but no correlations.

    What a coupled model gains over this one is owed to the correlations alone.
    """
    table = found.table
    members = tuple(counting(found.members))
    alone = tuple(independent(member.fit, table.observations) for member in members)
    return CoupledDiscovery(table, members, alone)


def scores(cut: Blanked, moments: Moments) -> dict[str, float]:
    """Scores of the cells that were taken out, in standard deviations of the series."""
    location, scale = cut.left.mean().to_numpy(), np.asarray(cut.left.std(ddof=0))
    truth = (cut.hidden.to_numpy() - location) / scale
    mean, sd = (moments[0] - location) / scale, moments[1] / scale
    own = ~np.isnan(truth)
    told = score(truth[own][:, None], mean[own][:, None], sd[own][:, None])
    found = {
        "smse": told.rmse_pooled**2, "nlpd": told.mnlp, "crps": told.crps,
        "coverage90": told.coverage90,
    }  # fmt: skip
    return {name: round(float(value), 5) for name, value in found.items()} | {
        "cells": int(own.sum())
    }


def _spread(filled: pd.DataFrame, left: pd.DataFrame) -> Moments:
    """Moments of the gaps as arrays of the whole table, NaN elsewhere."""
    return tuple(  # type: ignore[return-value]
        filled[moment].unstack(0).reindex(index=left.index, columns=left.columns).to_numpy()
        for moment in ("mean", "sd")
    )


def run(
    tasks: Sequence[Task], methods: Sequence[str], tables: Sequence[str], results: Path = RESULTS
) -> list[dict[str, Any]]:
    """Run what the journal has not, the smallest tables first, and return all that it has."""
    header = {"structure": STRUCTURE, "lmc": dict(LMC_SETTINGS)}
    journal = opened(results, "coupling", header)
    records = list(journal.records)
    done = {(record["table"], record["task"], record["method"]) for record in records}
    for method, task, table in itertools.product(methods, tasks, tables or smallest_first()):
        if (table, task, "coupled" if method == "lkm" else method) not in done:
            for record in compare(table, task, method):
                journal.append(record)
                records.append(record)
    return records


def smallest_first() -> list[str]:
    """Return the open tables of the benchmark, those of the fewest values first."""
    return sorted(tables_of("choosing"), key=lambda name: load_table(name).size)


def against(records: list[dict[str, Any]], rivals: Sequence[str]) -> pd.DataFrame:
    """The coupled model against others, on the tables that both have.

    Returns
    -------
    DataFrame with a row for each task and rival: medians of the ratios of ``smse`` and ``crps``;
    ``smse_lower`` and ``nlpd_lower``, on how many tables the coupled model has the lower one;
    ``tables``, on how many both were run.
    """
    frame = pd.DataFrame(records).drop_duplicates(["table", "task", "method"], keep="last")
    rows = {}
    for task, own in frame.groupby("task"):
        scores = own.set_index(["method", "table"])
        for rival in rivals:
            if not {"coupled", rival} <= set(own["method"]):
                continue
            coupled, other = scores.loc["coupled"], scores.loc[rival]
            both = coupled.index.intersection(other.index)
            coupled, other = coupled.loc[both], other.loc[both]
            rows[task, rival] = {
                "smse": (coupled["smse"] / other["smse"]).median(),
                "crps": (coupled["crps"] / other["crps"]).median(),
                "smse_lower": int((coupled["smse"] < other["smse"]).sum()),
                "nlpd_lower": int((coupled["nlpd"] < other["nlpd"]).sum()),
                "tables": len(both),
            }
    return pd.DataFrame.from_dict(rows, orient="index")


def overview(records: list[dict[str, Any]]) -> pd.DataFrame:
    """Medians over the tables that every method of a task has, and how many there are."""
    frame = pd.DataFrame(records).drop_duplicates(["table", "task", "method"], keep="last")
    columns = ["smse", "nlpd", "crps", "coverage90", "processor_seconds"]
    rows = {}
    for task, own in frame.groupby("task"):
        counts = own.groupby("table")["method"].transform("count")
        both = own[counts == own["method"].nunique()]
        for method, scored in both.groupby("method"):
            rows[task, method] = {**scored[columns].median(), "tables": len(scored)}
    return pd.DataFrame.from_dict(rows, orient="index")

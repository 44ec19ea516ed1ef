"""All 11,500 pieces of EEG: what the five activities share, and with what certainty.

A fit of so many series is kept as its kernels and one noise variance per series; probabilities are
inferred again from these in seconds.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from lkm_gpflow import datasets
from lkm_gpflow.data.tables import Table
from lkm_gpflow.discovery.discover import discover
from lkm_gpflow.discovery.given_kernels import learn
from lkm_gpflow.discovery.result import Discovery
from lkm_gpflow.fit.fits import Fit, State
from lkm_gpflow.fit.training import Learner
from lkm_gpflow.gp.types import Floats
from lkm_gpflow.kernels.grammar import parse
from lkm_gpflow.runtime.executors import process_pool
from lkm_gpflow.runtime.threads import single_threaded
from lkm_gpflow.search.ledger import Entry, fit_from_json
from lkm_gpflow.search.many_series import ENOUGH_TO_CHOOSE
from lkm_gpflow.search.settings import SearchSettings

from . import RESULTS
from .journals import opened
from .seizure import STRUCTURE

_DIGITS = ".4g"
"""Of noise variances; they change the bound of 11,500 series by less than one in a million."""


def learn_all(
    what: str, ledger: Path, jobs: int | None, results: Path = RESULTS, **options: Any
) -> Discovery:
    """Learn the paper's six kernels ("learn") or search for kernels ("search"), and keep it.

    Both end on all series.  The ledger keeps every fit: a run that was stopped goes on from it.
    """
    frame = datasets.load("seizure").frame
    with process_pool(jobs) as pool:
        if what == "learn":
            found = learn(frame, STRUCTURE, ledger=ledger, executor=pool, **options)
        else:
            found = discover(frame, ledger=ledger, executor=pool, **options)
    command = " ".join([what, *(f"--{name} {value}" for name, value in options.items())])
    opened(results, "many_series", {}).append(described(found, what, command, ledger))
    return found


def described(found: Discovery, what: str, command: str, ledger: Path) -> dict[str, Any]:
    """Return what a discovery of many series can be rebuilt from, in JSON's types."""
    fit = found.fit
    return {
        "what": what,
        "command": command,
        "data": found.table.observations.fingerprint,
        "settings": found.settings.to_json(),
        "kernels": [str(kernel) for kernel in fit.kernels],
        "noise_variance": [float(format(s, _DIGITS)) for s in fit.noise_variance],
        "shares": [round(float(share), 4) for share in fit.probabilities.mean(axis=0)],
        "elbo": fit.elbo,
        "bic": fit.bic,
        "history": fit.history.tolist(),
        "seconds": round(fit.seconds, 1),
        "chosen among": [
            {
                "series": len(other.Z),
                "found": [str(kernel.structure) for kernel in other.kernels],
                "elbo": other.elbo,
                "bic": other.bic,
                "rounds": len(other.history) - 1,
                "seconds": round(other.seconds, 1),
            }
            for other in _chosen_among(ledger)
        ],
    }


def _chosen_among(ledger: Path) -> list[Fit]:
    """Return the fits to `ENOUGH_TO_CHOOSE` series, of which the best was learnt on all."""
    records = [json.loads(line) for line in ledger.read_text(encoding="utf-8").splitlines()]
    notes = [record["note"] for record in records if "note" in record]
    return [
        fit_from_json(value) for key, value in notes if key.startswith(f"{ENOUGH_TO_CHOOSE} series")
    ]


def kept(what: str, results: Path | str = RESULTS) -> dict[str, Any]:
    """Return what `learn_all` kept last."""
    return [d for d in opened(results, "many_series", {}).records if d["what"] == what][-1]


def recall(
    what: str, frame: pd.DataFrame, results: Path | str = RESULTS
) -> tuple[Discovery, dict[str, Any]]:
    """Read what `learn_all` kept last, and infer the probabilities again.

    Returns
    -------
    The discovery, with one entry, and what was kept.

    Raises
    ------
    ValueError
        If it was learnt from another table.
    """
    table, document = Table.of(frame), kept(what, results)
    observations = table.observations
    if document["data"] != observations.fingerprint:
        raise ValueError(f"expected the table that was learnt from ({what}), got another one")
    settings = SearchSettings.from_json(document["settings"])
    kernels = [parse(text) for text in document["kernels"]]
    Z = np.zeros((observations.num_series, len(kernels)))
    state = State(tuple(kernels), Z, np.array(document["noise_variance"]))
    learner = Learner(observations, settings.fit, np.random.default_rng(0))
    with single_threaded():
        fit = learner.finish(state, time.perf_counter(), rounds=0)
    return Discovery(table, settings, "none", (Entry.alone(fit),)), document


def recordings(names: pd.Index) -> pd.Series[str]:
    """Recording of every piece: that of ``S001.01`` is ``S001``."""
    return pd.Series(names.str.split(".").str[0], names, name="recording")


def shares(
    probabilities: pd.DataFrame,
    activities: pd.Series[int],
    *,
    level: float = 0.95,
    draws: int = 2000,
    seed: int = 0,
) -> pd.DataFrame:
    """Share of the pieces of each activity that has each component, with its uncertainty.

    Pieces of one recording are alike, so recordings are drawn, not pieces: the interval holds the
    middle of `draws` bootstrap samples of the recordings of an activity.  `probabilities` are
    P(z_nk = 1), pieces x components.

    Returns
    -------
    DataFrame with index (component, activity) and columns share, lower, upper.
    """
    rng = np.random.default_rng(seed)
    tails = [0.5 * (1.0 - level), 0.5 * (1.0 + level)]
    means = probabilities.groupby([activities.rename("activity"), recordings(activities.index)])
    rows = {}
    for activity, own in means.mean().groupby(level="activity"):
        values: Floats = own.to_numpy()
        places = rng.integers(len(values), size=(draws, len(values)))
        lower, upper = np.quantile(values[places].mean(axis=1), tails, axis=0)
        for k, component in enumerate(probabilities.columns):
            rows[component, activity] = (float(values[:, k].mean()), lower[k], upper[k])
    table = pd.DataFrame.from_dict(rows, orient="index", columns=["share", "lower", "upper"])
    table.index = pd.MultiIndex.from_tuples(table.index, names=["component", "activity"])
    return table.sort_index()

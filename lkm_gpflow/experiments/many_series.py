"""All 11,500 pieces of EEG: what the five activities share, and with what certainty.

A fit of so many series is kept as its kernels and one noise variance per series; probabilities are
inferred again from these in seconds (`search.many_series.evaluate`).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ..data.tables import Table
from ..discovery.result import Discovery
from ..fit.fits import Fit
from ..gp.types import Floats
from ..kernels.grammar import parse
from ..search.ledger import Entry, fit_from_json
from ..search.many_series import ENOUGH_TO_CHOOSE, evaluate
from ..search.settings import SearchSettings

_FORMAT = "lkm_gpflow many series 2"

_DIGITS = ".4g"
"""Of noise variances; they change the bound of 11,500 series by less than one in a million."""


def keep(found: Discovery, path: Path, command: str, ledger: Path) -> None:
    """Write what a discovery of many series can be rebuilt from, in one small file.

    Parameters
    ----------
    found
        What was learnt.
    path
        The file.
    command
        What made it; for the reader.
    ledger
        Where it was kept as it was learnt.
    """
    fit = found.fit
    document = {
        "format": _FORMAT,
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
    path.write_text(json.dumps(document, indent=None) + "\n", encoding="utf-8")


def _chosen_among(ledger: Path) -> list[Fit]:
    """Return the fits to `ENOUGH_TO_CHOOSE` series, of which the best was learnt on all."""
    records = [json.loads(line) for line in ledger.read_text(encoding="utf-8").splitlines()]
    notes = [record["note"] for record in records if "note" in record]
    return [
        fit_from_json(value) for key, value in notes if key.startswith(f"{ENOUGH_TO_CHOOSE} series")
    ]


def recall(path: Path, frame: pd.DataFrame) -> tuple[Discovery, dict[str, Any]]:
    """Read what `keep` wrote, and infer the probabilities again.

    Parameters
    ----------
    path
        The file.
    frame
        The table that was learnt from.

    Returns
    -------
    The discovery, with one entry, and the file's contents.

    Raises
    ------
    ValueError
        If the file is something else, or was learnt from another table.
    """
    document = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(document, dict) or document.get("format") != _FORMAT:
        raise ValueError(f"{path}: expected a file of the format {_FORMAT!r}")
    table = Table.of(frame)
    observations = table.observations
    if observations.fingerprint != document["data"]:
        raise ValueError(f"{path}: expected the table that it was learnt from, got another one")
    settings = SearchSettings.from_json(document["settings"])
    kernels = [parse(text) for text in document["kernels"]]
    fit = evaluate(kernels, np.array(document["noise_variance"]), observations, settings.fit)
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
    middle of `draws` bootstrap samples of the recordings of an activity.

    Parameters
    ----------
    probabilities
        Pieces x components, P(z_nk = 1).
    activities
        Of every piece.
    level
        Probability of the interval.
    draws, seed
        Of the bootstrap.

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

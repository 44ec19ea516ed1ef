"""How well `discover` finds who shares what: planted tables, searched with nothing known.

A search must find which components there are, and who has them (`planted.designed`).  Found
components stand for planted ones one to one (`counterparts`); what then counts is how many entries
of Z are wrong, how many components there are, and how many of them nearly repeat another.
`best_possible` says how many entries must be wrong: of some, the draw does not tell.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import linear_sum_assignment
from scipy.special import softmax

from lkm_gpflow.data.tables import Table
from lkm_gpflow.discovery.discover import discover
from lkm_gpflow.discovery.result import Discovery
from lkm_gpflow.fit.engine import components
from lkm_gpflow.gp.series import log_density
from lkm_gpflow.gp.types import Floats
from lkm_gpflow.kernels.grammar import Product
from lkm_gpflow.sharing.matching import MUCH_LIKE, correlation, shapes_of

from . import RESULTS
from .journals import fill, opened
from .planted import DESIGNS, Planted, designed

PUBLISHED: Mapping[str, Any] = {"likelihood": "gaussian", "criterion": "bic", "averaging": "none"}
"""What the paper does."""

TOLD: Mapping[str, Any] = {"told": "all but Z"}
"""In the records of `best_possible`, in the place of options."""

_SAME = 0.95  # from this correlation of shapes on components are near duplicates

BASES = ("C", "SE", "PER", "LIN", "RW")


def counterparts(
    found: Sequence[Product], planted: Sequence[Product], x: Floats
) -> list[tuple[int, int]]:
    """Pairs of a found and a planted component that stand for each other, one to one.

    They are those of the largest total correlation of shapes at the times x, from `MUCH_LIKE` on:
    that is what probabilities of components are about.
    """
    likeness = correlation(shapes_of(found, x), shapes_of(planted, x))
    gain = np.where(likeness >= MUCH_LIKE, likeness, 0.0)
    pairs = zip(*linear_sum_assignment(-gain), strict=True)
    return [(int(i), int(j)) for i, j in pairs if gain[i, j] > 0.0]


def compare(found: Discovery, planted: Planted) -> dict[str, Any]:
    """Return what a search says beside what was planted, in JSON's types.

    What it says is about the components of its best fit.

    Returns
    -------
    ``wrong`` of ``entries`` of the planted Z (a planted component that none stands for is said to
    be nobody's), ``components`` found but for constants (series are centred by their mean, and a
    walk then needs a level) and ``planted``, ``near_duplicates`` among those found,
    ``kernels``, and of the components that match the ``probabilities`` and the ``truth``.
    """
    kernels, told, x = found.fit.kernels, found.statements, found.table.observations.x
    is_pattern = [str(kernel.structure) != "C" for kernel in kernels]
    pairs = counterparts(kernels, planted.kernels, x)
    Z = np.zeros_like(planted.Z)
    for i, j in pairs:
        Z[:, j] = told.Z[:, i]
    shapes = shapes_of(kernels, x)
    alike = np.triu(correlation(shapes, shapes), k=1)
    return {
        "wrong": int((Z != planted.Z).sum()),
        "entries": planted.Z.size,
        "components": sum(is_pattern),
        "planted": len(planted.kernels),
        "near_duplicates": int((alike > _SAME).sum()),
        "kernels": [str(kernel) for kernel in kernels],
        "probabilities": [told.probabilities[:, i].round(6).tolist() for i, _ in pairs],
        "truth": [planted.Z[:, j].tolist() for _, j in pairs],
    }


def search(design: str, heights: str, seed: int, options: Mapping[str, Any]) -> dict[str, Any]:
    """Discover a planted table (depth 1, two restarts) and `compare`.

    `options` are for `discover`; what is not named is as in the paper.
    """
    planted = designed(design, heights, seed)
    began = time.process_time()
    found = discover(
        planted.frame,
        bases=BASES,
        depth=1,
        restarts=2,
        seed=seed,
        progress=False,
        **{**PUBLISHED, **options},
    )
    seconds = time.process_time() - began
    about = {"design": design, "heights": heights, "seed": seed, "options": dict(options)}
    return {**about, **compare(found, planted), "seconds": round(seconds, 1)}


def best_possible(design: str, heights: str, seed: int) -> dict[str, Any]:
    r"""Say who has what, told all but Z: no search can be better on average.

    .. math:: P(z_n \mid x_n) \propto
       \mathcal{N}\Bigl(x_n \Bigm| m_n, \sum_k z_{nk} a_{nk}^2 C_k + \sigma_n^2 I\Bigr)

    with level m, heights a, kernels C and noise known, and all rows of Z as likely before.
    Returns what `search` does; an entry is said to be one if its probability is above one half.
    """
    planted = designed(design, heights, seed)
    began = time.process_time()
    x, K = Table.of(planted.frame).observations.x, len(planted.kernels)
    C = np.array(list(components(planted.kernels, x)))
    rows = np.array(list(itertools.product([0.0, 1.0], repeat=K)))
    said = np.array([_posterior(planted, n, C, rows) @ rows for n in range(len(planted.Z))])
    return {
        "design": design, "heights": heights, "seed": seed, "options": TOLD,
        "wrong": int(((said > 0.5) != planted.Z).sum()), "entries": planted.Z.size,
        "components": K, "planted": K, "near_duplicates": 0,
        "kernels": [str(kernel) for kernel in planted.kernels],
        "probabilities": said.T.round(6).tolist(), "truth": planted.Z.T.tolist(),
        "seconds": round(time.process_time() - began, 1),
    }  # fmt: skip


def _posterior(planted: Planted, n: int, C: Floats, rows: Floats) -> Floats:
    """Return the probability of every row of Z for series n."""
    y = planted.frame.to_numpy()[:, n] - planted.level[n]
    seen = np.isfinite(y)
    own = C[:, seen][:, :, seen]
    noise = planted.noise_variance[n] * np.eye(len(own[0]))
    variances = rows * planted.heights[n] ** 2
    V = [np.asfortranarray(np.tensordot(v, own, axes=1) + noise) for v in variances]
    return np.asarray(softmax([log_density(v, y[seen]) for v in V]))


def summary(records: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Return a row for each variant, design and kind of heights; shares in percent.

    Returns
    -------
    DataFrame with columns ``tables``, ``wrong`` (of the entries of Z), ``right number`` (tables
    whose number of components is the planted one), ``near duplicates`` (a table) and ``seconds``
    (of processor, a table).
    """
    table = pd.DataFrame([dict(record) for record in records])
    table["variant"] = [named(options) for options in table["options"]]
    groups = table.groupby(["variant", "heights", "design"], sort=False)
    is_right = table["components"] == table["planted"]
    return pd.DataFrame(
        {
            "tables": groups.size(),
            "wrong": 100.0 * groups["wrong"].sum() / groups["entries"].sum(),
            "right number": 100.0 * is_right.groupby([table[k] for k in groups.keys]).mean(),
            "near duplicates": groups["near_duplicates"].mean(),
            "seconds": groups["seconds"].mean(),
        }
    )


def run(
    variants: Sequence[Mapping[str, Any]], designs: Sequence[str], heights: Sequence[str],
    seeds: int, results: Path = RESULTS, executor: Executor | None = None,
) -> pd.DataFrame:  # fmt: skip
    """Search the tables that the journal has not, and summarise all that it has."""
    journal = opened(results, "sharing", {"designs": DESIGNS, "bases": BASES, "depth": 1})
    jobs: dict[tuple[str, str, str, int], Any] = {}
    for seed, design, kind in itertools.product(range(seeds), designs, heights):
        if not (design == "demo" and kind != "equal"):
            jobs[named(TOLD), design, kind, seed] = partial(best_possible, design, kind, seed)
            for options in variants:
                job = partial(search, design, kind, seed, options)
                jobs[named(options), design, kind, seed] = job
    done = {(named(r["options"]), r["design"], r["heights"], r["seed"]) for r in journal.records}
    left = {key: job for key, job in jobs.items() if key not in done}
    return summary(fill(journal, left, executor, "table"))


def named(options: Mapping[str, Any]) -> str:
    """Return options of `discover` in a few words; "published" if there are none."""
    return ", ".join(f"{key} {value}" for key, value in options.items()) or "published"

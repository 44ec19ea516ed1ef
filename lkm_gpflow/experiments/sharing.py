"""How well `discover` finds who shares what: planted tables, searched with nothing known.

Four designs of six series and 120 times, each with the heights of its components equal in all
series, or drawn anew for every series and component.  A search must find which components there
are, and who has them.  Found components stand for planted ones one to one (`counterparts`); what
then counts is how many entries of Z are wrong, how many components there are, and how many of them
nearly repeat another.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from ..datasets.synthetic import demo
from ..discovery.discover import discover
from ..discovery.matching import MUCH_LIKE, SAME, correlation, one_to_one, shapes_of
from ..discovery.result import Discovery
from ..kernels.grammar import Product, parse
from ..learning.engine import components
from ..numerics.types import Floats

NUM_TIMES, NUM_SERIES = 120, 6

DESIGNS: Mapping[str, tuple[str, ...]] = {
    "SE+PER": ("1 x SE(lengthscale=0.15)", "1 x PER(period=0.17, lengthscale=0.8)"),
    "SE+PER+LIN": (
        "1 x SE(lengthscale=0.1)",
        "1 x PER(period=0.17, lengthscale=0.8)",
        "6 x LIN(location=0.4)",
    ),
    "RW+PER": (
        f"3 x RW(start={-1.0 / (NUM_TIMES - 1)!r})",
        "1 x PER(period=0.17, lengthscale=0.8)",
    ),
    "SE+SE": ("1 x SE(lengthscale=0.03)", "1 x SE(lengthscale=0.25)"),
}
"""Components of the designs, on a time of span one."""

HEIGHTS = {"equal": 0.0, "unequal": 0.5}
"""Standard deviation of the logarithm of amplitudes, drawn for every series and component."""

PUBLISHED: Mapping[str, Any] = {"amplitudes": "none", "criterion": "bic", "averaging": "none"}
"""What the paper does."""

BASES = ("C", "SE", "PER", "LIN", "RW")


@dataclass(frozen=True)
class Planted:
    """A table and what it was drawn from, on a time of span one.

    Parameters
    ----------
    frame
        The table.
    kernels
        Its components, [K].
    Z
        Who has them, [N, K].
    """

    frame: pd.DataFrame
    kernels: tuple[Product, ...]
    Z: Floats


def plant(design: str, heights: str, seed: int) -> Planted:
    """Draw the table of a design; the same Z and noise variances whatever the heights.

    Every component has two series or more, all but one of them are not in all series, and no
    series goes without.

    Parameters
    ----------
    design
        A key of `DESIGNS`, or "demo": the data set of that name, whose heights are equal.
    heights
        "equal" or "unequal".
    seed
        Of all draws.
    """
    if design == "demo":
        data = demo(seed=seed)
        assert data.truth is not None
        Z = data.truth.Z.to_numpy(np.float64)
        return Planted(data.frame, tuple(parse(kernel) for kernel in data.truth.kernels), Z)
    rng = np.random.default_rng((23, seed, list(DESIGNS).index(design)))
    kernels = tuple(parse(text) for text in DESIGNS[design])
    shape = (NUM_SERIES, len(kernels))
    Z = np.zeros(shape)
    while not _is_telling(Z):
        Z = rng.integers(0, 2, shape).astype(np.float64)
    x = np.linspace(0.0, 1.0, NUM_TIMES)
    values = rng.uniform(0.1, 0.3, NUM_SERIES) * rng.normal(size=(NUM_TIMES, NUM_SERIES))
    amplitudes = np.exp(HEIGHTS[heights] * rng.normal(size=shape))
    for k, C in enumerate(components(kernels, x)):
        root = np.linalg.cholesky(C + 1e-6 * np.eye(NUM_TIMES))
        values += root @ rng.normal(size=values.shape) * (Z * amplitudes)[:, k]
    names = [f"series {n + 1}" for n in range(NUM_SERIES)]
    return Planted(pd.DataFrame(values, index=x, columns=names), kernels, Z)


def _is_telling(Z: Floats) -> bool:
    users = Z.sum(axis=0)
    some_lack_it = (users < len(Z)).sum() >= Z.shape[1] - 1
    return bool(Z.any(axis=1).all() and (users >= 2).all() and some_lack_it)


def counterparts(
    found: Sequence[Product], planted: Sequence[Product], x: Floats
) -> list[tuple[int, int]]:
    """Pairs of a found and a planted component that stand for each other, one to one.

    They are those of the largest total correlation of shapes, as where the components of several
    fits are matched, but from `discovery.matching.MUCH_LIKE` on: that is what probabilities of
    components are about.

    Parameters
    ----------
    found, planted
        Complete products, [K] and [L].
    x
        The times at which their shapes are compared, [D].
    """
    return one_to_one(shapes_of(found, x), shapes_of(planted, x), MUCH_LIKE)


def compare(found: Discovery, planted: Planted) -> dict[str, Any]:
    """Return what a search says beside what was planted, in JSON's types.

    What it says is its consensus, which without averaging is the best fit.

    Returns
    -------
    ``wrong`` of ``entries`` of the planted Z (a planted component that none stands for is said to
    be nobody's), ``components`` found but for constants (series are centred by their mean, and a
    walk then needs a level) and ``planted``, ``near_duplicates`` among those found,
    ``kernels``, and of the components that match the ``probabilities`` and the ``truth``.
    """
    consensus, x = found.consensus, found.table.observations.x
    is_pattern = [str(kernel.structure) != "C" for kernel in consensus.kernels]
    pairs = counterparts(consensus.kernels, planted.kernels, x)
    Z = np.zeros_like(planted.Z)
    for i, j in pairs:
        Z[:, j] = consensus.Z[:, i]
    shapes = shapes_of(consensus.kernels, x)
    alike = np.triu(correlation(shapes, shapes), k=1)
    return {
        "wrong": int((Z != planted.Z).sum()),
        "entries": planted.Z.size,
        "components": sum(is_pattern),
        "planted": len(planted.kernels),
        "near_duplicates": int((alike > SAME).sum()),
        "kernels": [str(kernel) for kernel in consensus.kernels],
        "probabilities": [consensus.probabilities[:, i].round(6).tolist() for i, _ in pairs],
        "truth": [planted.Z[:, j].tolist() for _, j in pairs],
    }


def search(design: str, heights: str, seed: int, options: Mapping[str, Any]) -> dict[str, Any]:
    """Discover a planted table (depth 1, two restarts) and compare; see `compare`.

    Parameters
    ----------
    design, heights, seed
        As of `plant`.
    options
        For `discover`, such as ``{"amplitudes": "series"}``; what is not named is as in the paper.

    Returns
    -------
    The comparison, with design, heights, seed, options, and processor seconds.
    """
    planted = plant(design, heights, seed)
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


def named(options: Mapping[str, Any]) -> str:
    """Return options of `discover` in a few words; "published" if there are none."""
    return ", ".join(f"{key} {value}" for key, value in options.items()) or "published"

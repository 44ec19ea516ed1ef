"""How well `discover` finds who shares what: planted tables, searched with nothing known.

Four designs of six series and 120 times, each with the heights of its components equal in all
series, or drawn anew for every series and component.  A search must find which components there
are, and who has them.  Found components stand for planted ones one to one (`counterparts`); what
then counts is how many entries of Z are wrong, how many components there are, and how many of them
nearly repeat another.  `best_possible` says how many entries must be wrong: of some, the draw does
not tell.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import softmax

from ..data.tables import Table
from ..datasets.synthetic import demo
from ..discovery.discover import discover
from ..discovery.result import Discovery
from ..fit.engine import components
from ..gp.lapack import log_density
from ..gp.types import Floats
from ..kernels.grammar import Product, parse
from ..sharing.matching import MUCH_LIKE, SAME, correlation, one_to_one, shapes_of

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

TOLD: Mapping[str, Any] = {"told": "all but Z"}
"""In the records of `best_possible`, in the place of options."""

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
    heights
        Standard deviations of the components of variance one, [N, K], in units of the series.
    noise, level
        Standard deviation of the noise, and mean of each series, [N].
    """

    frame: pd.DataFrame
    kernels: tuple[Product, ...]
    Z: Floats
    heights: Floats
    noise: Floats
    level: Floats


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
        Z, scale = data.truth.Z.to_numpy(np.float64), data.truth.scale
        kernels = tuple(parse(kernel) for kernel in data.truth.kernels)
        heights_, noise = (
            scale[:, None] * np.ones_like(Z),
            scale * np.sqrt(data.truth.noise_variance),
        )
        return Planted(data.frame, kernels, Z, heights_, noise, data.truth.offset)
    rng = np.random.default_rng((23, seed, list(DESIGNS).index(design)))
    kernels = tuple(parse(text) for text in DESIGNS[design])
    shape = (NUM_SERIES, len(kernels))
    Z = np.zeros(shape)
    while not _is_telling(Z):
        Z = rng.integers(0, 2, shape).astype(np.float64)
    x = np.linspace(0.0, 1.0, NUM_TIMES)
    noise = rng.uniform(0.1, 0.3, NUM_SERIES)
    values = noise * rng.normal(size=(NUM_TIMES, NUM_SERIES))
    amplitudes = np.exp(HEIGHTS[heights] * rng.normal(size=shape))
    for k, C in enumerate(components(kernels, x)):
        root = np.linalg.cholesky(C + 1e-6 * np.eye(NUM_TIMES))
        values += root @ rng.normal(size=values.shape) * (Z * amplitudes)[:, k]
    names = [f"series {n + 1}" for n in range(NUM_SERIES)]
    frame = pd.DataFrame(values, index=x, columns=names)
    return Planted(frame, kernels, Z, amplitudes, noise, np.zeros(NUM_SERIES))


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


def best_possible(design: str, heights: str, seed: int) -> dict[str, Any]:
    r"""Say who has what, told all but Z: no search can be better on average.

    .. math:: P(z_n \mid x_n) \propto
       \mathcal{N}\Bigl(x_n \Bigm| m_n, \sum_k z_{nk} a_{nk}^2 C_k + \sigma_n^2 I\Bigr)

    with level m, heights a, kernels C and noise known, and all rows of Z as likely before.

    Parameters
    ----------
    design, heights, seed
        As of `plant`.

    Returns
    -------
    As `search`; an entry is said to be one if its probability is above one half.
    """
    planted = plant(design, heights, seed)
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
    noise = planted.noise[n] ** 2 * np.eye(len(own[0]))
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


def named(options: Mapping[str, Any]) -> str:
    """Return options of `discover` in a few words; "published" if there are none."""
    return ", ".join(f"{key} {value}" for key, value in options.items()) or "published"

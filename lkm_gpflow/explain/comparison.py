"""How alike series are: which patterns both have, and whether these move in step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.cluster.hierarchy import leaves_list, linkage, optimal_leaf_ordering
from scipy.spatial.distance import squareform

from ..discovery.result import Discovery
from ..fit.engine import components
from ..gp.series import root
from ..gp.types import Floats
from ..sharing.pattern_draws import Pattern, PatternDraws
from .stories import Story, stories

_TOGETHER = 0.5
"""From this correlation on a pattern is said to go together, or against each other."""

_FREE = ("drift", "changes", "other")
"""Kinds that may wander together by chance; all else but walks has few numbers."""

_NUM_PAIRS = 2000

_OF_WALKS = 0.9  # 99% of pairs of independent random walks have a smaller correlation

_FEW_PIECES = 0.95
"""Above it functions have so few bends that their estimates, which are smoother, are all alike."""

_FEWEST_DRAWS = 8
_JITTER = 1e-9


@dataclass(frozen=True)
class Correlation:
    """Correlation over time of a pattern in two series, over the draws in which both show it."""

    # The median and the interval.
    typical: float
    lower: float
    upper: float
    by_chance: float  # what its size must exceed to be more than chance, see `by_chance`

    @property
    def is_strong(self) -> bool:
        """Whether the pattern goes together in both, or against each other, over the data."""
        return self.lower * self.upper > 0.0 and abs(self.typical) >= _TOGETHER

    @property
    def may_be_chance(self) -> bool:
        """Whether functions that have nothing to do with each other may correlate as much."""
        return abs(self.typical) <= self.by_chance


def likeness(told: PatternDraws) -> Floats:
    r"""Shared variance of every pair of series, on average over the draws, [N, N].

    .. math:: \ell_{ab} = \tfrac12 \sum_{p: v_{ap} v_{bp} = 1} (s_{ap} + s_{bp})

    with s the share of pattern p in the variance of a series and v one where it is visible: one if
    all that varies comes from patterns that both have, zero if they have none in common.  The
    likeness of a series to itself is its share that is not noise.
    """
    visible = told.visible.astype(np.float64)
    one_way = np.einsum("tap,tbp->ab", np.minimum(told.shares, 1.0) * visible, visible)
    return np.asarray(np.minimum(0.5 * (one_way + one_way.T) / len(visible), 1.0))


def clustered(likeness: Floats) -> list[int]:
    """Return an order of the series that puts similar ones together (average linkage)."""
    N = len(likeness)
    if N < 3:
        return list(range(N))
    distance = np.maximum(1.0 - likeness, 0.0)
    np.fill_diagonal(distance, 0.0)
    condensed = squareform(distance, checks=False)
    return [
        int(n) for n in leaves_list(optimal_leaf_ordering(linkage(condensed, "average"), condensed))
    ]


def correlation_in(told: PatternDraws, p: int, a: int, b: int, level: float) -> Correlation | None:
    """Correlate pattern p of series a and b; None if few draws show it in both."""
    both = told.visible[:, a, p] & told.visible[:, b, p]
    if both.sum() < _FEWEST_DRAWS:
        return None
    r = correlation_of_rows(told.functions[both, a, p], told.functions[both, b, p])
    typical, lower, upper = np.nanquantile(r, (0.5, 0.5 - 0.5 * level, 0.5 + 0.5 * level)).tolist()
    chance = by_chance(told.patterns[p], told.x, np.random.default_rng(0))
    return Correlation(typical, lower, upper, chance)


def by_chance(pattern: Pattern, x: Floats, rng: np.random.Generator) -> float:
    """Return the size of correlations that independent functions hardly ever (1%) exceed.

    Correlations of walks always may be chance, those of cycles, lines and shifts never, unless the
    cycle changes its shape within the data.  All else is compared with independent functions of its
    kernel at times x [D], and if it has no period also with walks, which a search may well take for
    smooth.  Few pieces, as a drift over half the data has, are always alike.
    """
    if pattern.kind == "walk":
        return 1.0
    lengthscales = [f.values[0] or 0.0 for f in pattern.kernel.factors if f.base.name == "SE"]
    is_lasting = pattern.kind == "cycle" and min(lengthscales, default=np.inf) > x[-1] - x[0]
    if is_lasting or pattern.kind not in (*_FREE, "cycle"):
        return 0.0
    (C,) = components([pattern.kernel], x)
    draws = (rng.standard_normal((_NUM_PAIRS, len(x))) @ root(C).T for _ in range(2))
    size = float(np.nanquantile(np.abs(correlation_of_rows(*draws)), 0.99))
    if size > _FEW_PIECES:
        return 1.0
    return size if pattern.kind == "cycle" else max(size, _OF_WALKS)


def correlation_of_rows(first: Floats, second: Floats) -> Floats:
    """Return the correlations of rows, at most 1 in size; NaN where a row is constant."""
    first = first - first.mean(axis=1, keepdims=True)
    second = second - second.mean(axis=1, keepdims=True)
    size = np.linalg.norm(first, axis=1) * np.linalg.norm(second, axis=1)
    is_constant = size <= _JITTER * first.shape[1]
    ratio = np.sum(first * second, axis=1) / np.where(is_constant, 1.0, size)
    return np.where(is_constant, np.nan, np.clip(ratio, -1.0, 1.0))


def curves(found: Discovery, level: float) -> tuple[pd.Index, Floats]:
    """Medians and intervals of the functions of patterns, [3, N, P, D], and their D times.

    In standard deviations of the series; of many times, those that the draws looked at.
    """
    told = found.pattern_draws
    places = np.searchsorted(found.table.observations.x, told.x)
    ends = (0.5, 0.5 - 0.5 * level, 0.5 + 0.5 * level)
    return found.table.frame.index[places], np.quantile(told.functions, ends, axis=0)


def holders(story: Story) -> tuple[str, ...]:
    """Series that have a pattern, or perhaps have it."""
    return tuple(name for name, said in story.verdicts.items() if said in ("has", "perhaps"))


def pair_stories(
    found: Discovery, level: float = 0.9, units: Mapping[str, str] | None = None
) -> tuple[Story, ...]:
    """Tell the patterns of two series: those of both, then of the first alone, then of the second.

    The discovery is a selection of these two (`Discovery.select`).
    """
    told = [story for story in stories(found, level, units) if holders(story)]
    first, second = found.table.names
    order = [(first, second), (first,), (second,)]
    return tuple(sorted(told, key=lambda story: order.index(holders(story))))

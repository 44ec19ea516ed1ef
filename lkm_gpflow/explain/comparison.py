"""How alike series are: what they share, and whether it moves in step in them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.cluster.hierarchy import leaves_list, linkage, optimal_leaf_ordering
from scipy.spatial.distance import squareform

from ..discovery.result import Discovery
from ..fit.engine import components
from ..forecast.predictors import Predictors
from ..gp import limits
from ..gp.series import root
from ..gp.types import Floats
from ..kernels.grammar import Product
from .decomposition import Decomposition

_TOGETHER = 0.5
"""From this correlation on a component is said to go together, or against each other."""

_WALKS = {"RW", "IOU"}

_FACTS = {"LIN", "PER", "C", "UNTIL", "FROM"}
"""Of these base kernels a component has few numbers, and not the freedom to wander by chance."""

_NUM_PAIRS = 2000

_OF_WALKS = 0.9  # 99% of pairs of independent random walks have a smaller correlation

_FEW_PIECES = 0.95
"""Above it functions have so few bends that their estimates, which are smoother, are all alike."""

_DRAWS = 400
_MOST_DRAWN = 1000
_JITTER = 1e-9


@dataclass(frozen=True)
class Correlation:
    """Correlation over time of a shared component in two series."""

    # Of the two posterior means, which are smoother than the functions themselves: it decides which
    # way a component moves.
    of_means: float
    # The median of the correlation of draws from the two posteriors, and its middle nine tenths.
    typical: float
    lower: float
    upper: float
    by_chance: float  # what its size must exceed to be more than chance, see `by_chance`

    @property
    def is_strong(self) -> bool:
        """Whether the component goes together in both, or against each other, over the data."""
        is_certain = np.sign(self.lower) == np.sign(self.upper) == np.sign(self.of_means)
        return bool(is_certain and abs(self.of_means) >= _TOGETHER)

    @property
    def way(self) -> int:
        """1 if it moves in step, -1 if in opposite directions, 0 if that may be chance."""
        is_more = self.is_strong and abs(self.of_means) > self.by_chance
        return int(np.sign(self.of_means)) if is_more else 0


def likeness(parts: Decomposition) -> Floats:
    r"""Shared variance of every pair of series, [N, N].

    .. math:: \ell_{ab} = \tfrac12 \sum_{k: z_{ak} z_{bk} = 1} (s_{ak} + s_{bk})

    with s the share of component k in the variation of a series (`Decomposition.share`) and z one
    where it is likely (`Consensus.Z`): one if all that varies comes from components that both have,
    zero if they have none in common.  The likeness of a series to itself is its share that is not
    noise.
    """
    share = parts.share[:, :-1] * parts.has
    one_way = share @ parts.has.T
    return 0.5 * (one_way + one_way.T)


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


def component_correlations(found: Discovery, a: int, b: int) -> dict[int, Correlation]:
    """Correlate every component that series a and b share over the history, by its number.

    The two posteriors are independent given hyperparameters and Z, so that draws of each may be
    correlated with draws of the other.  Fits in which both have the component take part, by their
    weights.  Of more than `LKM.LONGEST` times, 1,000 evenly spaced ones are used.  A component
    without variation over time is left out.
    """
    x = found.table.observations.x
    if len(x) > limits.LONGEST:
        x = x[np.linspace(0, len(x) - 1, _MOST_DRAWN).astype(int)]
    consensus, rng = found.consensus, np.random.default_rng(found.settings.seed)
    shared = np.flatnonzero(consensus.Z[a] * consensus.Z[b])
    means: dict[int, Floats] = {}
    drawn: dict[int, list[Floats]] = {}
    both_series = np.array([a, b], np.int32)
    pair = Predictors(found.table.observations.of_series(both_series), found.settings.fit)
    for fit, weight in zip(consensus.fits, consensus.weights, strict=True):
        own = fit.of_series(both_series)
        sums = consensus.sums(fit)[shared]
        both = np.flatnonzero(((own.Z @ sums.T) > 0.0).all(axis=0))
        if not len(both):
            continue
        mean, covariance = pair.of(own).sums(x, sums[both], full_cov=True, Z=own.Z)
        for i, k in enumerate(shared[both]):
            means[k] = means.get(k, 0.0) + weight * mean[:, i]
            count = max(1, round(_DRAWS * weight))
            draws = [_draws(mean[n, i], covariance[n, i], count, rng) for n in (0, 1)]
            drawn.setdefault(k, []).append(correlation_of_rows(*draws))
    results = {}
    for k, (first, second) in means.items():
        of_draws = np.concatenate(drawn[k])
        of_means = correlation_of_rows(first[None], second[None])[0]
        if np.isfinite(of_means) and np.all(np.isfinite(of_draws)):
            lower, typical, upper = np.quantile(of_draws, (0.05, 0.5, 0.95)).tolist()
            chance = by_chance(consensus.kernels[k], x, rng)
            results[int(k)] = Correlation(float(of_means), typical, lower, upper, chance)
    return results


def by_chance(kernel: Product, x: Floats, rng: np.random.Generator) -> float:
    """Return the size of correlations that independent functions hardly ever (1%) exceed.

    Correlations of lines and lasting cycles are never chance, those of random walks always may be.
    All else is compared with independent functions of its kernel, at times
    x [D], and if it has no period also with walks, which a search may well take for smooth.  Few
    pieces, as a drift over half the data has, are always alike.
    """
    names = {factor.base.name for factor in kernel.factors}
    lengthscales = [f.values[0] or 0.0 for f in kernel.factors if f.base.name == "SE"]
    is_lasting = "PER" in names and min(lengthscales, default=np.inf) > x[-1] - x[0]
    if names & _WALKS:
        return 1.0
    if names <= _FACTS or (is_lasting and names <= _FACTS | {"SE"}):
        return 0.0
    (C,) = components([kernel], x)
    draws = (_draws(np.zeros(len(x)), C, _NUM_PAIRS, rng) for _ in range(2))
    size = float(np.nanquantile(np.abs(correlation_of_rows(*draws)), 0.99))
    if size > _FEW_PIECES:
        return 1.0
    return size if "PER" in names else max(size, _OF_WALKS)


def _draws(mean: Floats, covariance: Floats, count: int, rng: np.random.Generator) -> Floats:
    """Draw functions on the grid, [draws, D]."""
    return mean + rng.standard_normal((count, len(mean))) @ root(covariance).T


def correlation_of_rows(first: Floats, second: Floats) -> Floats:
    """Return the correlations of rows, at most 1 in size; NaN where a row is constant."""
    first = first - first.mean(axis=1, keepdims=True)
    second = second - second.mean(axis=1, keepdims=True)
    size = np.linalg.norm(first, axis=1) * np.linalg.norm(second, axis=1)
    is_constant = size <= _JITTER * first.shape[1]
    ratio = np.sum(first * second, axis=1) / np.where(is_constant, 1.0, size)
    return np.where(is_constant, np.nan, np.clip(ratio, -1.0, 1.0))

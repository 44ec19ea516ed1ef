r"""Patterns: what series do, in whatever form, as shares of the draws of a posterior.

Each draw of the sampler decomposes a series into functions, one for each of its columns,

.. math:: f_k \mid x_n \sim \mathcal{GP}, \qquad x_n = \mu_n 1 + \textstyle\sum_k f_k + \epsilon_n

(drawn by Matheron's rule).  Columns of all draws are sorted into patterns by what they do: a cycle
of some period, a trend, a walk, smooth changes of some time scale, a change at some time.  A
pattern is *visible* in a series in a draw if its function has at least `VISIBLE` of the variance of
the series.  Every statement is a share of draws.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from ..data.observations import Observations
from ..gp.lags import LagGrid, lag_grid
from ..gp.types import Floats, Integers
from ..kernels.grammar import Kind, Product
from .forms import covariance_of
from .states import Draw

VISIBLE = 0.02
"""A pattern that makes up less of a series' variance cannot be seen in it."""

_SLOW = 0.5
"""A smooth function whose lengthscale is at least so much of the span is a trend."""

_RESOLVED = 1.0
"""Two cycles are told apart if their frequencies differ by so many cycles per span."""

_TIME_SCALES = np.log(2.5)
"""Two smooth patterns are told apart if their log lengthscales differ by as much."""

_CHANGES = 0.1
"""Two changes are told apart if they are so much of the span apart."""

_OVERTONES = (2, 3, 4)
"""A cycle with a period of so many parts of a stronger one's is an overtone of that."""

_SELDOM = 0.02
"""Patterns that make up less of all draws of all series are left out."""


class Behaviour(Enum):
    """What the function of a column does."""

    CYCLE = "cycle"
    TREND = "trend"
    WALK = "walk"
    SMOOTH = "smooth changes"
    CHANGE = "change"


def behaviour_of(kernel: Product) -> tuple[Behaviour, float]:
    """What a component does, and where that stands among others that do the same.

    Returns
    -------
    The behaviour; and of a cycle its frequency, of smooth changes the log lengthscale, of a change
    its time (all in spans), zero of a trend or a walk.
    """
    numbers: dict[Kind, float] = {}
    for factor in kernel.factors:
        for (_, kind), value in zip(factor.base.parameters, factor.values, strict=True):
            assert value is not None
            # Of two cycles the longer; of two lengthscales the shorter rules.
            longer = max if kind is Kind.PERIOD else min
            numbers[kind] = value if kind not in numbers else longer(numbers[kind], value)
    if Kind.PERIOD in numbers:
        return Behaviour.CYCLE, 1.0 / numbers[Kind.PERIOD]
    if Kind.CHANGE in numbers:
        return Behaviour.CHANGE, numbers[Kind.CHANGE]
    if any(factor.base.is_walk for factor in kernel.factors):
        return Behaviour.WALK, 0.0
    scale = numbers.get(Kind.DURATION, numbers.get(Kind.MEMORY, np.inf))
    if scale >= _SLOW:
        return Behaviour.TREND, 0.0
    return Behaviour.SMOOTH, float(np.log(scale))


_WIDTHS = {Behaviour.CYCLE: _RESOLVED, Behaviour.SMOOTH: _TIME_SCALES, Behaviour.CHANGE: _CHANGES}


@dataclass(frozen=True)
class PatternDraws:
    """A pattern in all draws.

    Parameters
    ----------
    behaviour
        What it does.
    place
        Its frequency, log lengthscale or time of change (see `behaviour_of`), the median of draws.
    places
        The same, of each draw and series; NaN where the series has it not, [T, N].
    shares
        Which share of the series' variance its function has, [T, N].
    """

    behaviour: Behaviour
    place: float
    places: Floats
    shares: Floats

    @property
    def probabilities(self) -> Floats:
        """Share of the draws in which the pattern is visible, [N]."""
        return np.asarray((self.shares >= VISIBLE).mean(axis=0))

    def share_interval(self, level: float = 0.9) -> Floats:
        """Quantiles of the share over the draws in which it is visible, [3, N]: median, ends."""
        seen = np.where(self.shares >= VISIBLE, self.shares, np.nan)
        at = (0.5, 0.5 - level / 2.0, 0.5 + level / 2.0)
        none = np.isnan(seen).all(axis=0)
        found = np.full((3, seen.shape[1]), np.nan)
        found[:, ~none] = np.nanquantile(seen[:, ~none], at, axis=0)
        return found


class DrawnFunctions:
    """Draws of the functions of all columns, at the times of the data.

    Parameters
    ----------
    observations
        The data that were sampled.
    degrees
        Degrees of freedom of the scales.
    """

    def __init__(self, observations: Observations, degrees: float = 4.0) -> None:
        self._observations = observations
        self._degrees = degrees
        self._seen = [np.flatnonzero(mask > 0.0) for mask in observations.mask]
        self._variance = np.array([
            observations.Y[n, seen].var() for n, seen in enumerate(self._seen)
        ])  # fmt: skip

    @cached_property
    def _grid(self) -> LagGrid:
        return lag_grid(self._observations.x)

    def shares(self, draw: Draw, rng: np.random.Generator) -> Floats:
        """Draw functions; return each one's share of the variance of the series, [J, N]."""
        N = len(draw.Z)
        shares = np.zeros((len(draw.kernels), N))
        C = np.array([covariance_of(kernel, self._grid) for kernel in draw.kernels])
        roots = [_root(own) for own in C]
        for n in range(N):
            owned = np.flatnonzero(draw.Z[n])
            if len(owned):
                heights = np.exp(draw.log_heights[n, owned])
                parts = heights[:, None, None] * C[owned]
                own = [np.sqrt(h) * roots[k] for h, k in zip(heights, owned, strict=True)]
                f = self.functions(n, parts, own, float(np.exp(draw.log_noise[n])), rng)
                seen = self._seen[n]
                shares[owned, n] = f[:, seen].var(axis=1) / self._variance[n]
        return shares

    def functions(
        self,
        n: int,
        parts: Floats,
        roots: Sequence[Floats],
        noise_variance: float,
        rng: np.random.Generator,
    ) -> Floats:
        r"""Draw the functions of a series given its values, by Matheron's rule, [J, D].

        .. math:: f_k = g_k + C_k P \Big(x - \sum_j g_j - e\Big), \qquad
           P = V^{-1} - \frac{V^{-1} 1 1^\top V^{-1}}{1^\top V^{-1} 1}

        with g and e of the prior, their scale drawn given the data; P takes the level off.
        """
        seen, v = self._seen[n], self._degrees
        y, d = self._observations.Y[n, seen], len(self._seen[n])
        V = parts.sum(axis=0)[np.ix_(seen, seen)] + noise_variance * np.eye(d)
        factor = cho_factor(V, lower=True)
        w = cho_solve(factor, np.ones(d))

        def projected(residual: Floats) -> Floats:
            solved = cho_solve(factor, residual)
            return np.asarray(solved - w * (solved.sum() / w.sum()))

        scale = 1.0
        if np.isfinite(v):
            scale = (v + y @ projected(y)) / rng.chisquare(v + d - 1)
        g = np.sqrt(scale) * np.array([root @ rng.normal(size=root.shape[1]) for root in roots])
        e = np.sqrt(scale * noise_variance) * rng.normal(size=d)
        b = projected(y - g[:, seen].sum(axis=0) - e)
        return np.asarray(g + parts[:, :, seen] @ b)


def _root(C: Floats) -> Floats:
    """A root of a covariance that may be singular, [D, R]."""
    values, vectors = np.linalg.eigh(C)
    kept = values > 1e-12 * max(float(values[-1]), 1e-300)
    return np.asarray(vectors[:, kept] * np.sqrt(values[kept]))


def patterns_of(
    draws: Sequence[Draw], observations: Observations, *, degrees: float = 4.0, seed: int = 0
) -> list[PatternDraws]:
    """Sort the columns of all draws into patterns; those that explain most come first.

    Parameters
    ----------
    draws
        Of all chains.
    observations
        The data that were sampled.
    degrees
        Degrees of freedom of the scales.
    seed
        Of the functions that are drawn.
    """
    rng = np.random.default_rng(seed)
    functions = DrawnFunctions(observations, degrees)
    T, N = len(draws), observations.num_series
    shares = [functions.shares(draw, rng) for draw in draws]
    keys = [[behaviour_of(kernel) for kernel in draw.kernels] for draw in draws]
    found = []
    for behaviour in Behaviour:
        where = [(t, j) for t, own in enumerate(keys) for j, key in enumerate(own)
                 if key[0] is behaviour]  # fmt: skip
        if not where:
            continue
        place = np.array([keys[t][j][1] for t, j in where])
        weight = np.array([shares[t][j].sum() for t, j in where]) / (T * N)
        for group in _groups(behaviour, place, weight):
            if weight[group].sum() < _SELDOM / N:
                continue
            total, places = np.zeros((T, N)), np.full((T, N), np.nan)
            main = np.zeros((T, N))
            for i in group:
                t, j = where[i]
                total[t] += shares[t][j]
                larger = shares[t][j] > main[t]
                main[t, larger] = shares[t][j][larger]
                places[t, larger] = place[i]
            middle = _weighted_median(place[group], weight[group])
            found.append(PatternDraws(behaviour, middle, places, total))
    return sorted(found, key=lambda pattern: -float(pattern.shares.mean()))


def _groups(behaviour: Behaviour, place: Floats, weight: Floats) -> list[Integers]:
    """Columns that do the same: around the heaviest places, one after the other."""
    width = _WIDTHS.get(behaviour)
    if width is None:
        return [np.arange(len(place))]
    left, groups = np.ones(len(place), bool), []
    order = np.argsort(place)
    while left.any():
        # The window of one width that holds most of what is left.
        own = order[left[order]]
        cumulative = np.concatenate([[0.0], np.cumsum(weight[own])])
        last = np.searchsorted(place[own], place[own] + width, side="right")
        first = int(np.argmax(cumulative[last] - cumulative[:-1]))
        centre = _weighted_median(place[own[first : last[first]]], weight[own[first : last[first]]])
        near = left & (np.abs(place - centre) <= width / 2.0)
        if behaviour is Behaviour.CYCLE:
            for multiple in _OVERTONES:
                near |= left & (np.abs(place - multiple * centre) <= width / 2.0)
        if not near.any():  # rounding
            near[own[first]] = True
        groups.append(np.flatnonzero(near))
        left &= ~near
    return groups


def _weighted_median(values: Floats, weights: Floats) -> float:
    order = np.argsort(values)
    total = np.cumsum(weights[order] + 1e-300)
    return float(values[order[np.searchsorted(total, 0.5 * total[-1])]])

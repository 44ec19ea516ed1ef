r"""What a pattern does in a series: how much, when, how fast; medians and intervals of draws.

Of every draw in which the pattern is visible in the series its function is measured: the peak and
trough of a cycle's average shape,

.. math:: f(x) \approx a_0 + \sum_h a_h \cos(2 \pi h x / p) + b_h \sin(2 \pi h x / p),

the lag at which two such shapes agree most, the slope of the line through a trend, the size of a
jump.  Intervals are quantiles of these numbers; of points of a cycle, about their circular mean.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from scipy.stats import t as student_t

from ..gp.types import Booleans, Floats
from .pattern_draws import PatternDraws, fourier, harmonics, regress
from .posterior import VISIBLE

_FINE = 360  # points of a period
_FEWEST_DRAWS = 8
_THIRD = 1.0 / 3.0
_MOST_CORRELATED = 0.8
_LASTING = ("cycle", "trend", "shift", "event")
_MOST_SEEN = 0.7  # of a period, to say how high a cycle was in it
_FEWEST_PERIODS = 5  # before the last one
_UNUSUAL = 0.99  # probability that the last period is as high as chance allows
_QUARTER = 0.25  # of a period: of what is further apart nobody leads


@dataclass(frozen=True)
class Interval:
    """A number that is not quite known: its median, and its ends."""

    median: float
    lower: float
    upper: float

    @classmethod
    def of(cls, values: Floats, level: float) -> Interval:
        """Of draws."""
        ends = np.quantile(values, (0.5, 0.5 - 0.5 * level, 0.5 + 0.5 * level))
        return cls(*map(float, ends))

    def times(self, factor: float) -> Interval:
        """In another unit."""
        return Interval(self.median * factor, self.lower * factor, self.upper * factor)

    @property
    def ends(self) -> tuple[float, float, float]:
        """Median, lower end and upper end."""
        return self.median, self.lower, self.upper

    @property
    def sign(self) -> int:
        """1 or -1 if all of it is on one side of zero, else 0."""
        return int(self.lower > 0.0) - int(self.upper < 0.0)


@dataclass(frozen=True)
class Behaviour:
    """What a pattern does in a series, in scaled time and values; None where it does not apply.

    Parameters
    ----------
    probability
        P(visible): that it makes at least 2% of the variance of the series.
    share
        Of the variance of the series, over all draws.
    size
        Of cycles half the distance from trough to peak; of shifts and events how far; else the
        standard deviation over time.
    peak, trough
        Of cycles: time after the beginning of a period at `origin`.
    lag
        Of cycles: how much later than in the series that is surely first, or else has most of it.
    growth
        Of cycles: how many times as high in the last third of the data as in the first.
    last
        Of cycles: how many times as high in the last period as before, and the ends between which
        that is usual.
    slope
        Of trends: change over the span of the data.
    turn
        Of trends that bend: when they are highest or lowest, and which (1 highest, -1 lowest).
    """

    probability: float
    share: Interval
    size: Interval | None = None
    peak: Interval | None = None
    trough: Interval | None = None
    lag: Interval | None = None
    growth: Interval | None = None
    last: Interval | None = None
    slope: Interval | None = None
    turn: tuple[Interval, int] | None = None


def behaviours(
    told: PatternDraws, level: float, origins: Floats, periods: Floats
) -> list[list[Behaviour]]:
    """Measure every pattern in every series, [P][N].

    Parameters
    ----------
    told
        The draws.
    level
        Probability of intervals.
    origins
        Where a period of each pattern begins, in scaled time, [P].
    periods
        A period that is known, such as a year, [P]; NaN: that of each draw.
    """
    shares, visible = told.shares, told.visible
    result = []
    for p, pattern in enumerate(told.patterns):
        rows = visible[:, :, p]
        enough = np.flatnonzero(rows.sum(axis=0) >= _FEWEST_DRAWS).tolist()
        if pattern.kind == "cycle":
            more = _cycle(told, p, enough, rows, level, origins[p], periods[p])
        else:
            measure = _MEASURES.get(pattern.kind, _wander)
            more = {n: measure(told, p, n, rows[:, n], level) for n in enough}
        result.append([
            Behaviour(float(rows[:, n].mean()), Interval.of(shares[:, n, p], level),
                      **more.get(n, {}))
            for n in range(len(told.Y))
        ])  # fmt: skip
    return result


_Measured: TypeAlias = dict[str, Any]


def _cycle(
    told: PatternDraws, p: int, enough: list[int], visible: Booleans, level: float,
    origin: float, known: float,
) -> dict[int, _Measured]:  # fmt: skip
    """Shapes of a cycle, [T, N, points of a period], and what they say."""
    x, T = told.x, len(visible)
    length = np.full(T, known)
    if np.isnan(known):
        length = np.where(
            np.isfinite(told.periods[:, p]), told.periods[:, p], told.patterns[p].period
        )
    typical = float(np.median(length))
    H = harmonics(x, typical)
    b = np.array([regress(fourier(x - origin, length[t], H), told.functions[t, :, p])
                  for t in range(T)])  # [T, N, 2 H]  # fmt: skip
    frequencies = np.tile(np.arange(1, H + 1), 2) * (x[-1] - x[0]) / (len(x) - 1) / typical
    for n in enough:  # what the draws take for white noise has a memory
        own = b[visible[:, n], n]
        wider = np.sqrt(_density(_memories(told, n)[visible[:, n], None], frequencies))
        b[visible[:, n], n] = own.mean(axis=0) + wider * (own - own.mean(axis=0))
    shapes = b @ fourier(np.arange(_FINE) / _FINE, 1.0, H).T
    whole = max(1.0, np.floor(_THIRD / told.patterns[p].period)) * told.patterns[p].period
    first, last = x <= x[0] + whole, x >= x[-1] - whole
    most = max(enough, key=lambda n: told.shares[:, n, p].mean(), default=0)
    lags = _lags(shapes, visible, most, enough, level)
    near = [n for n, lag in lags.items() if max(-lag.lower, lag.upper) <= _QUARTER]
    leader = min(near, key=lambda n: lags[n].median, default=most)
    if leader != most and len(near) == len(lags) and lags[leader].upper < 0.0:
        lags = _lags(shapes, visible, leader, enough, level)
    result = {}
    for n in enough:
        own = shapes[visible[:, n], n]
        mean = own.mean(axis=0)
        f = told.functions[visible[:, n], n, p]
        ratio = f[:, last].std(axis=1) / np.maximum(f[:, first].std(axis=1), 1e-12)
        measured: _Measured = {
            # Peak and trough of the mean: those of single draws lie further apart by chance.
            "size": Interval.of(0.5 * (own[:, mean.argmax()] - own[:, mean.argmin()]), level),
            "peak": circular(own.argmax(axis=1) / _FINE, level, mean.argmax() / _FINE),
            "trough": circular(own.argmin(axis=1) / _FINE, level, mean.argmin() / _FINE),
        }
        if whole <= 0.5:
            measured["growth"] = Interval.of(ratio, level)
        wave = fourier(x - origin, typical, H) @ b[visible[:, n], n].mean(axis=0)
        others = told.functions[visible[:, n], n].sum(axis=1).mean(axis=0) - f.mean(axis=0)
        measured["last"] = _last(x, told.Y[n] - others, wave, typical)
        if n in lags:
            measured["lag"] = lags[n]
        for name in ("peak", "trough", "lag"):
            if isinstance(one := measured.get(name), Interval):
                measured[name] = one.times(typical)
        # Where two peaks are nearly as high, nobody knows which is the higher one.
        result[n] = {
            name: value for name, value in measured.items()
            if value is not None and not (
                name in ("peak", "trough") and value.upper - value.lower > _QUARTER * typical
            )
        }  # fmt: skip
    return result


def _last(x: Floats, y: Floats, wave: Floats, period: float) -> Interval | None:
    """How many times as high a cycle was in the last period as before; None if that says little.

    Heights are those of least squares, of each period of which most was seen.  The interval holds
    the last one if it scatters as those before did (Student).
    """
    age = np.floor((x[-1] - x) / period)
    heights = []
    for k in range(int(age[0]) + 1):
        own = np.isfinite(y) & (age == k)
        if own.sum() >= max(_MOST_SEEN * len(x) * period / (x[-1] - x[0]), 3):
            w = wave[own] - wave[own].mean()
            heights.append(w @ y[own] / max(w @ w, 1e-300))
        elif k == 0:
            return None
    last, before = heights[0], np.array(heights[1:])
    if len(before) < _FEWEST_PERIODS or (usual := float(before.mean())) <= 0.0:
        return None
    chance = before.std(ddof=1) * np.sqrt(1.0 + 1.0 / len(before))
    chance *= student_t.ppf(0.5 + 0.5 * _UNUSUAL, len(before) - 1)
    return Interval(last / usual, 1.0 - chance / usual, 1.0 + chance / usual)


def _lags(
    shapes: Floats, visible: Booleans, reference: int, others: list[int], level: float
) -> dict[int, Interval]:
    """Lags behind a reference, in turns, where they are known."""
    lags = {}
    for n in others:
        both = visible[:, n] & visible[:, reference]
        if n != reference and both.sum() >= _FEWEST_DRAWS:
            lag = lag_of(shapes[both, reference], shapes[both, n], level)
            if lag is not None:
                lags[n] = lag
    return lags


def circular(turns: Floats, level: float, centre: float | None = None) -> Interval | None:
    """Interval of points of a cycle, in turns, about their circular mean or a centre in [0, 1).

    None if they are all around.
    """
    mean = np.exp(2j * np.pi * turns).mean()
    if abs(mean) < 0.5:
        return None
    if centre is None:
        centre = float(np.angle(mean) / (2.0 * np.pi) % 1.0)
    around = Interval.of((turns - centre + 0.5) % 1.0 - 0.5, level)
    lower, upper = min(around.lower, 0.0), max(around.upper, 0.0)
    return Interval(centre, centre + lower, centre + upper)


def lag_of(reference: Floats, other: Floats, level: float) -> Interval | None:
    """By how many turns one shape is later than another, between -1/2 and 1/2; both [T, points]."""
    a, b = np.fft.rfft(reference, axis=1), np.fft.rfft(other, axis=1)
    likeness = np.fft.irfft(np.conj(a) * b, reference.shape[1], axis=1)
    around = circular(likeness.argmax(axis=1) / reference.shape[1], level)
    if around is None or around.median <= 0.5:
        return around
    return Interval(*(end - 1.0 for end in around.ends))


def _trend(told: PatternDraws, p: int, n: int, rows: Booleans, level: float) -> _Measured:
    """Slope of the line through a trend, and where the trend turns if it does."""
    x, f = told.x, told.functions[rows, n, p]
    centred = x - x.mean()
    contrast = centred / (centred @ centred)
    slope = f @ contrast
    if told.is_plain[n]:
        slope = _widened(slope, contrast, _rest(told, n, rows))
    measured: _Measured = {
        "size": Interval.of(f.std(axis=1), level),
        "slope": Interval.of(slope * (x[-1] - x[0]), level),
    }
    height = np.ptp(f, axis=1)
    for sign, at in ((1, f.argmax(axis=1)), (-1, f.argmin(axis=1))):
        ends = np.maximum(sign * f[:, 0], sign * f[:, -1])
        turned = sign * f[np.arange(len(f)), at] - ends > 0.2 * height
        if turned.mean() >= level:
            measured["turn"] = (Interval.of(x[at], level), sign)
    return measured


def _jump(told: PatternDraws, p: int, n: int, rows: Booleans, level: float) -> _Measured:
    """How far the level shifts, or an event goes: the difference of two means."""
    f, seen = told.functions[rows, n, p], np.isfinite(told.Y[n])
    during = f[0] != np.median(f[0])
    if told.patterns[p].kind == "shift":
        during = told.x >= told.patterns[p].date
    residual = _rest(told, n, rows)
    counts = [max(int(seen[side].sum()), 1) for side in (during, ~during)]
    contrast = np.where(during, 1.0, -1.0) / np.where(during, *counts)
    sizes = np.nansum((residual + f) * contrast, axis=1)
    return {"size": Interval.of(_widened(sizes, contrast, residual), level)}


def _wander(told: PatternDraws, p: int, n: int, rows: Booleans, level: float) -> _Measured:
    """How far all else moves."""
    return {"size": Interval.of(told.functions[rows, n, p].std(axis=1), level)}


_MEASURES: Mapping[str, Callable[..., _Measured]] = {
    "trend": _trend, "shift": _jump, "event": _jump,
}  # fmt: skip


def _rest(told: PatternDraws, n: int, rows: Booleans) -> Floats:
    """Return a series less what lasts, [draws, D]: what wanders about a line is scatter, too."""
    lasts = [q for q, other in enumerate(told.patterns) if other.kind in _LASTING]
    return np.asarray(told.Y[n] - told.functions[rows, n][:, lasts].sum(axis=1))


def _widened(values: Floats, contrast: Floats, residual: Floats) -> Floats:
    """Scatter numbers [T] that are sums of values times a contrast [D] at least as noise does.

    Noise has the variance of the residuals [T, D], and their correlation from one to the next,
    which is an estimate, too.
    """
    rng, seen = np.random.default_rng(0), np.isfinite(residual[0])
    rho = _next_to(residual[:, seen])
    rho = rho + np.sqrt((1.0 - rho**2) / seen.sum()) * rng.normal(size=len(rho))
    spread = np.sqrt(_density(np.clip(rho, 0.0, _MOST_CORRELATED), 0.0))
    error = residual[:, seen].std() * np.linalg.norm(contrast) * spread
    more = np.sqrt(np.maximum(error**2 - values.var(), 0.0))
    return np.asarray(values + more * rng.normal(size=len(values)))


def _memories(told: PatternDraws, n: int) -> Floats:
    """Correlation of the noise of a series from one value to the next, in every draw, [T]."""
    seen = np.isfinite(told.Y[n])
    return _next_to((told.Y[n] - told.functions[:, n].sum(axis=1))[:, seen])


def _next_to(residual: Floats) -> Floats:
    """Correlation of residuals [T, D] with the next, less its bias (Kendall 1954), [T]."""
    r = residual - residual.mean(axis=1, keepdims=True)
    squares = np.maximum(np.square(r).sum(axis=1), 1e-300)
    rho = (r[:, 1:] * r[:, :-1]).sum(axis=1) / squares
    return np.clip(rho + (1.0 + 3.0 * rho) / r.shape[1], 0.0, _MOST_CORRELATED)


def _density(rho: Floats, frequency: Floats | float) -> Floats:
    """Power of noise with a memory at a frequency, in cycles a step, over that of white noise."""
    return (1.0 - rho**2) / (1.0 + rho**2 - 2.0 * rho * np.cos(2.0 * np.pi * frequency))


def together(told: PatternDraws, level: float) -> Floats:
    """Correlations over time of what the patterns of two series add up to, [N, N, 3].

    Median and interval over draws; NaN where a series has next to no pattern.
    """
    signal = told.functions.sum(axis=2)
    signal = signal - signal.mean(axis=2, keepdims=True)
    size = np.linalg.norm(signal, axis=2)
    is_flat = np.square(size) <= VISIBLE * len(told.x) * told.variances
    unit = signal / np.where(is_flat, np.nan, size)[:, :, None]
    correlations = np.einsum("tnd,tmd->tnm", unit, unit)
    ends = (0.5, 0.5 - 0.5 * level, 0.5 + 0.5 * level)
    result = np.full((*correlations.shape[1:], 3), np.nan)
    enough = np.isfinite(correlations).mean(axis=0) > 0.5
    if enough.any():
        result[enough] = np.nanquantile(correlations[:, enough], ends, axis=0).T
    return result

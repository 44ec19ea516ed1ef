"""Starting values from the data, their plausible ranges and weak priors.

Times are scaled to a span of one and series to unit variance, so one table serves all data.
Random periods fail, because the likelihood has dense local optima in them: periods start at the
peaks of a Lomb-Scargle periodogram averaged over the series.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np

from ..data.observations import Observations
from ..gp.types import Floats
from ..kernels.grammar import Kind, Product
from .engine import variances
from .layout import Layout

_MOST_NUMBERS = 2_000_000
"""Frequencies are taken in blocks: a block's cosines at all times are at most so many numbers."""

_NEGLIGIBLE = 1e-9
"""A wave with a smaller mean square at the times is zero there, and explains nothing."""


def lomb_scargle(x: Floats, Y: Floats, mask: Floats, frequencies: Floats) -> Floats:
    r"""Share of each series' sum of squares that a wave of each frequency explains.

    .. math:: P_n(f) = \frac{1}{y^\top y} \Big[ \frac{(y^\top c)^2}{c^\top c}
       + \frac{(y^\top s)^2}{s^\top s} \Big], \qquad
       c_i = \cos 2 \pi f (x_i - \tau), \quad s_i = \sin 2 \pi f (x_i - \tau)

    over the times that the series has, with the :math:`\tau` that makes c and s orthogonal.
    As SciPy's ``lombscargle(normalize=True)`` of one series; a thousand take little longer.
    Source: Scargle 1982, *Studies in astronomical time series analysis II*, equation 10.

    Parameters
    ----------
    x
        Times, [D].
    Y, mask
        Series, and one where they were observed, [N, D].
    frequencies
        Cycles per unit of time, [F].

    Returns
    -------
    [N, F]; zero for a series of zeros.
    """
    y = Y * mask
    squares = np.square(y).sum(axis=1)
    power = np.empty((len(Y), len(frequencies)))
    size = max(1, _MOST_NUMBERS // len(x))
    for begin in range(0, len(frequencies), size):
        block = slice(begin, begin + size)
        angles = 2.0 * np.pi * np.outer(x, frequencies[block])
        power[:, block] = _explained(np.cos(angles), np.sin(angles), y, mask)
    # A series of zeros has no power in any wave.
    return power / np.where(squares > 0.0, squares, 1.0)[:, None]


def _explained(cosines: Floats, sines: Floats, y: Floats, mask: Floats) -> Floats:
    """Sum of squares that waves explain, [N, F], from cosines and sines, [D, F]."""
    seen = mask.sum(axis=1, keepdims=True)
    twice = mask @ (cosines * sines)
    difference = mask @ (np.square(cosines) - np.square(sines))
    turned = 0.5 * np.arctan2(2.0 * twice, difference)
    half = 0.5 * np.hypot(2.0 * twice, difference)
    a, b, c, s = y @ cosines, y @ sines, np.cos(turned), np.sin(turned)
    products = np.array([c * a + s * b, c * b - s * a])
    squares = np.array([0.5 * seen + half, 0.5 * seen - half])
    counts = squares > _NEGLIGIBLE * seen
    explained = np.divide(np.square(products), squares, out=np.zeros_like(squares), where=counts)
    return np.asarray(explained.sum(axis=0))


@dataclass(frozen=True)
class Range:
    """Bounds and a normal prior for a hyperparameter, on the scale on which it is learnt.

    That is the logarithm for positive hyperparameters, the value itself for locations.
    """

    lower: float
    upper: float
    mean: float
    sd: float


def _log_range(lower: float, upper: float, median: float, sd: float) -> Range:
    return Range(float(np.log(lower)), float(np.log(upper)), float(np.log(median)), sd)


VARIANCE = _log_range(1e-6, 1e4, 0.5, 2.0)
NOISE_VARIANCE = _log_range(1e-5, 4.0, 0.03, 2.0)
EXACT_NOISE_VARIANCE = _log_range(1e-5, 4.0, 3e-4, 1.0)
"""The range for series that are seen almost exactly, as prices are."""


_ANYTHING = Range(-np.inf, np.inf, 0.0, np.inf)


def hyperparameter_range(kind: Kind, step: float) -> Range:
    """Return the range of a hyperparameter; `step` is the typical distance of two times."""
    return {
        Kind.DURATION: _log_range(0.5 * step, 20.0, 0.2, 1.5),
        Kind.MEMORY: _log_range(0.05 * step, 20.0, 2.0 * step, 2.0),
        Kind.PERIOD: _log_range(min(2.0 * step, 0.5), 0.6, 0.2, 1.5),
        Kind.RATIO: _log_range(0.05, 20.0, 1.0, 1.0),
        Kind.LOCATION: Range(-20.0, 21.0, 0.5, 1.0),
        Kind.ORIGIN: _ANYTHING,
        Kind.CHANGE: Range(0.05, 0.95, 0.5, 0.5),
        # A change that takes longer than a fifth of the time, four widths, has no date.
        Kind.WIDTH: _log_range(0.1 * step, max(0.05, 2.0 * step), step, 1.5),
    }[kind]


@dataclass(frozen=True)
class Ranges:
    """Ranges of all hyperparameters of a layout, as arrays over its flat vector."""

    lower: Floats
    upper: Floats
    mean: Floats
    precision: Floats

    @classmethod
    def of(cls, layout: Layout, step: float, *, exact: bool = False) -> Ranges:
        """Look up every entry of the flat vector; `exact` as in `FitSettings`.

        Parameters that a model adds are unbounded here, and have priors of their own.
        """
        ranges = (
            [VARIANCE] * len(layout.products)
            + [hyperparameter_range(kind, step) for kind in layout.kinds]
            + [EXACT_NOISE_VARIANCE if exact else NOISE_VARIANCE] * layout.num_series
            + [_ANYTHING] * layout.num_extras
        )
        columns = np.array([(r.lower, r.upper, r.mean, r.sd) for r in ranges]).T  # [4, size]
        return cls(columns[0], columns[1], columns[2], columns[3] ** -2.0)

    def log_prior(self, flat: Floats) -> tuple[float, Floats]:
        """Log density of the normal priors up to a constant, and its gradient."""
        deviation = flat - self.mean
        gradient = -self.precision * deviation
        return float(0.5 * gradient @ deviation), gradient


def walks_begin(x: Floats) -> float:
    """When random walks begin: a third of the span before the first of the times `x`, [D].

    Series have their average taken off, and a walk of unit variance on [0, 1] has the variance
    1/3 about its average at either end.  One that begins at zero a third earlier has just that at
    the first time.  Beginning there at zero, a walk would need a level, or a trend, beside it.
    """
    return float(x[0] - (x[-1] - x[0]) / 3.0)


def typical_step(x: Floats) -> float:
    """Median distance of two neighbouring times."""
    return float(np.median(np.diff(x)))


@dataclass(frozen=True)
class Proposer:
    """Draws complete products for incomplete ones, from what the data suggest.

    Parameters
    ----------
    x
        Scaled times, [D].
    periods
        Likely periods, the likeliest first.
    """

    x: Floats
    periods: Floats

    @classmethod
    def of(cls, observations: Observations) -> Proposer:
        """Look at the data once: the fits of a search ask for the same table."""
        return cls(observations.x, _periods_of(*_as_bytes(observations)))

    @cached_property
    def _step(self) -> float:
        return typical_step(self.x)

    def propose(self, product: Product, count: int, rng: np.random.Generator) -> list[Product]:
        """Return `count` products: shape parameters that are given kept, absent ones drawn.

        A complete product is returned alone.  Otherwise the variance is drawn last, such that
        the mean prior variance of the component over the observed times is log-uniform between
        0.03 and 3 (series have unit variance).
        """
        if product.is_complete:
            return [product]
        shapes = [self._shape(product, (i / count, (i + 1) / count), rng) for i in range(count)]
        diagonal = variances(shapes, self.x)
        wanted = np.exp(rng.uniform(np.log(0.03), np.log(3.0), size=count))
        own = wanted / np.maximum(diagonal.mean(axis=1), 1e-9)
        return [
            replace(shape, variance=float(variance))
            for shape, variance in zip(shapes, own, strict=True)
        ]

    def _shape(
        self, product: Product, part: tuple[float, float], rng: np.random.Generator
    ) -> Product:
        factors = []
        for factor in product.factors:
            values = tuple(
                self._draw(kind, part, rng) if value is None else value
                for value, (_, kind) in zip(factor.values, factor.base.parameters, strict=True)
            )
            factors.append(replace(factor, values=values))
        return Product(tuple(factors), 1.0)

    def _draw(self, kind: Kind, part: tuple[float, float], rng: np.random.Generator) -> float:
        """Draw a number; a change lies in its part of the data, so that all are scanned."""
        step = self._step
        if kind is Kind.CHANGE:
            return float(np.clip(rng.uniform(*part), 0.05, 0.95))
        if kind is Kind.WIDTH:
            return log_uniform(step, 2.0 * step, rng)
        if kind is Kind.DURATION:
            return log_uniform(2.0 * step, 1.0, rng)
        if kind is Kind.MEMORY:
            return log_uniform(0.2 * step, 1.0, rng)
        if kind is Kind.PERIOD:
            if len(self.periods) and rng.uniform() < 0.7:
                peak = self.periods[min(rng.geometric(0.4) - 1, len(self.periods) - 1)]
                return float(np.clip(peak * np.exp(0.02 * rng.normal()), 2.0 * step, 0.6))
            return log_uniform(4.0 * step, 0.6, rng)
        if kind is Kind.RATIO:
            return log_uniform(0.3, 3.0, rng)
        if kind is Kind.LOCATION:
            return float(rng.uniform(-0.2, 1.2))
        return walks_begin(self.x)


def log_uniform(lower: float, upper: float, rng: np.random.Generator) -> float:
    """Draw a number whose logarithm is uniform; the upper bound where the lower is above it."""
    lower = min(lower, upper)
    return float(np.exp(rng.uniform(np.log(lower), np.log(upper))))


def _as_bytes(observations: Observations) -> tuple[bytes, bytes, bytes]:
    return observations.x.tobytes(), observations.Y.tobytes(), observations.mask.tobytes()


@lru_cache(maxsize=4)
def _periods_of(x: bytes, Y: bytes, mask: bytes) -> Floats:
    times, *rows = np.frombuffer(x), np.frombuffer(Y), np.frombuffer(mask)
    return likely_periods(Observations(times, *(row.reshape(-1, len(times)) for row in rows)))


def likely_periods(observations: Observations, count: int = 6) -> Floats:
    """Periods at the highest peaks of the Lomb-Scargle periodogram, averaged over series.

    Every series is freed of its straight line first.  Periods lie between two steps and half
    the span (a pattern that is not seen twice is not a period); the likeliest comes first.  Five
    points or fewer have none.
    """
    from scipy.signal import find_peaks  # which takes most of a second to load

    x = observations.x
    # Five frequencies for each that the span resolves; not those of bursts, whose steps are tiny.
    frequencies = np.arange(2.0, min(0.5 / typical_step(x), len(x)), 0.2)
    if not frequencies.size:
        return np.empty(0)
    rest = np.zeros_like(observations.Y)
    for n, (y, mask) in enumerate(zip(observations.Y, observations.mask, strict=True)):
        seen = mask > 0.0
        trust = 1.0 / (1.0 + observations.known_of(n, seen) + np.zeros(len(x))[seen])
        line = np.polyfit(x[seen], y[seen], 1, w=np.sqrt(trust))
        rest[n, seen] = trust * (y[seen] - np.polyval(line, x[seen]))
    power = lomb_scargle(x, rest, observations.mask, frequencies).sum(axis=0)
    peaks, _ = find_peaks(np.concatenate([[-1.0], power, [-1.0]]))
    best = sorted(peaks - 1, key=lambda i: -power[i])[:count]
    return 1.0 / frequencies[best]


def shuffled(members: Sequence[Product], rng: np.random.Generator) -> list[Product]:
    """Return the members in random order."""
    return [members[i] for i in rng.permutation(len(members))]

"""What is true of a component: the facts that rules of wording ask for."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ..kernels.grammar import Factor, Product, Words, words_of
from ..sharing.matching import never_repeats
from ..sharing.pattern_draws import SEEN_TWICE
from .wording import Timeline

_KNOWN = frozenset({"WN", "C", "LIN", "SE", "PER", "RW", "IOU", "OU", "UNTIL", "FROM"})

_BRISK = 0.1
"""Up to this lengthscale, in spans of the data, a smooth component changes; beyond, it drifts."""

_FADE = 2.0 * math.log(9.0)  # widths in which a change point goes from a tenth to nine tenths

_LOG_2 = math.log(2.0)

_ALIKE = 0.95  # periods of a larger ratio are one in the eyes of a reader
_ABRUPT = 4.0  # steps of the data up to which a change is abrupt


@dataclass(frozen=True)
class Facts:
    """What the rules ask about a component."""

    # The component, with all its numbers, in the time of `timeline`; variances are shares of those
    # of the series.
    kernel: Product
    timeline: Timeline

    def of(self, name: str) -> list[Factor]:
        """Return the factors of a base kernel."""
        return [factor for factor in self.kernel.factors if factor.base.name == name]

    def has(self, *names: str) -> bool:
        """Whether there is a factor of any of these base kernels."""
        return any(self.of(name) for name in names)

    @property
    def is_foreign(self) -> bool:
        """Whether there is a base kernel that no rule knows."""
        return bool(self._foreign)

    @property
    def words(self) -> Words | None:
        """The words that the first of these base kernels brought; None if it has none."""
        return words_of(self._foreign[0].base.name) if self._foreign else None

    @property
    def rest(self) -> Product | None:
        """What multiplies that base kernel, windows excepted; None if nothing does."""
        others = [f for f in self.kernel.factors if not f.base.is_window]
        if self._foreign:
            others.remove(self._foreign[0])
        return Product(tuple(others), self.kernel.variance) if others else None

    @property
    def _foreign(self) -> list[Factor]:
        return [factor for factor in self.kernel.factors if factor.base.name not in _KNOWN]

    @property
    def degree(self) -> int:
        """How many factors are linear."""
        return len(self.of("LIN"))

    @property
    def is_polynomial(self) -> bool:
        """Whether all factors are linear, where it is there at all."""
        windows = sum(factor.base.is_window for factor in self.kernel.factors)
        return 0 < self.degree == len(self.kernel.factors) - windows

    @property
    def is_shift(self) -> bool:
        """Whether it is a constant that begins or ends at a change point."""
        return all(factor.base.is_window for factor in self.kernel.factors)

    def at(self, *names: str) -> float:
        """Return when a window (the first of these that there is) begins or ends."""
        return next((self._value(name, 0) for name in names if self.has(name)), math.nan)

    def fade(self, *names: str) -> float:
        """Return how long its change takes, from a tenth to nine tenths."""
        return _FADE * next((self._value(name, 1) for name in names if self.has(name)), math.nan)

    def fades(self, *names: str) -> bool:
        """Whether this change is not abrupt."""
        return self.fade(*names) > _ABRUPT * self.timeline.step

    @property
    def location(self) -> float:
        """Where the (one) linear factor vanishes."""
        return self._value("LIN", 0)

    @property
    def lengthscale(self) -> float:
        """Lengthscale of SE; NaN, of which every comparison is false, if there is none."""
        return self._value("SE", 0)

    @property
    def is_brisk(self) -> bool:
        """Whether it is smooth and changes more than a few times within the data."""
        return self.lengthscale <= _BRISK * self.timeline.span

    @property
    def is_rough(self) -> bool:
        """Whether it is as rough as a random walk: a walk is, also multiplied by what is smooth."""
        return self.has("RW") or self.memory < self.timeline.step

    @property
    def never_repeats(self) -> bool:
        """Whether it is periodic only by its kernel."""
        return never_repeats(self.kernel)

    @property
    def memory(self) -> float:
        """Lengthscale of IOU."""
        return self._value("IOU", 0)

    @property
    def half_life(self) -> float:
        """After which time OU, and SE beside it, have halved the correlation; NaN without OU."""
        if not self.has("OU"):
            return math.nan
        rate, curvature = self._sum_of_powers("OU", -1), self._sum_of_powers("SE", -2)
        # The solution h of rate h + curvature h^2 / 2 = log 2, also where there is no curvature.
        return 2.0 * _LOG_2 / (rate + math.sqrt(rate**2 + 2.0 * _LOG_2 * curvature))

    @property
    def periods(self) -> list[float]:
        """Periods, the longest first."""
        return sorted((float(f.values[0] or 0.0) for f in self.of("PER")), reverse=True)

    @property
    def period(self) -> float:
        """The longest period."""
        return self.periods[0] if self.periods else math.nan

    @property
    def is_seen_once(self) -> bool:
        """Whether its period was seen less than twice, so that it may be a single event."""
        return self.period > SEEN_TWICE * self.timeline.span

    @property
    def is_modulated(self) -> bool:
        """Whether it has two periods that differ."""
        return len(self.periods) > 1 and self.periods[1] < _ALIKE * self.period

    @property
    def shape(self) -> float:
        """Lengthscale of PER with the longest period, without unit."""
        factors = sorted(self.of("PER"), key=lambda f: -(f.values[0] or 0.0))
        return float(factors[0].values[1] or 0.0) if factors else math.nan

    @property
    def shape_lengthscale(self) -> float:
        """Lengthscale of the shape within a period, in time: l p / 2 pi."""
        return self.shape * self.period / (2.0 * math.pi)

    def _value(self, name: str, i: int) -> float:
        factors = self.of(name)
        return float(factors[0].values[i] or 0.0) if factors else math.nan

    def _sum_of_powers(self, name: str, power: int) -> float:
        """Add up powers of the first numbers of all factors of a base kernel."""
        return sum(float(f.values[0] or 0.0) ** power for f in self.of(name))

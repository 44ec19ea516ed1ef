"""What is told of each pattern: who has it, how much, when and how fast, in one statement."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
import pandas as pd

from ..discovery.result import Discovery
from ..runtime.text import listed, percent
from ..sharing.behaviour import Behaviour, Interval, behaviours
from ..sharing.pattern_draws import BRISK, NEXT, SEEN_TWICE, SURE, Pattern
from .describe import describe
from .facts import Facts
from .wording import Timeline, few_digits, with_article

Verdict = Literal["has", "perhaps", "cannot be told", "has not"]
"""What is said of a series and a pattern, the surest first."""

MOST_NAMES = 8  # of series in a sentence

_HARDLY = 0.05  # up to this probability a series is said not to have a pattern

_MOST_SAID = 5  # statements of a gist
_LITTLE = 0.03  # patterns that make up less of all variation are not told unless they are sure
_TOGETHER = 0.05  # of a period: series no further apart are in step
_RETURNS, _BRIEF = "walk that returns", "correlated noise"
_GROWS = 1.25  # times as high in the last third as in the first
_CALENDAR = (("year", 365.2425), ("week", 7.0), ("day", 1.0))
_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MONTH = 365.2425 / 12.0
_PER = (("year", 365.2425), ("month", _MONTH), ("week", 7.0), ("day", 1.0), ("hour", 1.0 / 24.0),
        ("minute", 1.0 / 1440.0), ("second", 1.0 / 86400.0))  # fmt: skip

_VERBS = (
    ("random walk", "wanders and does not return, like a random walk",
     "wander and do not return, like a random walk"),
    (_RETURNS, "wanders and returns within about {}", "wander and return within about {}"),
    (_BRIEF, "has noise in which a disturbance lasts about {}",
     "have noise in which a disturbance lasts about {}"),
)  # fmt: skip
"""How titles begin, and what one series and many do then."""

_CHANGES: tuple[tuple[str, Callable[[Behaviour], bool]], ...] = (
    ("it has grown", lambda b: b.growth is not None and b.growth.lower > _GROWS),
    ("it has faded", lambda b: b.growth is not None and b.growth.upper < 1.0 / _GROWS),
    ("the last one was larger than usual",
     lambda b: b.last is not None and b.last.median > b.last.upper),
    ("the last one was smaller than usual",
     lambda b: b.last is not None and b.last.median < b.last.lower),
)  # fmt: skip
"""What is said of cycles that change, and when."""


def verdict_on(probability: float) -> Verdict:
    """Return what a probability allows to say."""
    if probability >= SURE:
        return "has"
    if probability > 0.5:
        return "perhaps"
    return "cannot be told" if probability > _HARDLY else "has not"


@dataclass(frozen=True)
class Story:
    """One pattern, and what it does in every series."""

    number: int  # from 1
    pattern: Pattern
    title: str  # "1-year cycle"
    names: tuple[str, ...]  # of the series
    behaviours: tuple[Behaviour, ...]  # in each, in scaled time and values
    scales: tuple[float, ...]  # sd of each, by which values are scaled
    is_log: tuple[bool, ...]  # which series are modelled by their logarithm
    units: tuple[str, ...]  # of each; "%" if modelled by its logarithm
    timeline: Timeline
    calendar: str  # "year", "week" or "day" of a cycle of that length; else empty
    origin: float  # where the period begins from which peaks are counted, in days or numbers

    # --- who has it ---

    @property
    def verdicts(self) -> dict[str, Verdict]:
        """On every series, by name."""
        return {
            n: verdict_on(b.probability) for n, b in zip(self.names, self.behaviours, strict=True)
        }

    def those(self, verdict: Verdict) -> tuple[str, ...]:
        """Series with this verdict."""
        return tuple(name for name, own in self.verdicts.items() if own == verdict)

    @property
    def owners(self) -> tuple[str, ...]:
        """Series that have it."""
        return self.those("has")

    @property
    def weight(self) -> float:
        """What it makes up of all variation: probability times share, each series alike."""
        own = [b.probability * min(b.share.median, 1.0) for b in self.behaviours]
        return float(np.mean(own))

    def of(self, name: str) -> Behaviour:
        """What it does in a series."""
        return self.behaviours[self.names.index(name)]

    # --- in words ---

    @property
    def sentence(self) -> str:
        """The statement on page one; empty if it is not even likely in any series."""
        owners, maybe = self.owners, self.those("perhaps")
        if owners:
            also = f"; perhaps {self._who(maybe)}, too" if maybe else ""
            return self._capital(f"{self._does(owners)}{also}.")
        return f"Perhaps {self._does(maybe)}." if maybe else ""

    def account(self, name: str) -> str:
        """What it is in one series: "a 1-year cycle (93% of its variation, ±3 °C, highest ...)"."""
        own = self.of(name)
        size = self.measure(name)
        if own.slope is not None and own.slope.sign:
            size = self.slope(name, own.slope).replace(" (", ", ").removesuffix(")")
        told = [self.share_of([name]), size, self.when(own).replace(" (", " ").removesuffix(")")]
        return f"{self.named} ({', '.join(filter(None, told))})"

    def when(self, own: Behaviour) -> str:
        """When a cycle is highest, or a trend turned; empty if that is not known."""
        if own.peak is not None:
            return f"highest {self._moment(own.peak)}"
        if own.trough is not None:
            return f"lowest {self._moment(own.trough)}"
        if own.turn is not None:
            side = "highest" if own.turn[1] > 0 else "lowest"
            return f"{side} around {self.timeline.date(self._time(own.turn[0].median))}"
        return ""

    @property
    def timing(self) -> str:
        """Who leads and who follows among the owners of a cycle; empty if that is not known."""
        lags = {name: own.lag for name in self.owners if (own := self.of(name)).lag is not None}
        if self.pattern.kind != "cycle" or not lags:
            return ""
        (reference,) = [n for n in self.owners if n not in lags][:1] or ("",)
        near = _TOGETHER * self.pattern.period
        half = 0.5 * self.pattern.period
        apart = max(max(-lag.lower, lag.upper) for lag in lags.values())
        if len(lags) + 1 == len(self.owners) and apart <= near:
            return f"in step to within {self.timeline.duration(apart * self.timeline.span)}"
        opposite = [
            lag for lag in lags.values() if min(abs(lag.lower), abs(lag.upper)) >= half - near
        ]
        if len(opposite) == len(lags) == 1:
            return "in opposite directions"
        close = [n for n, lag in lags.items() if max(-lag.lower, lag.upper) <= 0.5 * half]
        first, last = (pick(close, key=lambda n: lags[n].median, default="") for pick in (min, max))
        said = []
        if first and lags[first].upper < 0.0:
            said.append(f"{first} leads {reference} by {self._lag(lags[first])}")
        if last and lags[last].lower > 0.0:
            said.append(f"{last} follows {reference} by {self._lag(lags[last])}")
        return " and ".join(said)

    def changes(self) -> str:
        """In which owners a cycle has grown or faded, or the last one was unusual."""
        said = []
        for what, is_so in _CHANGES:
            if those := [name for name in self.owners if is_so(self.of(name))]:
                said.append(f"{what} in {listed(those, MOST_NAMES)}")
        return " and ".join(said)

    def _does(self, names: Sequence[str]) -> str:
        """Who does what: a clause that begins with the names."""
        who, many, p = self._who(names), len(names) > 1, self.pattern
        has = "have" if many else "has"
        share = self.share_of(names)
        own = [self.of(name) for name in names]
        if p.kind == "trend" and all(one.slope is not None and one.slope.sign for one in own):
            return f"{self._trends(names)} ({share})"
        if p.kind in ("shift", "event") and len(names) == 1 and own[0].size is not None:
            size = self.amount(names[0], own[0].size.median, signed=True)
            date = self.timeline.date(self._time(p.date))
            what = f"shifts by {size}" if p.kind == "shift" else f"has a single event of {size}"
            return f"{who} {what} around {date} ({share})"
        for title, one, more in _VERBS:
            if self.title.startswith(title):
                lasting = self.timeline.duration(p.lasting * self.timeline.span)
                return f"{who} {(more if many else one).format(lasting)} ({share})"
        if p.kind != "cycle":
            return f"{who} {has} {self.named} ({share})"
        size = ""
        if len(names) == 1 and own[0].size is not None:
            size = f" of {self.measure(names[0])}"
        is_all = list(names) == list(self.owners)
        timing, changes = (self.timing, self.changes()) if is_all else ("", "")
        way = f", {timing}," if timing.startswith("in ") else ""
        peaks = "" if timing == "in opposite directions" else self._peaks(names)
        makes = f"{'is ' + peaks + ' and ' if peaks else ''}makes up {share}"
        also = [text for text in ("" if way else timing, changes) if text]
        return "; ".join([f"{who} {has} {self.named}{size}{way} that {makes}", *also])

    def _trends(self, names: Sequence[str]) -> str:
        """Who rises and who falls, and how fast."""
        said = []
        for sign, one, many in ((1, "rises", "rise"), (-1, "falls", "fall")):
            those = [n for n in names if (s := self.of(n).slope) is not None and s.sign == sign]
            if not those:
                continue
            verb = many if len(those) > 1 else one
            if len(those) <= 2:
                rates = [self.slope(n, self.of(n).slope) for n in those]  # type: ignore[arg-type]
                rates = [rate.removeprefix("+").removeprefix("-") for rate in rates]
                said.append(f"{self._who(those)} {verb} by {listed(rates)}")
            else:
                said.append(f"{self._who(those)} {verb}")
        return " and ".join(said)

    def _peaks(self, names: Sequence[str]) -> str:
        """When the cycle of some series is highest: one time, or from the first to the last."""
        owns = [self.of(name) for name in names]
        if len(owns) == 1 and owns[0].peak is None and owns[0].trough is not None:
            return f"lowest {self._moment(owns[0].trough)}"
        points = [own.peak for own in owns if own.peak is not None]
        if 2 * len(points) < len(owns):
            return ""
        known = "" if len(points) == len(owns) else ", where that is known,"
        peaks, period = np.array([point.median for point in points]), self.pattern.period
        centre = np.angle(np.exp(2j * np.pi * peaks / period).mean()) / (2.0 * np.pi) * period
        around = (peaks - centre + 0.5 * period) % period - 0.5 * period
        if np.ptp(around) > 0.5 * period:
            return ""
        if np.ptp(around) <= 2.0 * _TOGETHER * period:
            return f"highest {self._moment(points[int(np.abs(around).argmin())])}{known}"
        begin = (centre + around.min()) % period
        begin -= period * (begin + np.ptp(around) >= period)
        first, last = self._point(begin), self._point(begin + np.ptp(around))
        when = f"around {first}" if first == last else f"between {first} and {last}"
        return f"highest {when}{known}"

    def share_of(self, names: Sequence[str]) -> str:
        """How much of the variation it makes up."""
        shares = [min(self.of(name).share.median, 1.0) for name in names]
        low, high = percent(min(shares)), percent(max(shares))
        of = "their" if len(names) > 1 else "its"
        amount = low if low == high else f"{low.removesuffix('%')} to {high}"
        return f"{amount} of {of} variation"

    def _who(self, names: Sequence[str]) -> str:
        """Return names as they stand in a sentence."""
        if len(names) == len(self.names) > 1:
            return "both series" if len(names) == 2 else f"all {len(names)} series"
        return listed(names, MOST_NAMES)

    @staticmethod
    def _capital(text: str) -> str:
        return text[:1].upper() + text[1:] if text.startswith(("all ", "both ")) else text

    @property
    def named(self) -> str:
        """Its title as it stands in a sentence: "a 1-year cycle"."""
        is_plural = self.title.startswith(
            ("correlated", "noise", "smooth changes", "rough changes")
        )
        return self.title if is_plural else with_article(self.title)

    # --- numbers in their units ---

    def measure(self, name: str) -> str:
        """Return the size of a pattern in a series, as it stands alone; empty if unknown.

        Of a cycle of logarithms it is the factor from trough to peak.
        """
        own, kind = self.of(name), self.pattern.kind
        if own.slope is not None and own.slope.sign:
            return self.slope(name, own.slope).split(" (")[0]
        if own.size is None or kind == "noise":
            return ""
        if kind in ("shift", "event"):
            return self.amount(name, own.size.median, signed=True)
        n = self.names.index(name)
        if kind == "cycle" and self.is_log[n]:
            return f"×{few_digits(float(np.exp(2.0 * own.size.median * self.scales[n])))}"
        return f"±{self.amount(name, own.size.median)}"

    def amount(self, name: str, value: float, signed: bool = False) -> str:
        """Return a size in the unit of the series: "3.2 °C", "12%"."""
        n = self.names.index(name)
        size = self._in_unit(n, value)
        sign = "+" if signed and size > 0.0 else ""
        unit = self.units[n]
        text = few_digits(size).replace("-", "\N{MINUS SIGN}")
        return f"{sign}{text}{'%' if unit == '%' else f' {unit}' if unit else ''}"

    def slope(self, name: str, slope: Interval) -> str:
        """Return a slope by a unit of time: "+0.3 °C a year (0.2 to 0.4)"."""
        unit, days = "", 1.0
        if self.timeline.origin is not None:
            unit, days = next((each for each in _PER if each[1] <= self.timeline.span), _PER[-1])
        factor = days / self.timeline.span
        per = f" a{'n' if unit == 'hour' else ''} {unit}" if unit else " per unit of time"
        ends = sorted((abs(slope.lower), abs(slope.upper)))
        low, high = (self.amount(name, end * factor).split(" ")[0].rstrip("%") for end in ends)
        sign = "" if slope.median > 0.0 else "-"
        middle = self.amount(name, abs(slope.median) * factor)
        return f"{sign}{middle}{per} ({low} to {high})"

    def _lag(self, lag: Interval) -> str:
        """Return a lag, with the ends of its interval in the same unit: "2 weeks (1.4 to 2.6)"."""
        middle = self.timeline.duration(abs(lag.median) * self.timeline.span)
        number, _, unit = middle.partition(" ")
        scale = float(number) / max(abs(lag.median), 1e-300)
        low, high = (few_digits(end * scale) for end in sorted((abs(lag.lower), abs(lag.upper))))
        return middle if low == high else f"{middle} ({low} to {high})"

    def _time(self, x: float) -> float:
        """Scaled time in days or numbers."""
        return x * self.timeline.span + self.timeline.start

    def _moment(self, point: Interval) -> str:
        """Return a point of a cycle: "around 28 January (±9 days)"."""
        span = self.timeline.span
        middle = self._point(point.median % self.pattern.period)
        spread = 0.5 * (point.upper - point.lower) * span
        if spread < 0.6 * self.timeline.step or self.calendar == "week":
            return self._at(middle)
        return f"{self._at(middle)} (±{self.timeline.duration(spread)})"

    def _at(self, point: str) -> str:
        return f"on {point}s" if point in _WEEKDAYS else f"around {point}"

    def _point(self, x: float) -> str:
        """Return a point of a cycle, from its origin on: a date, weekday, hour or number."""
        days = x * self.timeline.span
        if self.calendar == "year":
            date = pd.Timestamp(2001, 1, 1) + pd.Timedelta(days=days % 365.0)
            return f"{date:%B}" if self.timeline.step > 20.0 else f"{date.day} {date:%B}"
        if self.calendar == "week":
            return _WEEKDAYS[int(days % 7.0)]
        if self.calendar == "day":
            minutes = round(days % 1.0 * 1440.0 / 15.0) * 15 % 1440
            return f"{minutes // 60:02d}:{minutes % 60:02d}"
        return self.timeline.date(self.origin + days)

    # --- as data ---

    def row(self, n: int) -> dict[str, Any]:
        """Everything about one series as a row of a table, in its units."""
        own, span = self.behaviours[n], self.timeline.span
        row: dict[str, Any] = {
            "kind": self.pattern.kind,
            "period": self.pattern.period * span if self.pattern.period else np.nan,
            "probability": own.probability,
            "verdict": verdict_on(own.probability),
        }
        in_unit = partial(self._in_unit, n)
        told: list[tuple[str, Interval | None, Callable[[float], float]]] = [
            ("share", own.share, float), ("size", own.size, in_unit),
            ("peak", own.peak, span.__mul__), ("trough", own.trough, span.__mul__),
            ("lag", own.lag, span.__mul__), ("growth", own.growth, float),
            ("last", own.last, float), ("slope", own.slope, lambda slope: in_unit(slope / span)),
            ("turn", own.turn and own.turn[0], self._time),
        ]  # fmt: skip
        for name, value, change in told:
            ends = (np.nan,) * 3 if value is None else map(change, value.ends)
            row |= zip((name, f"{name}_lower", f"{name}_upper"), ends, strict=True)
        row["date"] = self._time(self.pattern.date)
        return row

    def _in_unit(self, n: int, value: float) -> float:
        """Return a scaled size in the unit of a series, which is percent of logarithms."""
        size = value * self.scales[n]
        return float(100.0 * np.expm1(size)) if self.is_log[n] else size


def gist(told: Sequence[Story]) -> list[str]:
    """Return the statements that a person would repeat, what makes up most first."""
    matter = [each for each in told if each.sentence and (each.weight >= _LITTLE or each.owners)]
    matter.sort(key=lambda each: (not each.owners, "noise" in each.title, -each.weight))
    said = [each.sentence for each in matter[:_MOST_SAID]]
    return said or ["No series certainly has a pattern."]


def table_of(told: Sequence[Story], series: Sequence[object]) -> pd.DataFrame:
    """Return all that is told as a table with index (pattern, series); see `Discovery.patterns`."""
    rows = {(each.title, name): each.row(n) for each in told for n, name in enumerate(series)}
    index = pd.MultiIndex.from_tuples(list(rows), names=["pattern", "series"])
    return pd.DataFrame(list(rows.values()), index)


def stories(
    found: Discovery, level: float = 0.9, units: Mapping[str, str] | None = None
) -> tuple[Story, ...]:
    """Tell every pattern of a discovery, what makes up most first."""
    told, table = found.pattern_draws, found.table
    timeline = Timeline.of(table)
    calendars = [_calendar(pattern, timeline) for pattern in told.patterns]
    periods = np.array([dict(_CALENDAR).get(c, np.nan) / timeline.span for c in calendars])
    origins = np.array([
        _origin(c, pattern, timeline) for c, pattern in zip(calendars, told.patterns, strict=True)
    ]).reshape(-1)  # fmt: skip
    scaled = (origins - timeline.start) / timeline.span
    measured = behaviours(told, level, scaled, periods)
    names = tuple(table.names)
    is_log = tuple(bool(one) for one in table.transforms.multiplies)
    own_units = tuple(
        "%" if log else (units or {}).get(name, "") for name, log in zip(names, is_log, strict=True)
    )
    titles = titles_of(told.patterns, timeline)
    result = [
        Story(p + 1, pattern, titles[p], names, tuple(measured[p]), tuple(map(float, table.scale)),
              is_log, own_units, timeline, calendars[p], float(origins[p]))
        for p, pattern in enumerate(told.patterns)
    ]  # fmt: skip
    return tuple(result)


def _calendar(pattern: Pattern, timeline: Timeline) -> str:
    """The unit of the calendar that a cycle repeats with."""
    if pattern.kind != "cycle" or timeline.origin is None:
        return ""
    frequency = 1.0 / pattern.period
    for name, days in _CALENDAR:
        if abs(frequency - timeline.span / days) < min(0.5, 0.1 * frequency):
            return name
    return ""


def _origin(calendar: str, pattern: Pattern, timeline: Timeline) -> float:
    """A time, in days or numbers, at which a period begins."""
    if not calendar or timeline.origin is None:
        return timeline.end - pattern.period * timeline.span
    first = timeline.origin + pd.Timedelta(days=timeline.start)
    day = first.normalize()
    begin = {
        "year": pd.Timestamp(first.year, 1, 1, tz=first.tz),
        "week": day - pd.Timedelta(days=day.weekday()),
        "day": day,
    }[calendar]
    return (begin - timeline.origin) / pd.Timedelta(days=1)


def titles_of(patterns: Sequence[Pattern], timeline: Timeline) -> list[str]:
    """Names of patterns for readers; numbered where two read alike."""
    titles = [_title(pattern, timeline) for pattern in patterns]
    return [
        f"{title} ({titles[: i + 1].count(title)})" if titles.count(title) > 1 else title
        for i, title in enumerate(titles)
    ]


def _title(pattern: Pattern, timeline: Timeline) -> str:
    kernel = pattern.kernel.change_units(timeline.span, timeline.start)
    facts = Facts(kernel, timeline)
    date = (
        timeline.date(pattern.date * timeline.span + timeline.start)
        if pattern.date == pattern.date
        else ""
    )
    length = pattern.period * timeline.span
    if pattern.kind == "cycle":
        if pattern.period > SEEN_TWICE:
            return f"swing over about {timeline.duration(length)}, seen less than twice"
        return (
            f"{timeline.adjective(length)} cycle"
            if timeline.origin is not None
            else f"cycle of {few_digits(length)}"
        )
    if pattern.kind == "changes" and not facts.lengthscale > NEXT * timeline.step:
        lasting = timeline.duration(pattern.lasting * timeline.span)
        if pattern.lasting > BRISK:
            return f"{_RETURNS} within {lasting}"
        return f"{_BRIEF} over {lasting}"
    plain = {
        "trend": "trend", "walk": "random walk", "noise": "noise of changing size",
        "shift": f"shift of level around {date}", "event": f"single event around {date}",
    }  # fmt: skip
    return plain.get(pattern.kind) or describe(kernel, timeline).title

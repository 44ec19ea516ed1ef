"""What is different between two discoveries of the same series, such as last week's and today's."""

from __future__ import annotations

import html
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from ..discovery.result import Discovery
from ..gp.types import Booleans, Floats
from ..runtime.text import listed, quoted
from ..sharing.pattern_draws import Pattern, is_one
from .stories import titles_of
from .wording import Timeline, few_digits, with_article

_CLEARLY = 0.2
"""A probability that changes by less says nothing new."""

_MOVED = 1.0
"""A forecast that moves by so many of its standard deviations is worth a sentence."""

_MOST_NAMED = 6


@dataclass(frozen=True, eq=False)
class Changes:
    """What changed from an earlier discovery to a later one.

    Parameters
    ----------
    patterns
        Series that have come to have a pattern or no longer have it: index (pattern, series),
        columns before and now (probabilities).
    forecasts
        The first step after the later table: index series, columns time, before, now, and shift,
        in standard deviations of the forecast before.
    text
        The same in sentences.
    """

    patterns: pd.DataFrame
    forecasts: pd.DataFrame
    text: str

    def __str__(self) -> str:
        tables = (each.round(3).to_string() for each in self._tables)
        return "\n\n".join([self.text, *tables]) + "\n"

    def _repr_html_(self) -> str:
        tables = (each.to_html(float_format="{:.3g}".format) for each in self._tables)
        return "".join([f"<p>{html.escape(self.text)}</p>", *tables])

    @property
    def _tables(self) -> list[pd.DataFrame]:
        return [each for each in (self.patterns, self.forecasts) if len(each)]


def compare_discoveries(before: Discovery, now: Discovery) -> Changes:
    """Compare two discoveries; see `Discovery.changes_since`."""
    if list(before.table.frame.columns) != list(now.table.frame.columns):
        raise ValueError(
            f"expected a discovery of the series {quoted(now.table.frame.columns)}, got one of "
            f"{quoted(before.table.frame.columns)}"
        )
    patterns = _changed_patterns(before, now)
    forecasts = _forecasts(before, now)
    said = [*_gained_and_lost(patterns), *_moved_forecasts(forecasts, now)]
    if not len(patterns):
        said.insert(0, "Which series has which pattern has not changed.")
    return Changes(patterns, forecasts, " ".join(said))


def _changed_patterns(before: Discovery, now: Discovery) -> pd.DataFrame:
    """Return the probabilities of those that crossed the line.

    A pattern is lost where no other that does the same is left, and gained where there was none.
    """
    by_draws = all(each.is_sampled or each.says_by_fits for each in (before, now))
    old, new = (each.pattern_draws if by_draws else each.patterns_by_fits for each in (before, now))
    table = now.table
    first, last = map(float, table.scaled_times(before.table.frame.index[[0, -1]]))
    span, timeline = last - first, Timeline.of(table)
    then = [
        replace(each, kernel=each.kernel.change_units(span, first), period=each.period * span,
                date=each.date * span + first)
        for each in old.patterns
    ]  # fmt: skip
    titles, others = (_named(each, timeline) for each in (then, new.patterns))
    alike = np.array([
        [is_one(a, b) or title == other for b, other in zip(new.patterns, others, strict=True)]
        for a, title in zip(then, titles, strict=True)
    ], bool).reshape(len(then), len(others))  # fmt: skip
    rows: dict[tuple[str, object], tuple[float, float]] = {}
    p, q = (each.visible.mean(axis=0) for each in (old, new))  # [N, P], [N, Q]
    for k, n, one, other in _only_in(p, q, alike):
        rows[titles[k], table.frame.columns[n]] = one, other
    for k, n, one, other in _only_in(q, p, alike.T):
        rows[others[k], table.frame.columns[n]] = other, one
    index = pd.MultiIndex.from_tuples(list(rows), names=["pattern", "series"])
    return pd.DataFrame(list(rows.values()), index, ["before", "now"], dtype=np.float64)


def _named(patterns: Sequence[Pattern], timeline: Timeline) -> list[str]:
    """Titles of patterns as they stand in a sentence."""
    return [
        title if pattern.kind in ("changes", "noise") else with_article(title)
        for pattern, title in zip(patterns, titles_of(patterns, timeline), strict=True)
    ]


def _only_in(
    own: Floats, other: Floats, alike: Booleans
) -> Iterator[tuple[int, int, float, float]]:
    """Patterns k and series n that have them by one account, and in no form by the other.

    With the probabilities of both.
    """
    for k, same in enumerate(alike):
        p, q = own[:, k], other[:, same].max(axis=1, initial=0.0)
        for n in np.flatnonzero((p > 0.5) & (q <= 0.5) & (p - q >= _CLEARLY)):
            yield k, int(n), float(p[n]), float(q[n])


def _gained_and_lost(patterns: pd.DataFrame) -> Iterator[str]:
    """Say which patterns are now probable, and which are no longer needed."""
    for is_gain, words in ((True, "Now probable"), (False, "No longer needed")):
        some = patterns[(patterns["now"] > patterns["before"]) == is_gain]
        said = [
            f"{title} in {listed(list(own.index.get_level_values('series')), _MOST_NAMED)}"
            for title, own in some.groupby(level="pattern", sort=False)
        ]
        if said:
            yield f"{words}: {'; '.join(said)}."


def _forecasts(before: Discovery, now: Discovery) -> pd.DataFrame:
    """Return what both say of the first step after the later table."""
    times = now.times(1)
    old, new = (each.ensemble.at(times) for each in (before, now))
    return pd.DataFrame(
        {
            "time": times[0],
            "before": old.mean,
            "now": new.mean,
            "shift": (new.mean - old.mean) / old.sd,
        },
        now.table.frame.columns.rename("series"),
    )


def _moved_forecasts(forecasts: pd.DataFrame, now: Discovery) -> Iterator[str]:
    """Say which forecasts have moved by more than they were unsure of."""
    moved = forecasts[forecasts["shift"].abs() >= _MOVED]
    if len(moved):
        moved = moved.loc[moved["shift"].abs().sort_values(ascending=False).index]
        said = [
            f"{name} {few_digits(row.now)} instead of {few_digits(row.before)}"
            for name, row in moved.iterrows()
        ]
        when = Timeline.of(now.table).moment(now.times(1)[0])
        yield f"The forecast for {when} has moved: {listed(said, _MOST_NAMED)}."

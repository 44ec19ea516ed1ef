"""What is different between two discoveries of the same series, such as last week's and today's."""

from __future__ import annotations

import html
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd

from ..discovery.result import Discovery
from ..gp.types import Floats
from ..kernels.grammar import Product
from ..runtime.text import listed, quoted
from ..sharing.consensus import Consensus
from ..sharing.matching import MUCH_LIKE, one_to_one, period, shapes_of, thinned
from ..sharing.sampler import is_pattern
from .describe import describe
from .wording import Timeline, few_digits

_CLEARLY = 0.2
"""A probability that changes by less says nothing new."""

_MOVED = 1.0
"""A forecast that moves by so many of its standard deviations is worth a sentence."""

_ONE_CYCLE = 0.5
"""Cycles are one if their frequencies differ by fewer cycles per span than this."""

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
    """Return the probabilities of those that crossed the line."""
    by_draws = before.is_sampled and now.is_sampled
    old, new = (each.consensus if by_draws else each.agreed for each in (before, now))
    x = thinned(now.table.observations.x)
    first, last = map(float, now.table.scaled_times(before.table.frame.index[[0, -1]]))
    kernels = [kernel.change_units(last - first, first) for kernel in old.kernels]
    pairs = dict(_same(kernels, new.kernels, x))
    timeline, table = Timeline.of(now.table), now.table
    rows: dict[tuple[str, object], tuple[float, float]] = {}
    everyone: list[tuple[Product, int | None, int | None]] = [
        *((new.kernels[j], i, j) for i, j in pairs.items()),
        *((kernel, i, None) for i, kernel in enumerate(kernels) if i not in pairs),
        *((kernel, None, j) for j, kernel in enumerate(new.kernels) if j not in pairs.values()),
    ]
    for kernel, i, j in everyone:
        if not is_pattern(kernel):
            continue
        title = describe(kernel.change_units(table.span, table.start), timeline).short
        (p, had), (q, has) = _told(old, i), _told(new, j)
        for n in np.flatnonzero((had != has) & (np.abs(p - q) >= _CLEARLY)):
            rows[title, table.frame.columns[n]] = float(p[n]), float(q[n])
    index = pd.MultiIndex.from_tuples(list(rows), names=["pattern", "series"])
    return pd.DataFrame(list(rows.values()), index, ["before", "now"], dtype=np.float64)


def _told(consensus: Consensus, k: int | None) -> tuple[Floats, Floats]:
    """Probabilities of a component and who has it, [N] each; zeros if there is no component."""
    if k is None:
        nothing = np.zeros(len(consensus.probabilities))
        return nothing, nothing
    return consensus.probabilities[:, k], consensus.Z[:, k]


def _same(old: list[Product], new: tuple[Product, ...], x: Floats) -> Iterator[tuple[int, int]]:
    """Pair the components that do much the same, and then cycles of one period."""
    if not old or not new:
        return
    pairs = one_to_one(shapes_of(old, x), shapes_of(new, x), MUCH_LIKE)
    yield from pairs
    taken = {j for _, j in pairs}
    for i in set(range(len(old))) - {i for i, _ in pairs}:
        for j in set(range(len(new))) - taken:
            p, q = period(old[i]), period(new[j])
            if p and q and abs(1.0 / p - 1.0 / q) < _ONE_CYCLE:
                taken.add(j)
                yield i, j
                break


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

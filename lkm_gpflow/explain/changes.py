"""What is different between two discoveries of the same series, such as last week's and today's."""

from __future__ import annotations

import html
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ..data.tables import Table
from ..discovery.result import Discovery
from ..gp.types import Booleans
from ..kernels.grammar import Product
from ..runtime.text import listed, quoted
from ..sharing.consensus import Consensus
from ..sharing.matching import do_much_the_same, shapes_of, thinned
from ..sharing.sampler import is_pattern
from .describe import describe
from .wording import Timeline, few_digits

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

    A pattern may have several forms: it is lost where no component is left that does much the same,
    and gained where there was none.
    """
    by_draws = before.is_sampled and now.is_sampled
    old, new = (each.consensus if by_draws else each.agreed for each in (before, now))
    table, x = now.table, thinned(now.table.observations.x)
    first, last = map(float, table.scaled_times(before.table.frame.index[[0, -1]]))
    kernels = [kernel.change_units(last - first, first) for kernel in old.kernels]
    titles, others = _titles(kernels, table), _titles(new.kernels, table)
    same = do_much_the_same(
        kernels, new.kernels, shapes_of(kernels, x), shapes_of(new.kernels, x)
    ) | (titles[:, None] == others)
    rows: dict[tuple[str, object], tuple[float, float]] = {}
    for k, n, p, q in _only_in(old, new, same):
        rows[str(titles[k]), table.frame.columns[n]] = p, q
    for k, n, p, q in _only_in(new, old, same.T):
        rows[str(others[k]), table.frame.columns[n]] = q, p
    index = pd.MultiIndex.from_tuples(list(rows), names=["pattern", "series"])
    return pd.DataFrame(list(rows.values()), index, ["before", "now"], dtype=np.float64)


def _titles(kernels: Sequence[Product], table: Table) -> NDArray[np.str_]:
    """Components in words, [K]."""
    timeline = Timeline.of(table)
    in_units = (kernel.change_units(table.span, table.start) for kernel in kernels)
    return np.array([describe(kernel, timeline).short for kernel in in_units], np.str_)


def _only_in(
    own: Consensus, other: Consensus, same: Booleans
) -> Iterator[tuple[int, int, float, float]]:
    """Components k and series n that have them by one consensus, and in no form by the other.

    With the probabilities of both.
    """
    for k, kernel in enumerate(own.kernels):
        p, q = own.probabilities[:, k], other.probabilities[:, same[k]].max(axis=1, initial=0.0)
        is_gone = own.Z[:, k] > other.Z[:, same[k]].max(axis=1, initial=0.0)
        if is_pattern(kernel):
            for n in np.flatnonzero(is_gone & (p - q >= _CLEARLY)):
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

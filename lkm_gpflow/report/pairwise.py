"""The pairwise report: two series side by side (paper, figure 6); and all pairs at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import pandas as pd

from .. import plotting
from ..discovery.result import Discovery
from ..explain.comparison import (
    Correlation,
    clustered,
    correlation_in,
    holders,
    likeness,
    pair_stories,
)
from ..explain.stories import Story, stories
from ..explain.wording import scale_note
from ..plotting.style import units_by_name
from ..runtime.arguments import check_level
from ..runtime.text import counted, level_in_percent, listed, percent
from ..runtime.threads import single_threaded
from .page import Picture, Report, check_few


@dataclass(frozen=True)
class PairPattern:
    """A pattern of two series, or of one of them."""

    story: Story  #: What it does in both
    correlation: Correlation | None  #: Of the two, if both show it
    level: float  #: Probability of intervals

    @property
    def owners(self) -> tuple[str, ...]:
        """Who has it, or perhaps has it: one or both."""
        return holders(self.story)

    @property
    def sentence(self) -> str:
        """What it does, and in which of the two."""
        untold = [n for n in self.story.those("cannot be told") if self.owners != (n,)]
        more = [f"It cannot be told whether {name} has it." for name in untold]
        return " ".join(filter(None, [self.story.sentence, *more, self.together]))

    @property
    def together(self) -> str:
        """Whether it moves the same way in both; empty where that cannot be said."""
        c = self.correlation
        if c is None or len(self.owners) < 2:
            return ""
        # No minus before a zero.
        r, low, high = (f"{round(r, 2) + 0.0:+.2f}" for r in (c.typical, c.lower, c.upper))
        numbers = f"correlation {r}, {level_in_percent(self.level)} interval {low} to {high}"
        way = "in step" if c.typical > 0.0 else "in opposite directions"
        if self.story.timing:  # the sentence says which way it moves
            return f"At no lag: {numbers}."
        if c.lower * c.upper <= 0.0:
            return f"It cannot be told whether it moves in step ({numbers})."
        little = "" if c.is_strong else " a little"
        chance = ", which may be chance" if c.may_be_chance else ""
        return f"It moves {way}{little}{chance} ({numbers})."

    def to_dict(self) -> dict[str, Any]:
        """Return everything in JSON's types."""
        c, told = self.correlation, self.story
        return {
            "title": told.title,
            "sentence": self.sentence,
            "owners": list(self.owners),
            "probabilities": [own.probability for own in told.behaviours],
            "shares": [own.share.median for own in told.behaviours],
            "correlation": None if c is None else [c.typical, c.lower, c.upper],
        }


@dataclass(frozen=True, repr=False)
class PairReport(Report):
    """Two series: what they share, and what each has alone."""

    found: Discovery  #: The discovery of these two
    #: Names of the series.
    a: object
    b: object
    likeness: float  #: Their shared variance; see `lkm_gpflow.explain.comparison.likeness`
    #: Shared ones first, then those of a alone, then of b alone.
    patterns: tuple[PairPattern, ...]
    #: Of the picture.
    horizon: int
    level: float
    units: Mapping[str, str]
    template: str = field(default="pair", init=False)

    @property
    def title(self) -> str:
        """See `Report.title`."""
        return f"{self.a} and {self.b}"

    @property
    def summary(self) -> str:
        """How alike they are, in a sentence."""
        both = [each.story for each in self.patterns if len(each.owners) == 2]
        if not both:
            untold = any(each.story.those("cannot be told") for each in self.patterns)
            certain = " that is certain" if untold else ""
            return f"{self.title} have no pattern in common{certain}."
        perhaps = "" if any(len(story.owners) == 2 for story in both) else "perhaps "
        return (
            f"{self.title} {perhaps}share {listed([story.named for story in both])}; "
            f"{percent(self.likeness)} of their variance comes from what both have."
        )

    @property
    def note(self) -> str:
        """Which of the two are modelled on a log scale, and what that means; empty if none is."""
        return scale_note(self.found.table)

    @property
    def groups(self) -> list[tuple[str, list[PairPattern]]]:
        """Headings, and the patterns below them."""
        a, b = self.found.table.names
        headings = {(a, b): "Both", (a,): f"{a} alone", (b,): f"{b} alone"}
        groups = [
            (head, [each for each in self.patterns if each.owners == owners])
            for owners, head in headings.items()
        ]
        return [group for group in groups if group[1]]

    def to_dict(self) -> dict[str, Any]:
        """See `Report.to_dict`."""
        return {
            "series": [str(self.a), str(self.b)],
            "likeness": self.likeness,
            "summary": self.summary,
            "patterns": [each.to_dict() for each in self.patterns],
        }

    def pictures(self) -> list[Picture]:
        """See `Report.pictures`."""
        panels = plotting.plot_comparison(
            self.found, self.a, self.b, self.horizon,
            level=self.level, units=self.units,
        )  # fmt: skip
        caption = (
            f"Top: both series and the model (bands hold {level_in_percent(self.level)}). "
            "Below: what both have, side by side, then what one has. A panel is blank if the "
            "series does not have the pattern, or if that cannot be told."
        )
        return [Picture.of("Side by side", caption, panels[0, 0])]


@dataclass(frozen=True, repr=False)
class AllPairs(Report):
    """All N (N - 1) / 2 pairs: how alike they are, and what they share."""

    found: Discovery  #: The discovery
    likeness: pd.DataFrame  #: Shared variance of every two series, like ones side by side
    #: By the names of both series (see `Discovery.compare`), most alike first: `likeness`, and
    #: titles of the patterns that both have, or perhaps have, `shared`.
    pairs: pd.DataFrame
    template: str = field(default="pairs", init=False)

    @property
    def title(self) -> str:
        """See `Report.title`."""
        if len(self.pairs) < 2:
            return f"{counted(len(self.pairs), 'pair')} of {len(self.likeness)} series"
        return f"All {len(self.pairs)} pairs of {len(self.likeness)} series"

    def to_dict(self) -> dict[str, Any]:
        """See `Report.to_dict`."""
        pairs = self.pairs.itertuples(name=None)
        return {"pairs": [
            {"series": list(names), "likeness": alike, "shared": list(shared)}
            for names, alike, shared in pairs
        ]}  # fmt: skip

    def pictures(self) -> list[Picture]:
        """See `Report.pictures`."""
        caption = (
            "Share of the variance that comes from patterns both have; like series stand together."
        )
        ax = plotting.plot_likeness(self.likeness, discovery=self.found)
        return [Picture.of("How alike they are", caption, ax)]

    def rows(self) -> list[list[str]]:
        """Return pair, shared variance and shared patterns as text, most alike first."""
        return [
            [" and ".join(names), percent(alike), ", ".join(shared) or "none"]
            for names, alike, shared in self.pairs.itertuples(name=None)
        ]


@single_threaded()
def pair_report(
    found: Discovery,
    a: object,
    b: object,
    horizon: int | None = None,
    *,
    level: float = 0.9,
    units: Mapping[Any, str] | None = None,
) -> PairReport:
    """Report what two series share and what each has alone.

    The default horizon is a tenth of the rows; `units` are those of the series, by name.  A
    ValueError is raised if there is no such series, or the two are one, or the level is not between
    0 and 1.
    """
    check_level(level)
    units = units_by_name(units, found.whole.table.names)
    horizon = found.table.steps(horizon)
    found = found.select([a, b])
    draws = found.pattern_draws
    patterns = tuple(
        PairPattern(
            story,
            # Any two lines correlate.
            None
            if story.pattern.kind == "trend"
            else correlation_in(draws, story.number - 1, 0, 1, level),
            level,
        )
        for story in pair_stories(found, level, units)
    )
    alike = float(likeness(draws)[0, 1])
    return PairReport(found, a, b, alike, patterns, horizon, level, units)


@single_threaded()
def all_pairs(found: Discovery) -> AllPairs:
    """Report every pair of series: a ValueError says if there are more than 200."""
    check_few(found)
    alike, told = likeness(found.pattern_draws), stories(found)
    names, who = found.table.names, [(story.title, holders(story)) for story in told]
    both = list(combinations(range(len(names)), 2))
    shared = [
        tuple(title for title, own in who if names[i] in own and names[j] in own) for i, j in both
    ]
    index = pd.MultiIndex.from_tuples([(names[i], names[j]) for i, j in both], names=["a", "b"])
    pairs = pd.DataFrame(
        {"likeness": [float(alike[i, j]) for i, j in both], "shared": shared}, index
    )
    order = clustered(alike)
    ordered = found.table.frame.columns[order]
    return AllPairs(
        found,
        pd.DataFrame(alike[order][:, order], ordered, ordered),
        pairs.sort_values("likeness", ascending=False, kind="stable"),
    )

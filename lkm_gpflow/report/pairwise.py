"""The pairwise report: two series side by side (paper, figure 6); and all pairs at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from .. import plotting
from ..discovery.result import Discovery
from ..explain.comparison import Correlation, clustered, component_correlations, likeness
from ..explain.decomposition import Decomposition
from ..explain.describe import Description, describe
from ..explain.verdicts import ORDER, Verdict, verdicts
from ..explain.wording import Timeline, how_sure, scale_note, sentence
from ..gp.types import Floats
from ..plotting.style import labels_by_name, units_by_name
from ..runtime.arguments import check_level
from ..runtime.text import counted, level_in_percent, listed, percent
from ..runtime.threads import single_threaded
from .components import Numbered
from .page import Picture, Report, markdown, markdown_table

_LESS_SURELY: Mapping[Verdict, str] = {
    "perhaps": ", and {} perhaps",
    "cannot be told": ", and {} may or may not have it",
    "has not": "",
}
"""What is added of a series that has a component less surely than the other."""


@dataclass(frozen=True)
class PairComponent(Numbered):
    """A component of two series, or of one of them."""

    # Of the component, from 1.
    number: int
    name: str
    description: Description
    series: tuple[str, str]
    verdicts: tuple[Verdict, Verdict]  # on both; see `lkm_gpflow.explain.verdicts`
    probabilities: tuple[float, float]  # P(z_nk = 1) in both
    shares: tuple[float, ...]  # its share in the variation of its owners
    correlation: Correlation | None  # of the two posteriors, if both have it and it varies

    @property
    def owners(self) -> tuple[str, ...]:
        """Who has it, or perhaps has it: one or both."""
        judged = zip(self.series, self.verdicts, strict=True)
        return tuple(name for name, verdict in judged if verdict in ("has", "perhaps"))

    @property
    def is_sure(self) -> bool:
        """Whether its owners have it, not only perhaps."""
        return "perhaps" not in self.verdicts

    @property
    def membership(self) -> str:
        """Who has it, with probabilities in words and numbers."""
        judged = zip(self.series, self.probabilities, self.verdicts, strict=True)
        (one, p, verdict), (other, q, less) = sorted(judged, key=lambda each: ORDER[each[2]])
        is_shared = verdict == less
        how = how_sure(min(p, q) if is_shared else p) if verdict == "has" else "perhaps"
        short = self.description.short
        if is_shared:
            said = f"{one} and {other} {how} share {short}"
        else:
            said = f"{one} {how} has {short}{_LESS_SURELY[less].format(other)}"
        chance = f", against {q:.2f} in the other" if less == "has not" else f" and {q:.2f}"
        return sentence(f"{said} (probability {p:.2f}{chance}); {self._importance}")

    @property
    def _importance(self) -> str:
        shares = [
            f"{percent(s)} of the variation of {o}"
            for s, o in zip(self.shares, self.owners, strict=True)
        ]
        return f"it makes up {listed(shares)}"

    @property
    def together(self) -> str:
        """Whether it moves the same way in both; empty where that cannot be said."""
        if self.correlation is None:
            return ""
        c = self.correlation
        told = (f"{round(r, 2) + 0.0:+.2f}" for r in (c.typical, c.lower, c.upper))
        numbers = "correlation {}, 90% interval {} to {}".format(*told)  # no minus before a zero
        way = "in step in both" if c.of_means > 0.0 else "in opposite directions"
        if c.way:
            return f"It moves {way} ({numbers})."
        if c.is_strong:
            return f"It seems to move {way}, but that may be chance ({numbers})."
        return f"It moves together weakly, if at all ({numbers})."

    def to_dict(self) -> dict[str, Any]:
        """Return everything in JSON's types."""
        c = self.correlation
        return {
            "number": self.number,
            "name": self.name,
            "description": self.description.text,
            "owners": list(self.owners),
            "probabilities": list(self.probabilities),
            "shares": list(self.shares),
            "correlation": None if c is None else [c.typical, c.lower, c.upper],
        }


@dataclass(frozen=True, repr=False)
class PairReport(Report):
    """Two series: what they share, and what each has alone."""

    found: Discovery  #: The discovery
    #: Names of the series.
    a: object
    b: object
    likeness: float  #: Their shared variance; see `lkm_gpflow.explain.comparison.likeness`
    #: Shared ones first, then those of a alone, then of b alone.
    components: tuple[PairComponent, ...]
    may_share: bool  #: Whether both may have some component in common
    parts: Decomposition  #: Components on the history
    #: Of the picture; titles are what the series are called in all pictures.
    horizon: int
    level: float
    units: Mapping[str, str]
    titles: tuple[str, str]
    template: str = field(default="pair.html", init=False)

    @property
    def title(self) -> str:
        """See `Report.title`."""
        return f"{self.a} and {self.b}"

    @property
    def summary(self) -> str:
        """How alike they are, in a sentence or two."""
        both = [each for each in self.components if len(each.owners) == 2]
        if not both:
            certain = " that is certain" if self.may_share else ""
            return f"{self.a} and {self.b} have no component in common{certain}."
        n, unsure = len(both), sum(not each.is_sure for each in both)
        every = {1: "the only component", 2: "both components"}.get(n, f"all {n} components")
        what = (
            every if n == len(self.components) else f"{n} of the {len(self.components)} components"
        )
        return (
            f"{self.a} and {self.b} {'perhaps ' if unsure == n else ''}share {what} that either has"
            + (f", {'one' if unsure == 1 else unsure} of them perhaps" if 0 < unsure < n else "")
            + f"; {percent(self.likeness)} of their variance comes from "
            + ("it." if n == 1 else "these.")
        )

    @property
    def note(self) -> str:
        """Which of the two are modelled on a log scale, and what that means; empty if none is."""
        return scale_note(self.found.table)

    @property
    def groups(self) -> list[tuple[str, list[PairComponent]]]:
        """Headings, and the components below them."""
        a, b = str(self.a), str(self.b)
        headings: dict[tuple[Verdict, Verdict], str] = {
            ("has", "has"): f"{a} and {b} share the following",
            ("has", "perhaps"): f"{a} has the following, {b} perhaps",
            ("perhaps", "has"): f"{b} has the following, {a} perhaps",
            ("has", "cannot be told"): f"{a} has, and {b} may or may not have",
            ("cannot be told", "has"): f"{b} has, and {a} may or may not have",
            ("has", "has not"): f"{a} alone has the following",
            ("has not", "has"): f"{b} alone has the following",
        }
        groups = [
            (head, [c for c in self.components if c.verdicts == judged])
            for judged, head in headings.items()
        ]
        groups.append(("Perhaps", [c for c in self.components if c.verdicts not in headings]))
        return [group for group in groups if group[1]]

    @property
    def text(self) -> str:
        """See `Report.text`."""
        lines = [f"# {markdown(self.title)}", "", markdown(self.summary)]
        lines += ["", markdown(self.note)] if self.note else []
        for heading, components in self.groups:
            lines += ["", f"## {markdown(heading)}", ""]
            for each in components:
                said = " ".join(
                    filter(None, (each.description.text, each.membership, each.together))
                )
                lines.append(f"- **{markdown(each.heading)}.** {markdown(said)}")
        return "\n".join(lines) + "\n"

    def to_dict(self) -> dict[str, Any]:
        """See `Report.to_dict`."""
        return {
            "series": [str(self.a), str(self.b)],
            "likeness": self.likeness,
            "summary": self.summary,
            "components": [each.to_dict() for each in self.components],
        }

    def pictures(self) -> list[Picture]:
        """See `Report.pictures`."""
        panels = plotting.plot_comparison(
            self.found, self.a, self.b, self.horizon,
            level=self.level, units=self.units, parts=self.parts, titles=self.titles,
        )  # fmt: skip
        caption = (
            f"Top: both series and the model (bands hold {level_in_percent(self.level)}). "
            "Below: what both have, side by side, then what one has. A panel is blank if the "
            "series does not have the component, or if that cannot be told."
        )
        return [Picture.of("Side by side", caption, panels[0, 0])]


@dataclass(frozen=True, repr=False)
class AllPairs(Report):
    """All N (N - 1) / 2 pairs: how alike they are, and the report of each."""

    found: Discovery  #: The discovery
    likeness: pd.DataFrame  #: Shared variance of every two series, like ones side by side
    #: The reports, by the names of both series; correlations are left to `Discovery.compare`.
    pairs: Mapping[tuple[str, str], PairReport]
    template: str = field(default="pairs.html", init=False)

    @property
    def title(self) -> str:
        """See `Report.title`."""
        if len(self.pairs) < 2:
            return f"{counted(len(self.pairs), 'pair')} of {len(self.likeness)} series"
        return f"All {len(self.pairs)} pairs of {len(self.likeness)} series"

    @property
    def ordered(self) -> list[PairReport]:
        """The pairs, most alike first."""
        return sorted(self.pairs.values(), key=lambda pair: -pair.likeness)

    def __iter__(self) -> Iterator[PairReport]:
        return iter(self.ordered)

    def __len__(self) -> int:
        return len(self.pairs)

    @property
    def text(self) -> str:
        """See `Report.text`."""
        table = markdown_table(["pair", "shared variance", "shared components"], self.rows())
        return f"# {self.title}\n\n{table}\n"

    def to_dict(self) -> dict[str, Any]:
        """See `Report.to_dict`."""
        return {"pairs": [pair.to_dict() for pair in self.ordered]}

    def pictures(self) -> list[Picture]:
        """See `Report.pictures`."""
        return [likeness_picture(self.likeness, self.found.table.frame)]

    def rows(self) -> list[list[str]]:
        """Return pair, shared variance and shared components as text, most alike first."""
        return [[p.title, percent(p.likeness), _shared_names(p)] for p in self.ordered]


def likeness_picture(likeness: pd.DataFrame, table: pd.DataFrame) -> Picture:
    """Return the picture of how much variance every two series of a table share."""
    caption = (
        "Share of the variance that comes from components both have; like series stand together."
    )
    ax = plotting.plot_likeness(likeness, table=table)
    return Picture.of("How alike they are", caption, ax)


def _shared_names(pair: PairReport) -> str:
    return ", ".join(each.name for each in pair.components if len(each.owners) == 2) or "none"


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

    The default horizon is a tenth of the rows; `units` are those of the series, by name.  The
    correlation of components is that of their posteriors, so far.  A ValueError is raised if there
    is no such series, or the two are one, or the level is not between 0 and 1.
    """
    check_level(level)
    units = units_by_name(units, found.whole.table.names)
    horizon = found.table.steps(horizon)
    titles = labels_by_name(found.table.frame)
    found, places = found.select([a, b]), (0, 1)
    parts = Decomposition.of(found)
    correlated = component_correlations(found, *places)
    return _pair(found, parts, likeness(parts), (a, b), titles, correlated, horizon, level, units)


@single_threaded()
def all_pairs(
    found: Discovery,
    horizon: int | None = None,
    *,
    level: float = 0.9,
    units: Mapping[Any, str] | None = None,
) -> AllPairs:
    """Report every pair of series; the parameters are those of `pair_report`."""
    check_level(level)
    units = units_by_name(units, found.whole.table.names)
    horizon = found.table.steps(horizon)
    parts = Decomposition.of(found)
    alike = likeness(parts)
    columns, names = list(found.table.frame.columns), found.table.names
    titles = labels_by_name(found.table.frame)
    order = clustered(alike)
    ordered = found.table.frame.columns[order]
    pairs = {
        (names[i], names[j]): _pair(
            found, parts, alike, (columns[i], columns[j]), titles, {}, horizon, level, units
        )
        for i, j in combinations(range(len(columns)), 2)
    }
    return AllPairs(found, pd.DataFrame(alike[order][:, order], ordered, ordered), pairs)


def _pair(
    found: Discovery,
    parts: Decomposition,
    alike: Floats,
    series: tuple[object, object],
    titles: Mapping[object, str],
    correlated: Mapping[int, Correlation],
    horizon: int,
    level: float,
    units: Mapping[str, str],
) -> PairReport:
    timeline, places = Timeline.of(found.table), found.places(*series)
    names = [found.table.names[n] for n in places]
    Z, probabilities = found.consensus.Z, found.consensus.probabilities
    judged, kernels = verdicts(found, parts), found.kernels
    said = judged.to_numpy()
    components = []
    for k in plotting.pair_rows(found, *places):
        owners = [i for i, n in enumerate(places) if Z[n, k] == 1.0]
        trends = {parts.trend[places[i], k] for i in owners}
        a, b = (float(probabilities[n, k]) for n in places)
        components.append(
            PairComponent(
                number=k + 1,
                name=found.names[k],
                description=describe(
                    kernels[k], timeline, int(trends.pop()) if len(trends) == 1 else 0
                ),
                series=(names[0], names[1]),
                verdicts=(said[places[0], k], said[places[1], k]),
                probabilities=(a, b),
                shares=tuple(float(parts.share[places[i], k]) for i in owners),
                correlation=correlated.get(k),
            )
        )
    return PairReport(
        found=found,
        a=series[0],
        b=series[1],
        likeness=float(alike[places[0], places[1]]),
        components=tuple(components),
        may_share=bool(np.any(np.all(said[list(places)] != "has not", axis=0))),
        parts=parts,
        horizon=horizon,
        level=level,
        units=units,
        titles=(titles[series[0]], titles[series[1]]),
    )

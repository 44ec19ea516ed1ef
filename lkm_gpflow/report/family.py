"""What a series surely has, though not in which form: a cycle, a slow movement, any pattern."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ..discovery.result import Discovery
from ..explain.decomposition import Decomposition
from ..explain.verdicts import STRONG, SURE, Verdict, judge
from ..explain.wording import Timeline
from ..gp.types import Booleans, Floats, Integers
from ..runtime.text import listed
from ..sharing.consensus import is_likely
from ..sharing.cycles import period
from ..sharing.families import TENTHS, Family, Kind
from .component_report import MOST_NAMES

_WHATEVER = ", in whatever form"  # stands after the name of a family above its column of a table


@dataclass(frozen=True)
class FamilyColumn:
    """A family in a table of probabilities."""

    title: str  # "Cycle of about 11 months, in whatever form"
    probabilities: Floats  # of having any of its components, [N]
    likely: Booleans  # whether that is likely, [N]; see `is_likely`


@dataclass(frozen=True)
class FamilyReport:
    """What there is to say about components that are one thing in several forms."""

    kind: Kind  # A cycle, a slow movement, or any pattern
    # In words the period of a cycle, "11 months"; of a slow movement the time that it takes at
    # least; else empty.
    duration: str
    members: tuple[int, ...]  # numbers of the components, from 1, that it may be
    # Names of the series that are spoken of: they have it in one form or another.
    owners: tuple[str, ...]
    # Of having any of them, by name, of every series of the report.
    probabilities: dict[str, float]
    verdicts: dict[str, Verdict]

    @property
    def short(self) -> str:
        """A few words that stand after "has": "a cycle of about 11 months"."""
        return _short(self.kind, self.duration)

    @property
    def heading(self) -> str:
        """What stands before its text: "Cycle of about 11 months"."""
        return _heading(self.kind, self.duration)

    @property
    def column(self) -> str:
        """What stands above its column of a table: "Cycle of about 11 months, in whatever form"."""
        return f"{self.heading}{_WHATEVER}"

    @property
    def text(self) -> str:
        """Who has it, how sure that is, and which forms it may have."""
        named = [f"{name} (P {self.probabilities[name]:.2f})" for name in self.owners]
        who = listed(named, MOST_NAMES)
        verb = "have" if len(self.owners) > 1 else "has"
        slow = self.kind == "slow movement"
        long = f", which takes {self.duration} or longer" if slow else ""
        return f"{who} {verb} one{long}. Its form cannot be told: it may be {self._forms}."

    @property
    def _forms(self) -> str:
        forms = [f"component {k}" if i == 0 else str(k) for i, k in enumerate(self.members)]
        if self.kind != "cycle":
            forms.append("one that no fit has")
        return listed(forms, last="or")

    def to_dict(self) -> dict[str, Any]:
        """Return everything in JSON's types."""
        return {
            "kind": self.kind,
            "duration": self.duration,
            "components": list(self.members),
            "owners": list(self.owners),
            "probabilities": self.probabilities,
            "verdicts": self.verdicts,
        }


def family_reports(
    found: Discovery, parts: Decomposition, judged: pd.DataFrame
) -> tuple[FamilyReport, ...]:
    """Return the families of which some series surely has one form, though it is unsure which.

    What "has" needs is that of `lkm_gpflow.explain.verdicts`: of the family as a whole.  That a
    series has any pattern is said if nothing else is sure.
    """
    families = found.consensus.families
    every = [_Own.of(found, parts, family) for family in families]
    has = [own.verdicts == "has" for own in every]
    has_form = [
        (judged.to_numpy()[:, list(family.members)] == "has").any(axis=1) for family in families
    ]
    return tuple(
        own.told(found, judged, np.flatnonzero(series), range(len(judged)))
        for own, series in zip(every, _worth_saying(families, has, has_form), strict=True)
        if series.any()
    )


def families_of_pair(
    found: Discovery, parts: Decomposition, judged: pd.DataFrame, places: tuple[int, int]
) -> tuple[FamilyReport, ...]:
    """Return the cycles and slow movements that two series surely have, but in no common form.

    That both have any pattern says nothing of the two together.
    """
    told, pair = [], np.array(places)
    for family in found.consensus.families:
        if family.kind == "pattern":
            continue
        own = _Own.of(found, parts, family)
        has_form = judged.to_numpy()[np.ix_(pair, np.array(family.members))] == "has"
        if (own.verdicts[pair] == "has").all() and not has_form.all(axis=0).any():
            told.append(own.told(found, judged, pair, places))
    return tuple(told)


def family_columns(found: Discovery) -> tuple[FamilyColumn, ...]:
    """Return families that some series surely has although none of their components is sure.

    Unlike a report, this does not ask for shares of the variation, which take time.
    """
    consensus, families = found.consensus, found.consensus.families
    every = [consensus.probabilities_of(family) for family in families]
    has = [
        (p >= SURE) & (family.evidence >= STRONG) for p, family in zip(every, families, strict=True)
    ]
    has_form = [
        consensus.probabilities[:, list(family.members)].max(axis=1) >= SURE for family in families
    ]
    told = []
    for family, p, series in zip(
        families, every, _worth_saying(families, has, has_form), strict=True
    ):
        if series.any():
            title = _heading(family.kind, _duration(found, family)) + _WHATEVER
            told.append(FamilyColumn(title, p, is_likely(p, family.evidence)))
    return tuple(told)


def _worth_saying(
    families: Sequence[Family], has: Sequence[Booleans], has_form: Sequence[Booleans]
) -> list[Booleans]:
    """Of which series each family is spoken of, [N]: they have it, and none of its forms surely.

    That a series has any pattern is said only if no other family is.
    """
    said = [own & ~form for own, form in zip(has, has_form, strict=True)]
    others = [own for own, family in zip(said, families, strict=True) if family.kind != "pattern"]
    is_open = ~np.any(others, axis=0) if others else True
    return [
        own & is_open if family.kind == "pattern" else own
        for own, family in zip(said, families, strict=True)
    ]


def _short(kind: Kind, duration: str) -> str:
    if kind == "pattern":
        return "some pattern"
    return f"a cycle of about {duration}" if kind == "cycle" else "a slow movement"


def _heading(kind: Kind, duration: str) -> str:
    return _short(kind, duration).removeprefix("a ").capitalize()


@dataclass(frozen=True)
class _Own:
    """A family, and of every series the probability to have it and the verdict, [N]."""

    family: Family
    probability: Floats
    verdicts: NDArray[np.str_]

    @classmethod
    def of(cls, found: Discovery, parts: Decomposition, family: Family) -> _Own:
        p = found.consensus.probabilities_of(family)
        share = parts.share[:, list(family.members)].sum(axis=1)
        return cls(family, p, judge(p, family.evidence, share))

    def told(
        self, found: Discovery, judged: pd.DataFrame, series: Integers, among: Iterable[int]
    ) -> FamilyReport:
        """Report on some series.  A component that none of them has is no form of it."""
        members, names = np.array(self.family.members), found.table.names
        possible = (judged.to_numpy()[np.ix_(series, members)] != "has not").any(axis=0)
        return FamilyReport(
            kind=self.family.kind,
            duration=_duration(found, self.family),
            members=tuple((members[possible] + 1).tolist()),
            owners=tuple(names[n] for n in series),
            probabilities={names[n]: float(self.probability[n]) for n in among},
            verdicts={names[n]: cast(Verdict, str(self.verdicts[n])) for n in among},
        )


def _duration(found: Discovery, family: Family) -> str:
    """Say a tenth of the time, or the average period, by the weight of the fits that have it."""
    if family.kind == "pattern":
        return ""
    timeline = Timeline.of(found.table)
    if family.kind == "slow movement":
        return timeline.duration(timeline.span / TENTHS)
    logs = np.log([period(found.kernels[k]) for k in family.members])
    support = found.consensus.support[list(family.members)]
    return timeline.duration(float(np.exp(np.average(logs, weights=support))))

"""What a series surely has, though not in which form: a cycle, a slow movement."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ..discovery.cycles import period
from ..discovery.families import TENTHS, Family, Kind
from ..discovery.result import Discovery
from ..explain.decomposition import Decomposition
from ..explain.verdicts import is_certain
from ..explain.wording import Timeline
from ..numerics.types import Booleans, Floats
from ..runtime.text import listed


@dataclass(frozen=True)
class FamilyReport:
    """What there is to say about components that are one thing in several forms.

    Parameters
    ----------
    kind
        A cycle or a slow movement.
    duration
        In words the period of a cycle, "11 months"; of a slow movement the time that it takes at
        least.
    members
        Numbers of the components, from 1, that it may be.
    probabilities
        Of having any of them, by name, of the series that are spoken of.
    """

    kind: Kind
    duration: str
    members: tuple[int, ...]
    probabilities: dict[str, float]

    @property
    def short(self) -> str:
        """A few words that stand after "has": "a cycle of about 11 months"."""
        return f"a cycle of about {self.duration}" if self.kind == "cycle" else "a slow movement"

    @property
    def owners(self) -> tuple[str, ...]:
        """Series that have it in one form or another."""
        return tuple(self.probabilities)

    @property
    def heading(self) -> str:
        """What stands before its text: "Cycle of about 11 months"."""
        return self.short.removeprefix("a ").capitalize()

    @property
    def text(self) -> str:
        """Who has it, how sure that is, and which forms it may have."""
        who = listed([f"{name} (P {p:.2f})" for name, p in self.probabilities.items()])
        verb = "have" if len(self.owners) > 1 else "has"
        slow = "" if self.kind == "cycle" else f", which takes {self.duration} or longer"
        return f"{who} {verb} one{slow}. Its form cannot be told: it may be {self._forms}."

    @property
    def _forms(self) -> str:
        forms = [f"component {k}" if i == 0 else str(k) for i, k in enumerate(self.members)]
        if self.kind == "slow movement":
            forms.append("one that no fit has")
        return listed(forms, last="or")

    def to_dict(self) -> dict[str, Any]:
        """Return everything in JSON's types."""
        return {
            "kind": self.kind,
            "duration": self.duration,
            "components": list(self.members),
            "probabilities": self.probabilities,
        }


def family_reports(
    found: Discovery, parts: Decomposition, judged: pd.DataFrame
) -> tuple[FamilyReport, ...]:
    """Return the cycles and slow movements that some series surely has, though none of their forms.

    What "has" needs is that of `lkm_gpflow.explain.verdicts`: of the family as a whole.

    Parameters
    ----------
    found
        A discovery.
    parts
        Its decomposition.
    judged
        Verdicts on its components.
    """
    told = []
    for family, probability, certain in _judged(found, parts):
        has = certain & (judged.to_numpy()[:, list(family.members)] != "has").all(axis=1)
        if has.any():
            told.append(_told(found, judged, family, probability, np.flatnonzero(has)))
    return tuple(told)


def families_of_pair(
    found: Discovery, parts: Decomposition, judged: pd.DataFrame, places: tuple[int, int]
) -> tuple[FamilyReport, ...]:
    """Return the cycles and slow movements that two series surely have, but in no common form.

    Parameters
    ----------
    found, parts, judged
        As of `family_reports`.
    places
        Numbers of the series.
    """
    told = []
    for family, probability, certain in _judged(found, parts):
        has = judged.to_numpy()[np.ix_(places, family.members)] == "has"
        if certain[list(places)].all() and not has.all(axis=0).any():
            told.append(_told(found, judged, family, probability, np.array(places)))
    return tuple(told)


def _judged(found: Discovery, parts: Decomposition) -> Iterator[tuple[Family, Floats, Booleans]]:
    """Yield families, the probability of each series to have it, and whether that is certain."""
    for family in found.consensus.families:
        p = np.minimum(found.consensus.weights @ family.by_fit, 1.0)
        share = parts.share[:, list(family.members)].sum(axis=1)
        yield family, p, is_certain(p, family.evidence, share)


def _told(
    found: Discovery,
    judged: pd.DataFrame,
    family: Family,
    probability: Floats,
    series: NDArray[np.intp],
) -> FamilyReport:
    """Tell of a family that some series have; what none of them has is no form of it."""
    members = np.array(family.members)
    possible = (judged.to_numpy()[np.ix_(series, members)] != "has not").any(axis=0)
    return FamilyReport(
        kind=family.kind,
        duration=_duration(found, family),
        members=tuple((members[possible] + 1).tolist()),
        probabilities={found.table.names[n]: float(probability[n]) for n in series},
    )


def _duration(found: Discovery, family: Family) -> str:
    """Say a tenth of the time, or the average period, by the weight of the fits that have it."""
    timeline = Timeline.of(found.table)
    if family.kind == "slow movement":
        return timeline.duration(timeline.span / TENTHS)
    logs = np.log([period(found.kernels[k]) for k in family.members])
    support = found.consensus.support[list(family.members)]
    return timeline.duration(float(np.exp(np.average(logs, weights=support))))

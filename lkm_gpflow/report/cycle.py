"""A cycle that a series surely has, though not in which form."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from ..discovery.cycles import Cycle, period
from ..discovery.result import Discovery
from ..explain.decomposition import Decomposition
from ..explain.verdicts import is_certain
from ..explain.wording import Timeline
from ..numerics.types import Floats
from ..runtime.text import listed


@dataclass(frozen=True)
class CycleReport:
    """What there is to say about components with about one period, taken together.

    Parameters
    ----------
    duration
        The period in words: "11 months".
    members
        Numbers of the components, from 1.
    probabilities
        Of having any of them, by name, of the series that have one, while of no single component
        that is certain.
    """

    duration: str
    members: tuple[int, ...]
    probabilities: dict[str, float]

    @property
    def short(self) -> str:
        """A few words that stand after "has": "a cycle of about 11 months"."""
        return f"a cycle of about {self.duration}"

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
        forms = f"{', '.join(map(str, self.members[:-1]))} or {self.members[-1]}"
        return f"{who} {verb} one. Its form cannot be told: it may be component {forms}."

    def to_dict(self) -> dict[str, Any]:
        """Return everything in JSON's types."""
        return {
            "period": self.duration,
            "components": list(self.members),
            "probabilities": self.probabilities,
        }


def cycle_reports(
    found: Discovery, parts: Decomposition, judged: pd.DataFrame
) -> tuple[CycleReport, ...]:
    """Return the cycles that some series surely has, though none of their forms.

    What "has" needs is that of `lkm_gpflow.explain.verdicts`: of the cycle as a whole.

    Parameters
    ----------
    found
        A discovery.
    parts
        Its decomposition.
    judged
        Verdicts on its components.
    """
    return tuple(_told(found, parts, judged))


def _told(found: Discovery, parts: Decomposition, judged: pd.DataFrame) -> Iterator[CycleReport]:
    timeline, consensus = Timeline.of(found.table), found.consensus
    for cycle in consensus.cycles:
        members = list(cycle.members)
        p = np.minimum(consensus.weights @ cycle.by_fit, 1.0)
        certain = is_certain(p, cycle.evidence, parts.share[:, members].sum(axis=1))
        has = certain & (judged.to_numpy()[:, members] != "has").all(axis=1)
        if has.any():
            yield CycleReport(
                duration=timeline.duration(_period(found, cycle, consensus.support[members])),
                members=tuple(k + 1 for k in members),
                probabilities={found.table.names[n]: float(p[n]) for n in np.flatnonzero(has)},
            )


def _period(found: Discovery, cycle: Cycle, support: Floats) -> float:
    """Return the geometric mean of the periods, by the weight of the fits that have them."""
    periods = [period(found.kernels[k]) for k in cycle.members]
    return float(np.exp(np.average(np.log(periods), weights=support)))

"""One component in the report of two series."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..explain.comparison import Correlation
from ..explain.describe import Description
from ..explain.ties import Together
from ..explain.verdicts import ORDER, Verdict
from ..explain.wording import how_sure, sentence
from ..runtime.text import listed, percent
from .component_report import Numbered

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
    # What the coupling says, in place of the correlation, if there is one.
    tie: Together | None = None

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
        if self.tie is not None:
            return self.tie.text
        if self.correlation is None:
            return ""
        c = self.correlation
        told = (f"{round(r, 2) + 0.0:+.2f}" for r in (c.typical, c.lower, c.upper))
        numbers = "correlation {}, 90% interval {} to {}".format(*told)  # no minus before a zero
        way = "in step in both" if c.of_means > 0.0 else "in opposite directions"
        if c.way:
            return f"It moves {way} ({numbers})."
        if c.is_strong:
            return (
                f"It seems to move {way}, but that may be chance ({numbers}); a coupling, "
                "found.couple(), can tell."
            )
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
            "coupling": None if self.tie is None else self.tie.to_dict(),
        }

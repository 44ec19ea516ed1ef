"""One component in the report of two series."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .. import plotting
from ..explain.comparison import Correlation
from ..explain.describe import Description
from ..explain.together import Together
from ..explain.wording import how_sure
from ..runtime.text import listed, percent

_TOGETHER = 0.5
"""From this correlation on a component is said to go together, or against each other."""


@dataclass(frozen=True)
class PairComponent:
    """A component of two series, or of one of them.

    Parameters
    ----------
    number, name
        Of the component, from 1.
    description
        In words.
    owners
        One or both series.
    probabilities
        P(z_nk = 1) in both.
    shares
        Its share in the variation of its owners.
    correlation
        Of the two posteriors, if both have it and it varies.
    is_sure
        Whether its owners have it, or only perhaps; see `lkm_gpflow.explain.verdicts`.
    tie
        What the coupling says, in place of the correlation, if there is one.
    """

    number: int
    name: str
    description: Description
    owners: tuple[str, ...]
    probabilities: tuple[float, float]
    shares: tuple[float, ...]
    correlation: Correlation | None
    is_sure: bool = True
    tie: Together | None = None

    @property
    def colour(self) -> str:
        """Its colour in all pictures."""
        return plotting.component_colour(self.number - 1)

    @property
    def heading(self) -> str:
        """Its number and title: "2. Slow drift over 8 months"."""
        title = self.description.title
        return f"{self.number}. {title[:1].upper()}{title[1:]}"

    @property
    def membership(self) -> str:
        """Who has it, with probabilities in words and numbers."""
        a, b = self.probabilities
        if len(self.owners) == 2:
            chance = f"probability {a:.2f} and {b:.2f}"
            said = (
                f"{listed(self.owners)} {self._how_sure(min(a, b))} share {self.description.short}"
            )
        else:
            chance = f"probability {max(a, b):.2f}, against {min(a, b):.2f} in the other"
            said = f"{self.owners[0]} {self._how_sure(max(a, b))} has {self.description.short}"
        return f"{said} ({chance}); {self._importance}."

    def _how_sure(self, probability: float) -> str:
        return how_sure(probability) if self.is_sure else "perhaps"

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
        numbers = f"correlation {c.of_means:+.2f}, 90% interval {c.lower:+.2f} to {c.upper:+.2f}"
        if c.lower > 0.0 and c.of_means >= _TOGETHER:
            return f"It moves in step in both ({numbers})."
        if c.upper < 0.0 and c.of_means <= -_TOGETHER:
            return f"It moves in opposite directions ({numbers})."
        return f"It shows no clear common movement ({numbers})."

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
            "correlation": None if c is None else [c.of_means, c.lower, c.upper],
            "coupling": None if self.tie is None else self.tie.to_dict(),
        }

"""One component of a group report: who has it, what it is, how sure that is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..discovery.result import Discovery
from ..explain.decomposition import Decomposition
from ..explain.describe import Description, describe
from ..explain.stability import Stability
from ..explain.wording import Timeline, how_sure
from ..plotting import component_colour
from ..runtime.text import counted, listed, percent

PERHAPS = 0.1
"""Series that do not have a component, but with this probability might, are named."""

_MOST_NAMES = 8

_STABLE, _FRAGILE = 0.8, 0.4


@dataclass(frozen=True)
class ComponentReport:
    """What there is to say about a component.

    Parameters
    ----------
    number
        Of the component, from 1.
    name, kernel
        Its structure, and its structure with numbers.
    description
        In words.
    probabilities
        P(z_nk = 1) of every series, by name.
    owners
        Series that have it.
    shares
        Its share in the variation of each owner.
    rising, falling
        Owners in which it rises or falls throughout.
    share
        Its share in the variation of all series, each counting alike.
    stability
        How often the search found it.
    timeline
        Of the data.
    """

    number: int
    name: str
    kernel: str
    description: Description
    probabilities: dict[str, float]
    owners: tuple[str, ...]
    shares: dict[str, float]
    rising: tuple[str, ...]
    falling: tuple[str, ...]
    share: float
    stability: Stability
    timeline: Timeline

    @property
    def colour(self) -> str:
        """Its colour in all pictures."""
        return component_colour(self.number - 1)

    @property
    def who(self) -> str:
        """The heading of the paper: "[Gold, Oil] share the following property"."""
        if not self.owners:
            return "No series has the following property"
        verb = "share" if len(self.owners) > 1 else "has"
        return f"{self._owners} {verb} the following property"

    @property
    def _owners(self) -> str:
        if _MOST_NAMES < len(self.owners) == len(self.probabilities):
            return f"All {len(self.owners)} series"
        return listed(self.owners, _MOST_NAMES)

    @property
    def membership(self) -> str:
        """Who has it, with probabilities in words and numbers."""
        if not self.owners:
            return f"No series has {self.description.short}."
        chances = [self.probabilities[name] for name in self.owners]
        verb = "share" if len(chances) > 1 else "has"
        if len(chances) > _MOST_NAMES:
            sure = ""  # of so many that one word would not do
            numbers = f"probabilities {min(chances):.2f} to {max(chances):.2f}"
        else:
            sure = f"{how_sure(min(chances))} "
            numbers = f"probability {listed([f'{chance:.2f}' for chance in chances])}"
        words = f"{self._owners} {sure}{verb} {self.description.short} ({numbers})."
        maybe = {
            name: chance
            for name, chance in self.probabilities.items()
            if name not in self.owners and chance >= PERHAPS
        }
        if maybe:
            named = [f"{name} ({chance:.2f})" for name, chance in maybe.items()]
            words += (
                f" Perhaps so {'do' if len(maybe) > 1 else 'does'} {listed(named, _MOST_NAMES)}."
            )
        return words

    @property
    def directions(self) -> str:
        """In which series it rises and in which it falls; empty if the description says it."""
        if not (self.rising or self.falling) or "creasing" in self.description.sentences[0]:
            return ""
        said = []
        if self.rising:
            said.append(f"increases in {listed(self.rising, _MOST_NAMES)}")
        if self.falling:
            said.append(f"decreases in {listed(self.falling, _MOST_NAMES)}")
        return f"It {' and '.join(said)}."

    @property
    def explained(self) -> str:
        """How much of the variation it explains."""
        if not self.owners:
            return "It explains nothing."
        most = sorted(self.shares.items(), key=lambda item: -item[1])[:3]
        named = listed([f"{percent(share)} in {name}" for name, share in most])
        rest = ", less in the others" if len(self.shares) > 3 else ""
        return f"It makes up {percent(self.share)} of all variation: {named}{rest}."

    @property
    def verdict(self) -> str:
        """How often it was found, and what that means."""
        return " ".join(filter(None, (self._found_again(), self._spread(), self._left_out())))

    def _found_again(self) -> str:
        if not self.stability.tried:
            return "No other fit could have found it: how stable it is is not known."
        tried = counted(self.stability.tried, "other fit")
        if self.stability.share >= _STABLE:
            what = "stable"
        elif self.stability.share >= _FRAGILE:
            what = "to be taken with care"
        else:
            what = "fragile; other patterns explain the data nearly as well"
        return (
            f"Found again by {self.stability.found} of {tried} that began from nothing "
            f"and might have found it: {what}."
        )

    def _spread(self) -> str:
        said = []
        for name, lower, upper in self.stability.ranges:
            what = name.split(" ", 1)[1]
            low, high = self.timeline.duration(lower), self.timeline.duration(upper)
            said.append(f"{what} {low}" if low == high else f"{what} {low} to {high}")
        return f"In those that have one of its kind: {', '.join(said)}." if said else ""

    def _left_out(self) -> str:
        if not self.stability.left_out:
            return ""
        return (
            f"Learnt without one of its series, it was found again {self.stability.survived} of "
            f"{self.stability.left_out} times."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return everything in JSON's types."""
        return {
            "number": self.number,
            "name": self.name,
            "kernel": self.kernel,
            "short": self.description.short,
            "description": self.description.text,
            "owners": list(self.owners),
            "probabilities": self.probabilities,
            "shares": self.shares,
            "share": self.share,
            "rising": list(self.rising),
            "falling": list(self.falling),
            "fits_that_could_have_found_it": self.stability.tried,
            "fits_that_found_it": self.stability.found,
            "ranges": [list(each) for each in self.stability.ranges],
            "series_left_out": self.stability.left_out,
            "survived": self.stability.survived,
            "verdict": self.verdict,
        }


def component_report(
    found: Discovery, parts: Decomposition, stability: Stability, k: int
) -> ComponentReport:
    """Put together what there is to say about component k."""
    names = found.table.names
    timeline = Timeline.of(found.table)
    has = np.flatnonzero(found.fit.Z[:, k])
    rising, falling = (
        tuple(names[n] for n in has if parts.trend[n, k] == sign) for sign in (1.0, -1.0)
    )
    everywhere = int(len(rising) == len(has) > 0) - int(len(falling) == len(has) > 0)
    kernel = found.kernels[k]
    return ComponentReport(
        number=k + 1,
        name=found.names[k],
        kernel=f"{kernel:.3g}",
        description=describe(kernel, timeline, everywhere),
        probabilities={name: float(found.fit.probabilities[n, k]) for n, name in enumerate(names)},
        owners=tuple(names[n] for n in has),
        shares={names[n]: float(parts.share[n, k]) for n in has},
        rising=rising,
        falling=falling,
        share=float(parts.share[:, k].mean()),
        stability=stability,
        timeline=timeline,
    )

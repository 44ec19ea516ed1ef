"""Whether a component goes together in two series: what their coupling has as evidence."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations

import numpy as np

from ..coupling.coupled_discovery import CoupledDiscovery
from ..coupling.learn_coupling import STRONG
from ..discovery.result import Discovery
from ..gp.types import Floats, Integers
from ..sharing.matching import ALIKE, correlation, shapes_of, thinned


@dataclass(frozen=True)
class Together:
    """How far a component goes together in two series."""

    correlation: float  # zero in fits without strong evidence that there is any
    # Ends of the interval that holds it with a probability of 90%.
    lower: float
    upper: float
    evidence: float  # log Bayes factor of the correlation, from the two series alone

    @property
    def is_strong(self) -> bool:
        """Whether the evidence is strong (a Bayes factor of 20)."""
        return self.evidence >= STRONG

    @property
    def text(self) -> str:
        """In a sentence: "It moves in step in both (correlation +0.53, ...)."""
        interval = f"90% interval {self.lower:+.2f} to {self.upper:+.2f}"
        if not self.is_strong:
            return f"There is no strong evidence that it moves in step in both ({interval})."
        way = "in step in both" if self.correlation > 0.0 else "in opposite directions"
        return (
            f"It moves {way} (correlation {self.correlation:+.2f}, {interval}, "
            f"log evidence {self.evidence:.1f})."
        )

    def to_dict(self) -> dict[str, float]:
        """Return everything in JSON's types."""
        return dict(vars(self))


@dataclass(frozen=True)
class Ties:
    """What a coupling says of the components of a discovery; it must be of the same table.

    Components are those that the fits of the search agree upon; numbers are averages over the
    coupled fits in which both series have a pattern of that shape, by their weights.
    """

    found: Discovery
    coupled: CoupledDiscovery  # its coupling, as `Discovery.couple` returns it
    _ends: dict[int, tuple[Floats, Floats]] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        if not self.found.table.frame.equals(self.coupled.table.frame):
            raise ValueError(
                "expected the coupling of this discovery, got one of another table: give "
                "coupled=found.couple()"
            )

    def of(self, k: int, a: int, b: int) -> Together | None:
        """What is known of component k in series a and b; None if no coupled fit has it in both."""
        consensus, total, numbers = self.found.consensus, 0.0, np.zeros(4)
        if a == b or not consensus.Z[a, k] * consensus.Z[b, k]:
            return None
        for i, (member, coupling) in enumerate(
            zip(self.coupled.members, self.coupled.couplings, strict=True)
        ):
            p = self._patterns[i][k]
            if p < 0 or not np.all(coupling.patterns.amplitudes[[a, b], p] > 0.0):
                continue
            if i not in self._ends:
                self._ends[i] = self.coupled.intervals(i)
            lower, upper = self._ends[i]
            told = (coupling.correlations, lower, upper, coupling.pair_evidence)
            numbers += member.weight * np.array([each[p, a, b] for each in told])
            total += member.weight
        return Together(*map(float, numbers / total)) if total else None

    def of_pair(self, a: int, b: int) -> dict[int, Together]:
        """All that is known of two series, by the number of the component."""
        told = {k: self.of(k, a, b) for k in range(len(self.found.names))}
        return {k: tie for k, tie in told.items() if tie is not None}

    def is_asked(self, k: int) -> bool:
        """Whether a coupled fit has a pattern like component k."""
        return any(int(places[k]) >= 0 for places in self._patterns)

    def strong(self, k: int) -> Iterator[tuple[str, str, Together]]:
        """Pairs of series in which component k goes together, those of most evidence first."""
        names = self.found.table.names
        told = [
            (names[a], names[b], tie)
            for a, b in combinations(range(len(names)), 2)
            if (tie := self.of(k, a, b)) is not None and tie.is_strong
        ]
        yield from sorted(told, key=lambda each: -each[2].evidence)

    @cached_property
    def _patterns(self) -> list[Integers]:
        """Which pattern of each coupled fit is most like component k, [K]; -1 if none is alike.

        By shape, as components of different fits are matched: fits that forecasts rest on may be
        walks, which no component was found in.
        """
        grid = thinned(self.found.table.observations.x)
        shapes = shapes_of(self.found.consensus.kernels, grid)
        found = []
        for coupling in self.coupled.couplings:
            if not coupling.patterns.kernels:
                found.append(np.full(len(shapes), -1))
                continue
            like = correlation(shapes, shapes_of(coupling.patterns.kernels, grid))
            found.append(np.where(like.max(axis=1) >= ALIKE, like.argmax(axis=1), -1))
        return found

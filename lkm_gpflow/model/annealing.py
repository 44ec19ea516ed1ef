"""The schedule of learning with the relaxed posterior (paper, section 4.2)."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ..runtime.text import whole_number


@dataclass(frozen=True)
class Annealing:
    """The schedule by which Adam climbs the relaxed objective.

    Parameters
    ----------
    num_steps
        Steps of Adam while the temperature falls.
    learning_rate
        Learning rate of Adam.
    logits_rate
        Learning rate of the logits of nu; None for the same.
    first_temperature, last_temperature
        lambda falls geometrically from the first to the last.
    most_blocks
        Learning then continues at the last temperature, for at most this many blocks.
    block_steps
        Steps of Adam in a block.
    settling_rates
        Learning rates in these blocks, for the logits of nu and for all else.  The first is large:
        a nu on its way to zero or one has far to go on the scale of logits, and few draws move it.
    tolerance
        Learning stops when the mean objective of a block exceeds that of the block before by less
        than this, in nats.
    """

    num_steps: int = 200
    learning_rate: float = 0.05
    logits_rate: float | None = None
    first_temperature: float = 1.0
    last_temperature: float = 0.1
    most_blocks: int = 0
    block_steps: int = 50
    settling_rates: tuple[float, float] = (0.25, 0.02)
    tolerance: float = 0.5

    def __post_init__(self) -> None:
        for name, least in (("num_steps", 1), ("block_steps", 1), ("most_blocks", 0)):
            whole_number(getattr(self, name), name, least)
        for name in ("learning_rate", "first_temperature", "last_temperature"):
            if not 0.0 < getattr(self, name) < math.inf:
                raise ValueError(f"expected a positive {name}, got {getattr(self, name)!r}")
        if self.logits_rate is not None and not 0.0 < self.logits_rate < math.inf:
            raise ValueError(f"expected a positive logits_rate or None, got {self.logits_rate!r}")
        if len(self.settling_rates) != 2 or not all(
            0.0 < r < math.inf for r in self.settling_rates
        ):
            raise ValueError(f"expected two positive settling_rates, got {self.settling_rates!r}")

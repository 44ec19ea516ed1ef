"""The schedule by which the relaxed objective is climbed."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Annealing:
    """How the relaxed objective is climbed.

    Parameters
    ----------
    num_steps
        Steps of Adam while the temperature falls.
    learning_rate
        Of Adam.
    logits_rate
        That of the logits of nu; None for the same.
    first_temperature, last_temperature
        lambda falls geometrically from the one to the other.
    most_blocks
        Then learning goes on at the last temperature, in at most so many blocks of `block_steps`.
    block_steps
        Steps of a block.
    settling_rates
        Learning rates in these blocks, of the logits of nu and of all else: a nu on its way to
        zero or one has a long way on the scale of logits, and draws at which it errs are rare.
    tolerance
        Learning stops when the mean objective of a block is not this much, in nats, above that of
        the block before.
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
        for name in ("num_steps", "block_steps"):
            if getattr(self, name) < 1:
                raise ValueError(f"expected at least 1 in {name}, got {getattr(self, name)}")
        if self.most_blocks < 0:
            raise ValueError(f"expected 0 or more most_blocks, got {self.most_blocks}")
        for name in ("learning_rate", "first_temperature", "last_temperature"):
            if not getattr(self, name) > 0.0:
                raise ValueError(f"expected a positive {name}, got {getattr(self, name)}")

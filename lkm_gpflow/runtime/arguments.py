"""What can be wrong with what is asked: levels, quantiles, weights of sums, and switches."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from numbers import Real

import numpy as np

from .text import did_you_mean, quoted


def check_level(level: float) -> None:
    """Refuse a probability of an interval that is not between 0 and 1."""
    if not _is_probability(level):
        raise ValueError(f"expected a level between 0 and 1, got {level!r}: 0.9 stands for 90%")


def check_quantiles(quantiles: Sequence[float]) -> None:
    """Refuse what is no list of probabilities between 0 and 1."""
    if np.ndim(quantiles) == 0:
        raise ValueError(f"expected a list of quantiles such as [0.05, 0.95], got {quantiles!r}")
    for q in quantiles:
        if not _is_probability(q):
            raise ValueError(f"expected quantiles between 0 and 1, got {q!r}")


def check_weights(weights: Mapping[object, float]) -> None:
    """Refuse weights of a sum that are not finite numbers, or none at all."""
    if not isinstance(weights, Mapping):
        raise ValueError(f"expected weights by series such as {{'a': 1.0}}, got {weights!r}")
    if not weights:
        raise ValueError("expected the weight of at least one series, got none: {'a': 1.0}")
    for name, weight in weights.items():
        if not (isinstance(weight, Real) and np.isfinite(weight)):
            raise ValueError(f"expected a finite weight of {name!r}, got {weight!r}")


def check_series(name: object, known: Sequence[object], where: str = "") -> None:
    """Refuse a series that is not among those that are known; say `where` it was named."""
    if name not in known:
        hint = did_you_mean(str(name), map(str, known))
        raise ValueError(f"{where}expected one of the series {quoted(known)}, got {name!r}{hint}")


def check_switch(value: object, name: str) -> bool:
    """Return a setting that is True or False as Python has it; refuse all else."""
    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"expected {name} as True or False, got {value!r}")
    return bool(value)


def _is_probability(value: object) -> bool:
    return isinstance(value, Real) and 0.0 < float(value) < 1.0


def seed_pair(seed: int) -> tuple[int, int]:
    """Return a seed of 64 bits as two of 32, for TensorFlow; the second is 0 if one can do."""
    number = operator.index(seed)
    low = _as_signed(number)
    return low, _as_signed((number - low) >> 32)


def _as_signed(number: int) -> int:
    """Return the lowest 32 bits as a signed number."""
    return (number + 2**31) % 2**32 - 2**31

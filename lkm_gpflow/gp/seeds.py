"""Seeds as TensorFlow's samplers want them."""

from __future__ import annotations

import operator


def seed_pair(seed: int) -> tuple[int, int]:
    """Return a whole number of up to 64 bits as two of 32; the second is 0 if the first can do."""
    number = operator.index(seed)
    low = _signed(number)
    return low, _signed((number - low) >> 32)


def _signed(number: int) -> int:
    """Return the lowest 32 bits as a signed number."""
    return (number + 2**31) % 2**32 - 2**31

"""Lists, counts and shares in words."""

from __future__ import annotations

from collections.abc import Sequence


def listed(names: Sequence[object], most: int | None = None) -> str:
    """Return "a, b and c"; of more than `most` names, the first and how many are left."""
    words = [str(name) for name in names]
    if most is not None and len(words) > most:
        words = [*words[: most - 1], f"{len(words) - most + 1} more"]
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def percent(share: float) -> str:
    """Return a share as a percentage; small ones are not called nothing."""
    if 0.0 < share < 0.005:
        return "under 1%"
    return f"{share:.0%}"


def counted(count: int, noun: str) -> str:
    """Return "1 series", "3 components"; a noun on s stays as it is."""
    return f"{count} {noun}" + ("" if count == 1 or noun.endswith("s") else "s")

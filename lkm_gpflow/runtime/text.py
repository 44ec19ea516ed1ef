"""Lists, counts and shares in words; what was meant by a name or a number."""

from __future__ import annotations

import difflib
import operator
from collections.abc import Iterable, Sequence

_MOST_NAMED = 12

_ROUNDING = 1e-9  # of a sum of weights or shares that are one together


def listed(names: Sequence[object], most: int | None = None, last: str = "and") -> str:
    """Return "a, b and c"; of more than `most` names, the first and how many are left.

    The `last` two are joined by that word.
    """
    words = [str(name) for name in names]
    if most is not None and len(words) > most:
        words = [*words[: most - 1], f"{len(words) - most + 1} more"]
    return f" {last} ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def quoted(names: Iterable[object]) -> str:
    """Return names in quotes, in a list; of many the first, and how many are left."""
    return listed([repr(name) for name in names], _MOST_NAMED)


def numbered(names: Sequence[str]) -> list[str]:
    """Return names of which none is there twice: "SE (1)" and "SE (2)" for two that are "SE"."""
    return [
        f"{name} ({names[: i + 1].count(name)})" if names.count(name) > 1 else name
        for i, name in enumerate(names)
    ]


def percent(share: float) -> str:
    """Return a share as a percentage; small ones are not called nothing, nor large ones all."""
    if _ROUNDING < share < 0.005:
        return "under 1%"
    if 0.995 <= share < 1.0 - _ROUNDING:
        return "over 99%"
    return f"{share:.0%}"


def level_in_percent(level: float) -> str:
    """Return the probability of an interval as a percentage: "90%", and "99.5%", not "100%"."""
    return f"{100.0 * level:.6g}%"


def counted(count: int, noun: str) -> str:
    """Return "1 series", "3 components"; a noun on s stays as it is."""
    return f"{count} {noun}" + ("" if count == 1 or noun.endswith("s") else "s")


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return "; did you mean 'gonu'?", or nothing if no known name is like the one given."""
    close = difflib.get_close_matches(name, list(known))
    return f"; did you mean {' or '.join(map(repr, close))}?" if close else ""


def whole_number(value: object, name: str, least: int) -> int:
    """Return a whole number of `least` or more as Python has it; a ValueError refuses others."""
    try:
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        number = least - 1
    if isinstance(value, bool) or number < least:
        raise ValueError(f"expected {name} as a whole number of {least} or more, got {value!r}")
    return number


def duration(seconds: float) -> str:
    """Return "40 s", "3 min", "2 h"."""
    if seconds < 100.0:
        return f"{max(1.0, float(f'{seconds:.1g}')):.0f} s"
    return f"{seconds / 60.0:.0f} min" if seconds < 100.0 * 60.0 else f"{seconds / 3600.0:.0f} h"

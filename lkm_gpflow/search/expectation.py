"""How long a search will take: before it begins, and from what its fits have taken."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..runtime.text import duration
from .settings import SearchSettings

_SECONDS = 5e-4
"""Processor seconds per series and per squared number of times, for a default search with its
averaging (depth 2, 3 restarts), about the middle of 48 searches of 24 tables (81 to 225 times, 4 to
9 series; the benchmark's journal) by an old processor; newer ones take half as long."""

_LOWER, _UPPER = 0.1, 4.2
"""Factors on it that held nine tenths of them, and of those by a newer processor: how many
components there are counts most, and nobody knows that beforehand.  Where series are walks and
nothing else, a search ends soonest."""

_LONG = 200
"""From so many times on, time grows with their power 2.7 (tests/benchmarks/test_long_speed.py)."""


def expected_seconds(
    num_times: int, num_series: int, settings: SearchSettings, parallel: int = 1
) -> tuple[float, float]:
    """Return bounds on the seconds of a search by the learner "scan", from searches measured.

    Parameters
    ----------
    num_times, num_series
        Of the table.
    settings
        Of the search.
    parallel
        Fits at a time.
    """
    growth = max(1.0, num_times / _LONG) ** 0.7
    size = num_series * num_times**2 * growth
    work = (1 + settings.depth) / 3.0 * settings.restarts / 3.0
    seconds = _SECONDS * size * work / min(parallel, settings.restarts)
    return _LOWER * seconds, _UPPER * seconds


def beforehand(num_times: int, num_series: int, settings: SearchSettings, parallel: int) -> str:
    """Say how long a search is expected to take; nothing of a learner that was not measured."""
    if settings.fit.learner != "scan":
        return ""
    lower, upper = expected_seconds(num_times, num_series, settings, parallel)
    return f"expected {duration(lower)} to {duration(upper)}"


def left(seconds: Sequence[float], count: int, parallel: int) -> str:
    """Say how long so many more fits are expected to take, from the seconds of those before."""
    if not seconds or count < 1:
        return ""
    return f"about {duration(float(np.mean(seconds)) * count / parallel)} left"

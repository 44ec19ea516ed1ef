"""What columns of intervals, of their coverage and of quantiles are called, with all digits."""

from __future__ import annotations

from decimal import Decimal

import numpy as np

SIDES = ("lower", "upper")
"""Ends of an interval."""


def interval_columns(level: float) -> tuple[str, str]:
    """Return ("lower90", "upper90") for the level 0.9."""
    lower, upper = (f"{side}{_percent(level)}" for side in SIDES)
    return lower, upper


def coverage_column(level: float) -> str:
    """Return "coverage90" for the level 0.9, and "coverage99.5" for 0.995."""
    return f"coverage{_percent(level)}"


def quantile_column(q: float) -> str:
    """Return "q0.05" for the quantile 0.05."""
    return f"q{_digits(q)}"


def _percent(level: float) -> str:
    return f"{(100 * Decimal(_digits(level))).normalize():f}"


def _digits(probability: float) -> str:
    """Return the fewest digits that tell a number from its neighbours, of its own precision."""
    return str(probability if isinstance(probability, np.floating) else float(probability))

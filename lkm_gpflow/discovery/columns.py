"""What columns of intervals and quantiles are called, with all digits of their probabilities."""

from __future__ import annotations

from decimal import Decimal

import numpy as np

SIDES = ("lower", "upper")
"""Ends of an interval."""


def interval_columns(level: float) -> tuple[str, str]:
    """Return ("lower90", "upper90") for the level 0.9."""
    percent = (100 * Decimal(_digits(level))).normalize()
    lower, upper = (f"{side}{percent:f}" for side in SIDES)
    return lower, upper


def quantile_column(q: float) -> str:
    """Return "q0.05" for the quantile 0.05."""
    return f"q{_digits(q)}"


def _digits(probability: float) -> str:
    """Return the fewest digits that tell a number from its neighbours, of its own precision."""
    return str(probability if isinstance(probability, np.floating) else float(probability))

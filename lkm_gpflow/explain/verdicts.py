"""What may be said of a series and a pattern."""

from __future__ import annotations

from typing import Literal

Verdict = Literal["has", "perhaps", "cannot be told", "has not"]
"""What is said of a series and a pattern, the surest first."""

HARDLY = 0.05
"""Up to this probability it is said not to have it."""

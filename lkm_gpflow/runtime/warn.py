"""Warnings that point at the line of the caller, however deep in the package they arise."""

from __future__ import annotations

import sys
import warnings

_BETWEEN = ("lkm_gpflow", "contextlib", "functools", "gpflow", "tensorflow")
"""Modules whose lines nobody can mend: our own, and those through which decorators call."""


class TableNote(UserWarning):
    """What was done to a table without a doubt: how its cells were read, what was left out."""


def warn(text: str, category: type[UserWarning] = UserWarning) -> None:
    """Warn at the innermost line outside of the package."""
    frame, level = sys._getframe(), 1
    while (
        frame.f_back is not None
        and str(frame.f_globals.get("__name__", "")).partition(".")[0] in _BETWEEN
    ):
        frame, level = frame.f_back, level + 1
    warnings.warn(text, category, stacklevel=level)

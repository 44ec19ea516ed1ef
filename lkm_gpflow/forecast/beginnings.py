"""What random walks do not know of the time before a series' first value.

They begin at zero, a third of the table's span before its first time (`walks_begin`).  From there
to the first value that was seen their uncertainty is that of a bridge: it shrinks the earlier the
time, where it should grow.  Intervals there are too narrow, and `Forecaster` says so.
"""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from ..fit.fits import Fit
from ..runtime.text import quoted
from ..runtime.warn import warn


def warn_of_times_before(frame: pd.DataFrame, fits: Sequence[Fit]) -> None:
    """Warn whoever asks about times before the first row, if some fit has a walk."""
    if any(map(_has_walk, fits)):
        warn(
            f"intervals before the table's first time, {frame.index[0]}, are too narrow: random "
            "walks begin not long before it",
        )


def warn_of_late_series(frame: pd.DataFrame, fits: Sequence[Fit]) -> None:
    """Warn whoever fills gaps that begin with the table, if some fit has a walk but no level."""
    late = frame.columns[frame.iloc[0].isna()]
    if len(late) and any(_has_walk(fit) and not _has_level(fit) for fit in fits):
        warn(
            f"intervals of {quoted(late)} before their "
            "first observations are too narrow: random walks begin not long before the table",
        )


def _has_walk(fit: Fit) -> bool:
    return any(factor.base.is_walk for kernel in fit.kernels for factor in kernel.factors)


def _has_level(fit: Fit) -> bool:
    """Whether a constant leaves open where a walk begins."""
    return any(str(kernel.structure) == "C" for kernel in fit.kernels)

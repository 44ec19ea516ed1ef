"""Gaps, for methods that have none: straight lines between observations, and what is at the ends.

A method that fits every series alone gets its rows from its first to its last observation, so
that nothing is invented at the ends.  One that fits all series together needs a full table: there
the first and last observation are carried to the ends.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..data.tables import Table
from ..gp.types import Floats
from .scaled import MIN_SD, ScaledForecast

Ahead = Callable[[int], tuple[Floats, Floats]]
"""From a number of steps h to the means and sds of the next h values: [h] each of one series,
[h, N] of several."""


def fit_alone(table: Table, learn: Callable[[int, Floats], Ahead]) -> ScaledForecast:
    """Fit every series alone, to the rows from its first to its last observation.

    A series that ended some rows before the table is forecast for as many steps more.  No sd is
    smaller than `MIN_SD`.

    Parameters
    ----------
    table
        The training data.
    learn
        Fits one series: from its number and its z-scores, gaps filled, to its forecasts.
    """
    observations = table.observations
    filled, (begins, stops) = observations.filled, observations.ends
    fitted = [
        learn(n, filled[begin:stop, n])
        for n, (begin, stop) in enumerate(zip(begins, stops, strict=True))
    ]

    def predict(times: Floats) -> tuple[Floats, Floats]:
        moments = []
        for ahead, missing in zip(fitted, len(filled) - stops, strict=True):
            mean, sd = ahead(int(missing) + len(times))
            moments.append((mean[missing:], sd[missing:]))
        mean, sd = (np.column_stack(each) for each in zip(*moments, strict=True))
        return mean, np.square(np.maximum(sd, MIN_SD))

    return ScaledForecast(table, predict)

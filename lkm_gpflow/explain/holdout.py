"""What the forecast would have said about the last part of the data, without having seen it."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from scipy.special import stdtr

from ..discovery.result import Discovery
from ..forecast.averaging import mixture_moments
from ..forecast.held_out import Window, held_out_forecast
from ..gp import limits
from ..gp.student import unit_scale
from ..gp.types import Floats

_MOST_MEMBERS = 6
"""So many of the fits that weigh most are learnt again."""


@dataclass(frozen=True)
class HoldOut:
    """The tail of every series, forecast from what came before it.

    Hyperparameters are learnt again without the tail; structures and weights were chosen with it,
    so the results are slightly better than those on future data.

    Parameters
    ----------
    times
        Of the tail.
    probabilities
        Probability integral transform: which probability the forecast gave to a value below the
        one that was observed, series x times; NaN where nothing was observed.  Calibrated
        forecasts make them uniform between zero and one.
    """

    times: pd.Index
    probabilities: pd.DataFrame

    def inside(self, level: float) -> pd.Series:
        """Share of the observations of every series that fell into the interval of this level."""
        seen = self.probabilities.notna().sum(axis=1)
        within = ((self.probabilities - 0.5).abs() <= 0.5 * level).sum(axis=1)
        return within / seen.where(seen > 0)

    def overall(self, level: float) -> float:
        """Share of all observations that fell into the interval of this level."""
        values = self.probabilities.to_numpy()
        values = values[np.isfinite(values)]
        return float(np.mean(np.abs(values - 0.5) <= 0.5 * level)) if len(values) else np.nan


def hold_out_tail(found: Discovery) -> HoldOut:
    """Forecast the last tenth of the rows from those before it.

    Only the six fits that weigh most are learnt again.  Those of them that could be have the weight
    of all fits, in proportion to their own; the vector autoregression keeps its weight.

    Not for more than `LKM.LONGEST` times or by fits of a subclass of `LKM`, which cannot be learnt
    again: nothing is held out then.
    """
    observations = found.table.observations
    D = len(observations.x)
    tail = max(1, round(0.1 * D))
    window = Window(D - tail, D)
    members = found.counting_members[:_MOST_MEMBERS] if D <= limits.LONGEST else []
    predictions, after = [], observations.x[-1:] + 1.0  # as if the tail came after all rows
    for member in members:
        settings = replace(found.settings.fit, exact=member.exact)
        with suppress(ValueError):  # not positive definite, or of a subclass
            told = held_out_forecast(member.fit, observations, window, settings, rounds=1)
            variance = told.variance * found.variance_factors(after, member.spread).T
            predictions.append((member.weight, told.mean, variance))
    times = found.table.frame.index[-tail:]
    probabilities = np.full((observations.num_series, tail), np.nan)
    if predictions:
        of_fits = found.share_of_fits / sum(weight for weight, _, _ in predictions)
        predictions = [(of_fits * weight, m, v) for weight, m, v in predictions]
        if found.autoregression is not None and found.share_of_fits < 1.0:
            told = found.autoregression.held_out_forecast(window)
            variance = told.variance * found.variance_factors(after).T
            predictions.append((1.0 - found.share_of_fits, told.mean, variance))
        mean, variance = mixture_moments(predictions)
        degrees = found.degrees_of_freedom(after).T
        probabilities = _transform(observations.Y[:, -tail:], mean, variance, degrees)
    probabilities[observations.mask[:, -tail:] == 0.0] = np.nan
    return HoldOut(times, pd.DataFrame(probabilities, found.table.frame.columns, times))


def _transform(values: Floats, mean: Floats, variance: Floats, degrees: Floats) -> Floats:
    """Probabilities of smaller values."""
    z = (values - mean) / np.sqrt(variance)
    return np.asarray(stdtr(degrees, z / unit_scale(degrees)))

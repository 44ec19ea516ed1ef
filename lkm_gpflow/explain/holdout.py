"""What the forecast would have said about the last part of the data, without having seen it."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from ..data.tables import Table
from ..discovery.result import Discovery
from ..forecast.held_out import Window


@dataclass(frozen=True)
class HoldOut:
    """The tail of every series, forecast from what came before it.

    Hyperparameters are learnt again without the tail; structures and weights were chosen with it,
    so the results are slightly better than those on future data.
    """

    times: pd.Index
    # Probability integral transform: which probability the forecast gave to a value below the one
    # that was observed, series x times; NaN where nothing was observed.  Calibrated forecasts make
    # them uniform between zero and one.
    probabilities: pd.DataFrame
    # Mean absolute error of every series, in its units: of the forecast's median, of its last value
    # before the tail, and of its value a season before (NaN without a season).
    errors: pd.DataFrame = field(default_factory=pd.DataFrame)

    def inside(self, level: float) -> pd.Series:
        """How many observations of every series fell into the interval of this level."""
        return ((self.probabilities - 0.5).abs() <= 0.5 * level).sum(axis=1)

    def overall(self, level: float) -> float:
        """Share of all observations that fell into the interval of this level."""
        seen = int(self.probabilities.notna().to_numpy().sum())
        return float(self.inside(level).sum() / seen) if seen else np.nan


def hold_out_tail(found: Discovery) -> HoldOut:
    """Forecast the last tenth of the rows from those before it.

    Fits are learnt again, draws of the posterior are not; see `Ensemble.held_out`.

    Not for more than `LKM.LONGEST` times or by fits of a subclass of `LKM`, which cannot be learnt
    again: nothing is held out then.
    """
    frame = found.table.frame
    D, N = frame.shape
    tail = max(1, round(0.1 * D))
    told = found.ensemble.held_out(Window(D - tail, D))
    values = frame.to_numpy()[-tail:].T  # [N, tail]
    probabilities = np.full((N, tail), np.nan)
    medians = np.full((N, tail), np.nan)
    if told is not None:
        probabilities = told.pit(values.ravel()).reshape(N, tail)
        medians = told.quantile(0.5).reshape(N, tail)
    guesses = {"forecast": medians.T} | {
        name: guess.to_numpy() for name, guess in naive_guesses(found.table, tail).items()
    }
    errors = {name: (frame.iloc[-tail:] - guess).abs().mean() for name, guess in guesses.items()}
    return HoldOut(
        frame.index[-tail:],
        pd.DataFrame(probabilities, frame.columns, frame.index[-tail:]),
        pd.DataFrame(errors),
    )


def naive_guesses(table: Table, tail: int) -> dict[str, pd.DataFrame]:
    """Guess the last rows: the last value before them, and that of a season before."""
    frame = table.frame
    before = frame.iloc[:-tail]
    last = pd.concat([before.ffill().iloc[[-1]]] * tail).set_axis(frame.index[-tail:])
    season = table.axis.season
    guesses = {"last value": last}
    if 1 < season < len(before):
        places = np.arange(len(before), len(frame))
        places = places - season * (1 + (places - len(before)) // season)
        guesses["a season ago"] = frame.iloc[places].set_axis(frame.index[-tail:])
    return guesses

"""Backtests: how a method would have forecast in the past, by rolling origins.

At every origin a method learns from what came before and forecasts what came next.  All scores
follow from the forecasts, which are kept cell by cell.
"""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from concurrent.futures import Executor
from copy import copy
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pandas as pd
from scipy.stats import t as student

from ..comparators import Comparator, comparator
from ..data.checks import MIN_OBSERVED, check_variation
from ..data.foreign import Tabular
from ..data.tables import Table
from ..forecast.mixture import coverage_column
from ..gp.types import Floats
from ..runtime.executors import check_executor, kept_in, run_all
from ..runtime.journal import Journal
from ..runtime.progress import part_of
from ..runtime.text import whole_number
from . import metrics
from .predictive import Predictive, columns_of, matrices

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LEVELS = (0.5, 0.8, 0.9, 0.95)  # probabilities of the intervals whose coverage is reported

_LOWER_IS_BETTER = ("rmse", "mnlp", "crps", "mase")

_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
"""What Python adds to the text of functions and objects, another one in every process."""


@dataclass(frozen=True)
class Comparison:
    """Whether one method scored better than another, and with what certainty."""

    score: str  # which score; lower is better
    # Mean difference over origins, first method minus second: negative if the first is better.
    difference: float
    standard_error: float  # of the mean difference
    p_value: float  # Two-sided probability of a difference as large if both were equally good


@dataclass(frozen=True)
class Backtest:
    """Forecasts of one method at several origins, beside what happened."""

    label: str  #: What the method is called in tables and pictures
    horizon: int  #: Steps that were forecast at every origin
    origins: tuple[int, ...]  #: How many rows came before each forecast
    #: Rows (origin, series, time); columns observed, mean, sd in the units of the series, and
    #: scale, the standard deviation of the series before the origin.  Lognormal forecasts also have
    #: log_mean and log_sd, the moments of the logarithm, Student-t ones degrees (of freedom), and
    #: counts and shares quantiles.
    forecasts: pd.DataFrame
    #: Rows (origin, series); the mean absolute step of the series before the origin, which MASE
    #: divides by, in units of scale.
    steps: pd.Series
    seconds: pd.Series  #: How long the method took at every origin

    @cached_property
    def scores(self) -> pd.DataFrame:
        """One row per origin: rmse, mnlp, crps, mase, coverage50 to coverage95, seconds.

        RMSE, CRPS and MNLP are of series divided by their standard deviation before the origin, so
        that every series counts alike.  RMSE and MASE are averaged over series; MASE is NaN where
        an observed series takes no step between successive observations before the origin.
        Lognormal and Student-t forecasts are scored as such: MNLP of a lognormal has the Jacobian
        of the logarithm, and intervals are those of the distribution.  So are counts and shares,
        but for their MNLP, that of a normal; coverage of counts is as by a randomised PIT.
        """
        return pd.DataFrame({origin: self._score(origin) for origin in self.origins}).T

    def _score(self, origin: int) -> dict[str, float]:
        cells = self.forecasts.loc[origin]
        if cells["observed"].isna().all():  # nothing was observed after this origin
            names = (*_LOWER_IS_BETTER, *map(coverage_column, LEVELS))
            return {**dict.fromkeys(names, np.nan), "seconds": float(self.seconds.loc[origin])}
        columns: dict[str, Floats] = {
            str(name): values.to_numpy().reshape(-1, self.horizon).T
            for name, values in cells.items()
        }
        scale = columns["scale"]
        observed, told = columns["observed"] / scale, Predictive.of(columns).divided_by(scale)
        missing = np.isnan(observed)
        # Checks come with the plain scores; they are those of normal forecasts.
        plain = metrics.score(observed, told.mean, told.sd)
        return {
            "rmse": plain.rmse,
            "mnlp": float(np.nanmean(told.nlpd(observed))),
            "crps": float(np.nanmean(told.crps(observed))),
            "mase": metrics.mase_of_steps(observed, told.mean, self.steps.loc[origin].to_numpy()),
            **{
                coverage_column(level): float(np.mean(told.inside(observed, level)[~missing]))
                for level in LEVELS
            },
            "seconds": float(self.seconds.loc[origin]),
        }

    def summary(self) -> pd.Series:
        """Mean of every score over the origins."""
        return self.scores.mean().rename(self.label)

    def compare(self, other: Backtest, score: str = "crps") -> Comparison:
        r"""Test whether this method and another score equally well.

        Windows of neighbouring origins overlap, so the differences d_i of their scores are
        correlated.  If all steps of a window count alike and differ independently, the
        correlation is the share of the window that two origins have in common,
        :math:`R_{ij} = \max(0, 1 - |o_i - o_j| / h)`.  With the mean :math:`\bar d` over F origins,

        .. math::
           t = \bar d \Big/ \sqrt{\hat\sigma^2\, 1^\top R\, 1 / F^2}, \qquad
           \hat\sigma^2 = \tfrac{1}{F - 1} (d - \tilde d)^\top R^{-1} (d - \tilde d)

        with :math:`\tilde d` the generalised least squares mean, and Student's distribution of
        F - 1 degrees of freedom: a paired t-test where nothing overlaps.  Origins without a score,
        because nothing was observed after them, do not count.  The idea is that of
        Diebold and Mariano (1995); their estimate of the correlations, with the correction of
        Harvey, Leybourne and Newbold (1997), rejects too often with so few origins.

        Raises
        ------
        ValueError
            If the other is no backtest, or not of the same origins and observations, lower is not
            better in the score, or fewer than two origins have it.
        """
        if not isinstance(other, Backtest):
            raise ValueError(f"expected another Backtest to compare with, got {other!r}")
        if self.origins != other.origins or not self.forecasts["observed"].equals(
            other.forecasts["observed"]
        ):
            raise ValueError(
                f"expected backtests of the same origins and data, got {self.origins} of "
                f"{self.label} and {other.origins} of {other.label}"
            )
        if score not in (known := [*_LOWER_IS_BETTER, "seconds"]):
            raise ValueError(f"expected a score among {known} (less is better), got {score!r}")
        scored = (self.scores[score].notna() & other.scores[score].notna()).to_numpy()
        d = (self.scores[score] - other.scores[score]).to_numpy()[scored]
        count = len(d)
        if count < 2:
            raise ValueError(f"expected at least 2 origins with a score for a test, got {count}")
        origins = np.array(self.origins)[scored]
        R = np.maximum(1.0 - np.abs(origins[:, None] - origins) / self.horizon, 0.0)
        weights = np.linalg.solve(R, np.ones(count))
        rest = d - weights @ d / weights.sum()
        variance = float(rest @ np.linalg.solve(R, rest)) / (count - 1)
        standard_error = float(np.sqrt(variance * R.sum())) / count
        difference = float(d.mean())
        if standard_error == 0.0:
            return Comparison(score, difference, 0.0, float(difference == 0.0))
        p_value = 2.0 * student.sf(abs(difference) / standard_error, count - 1)
        return Comparison(score, difference, standard_error, float(p_value))

    def plot(self, *others: Backtest, score: str = "crps", ax: Axes | None = None) -> Axes:
        """Draw a score at every origin, beside that of other methods; see `plot_scores`."""
        from ..plotting import plot_scores

        return plot_scores([self, *others], score, ax)

    def _repr_html_(self) -> str:
        return self.scores.to_html(float_format="{:.3f}".format)


def backtest(
    frame: Tabular,
    method: str | Comparator,
    horizon: int,
    folds: int = 8,
    *,
    first: int | None = None,
    label: str | None = None,
    seed: int = 0,
    journal: str | Path | None = None,
    executor: Executor | None = None,
    progress: bool = True,
) -> Backtest:
    """Forecast from several origins in the past, and keep the forecasts beside what happened.

    Parameters
    ----------
    frame
        Rows are times, columns are series, NaN is missing.
    method
        A name among `lkm_gpflow.comparators.comparator_names()` ("lkm" is this package's model
        with its defaults), or a comparator with your own settings.
    horizon
        How many steps are forecast at every origin.
    folds
        How many origins; the last one has `horizon` rows after it, the others are spread evenly.
    first
        How many rows come before the first origin; by default half of the table.
    label
        What the method is called in tables and pictures; by default its name.
    seed
        The method's seed, the same at every origin.
    journal
        File that keeps the forecasts as they come; a backtest that was stopped continues from it.
    executor
        Runs the origins, for example `lkm_gpflow.process_pool()`; None: one by one in this
        process.  The result is the same.
    progress
        Whether to show a progress bar.

    Raises
    ------
    ValueError
        If the table or a setting is wrong, or the journal is of another backtest.
    OSError
        If the journal cannot be written.
    WorkersLost
        If the executor loses its workers for good; the text says how to go on.
    """
    check_executor(executor)
    table = Table.of(frame)
    origins = _origins(len(table.frame), horizon, folds, first)
    horizon, seed = int(horizon), whole_number(seed, "seed", 0)
    chosen = _comparator(method)
    header = {
        "method": _described(chosen), "horizon": horizon, "origins": origins, "seed": seed,
        "data": table.observations.fingerprint, "table": table.checksum,
    }  # fmt: skip
    path = None if journal is None else Path(journal)
    kept = Journal(path, "backtest", header)
    done = {record["origin"]: record for record in kept.records}
    missing = [origin for origin in origins if origin not in done]
    name = label or (method if isinstance(method, str) else type(method).__name__)
    with part_of(progress, name, len(missing)) as bar:
        jobs = {
            origin: partial(_forecast_from, table.frame, chosen, origin, horizon, seed)
            for origin in missing
        }
        with kept_in(journal, "journal"):
            for origin, record in run_all(jobs, executor, hear=bar.hear):
                done[origin] = record
                kept.append(record)
                bar.update()
    return _assemble(name, table.frame, horizon, [done[origin] for origin in origins])


def _comparator(method: object) -> Comparator:
    """Return a method by its name, or as it is given."""
    if isinstance(method, str):
        return comparator(method)
    if isinstance(method, type):
        raise ValueError(
            f"expected a comparator, got the class {method.__name__}: {method.__name__}() makes one"
        )
    if not callable(getattr(method, "fit", None)):
        raise ValueError(
            "expected the name of a comparator, such as 'drift', or an object with a method fit, "
            f"got {method!r}"
        )
    return cast(Comparator, method)


def _described(value: object) -> str:
    """Describe a method or a setting, without addresses: its text, or class and attributes."""
    kind = type(value)
    if kind.__repr__ is not object.__repr__ or not hasattr(value, "fit"):
        return _ADDRESS.sub("", repr(value))
    settings = [f"{name}={_described(each)}" for name, each in vars(value).items()]
    name = f"{kind.__module__}.{kind.__qualname__}"
    return f"{name}({', '.join(settings)})" if settings else name


def _origins(num_times: int, horizon: int, folds: int, first: int | None) -> tuple[int, ...]:
    """How many rows come before each forecast."""
    horizon, folds = whole_number(horizon, "a horizon", 1), whole_number(folds, "folds", 1)
    if horizon > (most := num_times - MIN_OBSERVED):
        raise ValueError(
            f"expected a horizon of 1 to {most} steps, because the table has {num_times} rows and "
            f"at least {MIN_OBSERVED} of them come before an origin, got {horizon}"
        )
    last = num_times - horizon
    first = min(num_times // 2, last) if first is None else whole_number(first, "first", 1)
    if not MIN_OBSERVED <= first <= last:
        raise ValueError(
            f"expected {MIN_OBSERVED} to {last} rows before the first origin (the table has "
            f"{num_times}, the horizon is {horizon}), got {first}"
        )
    if not 1 <= folds <= last - first + 1:
        raise ValueError(f"expected 1 to {last - first + 1} folds, got {folds}")
    # The last origin is always there.
    return tuple(round(o) for o in np.linspace(last, first, folds))[::-1]


def _forecast_from(
    frame: pd.DataFrame, method: Comparator, origin: int, horizon: int, seed: int
) -> dict[str, Any]:
    """Forecast from one origin, in JSON's types."""
    began = time.perf_counter()
    times = frame.index[origin : origin + horizon]
    # A copy, because methods may keep what they learn, and threads forecast at the same time.
    try:
        for name, column in frame.iloc[:origin].items():
            check_variation(name, column.dropna().to_numpy())  # scores are in its sd
        fitted = copy(method).fit(frame.iloc[:origin], seed=seed)
    except ValueError as error:
        raise ValueError(
            f"{type(method).__name__}, given the {origin} rows before the first forecast: {error} "
            "(`first` says where origins begin)"
        ) from error
    forecast = fitted.forecast(times)
    record: dict[str, Any] = {"origin": origin, "seconds": time.perf_counter() - began}
    try:
        told = matrices(forecast, times, frame.columns)
    except ValueError as error:
        raise ValueError(f"{type(method).__name__}, origin {origin}: {error}") from error
    return record | {name: values.T.tolist() for name, values in told.items()}


def _assemble(
    label: str, frame: pd.DataFrame, horizon: int, records: Sequence[dict[str, Any]]
) -> Backtest:
    forecasts, steps = {}, {}
    for record in records:
        origin = record["origin"]
        past, future = frame.iloc[:origin], frame.iloc[origin : origin + horizon]
        index = pd.MultiIndex.from_product([frame.columns, future.index], names=["series", "time"])
        columns = {
            "observed": future.to_numpy().T.ravel(),
            **{name: np.ravel(record[name]) for name in columns_of(record)},
            "scale": np.repeat(past.std(ddof=0).to_numpy(), horizon),
        }
        forecasts[origin] = pd.DataFrame(columns, index=index)
        steps[origin] = metrics.mean_steps(past.to_numpy()) / past.std(ddof=0)
    origins = tuple(forecasts)
    return Backtest(
        label,
        horizon,
        origins,
        pd.concat(forecasts, names=["origin"]),
        pd.concat(steps, names=["origin", "series"]),
        pd.Series({record["origin"]: record["seconds"] for record in records}),
    )

"""The benchmark: all methods on tables of six domains, two origins each.

Every forecast is a line of `results/benchmark.jsonl`; a run that was stopped goes on where it was.
"""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from scipy.stats import studentized_range, wilcoxon

from lkm_gpflow.comparators import Comparator, comparator
from lkm_gpflow.evaluation import metrics
from lkm_gpflow.evaluation.predictive import Predictive, columns_of, matrices
from lkm_gpflow.gp.types import Floats
from lkm_gpflow.plotting.style import (
    FAINT_COLOUR,
    FORECAST_COLOUR,
    HISTORY_COLOUR,
    new_axes,
    plain,
)

from . import RESULTS
from .bench_tables import benchmark_tables, load_table
from .journals import fill, opened

# --- what is compared ---

_LABELS = {
    "last-value": "last value",
    "drift": "drift",
    "seasonal-naive": "seasonal naive",
    "arima-110": "ARIMA(1,1,0)",
    "auto-arima": "AutoARIMA",
    "auto-ets": "AutoETS",
    "auto-theta": "AutoTheta",
    "auto-ces": "AutoCES",
    "mstl": "MSTL",
    "var": "VAR of differences",
    "ridge-var": "ridge VAR",
    "vecm": "VECM",
    "bayesian-var": "Bayesian VAR",
    "dynamic-factor": "dynamic factors",
    "unobserved-components": "unobserved components",
    "prophet": "Prophet",
    "gp-fixed": "GP, one fixed kernel",
    "lkm": "lkm (default)",
}
METHODS = tuple(_LABELS)
RIVALS = METHODS[:-1]
MEDIAN = "median"
"""The median of the rivals' means and of their sds, cell by cell."""

LABELS = {**_LABELS, MEDIAN: "median of rivals"}

ORIGINS = (1, 2)
"""Origin 1 forecasts the last rows of a table, origin 2 those before them."""

_DIGITS = 5
"""Significant digits of forecasts in the journal, as z-scores of the training rows."""

_FAILED = (ValueError, ArithmeticError, RuntimeError, LookupError, TypeError)
"""What methods and their libraries raise where a table is too much for them, or `matrices` where
their forecast is none."""


def method_of(name: str, season: int) -> Comparator:
    """Return a method of the benchmark, told the season if it takes one."""
    from .rivals import FITS, Rival  # TensorFlow takes seconds

    if name in FITS:
        return Rival(name, season)
    return comparator(name, season=season) if name == "seasonal-naive" else comparator(name)


@dataclass(frozen=True)
class Window:
    """What a method is given, and what it is to forecast; scores are in training sds."""

    table: str
    domain: str
    origin: int
    season: int
    train: pd.DataFrame
    test: pd.DataFrame

    @property
    def location(self) -> pd.Series:
        """Mean of every series before the origin."""
        return self.train.mean()

    @property
    def scale(self) -> pd.Series:
        """Standard deviation of every series before the origin."""
        return self.train.std(ddof=1)


@cache
def window(table: str, origin: int) -> Window:
    """Cut one window."""
    if table not in benchmark_tables():
        raise ValueError(f"expected a table of the benchmark, got {table!r}")
    if origin not in ORIGINS:
        raise ValueError(f"expected an origin among {ORIGINS}, got {origin!r}")
    entry, frame = benchmark_tables()[table], load_table(table)
    end = len(frame) - (origin - 1) * entry.horizon
    train, test = frame.iloc[: end - entry.horizon], frame.iloc[end - entry.horizon : end]
    return Window(table, entry.domain, origin, entry.season, train, test)


# --- running ---


def run(
    methods: Sequence[str],
    tables: Sequence[str],
    results: Path = RESULTS,
    *,
    origins: Sequence[int] = ORIGINS,
    executor: Executor | None = None,
) -> None:
    """Forecast the windows that the journal does not have, of the tables as they are now.

    A method that failed is not tried again: delete its line from the journal to do so.
    """
    if unknown := [method for method in methods if method not in METHODS]:
        raise ValueError(f"expected methods among {', '.join(METHODS)}, got {unknown}")
    done = {
        (method, record["table"], record["origin"])
        for method, kept in records(results, methods).items()
        for record in kept
    }
    jobs = {
        key: partial(forecast_window, *key)
        for method in methods
        for table in tables
        for origin in origins
        if (key := (method, table, origin)) not in done
    }
    fill(_journal(results), jobs, executor, "window")


def _journal(results: Path) -> Any:
    return opened(results, "benchmark", {"seed": 0})


def forecast_window(method: str, table: str, origin: int) -> dict[str, Any]:
    """Forecast one window, in JSON's types; see `forecast`."""
    cut = window(table, origin)
    return {"method": method, **forecast(method_of(method, cut.season), cut)}


def forecast(method: Comparator, cut: Window, seed: int = 0) -> dict[str, Any]:
    """Forecast a window.

    Returns
    -------
    ``mean`` and ``sd``, [N, M] each, as z-scores of the training rows; of lognormal forecasts also
    ``log_mean`` and ``log_sd``, of values divided by the scale, of Student-t ones ``degrees`` of
    freedom; ``seconds`` and ``processor_seconds``, those of processes that the method starts
    included; the ``data`` it was given (the table's SHA-256).  A method that fails, or whose
    forecast `matrices` refuses, has ``error`` instead of a forecast.
    """
    record: dict[str, Any] = {
        "table": cut.table, "origin": cut.origin, "data": _checksum(cut.table),
    }  # fmt: skip
    began, processor_began = time.perf_counter(), _processor()
    try:
        moments = method.fit(cut.train, seed=seed).forecast(cut.test.index)
        told = matrices(moments, cut.test.index, cut.test.columns)
    except _FAILED as error:
        return {**record, "error": f"{type(error).__name__}: {error}"[:200]}
    record["seconds"] = round(time.perf_counter() - began, 2)
    record["processor_seconds"] = round(_processor() - processor_began, 2)
    scaled = Predictive.of(told).divided_by(cut.scale.to_numpy())
    columns = {**vars(scaled), "mean": scaled.mean - (cut.location / cut.scale).to_numpy()}
    for name in told:
        record[name] = [[float(f"{x:.{_DIGITS}g}") for x in row] for row in columns[name].T]
    return record


def _processor() -> float:
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def _checksum(table: str) -> str | None:
    """Beginning of a table's SHA-256; None if there is no such table any more."""
    known = benchmark_tables().get(table)
    return None if known is None else known.sha256[:12]


def records(
    results: Path = RESULTS, methods: Iterable[str] = METHODS
) -> dict[str, list[dict[str, Any]]]:
    """Return the last record of every window, by method; those of other data are left out."""
    found: dict[str, dict[tuple[str, int], dict[str, Any]]] = {method: {} for method in methods}
    for record in _journal(results).records:
        if record["method"] in found and record["data"] == _checksum(record["table"]):
            found[record["method"]][record["table"], record["origin"]] = record
    return {method: list(kept.values()) for method, kept in found.items() if kept}


# --- scores ---

COLUMNS = ("crps", "mnlp", "rmse", "coverage90")


def score_window(cut: Window, told: Mapping[str, Floats]) -> dict[str, float]:
    """Score a forecast as the benchmark's protocol has it.

    Values are divided by the training standard deviation of their series.  Scores are averaged over
    the observed cells of a series, then over series; the RMSE of a series is the root of the mean.
    `told` is as `forecast` returns it.
    """
    z_scores = ((cut.test - cut.location) / cut.scale).to_numpy().T
    seen = np.isfinite(z_scores).any(axis=1)
    location = (cut.location / cut.scale).to_numpy()[seen, None]
    observed = z_scores[seen] + location
    own = {name: values[seen] for name, values in told.items()}
    moments = Predictive.of({**own, "mean": own["mean"] + location})
    metrics.score(observed, moments.mean, moments.sd)  # or say what is wrong with it
    inside = np.where(np.isnan(observed), np.nan, moments.inside(observed, 0.9))
    squared_error = np.square(observed - moments.mean)
    cells = [moments.crps(observed), moments.nlpd(observed), squared_error, inside]
    by_series = np.nanmean(cells, axis=2)
    by_series[2] = np.sqrt(by_series[2])
    return dict(zip(COLUMNS, map(float, by_series.mean(axis=1)), strict=True))


def scores(journals: Mapping[str, Sequence[Mapping[str, Any]]]) -> pd.DataFrame:
    """Score everything that is in `records`, and the median of the rivals.

    Returns
    -------
    Rows (table, origin, method); columns domain, `COLUMNS`, seconds, processor_seconds.  Windows
    that a method failed at are not among them, and the median is of the rivals that did not.
    """
    rows, rivals = [], dict[tuple[str, int], list[tuple[Floats, Floats]]]()
    for method, kept in journals.items():
        for record in kept:
            if "error" in record:
                continue
            key = (record["table"], record["origin"])
            told = {name: np.array(record[name]) for name in columns_of(record)}
            times = {name: record[name] for name in ("seconds", "processor_seconds")}
            rows.append(_row(window(*key), method, told) | times)
            if method in RIVALS:
                rivals.setdefault(key, []).append((told["mean"], told["sd"]))
    for key, moments in rivals.items():
        if len(moments) > 1:
            mean, sd = (np.median(each, axis=0) for each in zip(*moments, strict=True))
            rows.append(_row(window(*key), MEDIAN, {"mean": mean, "sd": sd}))
    return pd.DataFrame(rows).set_index(["table", "origin", "method"])


def _row(cut: Window, method: str, told: Mapping[str, Floats]) -> dict[str, Any]:
    names = {"table": cut.table, "origin": cut.origin, "method": method, "domain": cut.domain}
    return names | score_window(cut, told)


def failures(journals: Mapping[str, Sequence[Mapping[str, Any]]]) -> pd.Series:
    """What methods failed with, by (method, table, origin)."""
    found = {
        (method, record["table"], record["origin"]): record["error"]
        for method, kept in journals.items()
        for record in kept
        if "error" in record
    }
    return pd.Series(found, dtype=object)


# --- comparisons: a table, not a window or a cell, is the unit ---

ALL = "all"
"""The row of all domains."""


def by_table(scores: pd.DataFrame, score: str) -> pd.DataFrame:
    """Average a score over the origins of a table: rows tables, columns methods.

    NaN where a method lacks an origin that others have.
    """
    wide = scores[score].unstack("method")
    counts = wide.groupby("table").count()
    return wide.groupby("table").mean().where(counts.eq(counts.max(axis=1), axis=0))


def ratios(scores: pd.DataFrame, reference: str, score: str = "crps") -> pd.DataFrame:
    """Geometric means of ratios to a reference, by domain and over all tables.

    Ratios are formed window by window; tables count alike.  Windows that a method lacks, for
    example because it failed there, do not count for any: they may be the hard ones.

    Returns
    -------
    Rows domains and `ALL`, columns methods, and ``tables``: how many have windows that count.
    """
    wide = scores[score].unstack("method").dropna().apply(np.log)
    logs = wide.sub(wide[reference], axis=0).groupby("table").mean()
    domains = scores["domain"].groupby("table").first()
    means = logs.groupby(domains).mean()
    means.loc[ALL] = logs.mean()
    counts = logs[reference].groupby(domains).count()
    counts.loc[ALL] = logs[reference].count()
    return means.apply(np.exp).assign(tables=counts)


def ranks(table_scores: pd.DataFrame) -> pd.Series:
    """Average rank of each method over the tables that all of them have; the best first."""
    return table_scores.dropna().rank(axis=1).mean().sort_values()


def critical_difference(num_methods: int, num_tables: int, level: float = 0.05) -> float:
    r"""Difference of average ranks that chance exceeds with probability `level` (Nemenyi's test).

    .. math:: q_\alpha \sqrt{k (k + 1) / (6 n)}

    for k methods and n tables, :math:`q_\alpha` a quantile of the studentised range over
    :math:`\sqrt 2` (Demšar 2006, *Statistical comparisons of classifiers*).
    """
    quantile = float(studentized_range.ppf(1.0 - level, num_methods, np.inf)) / np.sqrt(2.0)
    return quantile * float(np.sqrt(num_methods * (num_methods + 1) / (6.0 * num_tables)))


def paired(table_scores: pd.DataFrame, method: str, others: Sequence[str] = ()) -> pd.DataFrame:
    """Compare a method with others (by default all), on logarithms of ratios of positive scores.

    Returns
    -------
    Rows the others; ``ratio`` (geometric mean), ``lower`` and ``upper`` (its 95% bootstrap interval
    over tables), ``better`` (share of tables), ``p`` (Wilcoxon's signed rank test, two-sided), and
    ``tables``.  Where no table has both all but the last is missing.
    """
    rows: dict[str, dict[str, float]] = {}
    for other in others or [str(name) for name in table_scores if name != method]:
        pairs = table_scores[[method, other]].dropna()
        if pairs.empty:
            nothing = dict.fromkeys(["ratio", "lower", "upper", "better", "p"], np.nan)
            rows[other] = {**nothing, "tables": 0}
            continue
        logs: Floats = np.log((pairs[method] / pairs[other]).to_numpy(np.float64))
        draws = np.random.default_rng(0).integers(0, len(logs), (2000, len(logs)))
        lower, upper = np.exp(np.quantile(logs[draws].mean(axis=1), [0.025, 0.975]))
        rows[other] = {
            "ratio": float(np.exp(logs.mean())),
            "lower": lower,
            "upper": upper,
            "better": float(np.mean(logs < 0.0)),
            "p": wilcoxon(logs).pvalue if np.any(logs != 0.0) else 1.0,
            "tables": len(logs),
        }
    return pd.DataFrame(rows).T


def in_words(pairs: pd.DataFrame) -> str:
    """Say how far CRPS of ours is below that of others, from `paired`, and what may be chance."""
    lower = 100.0 * (1.0 - pairs["ratio"][pairs["ratio"] < 1.0])
    chance = ", ".join(map(str, pairs.index[pairs["p"] > 0.05])) or "none"
    return (
        f"On these {pairs['tables'].max():.0f} tables our CRPS is lower than that of {len(lower)} "
        f"of {len(pairs)} others, by {lower.min():.0f} to {lower.max():.0f} per cent. Differences "
        f"that chance alone could make (p > 0.05): {chance}."
    )


def confidence_set(table_scores: pd.DataFrame, level: float = 0.1) -> list[str]:
    """Return the methods that may be the best, by the model confidence set of Hansen et al. 2011.

    Losses are logarithms of scores; tables that a method lacks are left out, the others are drawn
    with replacement.  `level` is the probability that the best method is not in the set.

    Raises
    ------
    ValueError
        If there is no table that all methods have.
    """
    from arch.bootstrap import MCS  # optional

    losses = table_scores.dropna().apply(np.log)
    if losses.empty:
        raise ValueError(
            f"expected a table that all of {', '.join(map(str, table_scores))} have, got none "
            f"among {len(table_scores)}"
        )
    # Of methods that tie everywhere one is tested, and the others share its fate.
    first = {name: next(n for n in losses if losses[n].equals(losses[name])) for name in losses}
    different = losses[list(dict.fromkeys(first.values()))]
    if different.shape[1] == 1:
        return [str(name) for name in losses]
    chosen = MCS(different, size=level, reps=2000, block_size=1, seed=0)
    chosen.compute()
    return [str(name) for best in chosen.included for name in losses if first[name] == best]


def plot_ranks(
    average_ranks: pd.Series, width: float, ours: Collection[str] = (), ax: Axes | None = None
) -> Axes:
    """Draw the average rank of every method, the best on top, `ours` in another colour.

    Methods inside the band differ from the best by less than its width, the critical difference.
    """
    ordered = average_ranks.sort_values(ascending=False)
    ax = new_axes((7.0, 0.9 + 0.27 * len(ordered))) if ax is None else ax
    best = float(ordered.iloc[-1])
    ax.axvspan(best, best + width, color=FAINT_COLOUR, alpha=0.35, linewidth=0)
    places = np.arange(len(ordered))
    colours = [FORECAST_COLOUR if name in ours else HISTORY_COLOUR for name in ordered.index]
    ax.hlines(places, 1.0, ordered, color=FAINT_COLOUR, linewidth=0.8)
    ax.scatter(ordered, places, color=colours, zorder=3)
    ax.set_yticks(places, [plain(str(name)) for name in ordered.index])
    ax.set_xlim(1.0, max(float(ordered.max()), best + width) + 0.4)
    ax.set_xlabel("average rank (band: within the critical difference of the best)")
    return ax

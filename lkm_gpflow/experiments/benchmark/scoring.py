"""Scores of the forecasts in the journals: one row per window and method."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
import pandas as pd

from ...evaluation import metrics
from ...evaluation.predictive import Predictive, columns_of
from ...gp.types import Floats
from .methods import MEDIAN, RIVALS
from .windows import Window, window

COLUMNS = ("crps", "mnlp", "rmse", "coverage90")


def score_window(cut: Window, told: Mapping[str, Floats]) -> dict[str, float]:
    """Score a forecast as the benchmark's protocol has it.

    Values are divided by the training standard deviation of their series.  Scores are averaged over
    the observed cells of a series, then over series; the RMSE of a series is the root of the mean.

    Parameters
    ----------
    cut
        The window.
    told
        ``mean`` and ``sd`` as z-scores of the training rows, [N, M] each; of lognormal forecasts
        also ``log_mean`` and ``log_sd``, of values divided by the scale; of Student-t ones
        also ``degrees`` of freedom.
    """
    z_scores = ((cut.test - cut.location) / cut.scale).to_numpy().T
    seen = np.isfinite(z_scores).any(axis=1)
    location = (cut.location / cut.scale).to_numpy()[seen, None]
    observed = z_scores[seen] + location
    own = {name: values[seen] for name, values in told.items()}
    forecast = Predictive.of({**own, "mean": own["mean"] + location})
    metrics.score(observed, forecast.mean, forecast.sd)  # or say what is wrong with it
    inside = np.where(np.isnan(observed), np.nan, forecast.inside(observed, 0.9))
    squared_error = np.square(observed - forecast.mean)
    cells = [forecast.crps(observed), forecast.nlpd(observed), squared_error, inside]
    by_series = np.nanmean(cells, axis=2)
    by_series[2] = np.sqrt(by_series[2])
    return dict(zip(COLUMNS, map(float, by_series.mean(axis=1)), strict=True))


def scores(journals: Mapping[str, Sequence[Mapping[str, Any]]]) -> pd.DataFrame:
    """Score everything that is in the journals, and the median of the rivals.

    Parameters
    ----------
    journals
        Records by method, see `runs.records`.

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
            cut = _window(*key)
            told = {name: np.array(record[name]) for name in columns_of(record)}
            times = {name: record[name] for name in ("seconds", "processor_seconds")}
            rows.append(_row(cut, method, told) | times)
            if method in RIVALS:
                rivals.setdefault(key, []).append((told["mean"], told["sd"]))
    for key, moments in rivals.items():
        if len(moments) > 1:
            mean, sd = (np.median(each, axis=0) for each in zip(*moments, strict=True))
            rows.append(_row(_window(*key), MEDIAN, {"mean": mean, "sd": sd}))
    return pd.DataFrame(rows).set_index(["table", "origin", "method"])


def failures(journals: Mapping[str, Sequence[Mapping[str, Any]]]) -> pd.Series:
    """What methods failed with, by (method, table, origin)."""
    found = {
        (method, record["table"], record["origin"]): record["error"]
        for method, kept in journals.items()
        for record in kept
        if "error" in record
    }
    return pd.Series(found, dtype=object)


def _row(cut: Window, method: str, told: Mapping[str, Floats]) -> dict[str, Any]:
    names = {"table": cut.table, "origin": cut.origin, "method": method, "domain": cut.domain}
    return names | score_window(cut, told)


@cache
def _window(table: str, origin: int) -> Window:
    return window(table, origin)

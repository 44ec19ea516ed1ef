"""Scores of the forecasts in the journals: one row per window and method."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
import pandas as pd

from ...evaluation import metrics
from ...numerics.types import Floats
from .methods import MEDIAN, RIVALS
from .windows import Window, window

COLUMNS = ("crps", "mnlp", "rmse", "coverage90")


def score_window(cut: Window, mean: Floats, sd: Floats) -> dict[str, float]:
    """Score a forecast as the benchmark's protocol has it.

    Values are divided by the training standard deviation of their series.  Scores are averaged over
    the observed cells of a series, then over series; the RMSE of a series is the root of the mean.

    Parameters
    ----------
    cut
        The window.
    mean, sd
        As z-scores of the training rows, [N, M].
    """
    observed = ((cut.test - cut.location) / cut.scale).to_numpy().T
    rows = []
    for y, m, s in zip(observed, mean, sd, strict=True):
        if np.any(np.isfinite(y)):
            each = metrics.score(y[:, None], m[:, None], s[:, None])
            rows.append([each.crps, each.mnlp, each.rmse, each.coverage90])
    return dict(zip(COLUMNS, map(float, np.mean(rows, axis=0)), strict=True))


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
            mean, sd = np.array(record["mean"]), np.array(record["sd"])
            times = {name: record[name] for name in ("seconds", "processor_seconds")}
            rows.append(_row(cut, method, mean, sd) | times)
            if method in RIVALS:
                rivals.setdefault(key, []).append((mean, sd))
    for key, moments in rivals.items():
        if len(moments) > 1:
            mean, sd = (np.median(each, axis=0) for each in zip(*moments, strict=True))
            rows.append(_row(_window(*key), MEDIAN, mean, sd))
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


def _row(cut: Window, method: str, mean: Floats, sd: Floats) -> dict[str, Any]:
    names = {"table": cut.table, "origin": cut.origin, "method": method, "domain": cut.domain}
    return names | score_window(cut, mean, sd)


@cache
def _window(table: str, origin: int) -> Window:
    return window(table, origin)

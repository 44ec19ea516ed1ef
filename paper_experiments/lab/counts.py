"""Counts, shares and spikes among the benchmark's tables: what likelihoods of values are worth.

The rule was written down before anything ran.  A table counts by the rows before origin 2 if some
series has only whole numbers from zero on, and one of at most `SINGLE_DIGITS`; or lies between 0
and 1, or 0 and 100, and comes within `EDGE` of the upper bound; or has a value more than `FAR`
robust standard deviations from the median of its five neighbours.  Series are intermittent if two
values that are not zero are `APART` steps apart in the mean (Syntetos and Boylan 2005).
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from lkm_gpflow.comparators.latent import DiscoveryForecast
from lkm_gpflow.comparators.protocol import PROBABILITIES, library
from lkm_gpflow.discovery.discover import discover
from lkm_gpflow.evaluation.predictive import QUANTILES, Predictive, matrices
from lkm_gpflow.gp.types import Floats

from . import RESULTS
from .bench_tables import benchmark_tables
from .benchmark import Window, window
from .journals import fill, opened

SINGLE_DIGITS, EDGE, FAR, APART = 9.0, 0.02, 10.0, 1.32

OURS = ("auto", "gaussian", "scaled")
"""Values of the keyword ``likelihood`` of `lkm_gpflow.discover`."""

RIVALS = ("CrostonSBA", "TSB", "IMAPA")
"""Methods of statsforecast for intermittent demand, with its conformal intervals."""


def why(y: Floats) -> str:
    """Return what the rule says of a series: "counts", "shares", "spikes", or nothing."""
    y = y[np.isfinite(y)]
    is_whole, low, high = bool(np.all(y == np.round(y))), y.min(), y.max()
    if is_whole and 0.0 <= low <= SINGLE_DIGITS:
        return "counts"
    if low >= 0.0 and any(bound * (1.0 - EDGE) <= high <= bound for bound in (1.0, 100.0)):
        return "shares"
    off = y - pd.Series(y).rolling(5, center=True, min_periods=3).median().to_numpy()
    spread = 1.4826 * np.median(np.abs(off[off != 0.0])) if np.any(off) else np.inf
    return "spikes" if np.max(np.abs(off)) > FAR * spread else ""


def chosen() -> dict[str, list[str]]:
    """Return what the rule says of every series, by table, of the tables that count."""
    found = {}
    for name in benchmark_tables():
        train = window(name, 2).train
        told = [why(train.iloc[:, n].to_numpy()) for n in range(train.shape[1])]
        if any(told):
            found[name] = told
    return found


def is_intermittent(train: pd.DataFrame) -> list[bool]:
    """Which series are."""
    return [(train[name].dropna() != 0.0).mean() < 1.0 / APART for name in train]


def run(
    methods: Sequence[str],
    tables: Sequence[str] = (),
    origins: Sequence[int] = (1, 2),
    results: Path = RESULTS,
    executor: Executor | None = None,
) -> pd.DataFrame:
    """Score the windows that the journal does not have; return a row for each series."""
    kept = opened(results, "counts", {"seed": 0})
    done = {(r["method"], r["table"], r["origin"]) for r in kept.records}
    jobs = {
        key: partial(_scored, *key)
        for origin in origins
        for table in tables or chosen()
        for method in methods
        if (key := (method, table, origin)) not in done
        and (method in OURS or any(is_intermittent(window(table, origin).train)))
    }
    records = fill(kept, jobs, executor, "window")
    return pd.DataFrame([{**r, **row} for r in records for row in r["series"]]).drop(
        columns="series"
    )


def _scored(method: str, table: str, origin: int) -> dict[str, Any]:
    """Forecast a window; scores of every series, CRPS in its training standard deviation.

    ``negative`` and ``beyond`` are how many ends of 90% intervals are below zero where the rule
    says counts or shares, and above the bound of shares.
    """
    cut = window(table, origin)
    told, ends = (_ours if method in OURS else _rival)(method, cut)
    y, scale = cut.test.to_numpy(), cut.scale.to_numpy()
    columns = matrices(told, cut.test.index, cut.test.columns)
    found = Predictive.of(columns)
    crps, inside = found.crps(y), found.inside(y, 0.9)
    rows = []
    for n, name in enumerate(cut.test):
        seen, what = np.isfinite(y[:, n]), why(cut.train[name].to_numpy())
        low, high = ends[:, :, n]
        upper = np.inf if what != "shares" else 1.0 if cut.train[name].max() <= 1.0 else 100.0
        rows.append({
            "name": str(name), "rule": what, "crps": float(crps[seen, n].mean() / scale[n]),
            "coverage90": float(inside[seen, n].mean()), "cells": int(seen.sum()),
            "negative": int((low < 0.0).sum()) if what in ("counts", "shares") else 0,
            "beyond": int((high > upper).sum()),
            "intermittent": bool(is_intermittent(cut.train)[n]),
        })  # fmt: skip
    return {"method": method, "table": table, "origin": origin, "series": rows}


def _ours(likelihood: str, cut: Window) -> tuple[pd.DataFrame, Floats]:
    found = discover(cut.train, likelihood=likelihood, progress=False)  # type: ignore[arg-type]
    ends = found.predict(cut.test.index)[["lower", "upper"]].to_numpy()
    shape = (cut.test.shape[1], len(cut.test), 2)
    return DiscoveryForecast(found).forecast(cut.test.index), ends.reshape(shape).transpose(2, 1, 0)


def _rival(method: str, cut: Window) -> tuple[pd.DataFrame, Floats]:
    """Forecast every series by a method of statsforecast; quantiles are conformal."""
    models = library("statsforecast.models")
    utils = library("statsforecast.utils")
    parts, horizon = {}, len(cut.test)
    settings = {"TSB": {"alpha_d": 0.1, "alpha_p": 0.1}}.get(method, {})
    levels = [round(200.0 * (p - 0.5), 6) for p in PROBABILITIES if p > 0.5]
    for name, y in cut.train.items():
        windows = utils.ConformalIntervals(n_windows=4, h=horizon)
        model = getattr(models, method)(**settings, prediction_intervals=windows)
        values = y.interpolate(limit_direction="both").to_numpy()
        told = model.forecast(y=values, h=horizon, level=levels)
        upper = [told[f"hi-{level}"] for level in levels]
        lower = [told[f"lo-{level}"] for level in reversed(levels)]
        quantiles = np.array([*lower, told["mean"], *upper])
        sd = np.maximum(quantiles.std(axis=0), 1e-6)
        columns = dict(zip(QUANTILES, quantiles, strict=True))
        parts[name] = pd.DataFrame({"mean": told["mean"], "sd": sd, **columns}, cut.test.index)
    frame = pd.concat(parts, names=["series", "time"])
    low, high = (frame[f"q{p}"].to_numpy().reshape(-1, horizon).T for p in (0.05, 0.95))
    return frame, np.array([low, high])

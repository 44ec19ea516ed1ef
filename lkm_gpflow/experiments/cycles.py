"""Whether what reports say of planted cycles is true, and how many cycles they miss."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from ..discovery.cycles import longest_period
from ..discovery.discover import discover
from ..kernels.grammar import parse
from ..learning.engine import components
from ..learning.initialization import walks_begin
from ..numerics.types import Integers

FORMS = ("strict", "approximate", "of changing height")
"""Of the cycles, in turn."""

_TIMES, _SERIES = 120, 4

_HAVE = 0.6
"""Probability that a series has the cycle, or the slow component."""

_RIGHT = 0.1
"""Periods that are said may be wrong by this share."""


def plant(seed: int) -> tuple[pd.DataFrame, Integers, float]:
    """Plant a cycle and something slow, with heights that differ by series.

    Returns
    -------
    The table, who has the cycle (zeros and ones, [N]), and its period in steps.
    """
    rng = np.random.default_rng((77, seed))
    x = np.linspace(0.0, 1.0, _TIMES)
    steps = float(np.exp(rng.uniform(np.log(7.0), np.log(24.0))))
    period, shape = steps / (_TIMES - 1), np.exp(rng.uniform(np.log(0.7), np.log(1.8)))
    walk = f"RW(start={walks_begin(x)})"
    cycle = f"1.0 x PER(period={period}, lengthscale={shape})"
    form = FORMS[seed % len(FORMS)]
    if form == "approximate":
        cycle += f" x SE(lengthscale={period * rng.uniform(1.0, 3.0)})"
    elif form == "of changing height":
        cycle += f" x {walk}"
    slow = (f"1.0 x {walk}", f"1.0 x SE(lengthscale={rng.uniform(0.03, 0.2)})")[rng.integers(2)]
    C = components([parse(cycle), parse(slow)], x)
    C /= np.trace(C, axis1=1, axis2=2)[:, None, None] / _TIMES
    Z = rng.uniform(size=(_SERIES, 2)) < _HAVE
    columns = []
    for row in Z:
        heights = row * np.exp(0.5 * rng.normal(size=2))
        V = np.tensordot(heights, C, 1) + rng.uniform(0.02, 0.3) * np.eye(_TIMES)
        columns.append(np.linalg.cholesky(V) @ rng.normal(size=_TIMES))
    names = [f"series {n + 1}" for n in range(_SERIES)]
    return pd.DataFrame(np.column_stack(columns), columns=names), Z[:, 0].astype(np.int32), steps


def report_on(seed: int) -> dict[str, Any]:
    """Discover a planted table with the defaults, and note what its report says of cycles.

    Returns
    -------
    In JSON's types: ``seed``, ``form`` and ``period`` of what was planted, and for each series
    whether it ``has`` it, and the period in steps of the cycle that the report says it has by a
    ``component`` that is certain, or by a ``cycle`` of any form; None where it says nothing.
    """
    frame, has, period = plant(seed)
    report = discover(frame, seed=seed, progress=False).report()
    by_component, by_cycle = {}, {}
    for each in report.components:
        if own := longest_period(parse(each.kernel)):
            by_component.update(dict.fromkeys(each.owners, own))
    for cycle in report.cycles:
        by_cycle.update(dict.fromkeys(cycle.owners, float(cycle.duration)))
    return {
        "seed": seed,
        "form": FORMS[seed % len(FORMS)],
        "period": period,
        "has": has.tolist(),
        "component": [by_component.get(name) for name in frame.columns],
        "cycle": [by_cycle.get(name) for name in frame.columns],
    }


def summary(records: Sequence[dict[str, Any]]) -> pd.DataFrame:
    """Count statements, and those that are true, a row for each form and one for all.

    Returns
    -------
    DataFrame with columns ``tables``; ``planted``, series that have a cycle; ``told``, those of
    them that a report says have one; ``by component``, those told by a component alone; ``said``,
    statements about cycles of any form; ``true``, those of series that have one, with its period.
    """
    forms = {form: [r for r in records if r["form"] == form] for form in FORMS}
    return pd.DataFrame.from_dict(
        {form: _counts(own) for form, own in {**forms, "all": records}.items()}, orient="index"
    )


def _counts(records: Sequence[dict[str, Any]]) -> dict[str, int]:
    cells = [
        (bool(has), component, cycle, record["period"])
        for record in records
        for has, component, cycle in zip(
            record["has"], record["component"], record["cycle"], strict=True
        )
    ]
    said = [(has, cycle, period) for has, _, cycle, period in cells if cycle is not None]
    return {
        "tables": len(records),
        "planted": sum(has for has, *_ in cells),
        "told": sum(has and not (a is None and b is None) for has, a, b, _ in cells),
        "by component": sum(has and a is not None for has, a, *_ in cells),
        "said": len(said),
        "true": sum(has and abs(cycle / period - 1.0) < _RIGHT for has, cycle, period in said),
    }

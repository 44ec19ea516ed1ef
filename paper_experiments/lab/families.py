"""Whether what reports say of planted families is true, and what they miss."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from functools import partial
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pandas as pd

from lkm_gpflow.discovery.discover import discover
from lkm_gpflow.discovery.result import Discovery
from lkm_gpflow.kernels.grammar import parse
from lkm_gpflow.sharing.cycles import longest_period
from lkm_gpflow.sharing.families import Kind, are_slow

from . import RESULTS
from .journals import fill, opened
from .planted import FORMS, cycle_and_drift

_RIGHT = 0.1
"""Periods that are said may be wrong by this share."""


def report_on(seed: int) -> dict[str, Any]:
    """Discover a planted table with the defaults, and note what its report says.

    Returns
    -------
    In JSON's types: ``seed``; ``form`` and ``period`` of the planted cycle, and whether the other
    component ``is_slow``; and for each kind of family, by its name, what is said of each series:
    whether it ``has`` one, and what the report says that it has by a ``component`` that is
    certain, or by the ``family``: the period in steps of a cycle, true of others; None where it
    says nothing.  Of all ``families``, told or not: kind, ``period`` of a cycle (the mean
    of its components), and the ``probabilities`` of the series.
    """
    planted = cycle_and_drift(seed)
    x = np.linspace(0.0, 1.0, len(planted.frame))
    period = longest_period(planted.kernels[0]) * (len(x) - 1)
    found = discover(planted.frame, seed=seed, progress=False)
    report, names = found.report(), planted.frame.columns
    by_component: dict[Kind, dict[str, Any]] = {kind: {} for kind in get_args(Kind)}
    by_family: dict[Kind, dict[str, Any]] = {kind: {} for kind in get_args(Kind)}
    slow = are_slow(found.consensus.kernels, found.table.observations.x)
    for each, is_slow in zip(report.components, slow, strict=True):
        by_component["pattern"].update(dict.fromkeys(each.owners, True))
        if own := longest_period(parse(each.kernel)):
            by_component["cycle"].update(dict.fromkeys(each.owners, own))
        if is_slow:
            by_component["slow movement"].update(dict.fromkeys(each.owners, True))
    for family in report.families:
        said = float(family.duration) if family.kind == "cycle" else True
        by_family[family.kind].update(dict.fromkeys(family.owners, said))
    has = {"cycle": planted.Z[:, 0], "slow movement": planted.Z[:, 1], "pattern": planted.Z.any(1)}
    return {
        "seed": seed,
        "form": FORMS[seed % len(FORMS)],
        "period": period,
        "is_slow": bool(are_slow(planted.kernels, x)[1]),
        **{
            kind: {
                "has": has[kind].astype(int).tolist(),
                "component": [by_component[kind].get(name) for name in names],
                "family": [by_family[kind].get(name) for name in names],
            }
            for kind in get_args(Kind)
        },
        "families": [
            {
                "kind": family.kind,
                "period": _mean_period(found, family.members) if family.kind == "cycle" else None,
                "probabilities": found.consensus.probabilities_of(family).round(6).tolist(),
            }
            for family in found.consensus.families
        ],
    }


def _mean_period(found: Discovery, members: Sequence[int]) -> float:
    return float(np.mean([longest_period(found.kernels[k]) for k in members]))


def summary(records: Sequence[dict[str, Any]]) -> pd.DataFrame:
    """Count statements, and those that are true, by form of cycle, and of other families.

    Returns
    -------
    DataFrame with columns ``tables``; ``planted``, series that have a cycle (or what it is);
    ``told``, those of them that a report says have one; ``by component``, those told by a
    component alone; ``said``, statements about families; ``true``, those of series that have one,
    with the period of the planted one.
    """
    rows = {form: _counts([r for r in records if r["form"] == form], "cycle") for form in FORMS}
    rows |= {f"{kind}s": _counts(records, kind) for kind in get_args(Kind)}
    return pd.DataFrame.from_dict(rows, orient="index")


def _counts(records: Sequence[dict[str, Any]], kind: Kind) -> dict[str, int]:
    cells = [cell for record in records for cell in _cells(record, kind)]
    said = [(has, is_right) for has, _, family, is_right in cells if family is not None]
    return {
        "tables": len(records),
        "planted": sum(has for has, *_ in cells),
        "told": sum(has and not (a is None and b is None) for has, a, b, _ in cells),
        "by component": sum(has and a is not None for has, a, *_ in cells),
        "said": len(said),
        "true": sum(has and is_right for has, is_right in said),
    }


def _cells(record: dict[str, Any], kind: Kind) -> Iterator[tuple[bool, Any, Any, bool]]:
    """Yield for each series: has it, told by a component, by the family, with the right period."""
    own = record[kind]
    for has, component, family in zip(own["has"], own["component"], own["family"], strict=True):
        if kind == "cycle":
            yield bool(has), component, family, family is not None and _is_right(family, record)
        else:
            yield bool(has and (record["is_slow"] or kind == "pattern")), component, family, True


def stated(records: Sequence[dict[str, Any]]) -> pd.DataFrame:
    """Return every probability that a series has a family, and whether it has what was planted.

    What is nearly slow in a table is neither true nor false: its slow movements are left out.

    Returns
    -------
    DataFrame with columns ``kind``, ``probability`` and ``is_true``; a cycle is true if it has the
    period of the planted one.
    """
    rows = [
        (family["kind"], float(p), bool(has) and _is_right(family["period"], record))
        for record in records
        for family in record["families"]
        if family["kind"] != "slow movement" or record["is_slow"]
        for p, has in zip(family["probabilities"], record[family["kind"]]["has"], strict=True)
    ]
    return pd.DataFrame(rows, columns=["kind", "probability", "is_true"])


def _is_right(period: float | None, record: dict[str, Any]) -> bool:
    """Whether a period is about that of the planted cycle; what has none is."""
    return period is None or abs(period / record["period"] - 1.0) < _RIGHT


def run(tables: int, results: Path = RESULTS, executor: Executor | None = None) -> pd.DataFrame:
    """Search the tables that the journal has not, and summarise all that it has."""
    journal = opened(results, "families", {})
    done = {record["seed"] for record in journal.records}
    jobs = {seed: partial(report_on, seed) for seed in range(tables) if seed not in done}
    return summary(fill(journal, jobs, executor, "table"))

"""What stories must never say, and posteriors that nobody sampled, on which they are told."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pandas as pd

from lkm_gpflow.data.observations import Observations
from lkm_gpflow.data.tables import Table
from lkm_gpflow.explain.stories import Story, stories
from lkm_gpflow.fit.engine import components
from lkm_gpflow.kernels.grammar import Product, parse
from lkm_gpflow.sharing.matching import ONE_CYCLE
from lkm_gpflow.sharing.pattern_draws import patterns_of
from lkm_gpflow.sharing.states import Draw


def contradictions_of(told: Sequence[Story]) -> Iterator[str]:
    """Statements that deny each other or themselves."""
    if len({each.title for each in told}) < len(told):
        yield f"two patterns have one name: {[each.title for each in told]}"
    for each in told:
        certain, also, doubtful = each.sentence.partition("; perhaps ")
        if certain.startswith("Perhaps "):
            certain, doubtful = "", certain
        for part, verdict in ((certain, "has"), (doubtful, "perhaps")):
            named = {name for name in each.names if re.search(rf"\b{re.escape(name)}\b", part)}
            owners = set(each.those(verdict))
            is_all = bool(re.match(r"(Perhaps )?(all|both)\b", part, re.IGNORECASE))
            if bool(part) != bool(owners) or (not is_all and owners - named):
                yield f"{owners} {verdict} {each.title}, and it is said: {each.sentence!r}"
            if verdict == "perhaps" and named & set(each.owners):
                yield f"{named} have and perhaps have {each.title}: {each.sentence!r}"
        if also and not each.owners:
            yield f"nobody surely has {each.title}: {each.sentence!r}"
        for name, own in zip(each.names, each.behaviours, strict=True):
            intervals = (own.share, own.size, own.peak, own.trough, own.lag, own.growth, own.slope)
            if any(i and not i.lower <= i.median <= i.upper for i in intervals):
                yield f"an interval of {name} and {each.title} is upside down: {own}"
    for i, one in enumerate(told):
        for other in told[:i]:
            a, b = one.pattern, other.pattern
            both = {
                n for n in one.names if {one.verdicts[n], other.verdicts[n]} <= {"has", "perhaps"}
            }
            if a.kind == b.kind == "cycle" and abs(1.0 / a.period - 1.0 / b.period) < ONE_CYCLE:
                yield f"one cycle is told twice: {one.title}, {other.title}"
            if a.kind == b.kind and a.kind in ("trend", "walk"):
                yield f"one {a.kind} is told twice: {one.title}, {other.title}"
            if both and {a.kind, b.kind} <= {"walk", "changes"}:
                yield f"{both} wander in two ways: {one.title}, {other.title}"


_LENGTHS = (0.02, 0.05, 0.12, 0.3, 1.2)


def _column(rng: np.random.Generator) -> Product:
    """A column as posteriors have them."""
    length, period = rng.choice(_LENGTHS), rng.choice([1 / 12, 1 / 5, 0.24, 0.6])
    return parse(
        rng.choice([
            f"1 x SE(lengthscale={length})", "1 x RW(start=-0.2)", f"1 x OU(lengthscale={length})",
            "1 x LIN(location=0.4)", "1 x LIN(location=0.4) x WN",
            "1 x IOU(lengthscale=0.2, start=-1)",
            f"1 x PER(period={period * rng.uniform(0.97, 1.03)}, lengthscale=1)",
            f"1 x PER(period={period}, lengthscale=0.7) x SE(lengthscale={length + 0.2})",
        ])
    )  # fmt: skip


def artificial(seed: int) -> tuple[Story, ...]:
    """The stories of a posterior whose draws have columns in common, and some of their own."""
    rng = np.random.default_rng(seed)
    N, D, T = int(rng.integers(1, 6)), int(rng.integers(30, 90)), 16
    x = np.linspace(0.0, 1.0, D)
    owned = [_column(rng) for _ in range(rng.integers(1, 5))]
    roots = np.linalg.cholesky(components(owned, x) + 1e-6 * np.eye(D))
    size = np.square(rng.uniform(0.1, 1.0, (N, len(owned)))) * (rng.random((N, len(owned))) < 0.7)
    common = np.einsum("kde,nke->nkd", roots, rng.normal(size=(N, len(owned), D)))
    common = common / common.std(axis=2, keepdims=True) * size[:, :, None]
    noise = rng.uniform(0.05, 0.5) * rng.normal(size=(N, D))
    draws, functions, steady = [], [], rng.choice([0.7, 0.97, 1.0])
    for _ in range(T):
        f = common * (rng.random((N, len(owned), 1)) < rng.choice([0.6, 0.95, 1.0]))
        kernels = [one if rng.random() < steady else _column(rng) for one in owned]
        f = f * rng.normal(1.0, 0.1, (N, len(owned), 1))
        draws.append(Draw(tuple(kernels), f.any(axis=2), f[:, :, 0], np.zeros(N), 0.0))
        functions.append(f)
    Y = common.sum(axis=1) + noise
    mask = np.where(rng.random((N, D)) < rng.choice([0.0, 0.1]), 0.0, 1.0)
    index = pd.date_range("2015-01-01", periods=D, freq=rng.choice(["D", "h", "MS", "W"]))
    table = Table.of(pd.DataFrame(Y.T, index, [f"s{n}" for n in range(N)]), "none")
    known = rng.random((N, 1)) * np.ones_like(Y) if rng.random() < 0.2 else None
    told = patterns_of(draws, functions, np.repeat([0, 1], T // 2), Observations(x, Y, mask, known))
    return stories(cast(Any, SimpleNamespace(pattern_draws=told, table=table)))

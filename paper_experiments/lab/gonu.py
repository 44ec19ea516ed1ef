"""What the paper says of gold, oil, NASDAQ and the dollar, by its own learner and by ours.

Figure 6, the overview beside it, and the appendix on oil and the dollar are statements about one
search of the 157 weeks.  Here they are asked of searches from several seeds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from lkm_gpflow import PAPER_BASES, datasets, discover
from lkm_gpflow.discovery.result import Discovery
from lkm_gpflow.sharing.matching import longest_period

from . import RESULTS
from .journals import Record, opened

LEARNERS: Mapping[str, Mapping[str, Any]] = {
    "paper": {"learner": "relaxed", "priors": False, "restarts": 6, "transform": "none"},
    "ours": {"likelihood": "gaussian", "criterion": "bic"},
}
"""How a search learns: the paper's way (as the method "lkm-paper"), and ours.

Both have the paper's base kernels, one variance of a component for all series and BIC; the best fit
alone is shown.
"""

SEEDS = (0, 1, 2, 3, 4)

_YEAR = 365.25
_PERIOD = 1.4 * _YEAR
_WEEKS = 2.7


def search(learner: str, seed: int = 0, results: Path | str | None = "") -> Discovery:
    """Search all 157 weeks, or read the fits from the ledger of an earlier search."""
    folder = Path(results or RESULTS)
    return discover(
        datasets.load("gonu").frame,
        bases=PAPER_BASES,
        averaging="none",
        seed=seed,
        ledger=folder / f"gonu_{learner}_{seed}.jsonl",
        progress=False,
        **LEARNERS[learner],
    )


def statements(found: Discovery) -> dict[str, tuple[str, bool]]:
    """Ask each statement of figure 6 and its text of a search: what was found, whether it holds."""
    has, kernels = found.structure, dict(zip(found.names, found.kernels, strict=True))
    owners = {name: list(has.index[has[name] == 1]) for name in found.names}
    days = {name: kernel.factors[0].values[0] for name, kernel in kernels.items()}
    smooth = [name for name in found.names if str(kernels[name].structure) == "SE"]
    both = [name for name in smooth if {"Gold", "Oil"} <= set(owners[name])]
    three = [name for name in smooth if owners[name] == ["Gold", "Oil", "USD index"]]
    periods = {name: longest_period(kernel) for name, kernel in kernels.items()}
    periodic = [name for name in found.names if periods[name] > 0.0]
    every = [name for name in found.names if len(owners[name]) == len(has)]
    lines = [n for n in found.names if n.startswith("LIN") and owners[n] == ["NASDAQ"]]
    pairs = found.compare_all().pairs["likeness"].to_frame().itertuples(name=None)
    alike = {frozenset(names): likeness for names, likeness in pairs}
    close = alike[frozenset(("Gold", "Oil"))]
    far = alike[frozenset(("NASDAQ", "USD index"))]
    pair = has.loc[["NASDAQ", "USD index"]].sum()

    def told(names: Sequence[str], values: Mapping[str, Any], unit: str) -> str:
        return ", ".join(f"{name}: {values[name]:.3g} {unit}" for name in names) or "none"

    weeks = {name: values / 7.0 for name, values in days.items() if values is not None}
    years = {name: period / _YEAR for name, period in periods.items()}
    return {
        "Gold and Oil share a long and a short smooth component": (
            told(both, weeks, "weeks"), len(both) > 1,
        ),
        "Gold and Oil are more alike than NASDAQ and the USD index": (
            f"{close:.0%} against {far:.0%} of the variance", close > far,
        ),
        "NASDAQ and the USD index have many components of their own": (
            f"{int((pair == 1).sum())} of their own, {int((pair == 2).sum())} shared",
            bool((pair == 1).sum() > max(1, (pair == 2).sum())),
        ),
        "all four share a periodic component": (
            told([name for name in every if name in periodic], years, "years"),
            any(name in periodic for name in every),
        ),
        "a component has a period of 1.4 years": (
            told(periodic, years, "years"),
            any(abs(periods[name] - _PERIOD) <= 0.1 * _PERIOD for name in periodic),
        ),
        "exactly Gold, Oil, USD index share a smooth component of 2.7 weeks": (
            told(three, weeks, "weeks"),
            any(_WEEKS / 2.0 <= weeks[name] <= 2.0 * _WEEKS for name in three),
        ),
        "NASDAQ alone has a linear component": (", ".join(lines) or "none", bool(lines)),
    }  # fmt: skip


def oil_and_dollar(found: Discovery) -> pd.DataFrame:
    """Correlations over time of the patterns that oil and the dollar share.

    Returns
    -------
    Index pattern (its title); columns correlation (median of draws), lower and upper (90%).
    """
    rows = {
        each.story.title: {
            "correlation": each.correlation.typical,
            "lower": each.correlation.lower,
            "upper": each.correlation.upper,
        }
        for each in found.compare("Oil", "USD index").patterns
        if len(each.owners) == 2 and each.correlation is not None
    }
    columns = ["correlation", "lower", "upper"]
    return pd.DataFrame.from_dict(rows, orient="index", columns=columns).rename_axis("pattern")


def run(
    learners: Sequence[str] = tuple(LEARNERS),
    seeds: Sequence[int] = SEEDS,
    results: Path | str | None = "",
) -> list[Record]:
    """Search by each learner from each seed, and keep what the statements say."""
    kept = opened(results, "gonu", {})
    records = list(kept.records)
    done = {(record["learner"], record["seed"]) for record in records}
    for learner in learners:
        for seed in [seed for seed in seeds if (learner, seed) not in done]:
            found = search(learner, seed, results)
            pair = oil_and_dollar(found).round(4)
            record = {
                "learner": learner,
                "seed": seed,
                "bic": round(float(found.bic), 3),
                "components": {
                    f"{kernel:.3g}": list(found.structure.index[found.structure[name] == 1])
                    for name, kernel in zip(found.names, found.kernels, strict=True)
                },
                "statements": statements(found),
                "oil and dollar": pair.to_dict("split")["data"],
            }
            kept.append(record)
            records.append(record)
    return records


def by_seed(records: Sequence[Record]) -> pd.DataFrame:
    """Whether each statement holds: statement x (learner, seed)."""
    return pd.DataFrame(
        {
            (record["learner"], record["seed"]): {
                name: bool(holds) for name, (_, holds) in record["statements"].items()
            }
            for record in records
        }
    ).rename_axis(columns=["learner", "seed"])


def kept(results: Path | str | None = "") -> list[Record]:
    """Return what `run` has kept."""
    return list(opened(results, "gonu", {}).records)


def of_seeds(records: Sequence[Record]) -> pd.DataFrame:
    """Count the seeds from which each statement holds: statement x learner, "4 of 5"."""
    held = by_seed(records).T.groupby(level="learner", sort=False)
    return (held.sum().astype(str) + " of " + held.count().astype(str)).T


def holds_mostly(records: Sequence[Record], learner: str = "paper") -> pd.Series[bool]:
    """Whether each statement holds from more than half of the seeds."""
    return by_seed([r for r in records if r["learner"] == learner]).T.mean() > 0.5


def inverse(records: Sequence[Record]) -> pd.DataFrame:
    """The component that oil and the dollar share with the lowest correlation, by search.

    Components whose functions all have one shape, as lines, do not count: their correlation is 1 or
    -1 whatever the data.

    Returns
    -------
    Index (learner, seed); columns correlation, lower, upper, negative (is the correlation below
    zero?) and certain (is the whole interval?).
    """
    rows = {}
    for record in records:
        pairs = [row for row in record["oil and dollar"] if row[2] - row[1] > 1e-3]
        found = min(pairs, default=[float("nan")] * 3)
        rows[record["learner"], record["seed"]] = [*found, found[0] < 0.0, found[2] < 0.0]
    columns = ["correlation", "lower", "upper", "negative", "certain"]
    table = pd.DataFrame.from_dict(rows, orient="index", columns=columns)
    return table.set_index(pd.MultiIndex.from_tuples(rows, names=["learner", "seed"]))

"""Table 1 and figure 7: learn from the first 90% of a data set, forecast the rest, any method.

`extrapolate` is one run; the table is made of the runs that there are, and what is missing stays
missing.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from lkm_gpflow import datasets
from lkm_gpflow.comparators import Comparator, DiscoveryForecast, comparator
from lkm_gpflow.discovery.result import Discovery
from lkm_gpflow.evaluation.metrics import Scores, score
from lkm_gpflow.evaluation.predictive import matrices
from lkm_gpflow.plotting.style import FAINT_COLOUR, FORECAST_COLOUR, new_axes, plain

from . import RESULTS
from .authors import AUTHORS_LEARNERS
from .published import PUBLISHED_STRUCTURES
from .runner import PROFILES, read_records
from .sensitivity import VARIANTS

AUTHORS_METHODS: Mapping[str, Comparator] = {**PUBLISHED_STRUCTURES, **AUTHORS_LEARNERS}
"""What the authors published beside the paper: structures, and a learner."""

_TABLE_1 = """\
method     dataset        rmse rmse_sd  mnlp mnlp_sd
spike-slab stocks        10.07    0.12  2.87  0.05
spike-slab houses        10.85    0.46  6.92  0.09
spike-slab currencies   174.71   14.52  4.09  0.10
spike-slab gonu           1.07    0.08  2.36  0.11
gprn       stocks         6.11    0.09  2.78  0.14
gprn       houses         8.96    0.17  6.64  0.46
gprn       currencies   193.13   49.40  4.24  0.20
gprn       gonu           1.16    0.12  2.46  0.28
lmc        stocks         8.20    0.53  2.24  0.23
lmc        houses        11.31    1.04  5.90  0.46
lmc        currencies   394.83   40.54  4.90  0.15
lmc        gonu           1.01    0.14  1.43  0.11
mosm       stocks         5.48    1.01  2.97  0.01
mosm       houses         8.15    1.51  5.90  0.20
mosm       currencies   318.26  101.52  3.93  0.15
mosm       gonu           0.84    0.18  3.13  1.06
abcd       stocks         8.37    0.03  2.58  0.05
abcd       houses         7.98    0.03  5.61  0.05
abcd       currencies   325.58    8.64  4.47  0.04
abcd       gonu           0.86    0.01  2.21  0.03
r-abcd     stocks         4.88    0.03  1.95  0.05
r-abcd     houses         3.17    0.10  6.07  0.09
r-abcd     currencies   208.32    5.02  3.62  0.03
r-abcd     gonu           0.97    0.03  2.01  0.10
lkm-paper  stocks         4.58    0.16  1.87  0.10
lkm-paper  houses         4.37    0.16  5.54  0.40
lkm-paper  currencies   133.00   16.92  3.61  0.16
lkm-paper  gonu           0.76    0.07  1.90  0.25
"""


def published_table() -> pd.DataFrame:
    """Table 1 of Tong and Choi (2019): means and standard deviations of five runs.

    Returns
    -------
    DataFrame with index (method, dataset), by our names, and columns rmse, rmse_sd, mnlp, mnlp_sd.
    The paper's own row is "lkm-paper".
    """
    table = pd.read_csv(StringIO(_TABLE_1), sep=r"\s+")
    return table.set_index(["method", "dataset"])


# --- one run ---

SMOKE_SETTINGS: Mapping[str, Mapping[str, Any]] = {
    "abcd": {"depth": 1, "restarts": 0},
    "gprn": {"num_nodes": (1,), "restarts": 2, "max_iterations": 50},
    "r-abcd": {"depth": 1, "restarts": 0, "num_components": 2},
    "lmc": {"restarts": 2, "max_iterations": 50},
    "lmc-walk": {"kernels": (("SE",),), "ranks": (1,), "restarts": 2, "max_iterations": 50},
    "spike-slab": {"num_latent": 2, "starts": 2, "short": 5, "max_iterations": 20},
    "mosm": {"num_components": (1,), "restarts": 2, "short": 5, "max_iterations": 20},
    "gp": {"restarts": 2},
    "gp-sm": {"num_components": (1,), "restarts": 2},
    "lkm": {"depth": 0, "restarts": 1},
    "lkm-paper": {"depth": 0, "restarts": 1, "bases": ("SE",)},
    "lkm-single": {"depth": 0, "restarts": 1, "bases": ("SE",)},
}
"""Settings with which methods that search end in seconds; their scores mean nothing."""


def method_for(name: str, profile: str) -> Comparator:
    """Return a method as a profile runs it.

    "smoke" has quick settings, to see that everything works; the other profiles the method's own.
    """
    if profile not in PROFILES:
        raise ValueError(f"expected a profile among {', '.join(PROFILES)}, got {profile!r}")
    if own := {**AUTHORS_METHODS, **VARIANTS}.get(name):
        return own
    return comparator(name, **(SMOKE_SETTINGS.get(name, {}) if profile == "smoke" else {}))


@dataclass(frozen=True)
class Extrapolation:
    """The forecast of the final window of one data set by one method.

    `discovery` is None but for latent kernel models; scores are in the units in which the paper
    scores the data set.  Processor seconds are the same whatever else the machine does.
    """

    dataset: str
    seed: int
    discovery: Discovery | None
    forecast: pd.DataFrame
    scores: Scores
    seconds: float
    processor_seconds: float


def extrapolate(dataset: str, method: str | Comparator, seed: int = 0) -> Extrapolation:
    """Forecast the last tenth of a data set from the rest (paper, section 6 and table 1).

    Scores are in the units of the data, and in z-scores over the whole table for GONU, as the
    paper's authors have it.
    """
    data = datasets.load(dataset)
    train, test = data.split()
    chosen = method_for(method, "paper") if isinstance(method, str) else method
    began, processor_began = time.perf_counter(), time.process_time()
    fitted = chosen.fit(train, seed=seed)
    forecast = fitted.forecast(test.index)
    seconds = time.perf_counter() - began
    processor_seconds = time.process_time() - processor_began
    told = matrices(forecast, test.index, test.columns)
    mean, sd = (pd.DataFrame(told[name], test.index, test.columns) for name in ("mean", "sd"))
    location = np.zeros(test.shape[1])
    scale = np.ones(test.shape[1])
    if data.score_scale is not None:
        location, scale = (data.score_scale[c].to_numpy() for c in ("location", "scale"))
    scores = score((test - location) / scale, (mean - location) / scale, sd / scale)
    discovery = fitted.found if isinstance(fitted, DiscoveryForecast) else None
    return Extrapolation(dataset, seed, discovery, forecast, scores, seconds, processor_seconds)


# --- the table ---

DATASETS = ("stocks", "houses", "currencies", "gonu")

PUBLISHED_METHODS = ("lkm-paper", "spike-slab", "gprn", "lmc", "mosm", "abcd", "r-abcd")
"""The seven of the paper's table; "lkm-paper" is the paper's own, with its learner and no other."""

METHODS = (
    "lkm",
    "lkm-single",
    *PUBLISHED_METHODS,
    "lmc-walk",
    "gp",
    "gp-sm",
    "last-value",
    "drift",
    "seasonal-naive",
    "auto-arima",
    "auto-ets",
    "auto-theta",
)

COMPARATORS = """\
spike-slab|weights of latent functions are on or off; K given|the same; 6 latent functions|no
gprn|nodes given, mean field|chosen among 1 to 3 by the bound|perhaps
lmc|GPy, kernels not named|Bias, Linear, RBF of rank 1, maximum likelihood, 6 starts|no
lmc-walk|-|kernels (random walks among them) and rank by BIC; weak priors|yes
mosm|Q set by hand, maximum likelihood|Q chosen among 1 to 3 by BIC; weak prior of delays|perhaps
abcd|change points among the bases; depth 10|no change points; at most 4 steps|no
r-abcd|mixtures learnt during the search|mixtures after the search, from its residuals|perhaps
"""
"""How each comparator differs from its paper: method, paper, here, stronger than published."""


def comparators_table() -> pd.DataFrame:
    """Return `COMPARATORS` as a table, index method."""
    names = ["method", "in its paper", "here", "stronger than published"]
    return pd.read_csv(StringIO(COMPARATORS), sep="|", names=names, index_col="method")


def authors_table(runs: pd.DataFrame) -> pd.DataFrame:
    """Scores of the structures that the authors published, beside their figures and ours.

    Returns
    -------
    Index: "published", "lkm-paper", `PUBLISHED_STRUCTURES`, and those of `AUTHORS_LEARNERS` that
    were run; columns (data set, rmse, mnlp or coverage90); NaN where there is none.
    """
    means, paper = runs.groupby(["method", "dataset"]).mean(numeric_only=True), published_table()
    sources = {"published": (paper, "lkm-paper"), "lkm-paper": (means, "lkm-paper")}
    ran = [m for m in AUTHORS_LEARNERS if m in means.index]
    sources |= {method: (means, method) for method in [*PUBLISHED_STRUCTURES, *ran]}
    columns = [(d, s) for d in DATASETS for s in ("rmse", "mnlp", "coverage90")]
    rows = {
        row: [
            float(table[score][method, dataset])
            if score in table and (method, dataset) in table.index
            else np.nan
            for dataset, score in columns
        ]
        for row, (table, method) in sources.items()
    }
    index = pd.MultiIndex.from_tuples(columns, names=["dataset", "score"])
    return pd.DataFrame(rows, index).T


SCORES = ("rmse", "rmse_pooled", "mnlp", "crps", "coverage90", "seconds", "processor_seconds")

MISSING = "missing"

_NOMINAL = 0.9
"""What coverage should be."""

_SEEDS = 5
"""Runs of a cell of the paper."""


def extrapolation_runs(results: Path | str, profile: str) -> pd.DataFrame:
    """All finished runs of the extrapolation notebook in a profile.
    Returns
    -------
    One row per run: dataset, method, seed, the columns of `SCORES`, bic of the best fit to the
    training part (of the latent kernel model; otherwise NaN), and commit.

    Raises
    ------
    ValueError
        If runs of one data set used different data.
    """
    records = [
        record
        for record in read_records(Path(results or RESULTS)).values()
        if record["experiment"] == "extrapolation"
        and record["parameters"].get("profile") == profile
        and not record["error"]
    ]
    _check_data(records)
    rows = [
        {
            **{k: record["parameters"][k] for k in ("dataset", "method", "seed")},
            **{score: record["scores"][score] for score in SCORES},
            "bic": record["scores"].get("bic", np.nan),
            "commit": record["commit"],
        }
        for record in records
    ]
    return pd.DataFrame(rows, columns=["dataset", "method", "seed", *SCORES, "bic", "commit"])


def _check_data(records: Iterable[dict[str, Any]]) -> None:
    seen: dict[str, tuple[str, str]] = {}
    for record in records:
        for name, checksum in record["data"].items():
            first = seen.setdefault(name, (checksum, record["id"]))
            if first[0] != checksum:
                raise ValueError(
                    f"expected one version of the data {name!r}, got {first[0][:12]} in {first[1]} "
                    f"and {checksum[:12]} in {record['id']}: delete the older results"
                )


def cells(runs: pd.DataFrame, names: Sequence[str] = DATASETS) -> pd.DataFrame:
    """Mean and standard deviation over seeds of each method on each data set.

    Returns
    -------
    Index (method, dataset), all of them; columns ``runs`` (how many), each of `SCORES` and its
    ``_sd``.  A score without runs is NaN, and so is an sd of fewer than two.
    """
    others = set(runs["method"]) - set(METHODS) - set(AUTHORS_METHODS) - set(VARIANTS)
    known = [*METHODS, *sorted(others)]
    index = pd.MultiIndex.from_product([known, names], names=["method", "dataset"])
    groups = runs.groupby(["method", "dataset"])
    table = groups[list(SCORES)].mean().join(groups[list(SCORES)].std(ddof=1).add_suffix("_sd"))
    table.insert(0, "runs", groups.size())
    table = table.astype(float).reindex(index)
    return table.assign(runs=table["runs"].fillna(0).astype(int))


def beside_the_paper(
    table: pd.DataFrame, score: str, digits: int = 2, *, mark_best: bool = False
) -> pd.DataFrame:
    """One score as text, ours and the paper's side by side.

    With `mark_best` an asterisk marks the best mean of each column, and those that round to the
    same: the lowest, for coverage the nearest to 0.9.

    Returns
    -------
    Rows are methods; columns (dataset, "ours" or "paper").  A mean stands with its sd over seeds,
    with ``(n)`` where n is not 5; what has not been run is "missing", what the paper does not have
    is "-".
    """
    paper = published_table()
    methods = table.index.unique("method")
    columns: dict[tuple[str, str], list[str]] = {}
    for dataset in table.index.unique("dataset"):
        ours = pd.DataFrame(table.xs(dataset, level="dataset"))
        columns[dataset, "ours"] = [
            _text(*values, digits) for values in _values(ours, score, ours["runs"])
        ]
        if mark_best:
            columns[dataset, "ours"] = _with_best(columns[dataset, "ours"], ours[score], digits)
        if score in paper:
            theirs = paper[paper.index.get_level_values("dataset") == dataset]
            theirs = pd.DataFrame(theirs.droplevel("dataset")).reindex(methods)
            columns[dataset, "paper"] = [
                "-" if np.isnan(mean) else _text(mean, sd, _SEEDS, digits)
                for mean, sd, _ in _values(theirs, score, theirs[score])
            ]
            if mark_best:
                columns[dataset, "paper"] = _with_best(
                    columns[dataset, "paper"], theirs[score], digits
                )
    return pd.DataFrame(columns, index=methods)


def _with_best(texts: list[str], means: pd.Series[Any], digits: int) -> list[str]:
    """Add an asterisk to the best of a column."""
    rounded = means.round(digits)
    misses = (rounded - _NOMINAL).abs() if means.name == "coverage90" else rounded
    best = misses.round(digits) == misses.round(digits).min()
    return [f"{text} *" if b else text for text, b in zip(texts, best, strict=True)]


def _values(
    table: pd.DataFrame, score: str, runs: pd.Series[Any]
) -> Iterator[tuple[float, float, float]]:
    """Mean, sd and number of runs of a score, row by row."""
    return zip(
        map(float, table[score]), map(float, table[f"{score}_sd"]), map(float, runs), strict=True
    )


def _text(mean: float, sd: float, runs: float, digits: int) -> str:
    if runs == 0:
        return MISSING
    spread = "" if np.isnan(sd) else f" ± {sd:.{digits}f}"
    return f"{mean:.{digits}f}{spread}" + ("" if runs == _SEEDS else f" ({runs:.0f})")


def against_published(table: pd.DataFrame, method: str = "lkm-paper") -> pd.DataFrame:
    """The paper's own row, and ours, in its eight cells.

    Returns
    -------
    Rows (dataset, score); columns paper, ours, difference, whether ours is at or below the paper,
    and the best of the other six published methods as we ran them, if all have been run.  What is
    missing is NaN, and counts as a miss.
    """
    paper = published_table()
    rows = {}
    for dataset in DATASETS:
        for name in ("rmse", "mnlp"):
            ours = float(table[name][(method, dataset)])
            published = float(paper[name][("lkm-paper", dataset)])
            others = table[name].xs(dataset, level="dataset")[list(PUBLISHED_METHODS[1:])]
            complete = bool(others.notna().all())
            rows[dataset, name] = {
                "paper": published,
                "ours": ours,
                "difference": ours - published,
                "at or below": ours <= published,
                "best other, ours": others.min() if complete else np.nan,
                "best other is": others.idxmin() if complete else MISSING,
            }
    found = pd.DataFrame.from_dict(rows, orient="index")
    return found.rename_axis(["dataset", "score"])


def plot_beside_published(
    ours: pd.DataFrame, published: pd.DataFrame, label: str, ax: Axes | None = None
) -> Axes:
    """Draw one bar per method, with whiskers of one standard deviation, and the published score.

    Rows of `ours` are methods, drawn from top to bottom, with columns mean and sd; NaN is marked as
    missing.  `published` has the same for methods that were published.
    """
    ax = new_axes((4.0, 1.0 + 0.3 * len(ours))) if ax is None else ax
    heights = np.arange(len(ours))[::-1].astype(float)
    ax.barh(
        heights, ours["mean"].fillna(0.0), 0.6, xerr=ours["sd"], color=FORECAST_COLOUR,
        ecolor="black", capsize=2, label="ours, mean and sd of the seeds",
    )  # fmt: skip
    theirs = published.reindex(ours.index)
    ax.errorbar(
        theirs["mean"], heights, xerr=theirs["sd"], fmt="D", ms=4, mfc="white", mec="black",
        ecolor=FAINT_COLOUR, capsize=2, linestyle="none", label="published",
    )  # fmt: skip
    for height, mean in zip(heights, ours["mean"], strict=True):
        if np.isnan(mean):
            ax.annotate("missing", (0.0, height), (3, 0), textcoords="offset points",
                        va="center", fontsize=7, color=FAINT_COLOUR)  # fmt: skip
    ax.set_yticks(heights, [plain(method) for method in ours.index], fontsize=8)
    ax.tick_params(axis="x", labelsize=8)
    ax.set_xlabel(label, fontsize=9)
    return ax

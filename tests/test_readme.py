"""README.md is short, its links hold, and its numbers are those of committed results."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from contextlib import redirect_stdout
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import lkm_gpflow as lkm
from lkm_gpflow.evaluation.predictive import Predictive
from lkm_gpflow.gp.types import Floats
from paper_experiments.lab import RESULTS, ablations, benchmark, calibration, table1
from paper_experiments.lab.bench_tables import benchmark_tables, tables_of
from paper_experiments.lab.calibration import expected_calibration_error, held
from paper_experiments.lab.published import PUBLISHED_STRUCTURES
from paper_experiments.lab.table1 import extrapolation_runs, published_table

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PROSE = " ".join(README.split())
SIMPLE = ["last-value", "drift", "auto-arima", "auto-ets", "auto-theta"]


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


def lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.strip().splitlines()]


def test_it_is_short() -> None:
    assert len(README.split()) <= 700


def test_its_links_lead_somewhere() -> None:
    targets = [
        link for link in re.findall(r"\]\(([^)]+)\)", README) if not link.startswith("https:")
    ]
    assert len(targets) > 10
    assert [link for link in targets if not (ROOT / link).exists()] == []


@pytest.mark.slow
@pytest.mark.usefixtures("whole_chains")
def test_its_python_prints_what_it_says(tables: Path, tmp_path: Path) -> None:
    ledger = tmp_path / "demo.jsonl"
    ledger.write_bytes((ROOT / "notebooks" / "ledgers" / "demo.jsonl").read_bytes())
    (code,), (shown,) = blocks("python"), blocks("text")
    assert len(lines(code)) <= 10
    printed = io.StringIO()
    with redirect_stdout(printed), pytest.MonkeyPatch.context() as patch:
        patch.setattr(lkm, "discover", partial(lkm.discover, ledger=ledger, progress=False))
        exec(code, {})
    assert lines(printed.getvalue()) == lines(shown)


@pytest.fixture(scope="module")
def backtests(tables: Path) -> Iterator[dict[str, dict[str, lkm.Backtest]]]:
    """Ours and the simple methods, from their committed journals: nothing is fitted."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lkm.comparators.LatentKernelModel, "fit", refuse)
        yield {dataset: of(dataset) for dataset in ablations.DATASETS}


def refuse(*arguments: object, **options: object) -> None:
    raise AssertionError("expected a committed result")


def of(dataset: str) -> dict[str, lkm.Backtest]:
    methods = {"lkm": "default", **dict(zip(SIMPLE, SIMPLE, strict=True))}
    return {name: ablations.ablate(dataset, label) for name, label in methods.items()}


@pytest.mark.parametrize(
    ("dataset", "said"),
    [
        ("houses", "{:.1f}% lower on house prices"),
        ("stocks", "{:.1f}% higher on stocks"),
        ("currencies", "{:.1f}% higher on currencies"),
        ("gonu", "{:.1f}% higher on gold"),
    ],
)
def test_backtests(backtests: dict[str, dict[str, lkm.Backtest]], dataset: str, said: str) -> None:
    crps = {method: result.summary()["crps"] for method, result in backtests[dataset].items()}
    change = 100 * (crps.pop("lkm") / min(crps.values()) - 1)
    assert said.format(abs(change)) in PROSE
    assert (change > 0) == ("higher" in said)


def test_no_difference_is_significant(backtests: dict[str, dict[str, lkm.Backtest]]) -> None:
    assert "no single difference is significant" in PROSE
    p = [
        results["lkm"].compare(results[method], "crps").p_value
        for results in backtests.values()
        for method in SIMPLE
    ]
    assert min(p) > 0.05


def test_intervals(backtests: dict[str, dict[str, lkm.Backtest]]) -> None:
    cells = pd.concat([results["lkm"].forecasts for results in backtests.values()])
    told = Predictive.of({str(name): values.to_numpy() for name, values in cells.items()})
    inside = told.inside(cells["observed"].to_numpy(), 0.9).mean()
    assert f"90% intervals held {100 * inside:.1f}% of outcomes" in PROSE
    page = (ROOT / "notebooks" / "explanation" / "calibration.md").read_text(encoding="utf-8")
    held = {d: f"{results['lkm'].summary()['coverage90']:.0%}" for d, results in backtests.items()}
    assert (
        f"held {100 * inside:.1f}% of what came next: {held['stocks']} on stocks, "
        f"{held['currencies']} on currencies, {held['gonu']} on GONU (gold, oil, NASDAQ and "
        f"dollar) and {held['houses']} on houses"
    ) in " ".join(page.split())


def test_one_fit_may_go_wrong(backtests: dict[str, dict[str, lkm.Backtest]]) -> None:
    page = (ROOT / "notebooks" / "explanation" / "forecasts.md").read_text(encoding="utf-8")
    higher = {}
    for dataset, results in backtests.items():
        alone = ablations.ablate(dataset, "best fit alone")
        higher[dataset] = alone.summary()["crps"] / results["lkm"].summary()["crps"] - 1.0
    told = " ".join(page.split())
    assert f"alone has a CRPS {higher.pop('currencies'):.0%} higher than the default" in told
    assert f"It is {higher.pop('houses'):.0%} higher on houses, and within 1%" in told
    assert max(map(abs, higher.values())) < 0.01


def test_the_windows_of_the_paper() -> None:
    runs = extrapolation_runs(RESULTS, "paper")
    mean = runs.groupby(["method", "dataset"])[["rmse", "mnlp"]].mean().unstack("dataset")
    published = published_table()[["rmse", "mnlp"]].unstack("dataset").loc["lkm-paper"]
    ours = mean.loc["lkm"]
    as_good = int((ours <= published[ours.index]).sum())
    behind = int((ours > mean.drop(index="lkm").min()).sum())
    assert len(ours) == 8
    assert f"we match or beat the published model in {as_good} of 8 scores" in PROSE
    assert f"in all {behind} another method beats ours" in PROSE
    assert behind == 8


def test_the_finding_about_the_paper() -> None:
    runs = extrapolation_runs(RESULTS, "paper")
    verdict = table1.against_published(table1.cells(runs))
    best = int((verdict["ours"] < verdict["best other, ours"]).sum())
    assert f"best of seven in {best} of {len(verdict)} scores" in PROSE
    authors = table1.authors_table(runs)
    fixed, learnt = (
        authors.loc[method].dropna().unstack("score") for method in PUBLISHED_STRUCTURES
    )
    assert "Maximum likelihood overfits even the authors' structures" in PROSE
    assert (learnt["mnlp"] > fixed["mnlp"]).all()


def test_prices_gain_nothing_from_the_search(
    backtests: dict[str, dict[str, lkm.Backtest]],
) -> None:
    assert "explains prices but does not improve their forecast" in PROSE
    for dataset in ("stocks", "currencies", "gonu"):
        walks = ablations.ablate(dataset, "walks alone")
        compared = walks.compare(backtests[dataset]["lkm"], "crps")
        assert compared.difference < 2 * compared.standard_error


@pytest.mark.usefixtures("tables")
def test_the_benchmark() -> None:
    """By tables that chose nothing."""
    every = benchmark.by_table(benchmark.scores(benchmark.records()), "crps")
    own = every.loc[list(tables_of("held"))]
    assert not own.isna().any(axis=None)
    judging = (100 * (1 - np.exp(np.log(own.rdiv(own["lkm"], axis=0)).mean()))).round()
    kept = pd.read_csv(RESULTS / "benchmark_further_scores.csv")
    further = benchmark.by_table(kept.set_index(["table", "origin", "method"]), "crps")
    others = (100 * (1 - np.exp(np.log(further.rdiv(further["lkm"], axis=0)).mean()))).round()
    assert benchmark.ranks(further).index[0] == "lkm"
    assert (
        f"On the {len(tables_of('held'))} of our benchmark's {len(benchmark_tables())} tables"
        in PROSE
    )
    for text in (
        f"{judging['auto-arima']:.0f}% lower than AutoARIMA's",
        f"{judging[benchmark.MEDIAN]:.0f}% lower than that of the rivals' median forecast and "
        f"{judging['vecm']:.0f}% lower than VECM's; the last two differences may be chance",
        f"On {len(further)} further tables that chose nothing it is "
        f"{others['auto-arima']:.0f}%, {others[benchmark.MEDIAN]:.0f}% and "
        f"{others['vecm']:.0f}% lower, first of {further.shape[1]} methods.",
    ):
        assert text in PROSE
    pairs = benchmark.paired(own, "lkm")
    assert pairs.loc["auto-arima", "p"] < 0.05
    assert (pairs.loc[[benchmark.MEDIAN, "vecm"], "p"] > 0.05).all()


def said_and_true(part: str, said: str, truth: str) -> tuple[Floats, Floats]:
    """Probabilities that were stated, and what was true."""
    records = calibration.read(part)
    p, z = (np.concatenate([record[key] for record in records]) for key in (said, truth))
    return p, z


def error_and_right(part: str, said: str, truth: str) -> tuple[float, float]:
    """Expected calibration error, and the share of entries on the right side of a half."""
    p, z = said_and_true(part, said, truth)
    return expected_calibration_error(p, z), float(np.mean((p > 0.5) == z))


SEARCHED = ("searched", "searched", "searched_truth")


def test_probabilities() -> None:
    known, _ = error_and_right("given", "known", "truth")
    searched, right = error_and_right(*SEARCHED)
    assert f"{known:.2f} if the kernels are known and {searched:.2f} after a whole" in PROSE
    assert f"{100 * right:.0f}% of yes-or-no answers are right" in PROSE
    p, z = said_and_true(*SEARCHED)
    true = f"{100 * z[p >= 0.99].mean():.0f}%"
    assert f"{true} of statements with a probability of 0.99 or more are true" in PROSE


def test_the_page_on_calibration() -> None:
    page = (ROOT / "notebooks" / "explanation" / "calibration.md").read_text(encoding="utf-8")
    for case in (("given", "known", "truth"), ("given", "learnt", "truth"), SEARCHED):
        error, right = error_and_right(*case)
        assert f"| {error:.3f} | {100 * right:.0f}% |" in page
    p, z = said_and_true(*SEARCHED)
    prose = " ".join(page.split())
    told = f"{z[p >= 0.99].mean():.0%} of statements with a probability of 0.99 or more are true"
    assert f"{told}, and {z[p <= 0.01].mean():.0%} of those with 0.01 or less" in prose
    kept = calibration.read("searched")
    assert f"the last row's {len(kept)} planted tables" in prose
    shown = held([each for record in kept for each in record["intervals"]])
    for name, (count, share) in shown.iterrows():
        kernel, parameter = str(name).split()
        assert f"| {parameter} of {kernel} | {count:.0f} | {share:.0%} |" in page

"""The benchmark: its draw, its windows, its journals, its scores and what is made of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.integrate import trapezoid
from scipy.stats import norm

from paper_experiments.lab import RESULTS, benchmark
from paper_experiments.lab.bench_tables import benchmark_tables, draw, tables_of
from paper_experiments.lab.benchmark import Window, score_window

CHEAP = ["last-value", "drift", "seasonal-naive"]


@pytest.fixture(scope="module")
def bench(tables: Path) -> Path:
    folder = tables / "bench"
    if not (folder / "baselines.csv").exists():
        pytest.skip(f"needs data: {folder} does not hold the benchmark's tables")
    return folder


# --- the draw ---


def test_the_file_is_the_draw_of_its_seed() -> None:
    domains = {name: table.domain for name, table in benchmark_tables().items()}
    assert [table for table, part in draw(domains).items() if part == "held"] == tables_of("held")
    assert draw(domains, seed=1) != draw(domains)


# --- windows ---


def test_windows_are_consecutive_and_end_with_the_table(bench: Path) -> None:
    frame = pd.read_csv(bench / "office_room.csv", index_col="date", parse_dates=True)
    last, before = (benchmark.window("office_room", origin) for origin in (1, 2))
    assert last.season == 24
    for cut, end in ((last, 129), (before, 105)):
        np.testing.assert_array_equal(cut.train, frame[: end - 24])
        np.testing.assert_array_equal(cut.test, frame[end - 24 : end])
    with pytest.raises(ValueError, match="expected an origin among"):
        benchmark.window("office_room", 3)
    with pytest.raises(ValueError, match="a table of the benchmark, got 'office'"):
        benchmark.window("office", 1)


# --- runs ---


def test_journals_go_on_where_they_were(bench: Path, tmp_path: Path) -> None:
    benchmark.run(["drift"], ["office_room"], tmp_path, origins=[1])
    path = tmp_path / "benchmark.jsonl"
    first = path.read_text()
    benchmark.run(["drift"], ["office_room", "us_prices"], tmp_path)
    assert path.read_text().startswith(first)
    kept = benchmark.records(tmp_path, CHEAP)
    assert [(r["table"], r["origin"]) for r in kept["drift"]] == [
        ("office_room", 1), ("office_room", 2), ("us_prices", 1), ("us_prices", 2),
    ]  # fmt: skip
    with pytest.raises(ValueError, match=r"expected methods among .*, got \['oracle'\]"):
        benchmark.run(["oracle"], ["us_prices"], tmp_path)


@pytest.mark.parametrize("kind", [np.linalg.LinAlgError, IndexError, TypeError])
def test_a_method_that_fails_is_on_record(kind: type[Exception], bench: Path) -> None:
    class Failing:
        def fit(self, train: pd.DataFrame, *, seed: int) -> None:
            raise kind("singular")

    record = benchmark.forecast(Failing(), benchmark.window("office_room", 1))  # type: ignore[arg-type]
    assert record["error"] == f"{kind.__name__}: singular"
    assert benchmark.failures({"x": [record]}).tolist() == [record["error"]]


def test_naive_scores_are_those_of_the_reference(bench: Path, tmp_path: Path) -> None:
    """On tables without gaps; the reference was computed by another program."""
    chosen = ["us_prices", "great_lakes", "tourism_holiday", "flu_regions", "montreal_bikes"]
    benchmark.run(CHEAP, chosen, tmp_path)
    found = benchmark.scores(benchmark.records(tmp_path, CHEAP))
    reference = pd.read_csv(bench / "baselines.csv").set_index(["name", "origin", "method"])
    for name, theirs in zip(CHEAP, ["last", "drift", "snaive"], strict=True):
        for table in chosen:
            for origin in (1, 2):
                if (table, origin, theirs) not in reference.index:
                    continue
                expected = reference.loc[(table, origin, theirs), ["crps", "mnlp", "rmse"]]
                ours = found.loc[(table, origin, name), ["crps", "mnlp", "rmse"]]
                np.testing.assert_allclose(
                    ours.astype(float), expected.astype(float), atol=2e-4, rtol=2e-4
                )


# --- scores ---


def made_up(test: np.ndarray) -> Window:
    train = pd.DataFrame(np.random.default_rng(0).normal(3.0, 2.0, (50, test.shape[1])))
    return Window("t", "d", 1, 1, train, pd.DataFrame(test))


def test_scores_by_hand() -> None:
    """CRPS by quadrature, over series of which one has a gap."""
    test = np.array([[4.0, 1.0], [2.0, np.nan], [5.0, 7.0]])
    cut = made_up(test)
    z = ((test - cut.train.mean().to_numpy()) / cut.train.std(ddof=1).to_numpy()).T
    mean, sd = np.array([[0.1, 0.2, 0.3], [0.0, 9.0, -0.5]]), np.full((2, 3), 0.7)
    grid = np.linspace(-12.0, 12.0, 200_001)

    def crps(y: float, m: float, s: float) -> float:
        return float(trapezoid((norm.cdf(grid, m, s) - (grid >= y)) ** 2, grid))

    cells = [
        [(y, m, s) for y, m, s in zip(*rows, strict=True) if np.isfinite(y)]
        for rows in zip(z, mean, sd, strict=True)
    ]
    found = score_window(cut, {"mean": mean, "sd": sd})
    by_series = [np.mean([crps(*cell) for cell in series]) for series in cells]
    assert found["crps"] == pytest.approx(np.mean(by_series), abs=2e-4)
    density = [np.mean([-norm.logpdf(*cell) for cell in series]) for series in cells]
    assert found["mnlp"] == pytest.approx(np.mean(density))
    squares = [np.sqrt(np.mean([(y - m) ** 2 for y, m, _ in series])) for series in cells]
    assert found["rmse"] == pytest.approx(np.mean(squares))
    inside = [np.mean([abs(y - m) < 1.6449 * s for y, m, s in series]) for series in cells]
    assert found["coverage90"] == pytest.approx(np.mean(inside))


# --- comparisons ---


def table_of_scores(values: dict[str, list[float]]) -> pd.DataFrame:
    """Methods' CRPS on tables a, a, b, b, ... (two origins each); a and b are of one domain."""
    rows = [
        {"table": "abcdefgh"[i // 2], "origin": 1 + i % 2, "method": method, "crps": score,
         "domain": "x" if i < 4 else "y"}
        for method, scores in values.items()
        for i, score in enumerate(scores)
    ]  # fmt: skip
    return pd.DataFrame(rows).set_index(["table", "origin", "method"])


def test_ratios_count_tables_alike() -> None:
    scores = table_of_scores({"m": [2.0, 8.0, 1.0, 1.0, 3.0, 3.0], "r": [1.0] * 6})
    found = benchmark.ratios(scores, "r")
    assert found.loc["x", "m"] == pytest.approx(2.0)  # 16^(1/2), 1: their geometric mean
    assert found.loc["y", "m"] == pytest.approx(3.0)
    assert found.loc[benchmark.ALL, "m"] == pytest.approx(12.0 ** (1.0 / 3.0))
    assert found["tables"].to_dict() == {"x": 2, "y": 1, "all": 3}


def test_critical_difference_is_that_of_the_book() -> None:
    """Demšar 2006, section 3.2.2: four methods, 14 data sets, q = 2.569."""
    assert benchmark.critical_difference(4, 14) == pytest.approx(2.569 * np.sqrt(20.0 / 84.0), 1e-3)


def test_paired_comparison_holds_its_level_and_finds_a_difference() -> None:
    """Under no difference p < 0.05 in about 5% of the draws; a tenth better is found."""
    rng = np.random.default_rng(3)
    rejected = []
    for _ in range(200):
        logs = rng.normal(0.0, 0.1, (24, 2))
        table = pd.DataFrame(np.exp(logs), columns=["m", "r"])
        rejected.append(benchmark.paired(table, "m").loc["r", "p"] < 0.05)
    assert 0.01 < np.mean(rejected) < 0.1
    better = table.assign(m=0.8 * table["m"])
    row = benchmark.paired(better, "m").loc["r"]
    assert row["ratio"] == pytest.approx(0.8 * np.exp((logs[:, 0] - logs[:, 1]).mean()))
    assert row["lower"] < row["ratio"] < row["upper"] < 1.0
    assert row["p"] < 0.01


def test_confidence_set_drops_what_is_surely_worse() -> None:
    rng = np.random.default_rng(4)
    logs = 0.1 * rng.normal(size=(24, 3)) + [0.0, 0.0, 0.3]
    table = pd.DataFrame(np.exp(logs), columns=["a", "b", "worse"])
    assert set(benchmark.confidence_set(table)) == {"a", "b"}
    assert set(benchmark.confidence_set(table.assign(worse=table["a"] * 1.001))) >= {"a", "b"}


# --- what is committed ---


def test_committed_forecasts_are_of_these_tables() -> None:
    every = {(table, origin) for table in benchmark_tables() for origin in (1, 2)}
    kept = benchmark.records(RESULTS)
    assert list(kept) == list(benchmark.METHODS)
    for method, own in kept.items():
        assert {(record["table"], record["origin"]) for record in own} == every, method

"""The scripts beside the paper's notebooks: which options they refuse, and where they write."""

from __future__ import annotations

import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

from lkm_gpflow.experiments import benchmark
from lkm_gpflow.experiments.benchmark import runs

SCRIPTS = Path(__file__).resolve().parents[2] / "paper_experiments"


def run(script: str, *arguments: object, **replaced: Callable[..., Any]) -> Result:
    """Run a script with some of its names replaced."""
    main: click.Command = runpy.run_path(str(SCRIPTS / f"{script}.py"))["main"]
    assert main.callback is not None
    main.callback.__globals__.update(replaced)
    return CliRunner().invoke(main, [str(a) for a in arguments])


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """Windows that methods were to forecast; nothing is forecast."""
    windows: list[tuple[str, int]] = []

    def note(method: str, table: str, origin: int, seed: int) -> dict[str, Any]:
        windows.append((table, origin))
        return {"table": table, "origin": origin, "data": "", "error": "not tried"}

    monkeypatch.setattr(runs, "forecast_window", note)
    return windows


def test_held_tables_are_not_run_by_chance(asked: list[tuple[str, int]], tmp_path: Path) -> None:
    held, (chosen, *_) = benchmark.tables("held")[0], benchmark.tables("choosing")
    options = ("--method", "drift", "--out", tmp_path)
    for table in (held, "no such table"):
        result = run("benchmark", *options, "--table", chosen, "--table", table)
        assert result.exit_code == 2
        assert f"tables of the part 'choosing' ({chosen}" in result.output
        assert f"got {table}" in result.output
    assert run("benchmark", *options, "--part", "held", "--table", chosen).exit_code == 2
    assert asked == []
    assert run("benchmark", *options, "--table", chosen).exit_code == 0
    assert asked == [(chosen, 1), (chosen, 2)]
    for table in (held, "no such table"):
        result = run("coupling", "--table", table, "--out", tmp_path / "c.jsonl")
        assert (result.exit_code, "--table" in result.output) == (2, True)


@pytest.mark.parametrize(
    ("script", "arguments"),
    [
        ("agreement", ("--seeds", 0)),
        ("coupling", ("--task", "gaps")),
        ("families", ("--tables", 0)),
    ],
)
def test_scripts_make_the_folder_of_their_results(
    script: str, arguments: tuple[object, ...], tmp_path: Path
) -> None:
    out = tmp_path / "new" / "results.jsonl"

    def stop(*_: object) -> None:
        assert out.parent.is_dir()
        raise click.Abort

    result = run(script, *arguments, "--out", out, Journal=stop)
    assert result.output == "Aborted!\n", result.exception

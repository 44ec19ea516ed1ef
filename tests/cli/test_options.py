"""Options of ``lkm-gpflow``, and what is said of sources and folders that are mistyped."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from lkm_gpflow import cli
from lkm_gpflow.cli.options import bases as read_bases
from lkm_gpflow.kernels.grammar import EXTENDED_BASES, PAPER_BASES


def run(*arguments: object) -> tuple[int, str]:
    """Exit code of a command, and what it says, on one line."""
    result = CliRunner().invoke(cli.main, list(map(str, arguments)))
    assert "Traceback" not in result.output
    return result.exit_code, " ".join(result.output.replace("│", " ").split())


@pytest.mark.parametrize(
    ("text", "bases"),
    [
        ("paper", PAPER_BASES),
        ("extended", EXTENDED_BASES),
        ("paper,CP", (*PAPER_BASES, "CP")),
        ("se, Extended", ("SE", *(base for base in EXTENDED_BASES if base != "SE"))),
        ("se,per", ("SE", "PER")),
    ],
)
def test_sets_of_base_kernels_may_stand_in_lists(text: str, bases: tuple[str, ...]) -> None:
    assert read_bases(text) == bases


def test_wrong_base_kernels_are_refused(tmp_path: Path) -> None:
    out = tmp_path / "out"
    code, said = run("discover", "toy", "--out", out, "--bases", "")
    assert (code, "expected base kernels: paper, extended, or a list such as" in said) == (2, True)
    code, said = run("discover", "toy", "--out", out, "--bases", "SE,KP")
    assert (code, "'KP'" in said, "CP adds change points" in said) == (2, True, True)
    assert not out.exists()


def test_help_shows_transformations_as_they_are_written() -> None:
    assert "--transform auto|log|none|SERIES=log" in run("discover", "--help")[1]


def test_an_output_folder_without_a_name_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code, said = run("discover", "toy", "--out", "")
    assert (code, "expected the name of a folder, got ''" in said) == (2, True)
    assert not list(tmp_path.iterdir())


def test_what_was_meant_by_a_source_comes_before_a_short_list() -> None:
    code, said = run("discover", "gnou")
    assert code == 2
    assert "no data set of that name; did you mean 'gonu'? (data sets: toy, demo," in said
    assert said.endswith("gonu, seizure)")


def test_a_folder_of_results_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    code, said = run("reproduce", "--results", tmp_path / "file" / "x")
    assert code == 2
    assert f"folder of results that can be written to, got {tmp_path / 'file' / 'x'} (" in said

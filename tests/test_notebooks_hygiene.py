"""Committed notebooks are documentation: complete, in order, free of traces of one machine."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import nbformat
import pytest

import lkm_gpflow as lkm
import lkm_gpflow.sktime

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
PAPER_EXPERIMENTS = sorted((ROOT / "paper_experiments").glob("*.ipynb"))

MIN_NOTEBOOKS = 7
MAX_BYTES = 1_000_000
ABSOLUTE_PATH = re.compile(
    r"(?<![\w.+-])/(?:home|root|tmp|Users|usr|opt|var|mnt|work)/|\b[A-Za-z]:\\{1,2}Users\b"
)
MEMORY_ADDRESS = re.compile(r"\bat 0x[0-9a-fA-F]{6,}")
WIDGET = "application/vnd.jupyter.widget"
PUBLIC = {
    f"lkm_gpflow.{name}": getattr(lkm, name)
    for name in [*lkm.__all__, "sktime"]
    if isinstance(getattr(lkm, name), ModuleType)
} | {"lkm_gpflow": lkm}
LINK = re.compile(r"\]\(([^)#\s]+)")


@pytest.fixture(params=NOTEBOOKS + PAPER_EXPERIMENTS, ids=lambda path: path.stem)
def path(request: pytest.FixtureRequest) -> Path:
    return request.param


@pytest.fixture
def notebook(path: Path) -> nbformat.NotebookNode:
    return nbformat.read(path, as_version=4)


def code_cells(notebook: nbformat.NotebookNode) -> list[nbformat.NotebookNode]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def outputs(notebook: nbformat.NotebookNode) -> Iterator[nbformat.NotebookNode]:
    for cell in code_cells(notebook):
        yield from cell.outputs


def tags(cell: nbformat.NotebookNode) -> list[str]:
    return cell.metadata.get("tags", [])


def joined(text: Any) -> str:
    return "".join(text) if isinstance(text, list) else str(text)


def texts(notebook: nbformat.NotebookNode) -> Iterator[str]:
    """Everything a reader sees as text: sources, streams and textual results, but no pictures."""
    for cell in notebook.cells:
        yield joined(cell.source)
    for output in outputs(notebook):
        if "text" in output:
            yield joined(output.text)
        for kind, value in output.get("data", {}).items():
            if not kind.startswith("image/") or kind == "image/svg+xml":
                yield joined(value)


def found(pattern: re.Pattern[str], notebook: nbformat.NotebookNode) -> list[str]:
    """Each match with a little of what stands around it, so that a failure says where to look."""
    return [
        text[max(0, match.start() - 30) : match.end() + 30]
        for text in texts(notebook)
        for match in pattern.finditer(text)
    ]


def test_there_are_enough_notebooks() -> None:
    assert len(NOTEBOOKS) >= MIN_NOTEBOOKS, [path.name for path in NOTEBOOKS]


def test_is_valid_and_runs_on_the_default_kernel(notebook: nbformat.NotebookNode) -> None:
    nbformat.validate(notebook)
    assert notebook.metadata.kernelspec.name == "python3"


def test_was_run_from_top_to_bottom(notebook: nbformat.NotebookNode) -> None:
    counts = [cell.execution_count for cell in code_cells(notebook)]
    assert counts == list(range(1, len(counts) + 1))


def test_shows_no_error(notebook: nbformat.NotebookNode) -> None:
    errors = [output for output in outputs(notebook) if output.output_type == "error"]
    assert not errors, [f"{error.ename}: {error.evalue}" for error in errors]


def test_names_no_absolute_path(notebook: nbformat.NotebookNode) -> None:
    assert not found(ABSOLUTE_PATH, notebook)


def test_shows_no_memory_address(notebook: nbformat.NotebookNode) -> None:
    assert not found(MEMORY_ADDRESS, notebook)


def test_is_small(path: Path) -> None:
    assert path.stat().st_size < MAX_BYTES


def test_is_a_story(notebook: nbformat.NotebookNode) -> None:
    prose = [cell for cell in notebook.cells if cell.cell_type == "markdown"]
    assert notebook.cells[0].cell_type == "markdown"
    assert 3 * len(prose) >= len(code_cells(notebook)) > 0


def test_first_code_cell_ignores_its_output(notebook: nbformat.NotebookNode) -> None:
    assert "nbval-ignore-output" in tags(code_cells(notebook)[0])


def test_holds_no_widgets(notebook: nbformat.NotebookNode) -> None:
    assert "widgets" not in notebook.metadata
    kinds = {kind for output in outputs(notebook) for kind in output.get("data", {})}
    assert not [kind for kind in kinds if kind.startswith(WIDGET)]


def hidden_imports(source: str) -> list[str]:
    """The names of the package that a cell imports although they are not public."""
    hidden = []
    for node in ast.walk(ast.parse(re.sub(r"(?m)^\s*[%!].*$", "", source))):
        if isinstance(node, ast.Import):
            hidden += [alias.name for alias in node.names if alias.name not in PUBLIC]
        elif isinstance(node, ast.ImportFrom) and node.module:
            public = getattr(PUBLIC.get(node.module), "__all__", ())
            hidden += [
                f"{node.module}.{alias.name}" for alias in node.names if alias.name not in public
            ]
    return [name for name in hidden if name.split(".")[0] == "lkm_gpflow"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_imports_public_names_only(path: Path) -> None:
    cells = code_cells(nbformat.read(path, as_version=4))
    assert [name for cell in cells for name in hidden_imports(cell.source)] == []


def test_hidden_imports_are_recognised() -> None:
    source = (
        "import numpy\nfrom lkm_gpflow import discover, cli\nfrom lkm_gpflow.kernels import expand"
    )
    assert hidden_imports(source) == ["lkm_gpflow.cli"]
    assert hidden_imports("import lkm_gpflow.cli") == ["lkm_gpflow.cli"]
    assert hidden_imports("from lkm_gpflow.cli import main") == ["lkm_gpflow.cli.main"]


def test_paper_experiments_take_parameters_in_the_second_cell() -> None:
    for path in PAPER_EXPERIMENTS:
        cells = code_cells(nbformat.read(path, as_version=4))
        assert len(cells) >= 2, path.name
        assert "parameters" in tags(cells[1]), path.name


@pytest.mark.parametrize(
    ("text", "is_path"),
    [
        ("saved to /home/ann/x.csv", True),
        ("'/tmp/y'", True),
        (r"C:\Users\ann", True),
        ("https://example.org/home/x", False),
    ],
)
def test_absolute_paths_are_recognised(text: str, is_path: bool) -> None:
    assert bool(ABSOLUTE_PATH.search(text)) is is_path


PAGES = sorted(
    path
    for folder in ("notebooks", "paper_experiments")
    for path in (ROOT / folder).rglob("*.md")
    if (ROOT / "notebooks" / "paper_experiments") not in path.parents
)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_links_of_pages_lead_somewhere(path: Path) -> None:
    assert broken_links(path.read_text(encoding="utf-8"), path) == []


def test_links_of_notebooks_lead_somewhere(notebook: nbformat.NotebookNode, path: Path) -> None:
    prose = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    assert broken_links(prose, path) == []


def broken_links(text: str, path: Path) -> list[str]:
    links = [link for link in LINK.findall(text) if not re.match(r"[a-z]+:", link)]
    return [link for link in links if not (path.parent / link).exists()]

"""The rooms of the package: their contract, their docstrings, and the drawing of them."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import lkm_gpflow as lkm

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "lkm_gpflow"
CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]
LAYERS = CONTRACTS["contracts"][0]["layers"]
ROOMS = sorted(path.parent.name for path in PACKAGE.glob("*/__init__.py"))


def test_nothing_stands_loose() -> None:
    assert [path.name for path in PACKAGE.glob("*.py")] == ["__init__.py"]


def test_every_room_has_its_layer() -> None:
    assert sorted(LAYERS) == ROOMS


@pytest.mark.parametrize("room", ROOMS)
def test_every_room_says_what_it_is_for_and_what_it_may_import(room: str) -> None:
    says = ast.get_docstring(ast.parse((PACKAGE / room / "__init__.py").read_text("utf-8")))
    assert says is not None
    assert re.search(r"^May import: .*\.$", says, re.MULTILINE)


def test_tests_mirror_the_rooms() -> None:
    folders = {path.parent.name for path in (ROOT / "tests").glob("*/test_*.py")}
    assert folders - {"benchmarks", "lab"} == set(ROOMS)


def test_the_drawing_shows_the_contract() -> None:
    """Rooms stand in the order of the layers, and calls point downwards."""
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    drawing = re.search(r"```mermaid\n(.*?)```", text, re.DOTALL)
    assert drawing is not None
    assert re.findall(r"^ *(\w+)\[", drawing[1], re.MULTILINE) == LAYERS
    stack = " ".join(line for line in drawing[1].splitlines() if "~~~" in line)
    assert list(dict.fromkeys(re.findall(r"\w+", stack))) == LAYERS
    calls = re.findall(r"^ *(\w+) ==>\|\d [^|]*\| (\w+)", drawing[1], re.MULTILINE)
    assert len(calls) == 8
    assert all(LAYERS.index(caller) < LAYERS.index(called) for caller, called in calls)


def test_extension_points_are_where_the_page_says() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    named = re.findall(r"`(lkm_gpflow/[\w/.]+)`", text)
    assert len(named) >= 7
    for path in named:
        assert (ROOT / path).exists(), path


def test_the_way_to_a_forecast_is_true() -> None:
    """Ten lines, each naming one module, in which the names of the line occur."""
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    way = re.search(r"```text\n(.*?)```", text, re.DOTALL)
    assert way is not None
    lines = way[1].splitlines()
    assert len(lines) == 10
    for line in lines:
        code, _, comment = line.partition("#")
        module = (PACKAGE / comment.split(":")[0].strip()).read_text("utf-8")
        called = re.findall(r"(\w+)\(", code) or re.findall(r"\w+", code)
        assert called
        for name in called:
            assert re.search(rf"(def|class) {name}\b", module), (name, comment)


def test_what_the_paper_says_is_where_the_table_says() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    rows = re.findall(r"^\| .* \| `(lkm_gpflow/[\w/]+\.py)` \| ((?:`\w+`(?:, )?)+) \|$", text, re.M)
    assert len(rows) == 10
    for path, names in rows:
        module = (ROOT / path).read_text("utf-8")
        for name in re.findall(r"\w+", names):
            assert re.search(rf"(def|class) {name}\b", module), (name, path)


@pytest.mark.parametrize(
    ("importer", "imported"),
    [
        ("gp/tensors.py", "lkm_gpflow.kernels.grammar"),
        ("fit/training.py", "lkm_gpflow.search.structure_search"),
        ("explain/wording.py", "lkm_gpflow.plotting.style"),
    ],
)
def test_an_upward_import_breaks_the_contract(importer: str, imported: str, tmp_path: Path) -> None:
    shutil.copytree(PACKAGE, tmp_path / PACKAGE.name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    assert _lint(tmp_path).returncode == 0
    file = tmp_path / PACKAGE.name / importer
    file.write_text(file.read_text("utf-8") + f"\nimport {imported}\n", "utf-8")
    broken = _lint(tmp_path)
    assert broken.returncode == 1
    module = f"lkm_gpflow.{importer.removesuffix('.py').replace('/', '.')}"
    assert f"{module} -> {imported}" in broken.stdout


def _lint(folder: Path) -> subprocess.CompletedProcess[str]:
    """Check the copy of the package in a folder, not the installed one."""
    code = (
        f"import sys; sys.path.insert(0, {str(folder)!r}); "
        "from importlinter.cli import lint_imports_command; "
        "lint_imports_command(['--no-cache'])"
    )
    return subprocess.run(
        [sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=False
    )


def test_public_names_are_listed_and_nothing_else() -> None:
    assert set(dir(lkm)) == {*lkm.__all__, "__version__"}
    for name in lkm.__all__:
        assert getattr(lkm, name) is not None
    assert lkm.expressions.parse is lkm.parse


def test_the_package_is_entered_without_heavy_imports() -> None:
    code = (
        "import sys, lkm_gpflow, lkm_gpflow.cli.discover_command, lkm_gpflow.cli.data_command; "
        "print([name for name in ('tensorflow', 'gpflow', 'matplotlib') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"

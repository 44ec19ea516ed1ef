"""A release: sdist and wheel are whole, say what they should, and work where nothing else is."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest
import yaml

import lkm_gpflow as lkm

ROOT = Path(__file__).parents[1]
GITHUB = ROOT / ".github"


def run(*command: str | Path, cwd: Path, **environment: str) -> str:
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sdist of this folder, and the wheel that is built from it."""
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--outdir", folder, ROOT, cwd=folder)
    return folder


@pytest.mark.slow
def test_twine_has_nothing_to_say(dist: Path) -> None:
    files = sorted(dist.iterdir())
    assert [file.suffix for file in files] == [".whl", ".gz"]
    said = run(sys.executable, "-m", "twine", "check", "--strict", *files, cwd=dist, NO_COLOR="1")
    assert said.count("PASSED") == 2


@pytest.mark.slow
def test_the_wheel_has_what_the_package_has(dist: Path) -> None:
    (wheel,) = dist.glob("*.whl")
    there = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    here = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "lkm_gpflow").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert there == here
    assert {"lkm_gpflow/py.typed", "lkm_gpflow/__init__.pyi"} <= there


@pytest.mark.slow
def test_the_sdist_has_tests_and_notebooks_and_nothing_that_was_built(dist: Path) -> None:
    (sdist,) = dist.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"README.md", "LICENSE", "tests/conftest.py", "notebooks/01_quickstart.ipynb"} <= names
    built = ("notebooks/paper_experiments/", "notebooks/reference/api/", ".venv", ".ci/")
    assert [name for name in names if name.startswith(built)] == []


@pytest.mark.slow
def test_metadata(dist: Path) -> None:
    (wheel,) = dist.glob("*.whl")
    archive = zipfile.ZipFile(wheel)
    (name,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
    metadata = Parser().parsestr(archive.read(name).decode())
    assert metadata["Version"] == lkm.__version__
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata["Requires-Python"] == ">=3.10"
    links = [link.split(", ")[1] for link in metadata.get_all("Project-URL", [])]
    assert links
    assert all(link.startswith("https://") for link in links)


@pytest.mark.slow
def test_the_wheel_works_outside_this_folder(dist: Path, tmp_path: Path) -> None:
    """In an environment of its own, which borrows the libraries of this one but not the package."""
    run(sys.executable, "-m", "venv", "--without-pip", "clean", cwd=tmp_path)
    (packages,) = (tmp_path / "clean" / "lib").glob("python*/site-packages")
    (wheel,) = dist.glob("*.whl")
    zipfile.ZipFile(wheel).extractall(packages)
    borrowed = next(path for path in sys.path if path.endswith("site-packages"))
    (packages / "borrowed.pth").write_text(borrowed)
    python = tmp_path / "clean" / "bin" / "python"
    where = run(
        python, "-c", "import lkm_gpflow; print(lkm_gpflow.__file__)", cwd=tmp_path, PYTHONPATH=""
    )
    assert Path(where.strip()).is_relative_to(packages)
    command = "from lkm_gpflow.cli import main; main()"
    options = ["discover", "demo", "--depth", "0", "--restarts", "1", "--bases", "SE,PER"]
    run(python, "-c", command, *options, "--averaging", "none", cwd=tmp_path, PYTHONPATH="")
    assert (tmp_path / "demo-lkm" / "report.html").stat().st_size > 10_000


def test_the_version_is_the_same_everywhere() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    recipe = yaml.safe_load((GITHUB / "conda-forge" / "recipe.yaml").read_text(encoding="utf-8"))
    project = re.search(r'^version = "(.+)"', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert project is not None
    assert citation["version"] == recipe["context"]["version"] == project[1] == lkm.__version__
    assert f"## [{project[1]}]" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_the_recipe_needs_what_the_package_needs() -> None:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    listed = re.search(r"^dependencies = \[\n(.*?)^\]", text, re.MULTILINE | re.DOTALL)
    assert listed is not None
    needed = {
        re.sub(r"\[.*?\]", "", line).replace("==", " ").replace(">=", " >=", 1)
        for line in re.findall(r'"(.+)"', re.sub(r"; python_version.*?'3.13'", "", listed[1]))
    }
    recipe = yaml.safe_load((GITHUB / "conda-forge" / "recipe.yaml").read_text(encoding="utf-8"))
    python, branches, *always = recipe["requirements"]["run"]
    assert (python, branches["if"]) == ("python", 'match(python, "<3.13")')
    run_time = [*branches["then"], *branches["else"], *always]
    assert needed == {line.replace("matplotlib-base", "matplotlib") for line in run_time}
    below = re.findall(r'"([\w-]+).*python_version < ', listed[1])
    assert below == [line.split()[0] for line in branches["then"]]


@pytest.mark.parametrize("path", sorted((GITHUB / "workflows").glob("*.yml")), ids=lambda p: p.stem)
def test_a_workflow_asks_for_no_more_than_it_needs(path: Path) -> None:
    workflow = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert workflow["permissions"] == {"contents": "read"}
    assert all(job["runs-on"] == "ubuntu-latest" for job in workflow["jobs"].values())
    assert "secrets." not in path.read_text(encoding="utf-8")


def test_workflows_test_every_python() -> None:
    tests = yaml.safe_load((GITHUB / "workflows" / "tests.yml").read_text(encoding="utf-8"))
    pythons = tests["jobs"]["tests"]["strategy"]["matrix"]["python"]
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert pythons == re.findall(r"Python :: (3\.\d+)", text)

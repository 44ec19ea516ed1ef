"""The documentation site: every public name is in it, it builds without a warning, and opens."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from urllib.parse import unquote

import pytest
from report.chromium import Browser

import lkm_gpflow as lkm
import lkm_gpflow.sktime

ROOT = Path(__file__).parents[1]
REFERENCE = ROOT / "notebooks" / "reference"
MODULES = [
    "comparators", "datasets", "expressions", "ibp", "kernels", "metrics",
    "plotting", "report", "sktime",
]  # fmt: skip
PUBLISHED = {"GITHUB_REPOSITORY": "owner/repository", "GITHUB_REF_NAME": "main"}
PAGES = {
    "index.html": "lkm_gpflow",
    "03_model_and_inference.html": "The model and its inference",
    "paper_experiments/table1.html": "Table 1 and Figure 7: who forecasts best?",
    "reference/api/lkm_gpflow.LKM.html": "LKM",
}
SCRIPTS = {
    "title": "document.querySelector('h1').firstChild.textContent",
    "broken pictures": "[...document.images].filter(i => i.naturalWidth < 10).length",
    "pictures": "[...document.querySelectorAll('article img')].length",
    "formulas": "document.querySelectorAll('math').length",
    "unread formulas": r"(document.querySelector('article').innerText.match(/\\(frac|sum|mathcal)|:math:/g) || []).length",  # noqa: E501
    "too wide": "document.documentElement.scrollWidth - document.documentElement.clientWidth",
    "parameters": "[...document.querySelectorAll('dt')].filter(e => e.textContent.startsWith('Parameters')).length",  # noqa: E501
}


def documented() -> set[str]:
    """The full names that the pages of the reference list."""
    names = set()
    for page in REFERENCE.glob("*.md"):
        module, listing = "", False
        for line in page.read_text(encoding="utf-8").splitlines():
            if match := re.match(r"\.\. currentmodule:: (\S+)", line):
                module = match[1]
            elif match := re.match(r"\.\. py:data:: (\S+)", line):
                names.add(f"{module}.{match[1]}")
            elif line.startswith("```"):
                listing = False
            elif line.startswith(".. autosummary::"):
                listing = True
            elif listing and (match := re.match(r"   (\w[\w.]*)$", line)):
                names.add(f"{module}.{match[1]}")
    return names


def public_names(module: ModuleType) -> list[str]:
    if listed := getattr(module, "__all__", None):
        return list(listed)
    here = module.__name__
    return [
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", None) == here
    ]


def missing(module: ModuleType, prefix: str) -> list[str]:
    """Public names of a module that no page has, neither here nor as the same object elsewhere."""
    there = documented()
    objects = {id(resolve(name)) for name in there}
    return [
        name
        for name in public_names(module)
        if f"{prefix}.{name}" not in there
        and id(getattr(module, name)) not in objects
        and not (isinstance(getattr(module, name), ModuleType) and name in MODULES)
    ]


def resolve(name: str) -> object:
    value: object = lkm
    for part in name.removeprefix("lkm_gpflow.").split("."):
        value = getattr(value, part)
    return value


def test_every_public_name_is_in_the_reference() -> None:
    assert missing(lkm, "lkm_gpflow") == []


@pytest.mark.parametrize("name", MODULES)
def test_every_public_name_of_a_module_is_in_the_reference(name: str) -> None:
    public = getattr(lkm, name)
    assert public_names(public)
    assert missing(public, f"lkm_gpflow.{name}") == []


def test_modules_of_the_reference_are_those_of_the_package() -> None:
    modules = {name for name in lkm.__all__ if isinstance(getattr(lkm, name), ModuleType)}
    assert modules == set(MODULES) - {"sktime"}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as CONTRIBUTING.md says; as in the workflow it knows the repository."""
    folder = tmp_path_factory.mktemp("site")
    built = subprocess.run(
        [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "notebooks", str(folder)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), **PUBLISHED},
        capture_output=True,
        text=True,
    )
    assert built.returncode == 0, built.stderr
    return folder


@pytest.mark.slow
def test_the_site_is_whole(site: Path) -> None:
    notebooks = {path.stem for path in (ROOT / "notebooks").glob("*.ipynb")}
    paper = {path.stem for path in (ROOT / "paper_experiments").glob("*.ipynb")}
    assert notebooks <= {path.stem for path in site.glob("*.html")}
    assert paper == {path.stem for path in (site / "paper_experiments").glob("*.html")}
    for page, path in (
        ("01_quickstart", "notebooks/01_quickstart.ipynb"),
        ("paper_experiments/table1", "paper_experiments/table1.ipynb"),
    ):
        text = (site / f"{page}.html").read_text(encoding="utf-8")
        assert f"https://mybinder.org/v2/gh/owner/repository/main?urlpath=lab/tree/{path}" in text
        assert (ROOT / path).exists()


@pytest.mark.slow
def test_links_inside_hold(site: Path) -> None:
    anchors = {
        page: set(re.findall(r'\bid="([^"]+)"', page.read_text(encoding="utf-8")))
        for page in site.rglob("*.html")
    }
    broken = []
    for page in anchors:
        for link in re.findall(r'<a [^>]*href="([^"]+)"', page.read_text(encoding="utf-8")):
            if re.match(r"[a-z]+:", link):
                continue
            path, _, anchor = unquote(link).partition("#")
            target = (page.parent / path).resolve() if path else page
            if not target.exists() or (
                anchor and target in anchors and anchor not in anchors[target]
            ):
                broken.append(f"{page.relative_to(site)}: {link}")
    assert len(anchors) > 150
    assert broken == []


@pytest.mark.slow
@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("name", PAGES)
def test_a_page_opens(chromium: Browser, site: Path, name: str, width: int) -> None:
    page = chromium.visit(site / name, width, SCRIPTS)
    seen = page.results
    assert seen["title"] == PAGES[name]
    assert seen["broken pictures"] == seen["unread formulas"] == 0
    assert seen["too wide"] <= 0
    if name == "index.html":
        assert seen["pictures"] > 0
    if "model" in name or "LKM" in name:
        assert seen["formulas"] > 0
    if "LKM" in name:
        assert seen["parameters"] > 5


@pytest.mark.slow
def test_no_page_is_wider_than_a_phone(chromium: Browser, site: Path) -> None:
    script = {"too wide": SCRIPTS["too wide"]}
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > 150
    wide = {
        str(page.relative_to(site)): excess
        for page in pages
        if (excess := chromium.visit(page, 390, script).results["too wide"]) > 0
    }
    assert wide == {}

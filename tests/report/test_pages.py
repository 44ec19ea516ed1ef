"""Reports in a browser: nothing from outside, no complaint, nothing too wide, on desk and phone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from lkm_gpflow.report import Report
from report.chromium import Browser, browser, program
from report.test_reports import ODD_NAMES, found_in, waves

SCRIPTS = {
    "pictures": "[...document.images].map(i => [i.naturalWidth, i.getBoundingClientRect().width])",
    "too wide": "document.documentElement.scrollWidth - document.documentElement.clientWidth",
    "names": "[...document.querySelectorAll('bdi')].map(e => e.textContent)",
    "made of names": "document.querySelectorAll('bdi *').length",
    "alternatives": "[...document.images].every(i => i.alt.length > 10)",
}


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    if program() is None:
        pytest.skip("needs chromium (Debian: apt-get install chromium)")
    with browser(tmp_path_factory.mktemp("profile")) as started:
        yield started


@pytest.fixture(scope="module")
def reports() -> dict[str, Report]:
    found = found_in(waves(ODD_NAMES))
    return {
        "group": found.report(),
        "pair": found.compare(ODD_NAMES[0], ODD_NAMES[1]),
        "all": found.compare_all(),
    }


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("name", ["group", "pair", "all"])
def test_a_page_opens_without_a_network(
    chromium: Browser, reports: dict[str, Report], name: str, width: int, tmp_path: Path
) -> None:
    file = reports[name].to_html(tmp_path / "report.html")
    page = chromium.visit(file, width, SCRIPTS)
    outside = [url for url in page.requests if not url.startswith(("data:", file.as_uri()))]
    assert outside == []
    assert page.complaints == []
    assert len(page.results["pictures"]) == len(reports[name].pictures())
    for natural, shown in page.results["pictures"]:
        assert natural > 100
        # On a phone a picture keeps a readable size; it is pushed sideways, the page is not.
        assert shown == 704 if width == 390 else 100 < shown <= width
    assert page.results["too wide"] <= 0
    assert page.results["alternatives"]
    assert page.results["made of names"] == 0
    if name != "all":
        assert ODD_NAMES[0] in page.results["names"]


def test_the_browser_would_complain(chromium: Browser, tmp_path: Path) -> None:
    file = tmp_path / "bad.html"
    file.write_text(
        "<img src='http://localhost:9/x.png'><script>console.error('no')</script>"
        "<div style='width:3000px'>wide</div>"
    )
    page = chromium.visit(file, 390, SCRIPTS)
    assert "http://localhost:9/x.png" in page.requests
    assert any("no" in each for each in page.complaints)
    assert page.results["too wide"] > 0

"""Reports in a browser: nothing from outside, no complaint, nothing too wide, on desk and phone."""

from __future__ import annotations

from pathlib import Path

import pytest

from lkm_gpflow.report import Report
from report.chromium import Browser
from report.test_reports import ODD_NAMES, found_in, waves

SCRIPTS = {
    "pictures": "[...document.images].map(i => [i.naturalWidth, i.getBoundingClientRect().width])",
    "too wide": "document.documentElement.scrollWidth - document.documentElement.clientWidth",
    "names": "[...document.querySelectorAll('bdi')].map(e => e.textContent)",
    "made of names": "document.querySelectorAll('bdi *').length",
    "contents lead nowhere": "[...document.querySelectorAll('nav a')]"
    ".filter(a => !document.querySelector(a.hash)).length",
    "scrolled by keys": "[...document.querySelectorAll('.scroll')].every(e => e.tabIndex === 0)",
    "alternatives": "[...document.images].every(i => i.alt.length > 10)",
}


CONTRAST = """
(() => {
  const rgb = text => text.match(/[\\d.]+/g).map(Number)
    .map((v, i) => text.startsWith("color(srgb") && i < 3 ? 255 * v : v);
  const light = c => c.slice(0, 3).map(v => v / 255)
    .map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = e => {
    for (; e; e = e.parentElement) {
      const c = rgb(getComputedStyle(e).backgroundColor);
      if (c.length < 4 || c[3] > 0) return c;
    }
    return [255, 255, 255];
  };
  const said = [...document.querySelectorAll("main *")].filter(
    e => [...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim()));
  return Math.min(...said.map(e => {
    const [a, b] = [light(rgb(getComputedStyle(e).color)), light(behind(e))];
    return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  }));
})()
"""
"""The least contrast of any text with what is behind it, as WCAG 2 defines it."""


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
    # A group report has the forecasts on page one, too.
    assert len(page.results["pictures"]) == len(reports[name].pictures()) + (name == "group")
    for natural, shown in page.results["pictures"]:
        assert natural > 100
        # On a phone a picture keeps a readable size; it is pushed sideways, the page is not.
        assert shown == 704 if width == 390 else 100 < shown <= width
    assert page.results["too wide"] <= 0
    assert page.results["alternatives"]
    assert page.results["contents lead nowhere"] == 0
    assert page.results["scrolled by keys"]
    assert page.results["made of names"] == 0
    if name != "all":
        assert ODD_NAMES[0] in page.results["names"]


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("name", ["group", "pair", "all"])
def test_text_can_be_read_by_day_and_night(
    chromium: Browser, reports: dict[str, Report], name: str, dark: bool, tmp_path: Path
) -> None:
    file = reports[name].to_html(tmp_path / "report.html")
    paper = "getComputedStyle(document.querySelector('main')).backgroundColor"
    page = chromium.visit(file, 1280, {"contrast": CONTRAST, "paper": paper}, dark=dark)
    assert (page.results["paper"] == "rgb(255, 255, 255)") is not dark
    assert page.results["contrast"] >= 4.5


def test_pale_text_would_be_seen(chromium: Browser, tmp_path: Path) -> None:
    file = tmp_path / "pale.html"
    file.write_text("<main style='background: #fff'><p style='color: #999'>pale</p></main>")
    assert chromium.visit(file, 1280, {"contrast": CONTRAST}).results["contrast"] < 3.0


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

"""The card that a discovery shows in a notebook."""

from __future__ import annotations

import re
from html import unescape
from xml.etree import ElementTree

import pandas as pd
from small import made_by_hand, small_table

import lkm_gpflow as lkm
from lkm_gpflow.plotting import component_colour
from lkm_gpflow.report import card

KERNELS = ["0.5 x PER(period=88, lengthscale=1)", "0.5 x SE(lengthscale=100)"]


def html_of(frame: pd.DataFrame, Z: list[list[int]]) -> tuple[lkm.Discovery, str]:
    found = made_by_hand(frame, KERNELS, Z)
    return found, found._repr_html_()


def test_it_shows_who_has_what_and_each_component_in_words() -> None:
    found, html = html_of(small_table(), [[1, 0], [1, 1], [0, 1]])
    body = ElementTree.fromstring(html[html.index("<div") :])  # closed tags, quoted attributes
    text = re.sub(r"\s+", " ", unescape("".join(body.itertext())))
    assert "3 series of 40 times, 2 components" in text
    rows = [list(row) for row in body.iter("tr")][1:]
    assert ["".join(row[0].itertext()) for row in rows] == ["a", "b", "c"]
    shown = [["".join(cell.itertext()) for cell in row[1:]] for row in rows]
    table = found.patterns()["probability"]
    assert shown == [[f"{p:.2f}" for p in table.xs(n, level="series")] for n in "abc"]
    bold = [[cell.find(".//b") is not None for cell in row[1:]] for row in rows]
    assert bold == (found.structure.to_numpy() == 1).tolist()
    for k, kernel in enumerate(found.kernels):
        assert f"{kernel:.3g}" in text
        assert component_colour(k) in html
    assert "cycle" in text
    assert "slow drift over" in text
    assert "0x" not in html


def test_names_are_no_markup_and_many_series_are_cut() -> None:
    frame = small_table()[["a"]].rename(columns={"a": "<b>&"})
    html = html_of(frame, [[1, 0]])[1]
    assert "<bdi>&lt;b&gt;&amp;</bdi>" in html
    many = pd.concat([small_table()[["a"]].set_axis([f"s{i}"], axis=1) for i in range(45)], axis=1)
    found, html = html_of(many, [[1, 1]] * 45)
    assert html.count("<tr") == card.MOST_SERIES + 1
    assert "and 5 more series" in html


def test_one_component_is_no_plural() -> None:
    found = made_by_hand(small_table(), KERNELS[:1], [[1], [1], [0]])
    for said in (repr(found), found._repr_html_()):
        assert ", 1 component," in said

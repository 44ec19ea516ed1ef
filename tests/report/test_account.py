"""One account: what a report says of patterns, probabilities and forecasts agrees."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from small import made_by_hand, small_table
from told import contradictions_of

import lkm_gpflow as lkm
from lkm_gpflow.report import GroupReport
from lkm_gpflow.sharing.posterior import VISIBLE


def contradictions(report: GroupReport) -> Iterator[str]:
    """What a report says that something else in it denies."""
    found = report.found
    yield from contradictions_of(report.patterns)
    told = found.patterns(report.level, report.units)
    for each in report.patterns:
        owners = set(each.owners)
        for n, one in enumerate(report.series):
            own, kind = each.of(one.name), report.cell(one, each)[0]
            row = told.loc[(each.title, found.table.frame.columns[n])]
            if row["verdict"] != each.verdicts[one.name] or row["probability"] != own.probability:
                yield f"two verdicts on {one.name} and {each.title}"
            if (kind == "has") != (one.name in owners):
                yield f"the table and the sentence differ on {one.name} and {each.title}"
            certain, _, doubtful = one.account.partition("Perhaps it has")
            if (one.name in owners) != (each.account(one.name) in certain and one.name in owners):
                yield f"the account of {one.name} lacks {each.title}"
            if one.name in owners and each.account(one.name) in doubtful:
                yield f"the account of {one.name} doubts {each.title}"
            if one.name in owners and own.share.upper < VISIBLE:
                yield f"{one.name} has {each.title}, of which there is nothing"
    for sentence in report.statements:
        if sentence not in report.summary:
            yield f"the summary lacks {sentence!r}"


@pytest.mark.parametrize("averaging", ["stacked", "tempered", "none"])
def test_no_sentence_contradicts_another(averaging: str, small_found: lkm.Discovery) -> None:
    report = replace(small_found, averaging=averaging).report()
    assert list(contradictions(report)) == []


def test_a_contradiction_would_be_found(small_found: lkm.Discovery) -> None:
    report = replace(small_found, averaging="tempered").report()
    first = report.patterns[0]
    own = first.behaviours[0]
    p = 0.0 if own.probability > 0.5 else 1.0
    denied = replace(first, behaviours=(replace(own, probability=p), *first.behaviours[1:]))
    wrong = replace(report, patterns=(denied, *report.patterns[1:]))
    assert any("two verdicts" in said for said in contradictions(wrong))
    again = replace(report, patterns=(first, first))
    assert any("one name" in said for said in contradictions(again))


@pytest.mark.parametrize("name", ["demo", "gonu"])
@pytest.mark.slow
def test_no_contradiction_about_larger_tables(name: str, request: pytest.FixtureRequest) -> None:
    if name != "demo":
        request.getfixturevalue("tables")
    table = lkm.datasets.load(name)
    found = lkm.discover(table.frame, depth=0, restarts=1, progress=False)
    assert list(contradictions(found.report(units=table.units))) == []


def test_noise_beside_a_cycle_has_no_pattern(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    cycle = np.sin(2.0 * np.pi * np.arange(60.0) / 12.0)[:, None] * [0.0, 1.0, 0.7]
    frame = pd.DataFrame(cycle + rng.normal(size=(60, 3)) * [1.0, 0.2, 1.0], columns=list("abc"))
    told = lkm.discover(frame, bases=("PER",), depth=0, restarts=2, progress=False).report()
    assert told.series[0].account.startswith("No pattern is certain in a.")
    assert re.search(r"\bb\b.* ha(s|ve) a cycle of 12", told.summary)
    page = told.to_html(tmp_path / "r.html").read_text(encoding="utf-8")
    assert "a cycle of 12" in page


def test_one_series_moves_with_nobody(tmp_path: Path) -> None:
    alone = made_by_hand(small_table()[["a"]], ["1 x PER(period=48,lengthscale=2)"], [[1]]).report()
    page = alone.to_html(tmp_path / "r.html").read_text(encoding="utf-8")
    for told in (alone.text, page):
        assert "move together" not in told
    empty = made_by_hand(small_table()[["a"]], [], [[]], noise=1.0).report()
    assert "No series certainly has a pattern." in empty.text
    empty.to_html(tmp_path / "r.html")


@pytest.mark.slow
@pytest.mark.parametrize("shape", ["poisson", "standard_t"])
def test_noise_has_no_pattern_whatever_its_shape(shape: str) -> None:
    """A few large values may stand at equal distances, and yet nothing repeats."""
    arguments = {"poisson": (0.3,), "standard_t": (2.0,)}[shape]
    draw = getattr(np.random.default_rng(0), shape)
    days = pd.date_range("2020-01-01", periods=60, freq="W")
    noise = pd.DataFrame(draw(*arguments, size=(60, 3)), index=days, columns=list("abc"))
    report = lkm.discover(noise, depth=1, restarts=1, progress=False).report()
    assert not any(each.owners for each in report.patterns if each.pattern.kind != "event")

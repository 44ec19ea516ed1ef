"""One account: what a report says of components, probabilities and forecasts agrees."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from lkm_gpflow.report.summary import LIKELY, summary
from small import made_by_hand, small_table

import lkm_gpflow as lkm
from lkm_gpflow.explain.attribution import AUTOREGRESSION, DISAGREEMENT, NOISE, WALKS
from lkm_gpflow.explain.verdicts import Verdict
from lkm_gpflow.report import GroupReport
from lkm_gpflow.sharing.consensus import OTHERS

LEANS = 0.1
"""Of a forecast: a part of a larger share must be told of."""


def contradictions(report: GroupReport) -> Iterator[str]:
    """What a report says that something else in it denies."""
    found = report.found
    by_name = {each.name: each for each in report.components}
    listed = [each.name for _, group in report.groups for each in group]
    if sorted(listed) != sorted(found.names):
        yield f"the list of components has {listed}, the table of probabilities {found.names}"
    shares = found.ensemble.shares
    added = shares["walk"] + shares["seasonal walk"]
    if (added > 0.0) != ("added for safety" in report.summary):
        yield f"{added:.0%} of walks, and the summary says {report.summary!r}"
    others = shares["autoregression"]
    if (others > 0.0) != ("a vector autoregression" in report.summary):
        yield f"{others:.0%} of others, and the summary says {report.summary!r}"
    for series in report.series:
        for moment, shares in (("mean", series.mean_shares), ("variance", series.variance_shares)):
            total = sum(shares.values())
            if abs(total - 1.0) > 1e-6 and total != 0.0:
                yield f"the {moment} of {series.name} adds up to {total:.0%}"
            for part, share in shares.items():
                if not 0.0 <= share <= 1.0:
                    yield f"{share:.0%} of the {moment} of {series.name} is {part}"
                if share <= LEANS or part in (NOISE, DISAGREEMENT):
                    continue
                if part == WALKS:
                    if not added:
                        yield f"{series.name} leans on walks that nobody added"
                elif part == AUTOREGRESSION:
                    if not others:
                        yield f"{series.name} leans on an autoregression that nobody asked"
                elif part == OTHERS:
                    yield f"{series.name} leans by {share:.0%} on what is not told of"
                elif by_name[part].claims[series.name].verdict == "has not":
                    yield f"{series.name} leans by {share:.0%} on {part}, which it has not"
        if abs(sum(series.shares.values()) - 1.0) > 1e-6:
            yield f"the variation of {series.name} adds up to {sum(series.shares.values()):.0%}"
    for each in report.components:
        for name, claim in each.claims.items():
            if claim.verdict == "has" and claim.probability <= 0.5:
                yield f"{name} has {each.name} with P {claim.probability:.2f}"
            if claim.verdict == "has not" and claim.probability > 0.5:
                yield f"{name} has not {each.name} with P {claim.probability:.2f}"
            if abs(claim.probability - found.probabilities.loc[name, each.name]) > 1e-12:
                yield f"two probabilities of {name} and {each.name}"
        if each.owners and ("Perhaps" in each.who or "cannot" in each.who):
            yield f"the heading of {each.name} doubts what its body says"


@pytest.mark.parametrize("averaging", ["stacked", "tempered", "none"])
def test_no_sentence_contradicts_another(averaging: str, small_found: lkm.Discovery) -> None:
    report = replace(small_found, averaging=averaging).report()
    assert list(contradictions(report)) == []


def test_a_contradiction_would_be_found(small_found: lkm.Discovery) -> None:
    report = replace(small_found, averaging="tempered").report()
    series = report.series[0]
    wrong = replace(series, variance_shares={**series.variance_shares, OTHERS: 1.75})
    assert any(
        "175%" in said
        for said in contradictions(replace(report, series=(wrong, *report.series[1:])))
    )
    first = report.components[0]
    claims = {name: replace(claim, verdict="has not") for name, claim in first.claims.items()}
    denied = replace(report, components=(replace(first, claims=claims), *report.components[1:]))
    assert any("has not" in said for said in contradictions(denied))


@pytest.mark.parametrize("name", ["demo", "gonu"])
@pytest.mark.slow
def test_no_contradiction_about_larger_tables(name: str, request: pytest.FixtureRequest) -> None:
    if name != "demo":
        request.getfixturevalue("tables")
    table = lkm.datasets.load(name)
    found = lkm.discover(table.frame, depth=0, restarts=1, progress=False)
    assert list(contradictions(found.report(units=table.units))) == []


def test_the_summary_names_what_is_sure_and_only_that() -> None:
    found = lkm.discover(
        small_table(), bases=("LIN", "SE", "PER"), depth=0, restarts=2, progress=False
    )
    report = found.report()
    for each in report.components:
        named = each.description.short in report.summary
        chances = [each.claims[name].probability for name in each.those("perhaps")]
        assert named == bool(each.owners or max(chances, default=0.0) >= LIKELY)


def test_noise_beside_a_cycle_is_not_said_to_be_moved_by_it() -> None:
    rng = np.random.default_rng(0)
    cycle = np.sin(2.0 * np.pi * np.arange(60.0) / 12.0)[:, None] * [0.0, 1.0, 0.7]
    frame = pd.DataFrame(cycle + rng.normal(size=(60, 3)) * [1.0, 0.2, 1.0], columns=list("abc"))
    told = lkm.discover(frame, bases=("PER",), depth=0, restarts=2, progress=False).report()
    noise, strong, weak = (each.comes_from(told.phrases) for each in told.series)
    assert "hardly anything moves its forecast away from the average" in noise
    for said in (strong, weak):
        assert "of what moves its forecast away from the average comes from a cycle of 12" in said
    assert 0.0 <= told.series[0].movement < 0.2 < told.series[2].movement


def test_one_series_shares_nothing(tmp_path: Path) -> None:
    alone = made_by_hand(small_table()[["a"]], ["1 x PER(period=48,lengthscale=2)"], [[1]]).report()
    page = alone.to_html(tmp_path / "r.html").read_text(encoding="utf-8")
    for told, head in ((alone.text, "## Its patterns\n"), (page, ">Its patterns</h2>")):
        assert head in told
        assert "What they share" not in told
    empty = made_by_hand(small_table()[["a"]], [], [[]], noise=1.0).report()
    assert "found no pattern in this series, nothing but noise." in empty.text


@pytest.mark.parametrize(
    ("verdict", "bases", "said"),
    [
        ("has not", ("PER", "SE"), True),
        ("cannot be told", ("PER", "SE"), False),
        ("has not", ("SE",), False),
    ],
)
def test_nothing_repeats_if_no_series_may_have_a_cycle(
    verdict: Verdict, bases: tuple[str, ...], said: bool
) -> None:
    """One that the search found is denied for all series, or one of them may have it."""
    found = made_by_hand(small_table(), ["0.5 x PER(period=85,lengthscale=1)"], [[1]] * 3)
    found = replace(found, settings=replace(found.settings, bases=bases))
    (cycle,) = found.report().components
    verdicts = zip(cycle.claims.items(), ("has not", "has not", verdict), strict=True)
    claims = {name: replace(claim, verdict=judged) for (name, claim), judged in verdicts}
    told = summary(found, [replace(cycle, claims=claims)], {})
    assert ("Nothing repeats in cycles." in told) == said


@pytest.mark.slow
@pytest.mark.parametrize("shape", ["poisson", "standard_t"])
def test_noise_has_no_pattern_whatever_its_shape(shape: str) -> None:
    """A few large values may stand at equal distances, and yet nothing repeats."""
    arguments = {"poisson": (0.3,), "standard_t": (2.0,)}[shape]
    draw = getattr(np.random.default_rng(0), shape)
    days = pd.date_range("2020-01-01", periods=60, freq="W")
    noise = pd.DataFrame(draw(*arguments, size=(60, 3)), index=days, columns=list("abc"))
    report = lkm.discover(noise, depth=1, restarts=1, progress=False).report()
    assert not any(each.owners for each in report.components)

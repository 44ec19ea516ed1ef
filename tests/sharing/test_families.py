"""Cycles, slow movements and patterns of unknown form: what belongs together, who has any of it."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import numpy as np
import pandas as pd
import pytest
from scipy.special import digamma, expit, logit
from small import agreed, small_table

import lkm_gpflow as lkm
from lkm_gpflow.explain.decomposition import Decomposition
from lkm_gpflow.kernels.component import to_kernel
from lkm_gpflow.kernels.grammar import parse
from lkm_gpflow.report.family import families_of_pair, family_reports
from lkm_gpflow.report.summary import summary
from lkm_gpflow.sharing.families import Family, are_slow, families_of

STRICT = "1 x PER(period=88,lengthscale=1)"
WANDERS = "1 x PER(period=86,lengthscale=1) x RW(start=-90)"
SMOOTH = "1 x SE(lengthscale=60)"


SPAN = np.array([0.0, 273.0])


def together(*kernels: str) -> list[tuple[int, ...]]:
    found = families_of([parse(kernel) for kernel in kernels], SPAN)
    return [members for kind, members in found if kind == "cycle"]


def family_of(found: lkm.Discovery, kind: str) -> Family:
    (family,) = (each for each in found.consensus.families if each.kind == kind)
    return family


ROWS = [[1, 0], [1, 0], [0, 1]]


def in_two_forms() -> lkm.Discovery:
    return agreed(small_table(), [(0.6, [STRICT, SMOOTH], ROWS), (0.4, [WANDERS, SMOOTH], ROWS)])


def test_cycles_of_about_one_period_belong_together() -> None:
    other = "1 x PER(period=44,lengthscale=1)"
    assert together(SMOOTH, WANDERS, other, STRICT) == [(1, 3)]
    approximate = "1 x PER(period=43,lengthscale=1) x SE(lengthscale=200)"
    assert together(other, STRICT, approximate, WANDERS) == [(0, 2), (1, 3)]
    assert together(STRICT, SMOOTH) == []
    assert together(STRICT, "1 x PER(period=98,lengthscale=1)") == []


def test_a_product_of_cycles_has_the_longer_period() -> None:
    product = "1 x PER(period=12,lengthscale=1) x PER(period=87,lengthscale=1)"
    assert together(STRICT, product) == [(0, 1)]


def test_what_never_repeats_is_no_cycle() -> None:
    assert together(STRICT, "1 x PER(period=88,lengthscale=1) x SE(lengthscale=40)") == []


def test_who_has_any_form() -> None:
    """Two fits disagree on the form: each series has a cycle by its fit's probability of it."""
    found = in_two_forms()
    consensus, cycle = found.consensus, family_of(found, "cycle")
    names = [str(consensus.kernels[k].structure) for k in cycle.members]
    assert sorted(names) == ["PER", "PER x RW"]
    first, second = consensus.fits
    expected = 0.6 * first.probabilities[:, 0] + 0.4 * second.probabilities[:, 0]
    np.testing.assert_allclose(consensus.weights @ cycle.by_fit, expected)
    evidence = np.zeros(3)
    for weight, fit in zip(consensus.weights, consensus.fits, strict=True):
        on, off = digamma(fit.tau[0])
        prior = expit(on - off)
        evidence += weight * (logit(fit.probabilities[:, 0].clip(1e-12, 1 - 1e-12)) - logit(prior))
    np.testing.assert_allclose(cycle.evidence, evidence, rtol=1e-6)
    part = consensus.of_series(np.array([2, 0], np.int32)).families[0]
    np.testing.assert_array_equal(part.by_fit, cycle.by_fit[:, [2, 0]])
    np.testing.assert_array_equal(part.evidence, cycle.evidence[[2, 0]])


def test_the_report_says_what_is_sure_of_a_cycle_in_two_forms() -> None:
    report = in_two_forms().report()
    (cycle,) = (each for each in report.families if each.kind == "cycle")
    assert cycle.owners == ("a", "b")
    assert not any(each.owners for each in report.components if "PER" in each.name)
    assert "a and b have a cycle of about 2.9 months, in a form that cannot be told." in (
        report.summary
    )
    assert "**Cycle of about 2.9 months.** a (P 1.00) and b (P 1.00) have one." in report.text
    numbers = [each.number for each in report.components if "PER" in each.name]
    assert f"it may be component {numbers[0]} or {numbers[1]}." in report.text
    assert cycle.to_dict() in report.to_dict()["families"]


def test_a_form_that_is_sure_needs_no_such_sentence() -> None:
    found = in_two_forms()
    consensus = found.consensus
    sure = consensus.by_fit.copy()
    (strict,) = (k for k, each in enumerate(consensus.kernels) if str(each.structure) == "PER")
    sure[:, 0, strict] = 1.0
    evidence = np.full_like(consensus.evidence, 9.0)
    found.__dict__["consensus"] = replace(consensus, by_fit=sure, evidence=evidence)
    report = found.report()
    assert ("a",) in [each.owners for each in report.components]
    assert [each.owners for each in report.families if each.kind == "cycle"] == [("b",)]


def test_what_it_takes_to_have_a_cycle_of_some_form() -> None:
    """Probability, evidence and share, each just short of enough for one of the series."""
    found = in_two_forms()
    cycle = family_of(found, "cycle")
    untold = pd.DataFrame(np.full((3, len(found.names)), "cannot be told"))

    def owners(p: float = 0.95, evidence: float = 4.0, share: float = 0.03) -> list[str]:
        by_fit, every = np.full((2, 3), 0.95), np.full(3, 4.0)
        by_fit[:, 0], every[0] = p, evidence
        shares = np.full((3, len(found.names)), 0.03)
        shares[0, list(cycle.members)] = share
        found.__dict__["consensus"] = replace(
            found.consensus, families=(replace(cycle, by_fit=by_fit, evidence=every),)
        )
        parts = cast(Decomposition, SimpleNamespace(share=shares))
        return [name for told in family_reports(found, parts, untold) for name in told.owners]

    assert owners() == ["a", "b", "c"]
    assert owners(p=0.89) == owners(evidence=2.9) == owners(share=0.02) == ["b", "c"]


def test_its_period_is_that_of_the_fits_that_count_most() -> None:
    fits = [(0.88, [STRICT, SMOOTH], ROWS), (0.12, [WANDERS.replace("86", "80"), SMOOTH], ROWS)]
    reported = agreed(small_table(), fits).report().families
    (cycle,) = (each for each in reported if each.kind == "cycle")
    assert cycle.duration == "2.9 months"  # 87 days; the mean of both is 84, 2.8 months


@pytest.mark.parametrize("series", ["b", "c"])
def test_parts_of_a_discovery_keep_their_cycles(series: str) -> None:
    report = in_two_forms().select([series]).report()
    assert [each.owners for each in report.families if each.kind == "cycle"] == (
        [("b",)] if series == "b" else []
    )


@pytest.mark.parametrize(
    ("kernel", "is_slow"),
    [
        ("1 x RW(start=-0.3)", True),
        ("1 x RW(start=0)", True),
        ("1 x LIN(location=0.2)", True),
        ("1 x IOU(lengthscale=0.1,start=-0.3)", True),
        ("1 x SE(lengthscale=0.06)", True),
        ("1 x SE(lengthscale=0.05)", False),
        ("1 x FROM(at=0.4,width=0.01)", True),
        ("1 x PER(period=0.2,lengthscale=1)", False),
        ("1 x PER(period=0.2,lengthscale=1) x RW(start=-0.3)", False),
        ("1 x PER(period=0.6,lengthscale=1)", True),
        ("1 x WN", False),
    ],
)
def test_what_is_slow_against_draws(kernel: str, is_slow: bool) -> None:
    """Of draws, most of the variance is between tenths of the time if they are slow."""
    assert are_slow([parse(kernel)], np.array([0.0, 1.0])).tolist() == [is_slow]
    rng, t = np.random.default_rng(1), (np.arange(400) + 0.5) / 400.0
    C = np.asarray(to_kernel(parse(kernel))(t[:, None])) + 1e-9 * np.eye(400)
    draws = np.linalg.cholesky(C) @ rng.normal(size=(400, 5000))
    within = draws.reshape(10, 40, -1).var(axis=1).mean()
    assert (within < 0.25 * draws.var(axis=0).mean()) == is_slow


def test_slow_is_meant_of_the_time_that_was_seen() -> None:
    smooth = [parse("1 x SE(lengthscale=1.5)")]
    assert are_slow(smooth, np.array([100.0, 120.0])).tolist() == [True]
    assert are_slow(smooth, np.array([100.0, 140.0])).tolist() == [False]


def test_a_constant_is_not_slow_whatever_its_height() -> None:
    kernels = [parse("1e6 x C"), parse("1e-6 x RW(start=0)")]
    assert are_slow(kernels, np.array([3.0, 40.0])).tolist() == [False, True]


WALK = "1 x RW(start=-90)"
MOVES = [[0, 1], [1, 1], [1, 0]]


def that_moves() -> lkm.Discovery:
    return agreed(small_table(), [(0.6, [WALK, STRICT], MOVES), (0.4, [SMOOTH, STRICT], MOVES)])


def test_the_report_says_what_is_sure_of_a_slow_movement_in_two_forms(tmp_path: Path) -> None:
    report = that_moves().report()
    (slow,) = report.families
    assert slow.owners == ("b", "c")
    assert "b and c have a slow movement, in a form that cannot be told." in report.summary
    forms = [each.number for each in report.components if "PER" not in each.name]
    assert (
        "**Slow movement.** b (P 1.00) and c (P 1.00) have one, which takes 3.9 weeks or longer. "
        f"Its form cannot be told: it may be component {forms[0]}, {forms[1]} or one that no fit "
        "has."
    ) in report.text
    assert report.to_dict()["families"] == [slow.to_dict()]
    assert slow.to_dict()["kind"] == "slow movement"
    assert slow.verdicts == {"a": "has not", "b": "has", "c": "has"}
    assert slow.probabilities.keys() == set("abc")
    table = report.text[report.text.index("## Who has what") :]
    assert "| Slow movement, in whatever form |" in table
    assert table.count("1.00 |") >= 2
    page = report.to_html(tmp_path / "report.html").read_text(encoding="utf-8")
    assert "Slow movement, in whatever form</th>" in page
    assert page.count('<td class="has">has<br>1.00</td>') == 2


@pytest.mark.parametrize(
    ("verdicts", "words"),
    [
        (["perhaps", "cannot be told"], "component {0}, {1} or one that no fit has."),
        (["has not", "perhaps"], "component {1} or one that no fit has."),
        (["has not", "has not"], "it may be one that no fit has."),
    ],
)
def test_what_a_series_has_not_is_no_form_of_it(verdicts: list[str], words: str) -> None:
    found = that_moves()
    slow = family_of(found, "slow movement")
    judged = pd.DataFrame(np.full((3, len(found.names)), "cannot be told"))
    judged.iloc[:, list(slow.members)] = verdicts
    told = family_reports(found, Decomposition.of(found), judged)[0]
    numbers = [k + 1 for k in slow.members]
    assert told.text.endswith(words.format(*numbers))
    assert told.members == tuple(
        k for k, verdict in zip(numbers, verdicts, strict=True) if verdict != "has not"
    )


def test_a_pair_has_in_common_what_both_have_in_some_form() -> None:
    found = that_moves()
    pair = found.compare("b", "c")
    assert pair.summary.endswith("Both have a slow movement, perhaps in different forms.")
    assert pair.to_dict()["families"] == [each.to_dict() for each in pair.families]
    assert pair.families[0].probabilities.keys() == set("bc")
    assert found.compare("a", "c").families == ()  # a repeats, and does not move
    pairs = found.compare_all().pairs
    assert [each.owners for each in pairs["b", "c"].families] == [("b", "c")]
    assert pairs["b", "c"].families[0].verdicts == {"b": "has", "c": "has"}
    assert not pairs["a", "b"].families


def test_a_pair_with_a_common_component_needs_no_family() -> None:
    found = that_moves()
    slow = family_of(found, "slow movement")
    parts, names = Decomposition.of(found), found.names
    for both in ("cannot be told", "has"):
        judged = pd.DataFrame(np.full((3, len(names)), "cannot be told"))
        judged.iloc[:, slow.members[0]] = ["cannot be told", "has", both]
        told = families_of_pair(found, parts, judged, (1, 2))
        assert [each.owners for each in told] == ([] if both == "has" else [("b", "c")])


def test_the_card_of_a_discovery_shows_what_is_sure_in_some_form() -> None:
    found = that_moves()
    html = found._repr_html_()
    assert html.count("Slow movement, in whatever form") == 1
    assert "Cycle" not in html  # the cycle is a component, and sure
    slow = family_of(found, "slow movement")
    cells = re.findall(r'background: #777777; .*?"value">(.*?)</span>', html)
    probable = found.consensus.probabilities_of(slow)
    assert cells == [f"{probable[0]:.2f}", "<b>1.00</b>", "<b>1.00</b>"]
    for evidence in (2.9, 3.1):
        found.__dict__["consensus"] = replace(
            found.consensus, families=(replace(slow, evidence=np.full(3, evidence)),)
        )
        assert ("Slow movement" in found._repr_html_()) == (evidence > 3.0)
    for probability in (0.89, 0.91):
        by_fit = np.full_like(slow.by_fit, probability)
        found.__dict__["consensus"] = replace(
            found.consensus, families=(replace(slow, by_fit=by_fit, evidence=np.full(3, 9.0)),)
        )
        assert ("Slow movement" in found._repr_html_()) == (probability > 0.9)
    sure = found.consensus.by_fit.copy()
    sure[:, :, slow.members[0]] = 1.0
    found.__dict__["consensus"] = replace(found.consensus, by_fit=sure)
    assert "Slow movement" not in found._repr_html_()


SHORT, SHORTER = "1 x SE(lengthscale=7)", "1 x SE(lengthscale=14)"
LIVELY = [[1], [1], [0]]


def that_is_lively() -> lkm.Discovery:
    return agreed(small_table(), [(0.6, [SHORT], LIVELY), (0.4, [SHORTER], LIVELY)])


def test_all_components_are_the_family_of_patterns() -> None:
    found = that_is_lively()
    assert [each.kind for each in found.consensus.families] == ["pattern"]
    (pattern,) = found.consensus.families
    assert pattern.members == (0, 1)
    one, other = found.consensus.fits
    expected = 0.6 * one.probabilities[:, 0] + 0.4 * other.probabilities[:, 0]
    np.testing.assert_allclose(found.consensus.weights @ pattern.by_fit, expected)
    assert families_of([], SPAN) == []


def test_the_report_says_that_a_series_has_some_pattern() -> None:
    """Neither form is sure, and neither is slow."""
    found = that_is_lively()
    report = found.report()
    assert (
        "a and b are not noise alone, but which pattern they have cannot be told." in report.summary
    )
    assert (
        "**Some pattern.** a (P 1.00) and b (P 1.00) have one. Its form cannot be told: it may be "
        "component 1, 2 or one that no fit has."
    ) in report.text
    assert "| Some pattern, in whatever form |" in report.text
    assert "Some pattern, in whatever form" in found._repr_html_()
    assert found.compare("a", "b").families == ()  # perhaps another one each


def test_several_families_of_the_same_series_are_one_sentence() -> None:
    found = that_moves()
    (slow,) = found.report().families
    cycle = replace(slow, kind="cycle", duration="11 months")
    said = summary(found, (), (cycle, slow), {})
    assert "b and c have a cycle of about 11 months and a slow movement, in forms that" in said


def test_that_there_is_some_pattern_is_said_where_no_more_is_sure() -> None:
    """Of b and c of this table a slow movement is."""
    told = that_moves().report().families
    assert [each.kind for each in told] == ["slow movement"]
    found = that_is_lively()
    judged = pd.DataFrame(np.full((3, 2), "cannot be told"))
    judged.iloc[0, 1] = "has"
    (left,) = family_reports(found, Decomposition.of(found), judged)
    assert left.owners == ("b",)

"""Cycles whose form cannot be told: which components belong together, and who has any of them."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import cast

import numpy as np
import pandas as pd
import pytest
from scipy.special import digamma, expit, logit
from small import agreed, small_table

import lkm_gpflow as lkm
from lkm_gpflow.discovery.cycles import of_one_period
from lkm_gpflow.explain.decomposition import Decomposition
from lkm_gpflow.kernels.grammar import parse
from lkm_gpflow.report.cycle import cycle_reports

STRICT = "1 x PER(period=88,lengthscale=1)"
WANDERS = "1 x PER(period=86,lengthscale=1) x RW(start=-90)"
SMOOTH = "1 x SE(lengthscale=60)"


def together(*kernels: str) -> list[tuple[int, ...]]:
    return of_one_period([parse(kernel) for kernel in kernels])


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
    consensus = in_two_forms().consensus
    (cycle,) = consensus.cycles
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
    part = consensus.of_series(np.array([2, 0], np.int32)).cycles[0]
    np.testing.assert_array_equal(part.by_fit, cycle.by_fit[:, [2, 0]])
    np.testing.assert_array_equal(part.evidence, cycle.evidence[[2, 0]])


def test_the_report_says_what_is_sure_of_a_cycle_in_two_forms() -> None:
    report = in_two_forms().report()
    (cycle,) = report.cycles
    assert cycle.owners == ("a", "b")
    assert not any(each.owners for each in report.components if "PER" in each.name)
    assert "a and b have a cycle of about 2.9 months, in a form that cannot be told." in (
        report.summary
    )
    assert "**Cycle of about 2.9 months.** a (P 1.00) and b (P 1.00) have one." in report.text
    numbers = [each.number for each in report.components if "PER" in each.name]
    assert f"it may be component {numbers[0]} or {numbers[1]}." in report.text
    assert report.to_dict()["cycles"] == [cycle.to_dict()]


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
    assert [each.owners for each in report.cycles] == [("b",)]


def test_what_it_takes_to_have_a_cycle_of_some_form() -> None:
    """Probability, evidence and share, each just short of enough for one of the series."""
    found = in_two_forms()
    (cycle,) = found.consensus.cycles
    untold = pd.DataFrame(np.full((3, len(found.names)), "cannot be told"))

    def owners(p: float = 0.95, evidence: float = 4.0, share: float = 0.03) -> list[str]:
        by_fit, every = np.full((2, 3), 0.95), np.full(3, 4.0)
        by_fit[:, 0], every[0] = p, evidence
        shares = np.full((3, len(found.names)), 0.03)
        shares[0, list(cycle.members)] = share
        found.__dict__["consensus"] = replace(
            found.consensus, cycles=(replace(cycle, by_fit=by_fit, evidence=every),)
        )
        parts = cast(Decomposition, SimpleNamespace(share=shares))
        return [name for told in cycle_reports(found, parts, untold) for name in told.owners]

    assert owners() == ["a", "b", "c"]
    assert owners(p=0.89) == owners(evidence=2.9) == owners(share=0.02) == ["b", "c"]


def test_its_period_is_that_of_the_fits_that_count_most() -> None:
    fits = [(0.88, [STRICT, SMOOTH], ROWS), (0.12, [WANDERS.replace("86", "80"), SMOOTH], ROWS)]
    (cycle,) = agreed(small_table(), fits).report().cycles
    assert cycle.duration == "2.9 months"  # 87 days; the mean of both is 84, 2.8 months


@pytest.mark.parametrize("series", ["b", "c"])
def test_parts_of_a_discovery_keep_their_cycles(series: str) -> None:
    report = in_two_forms().select([series]).report()
    assert [each.owners for each in report.cycles] == ([("b",)] if series == "b" else [])

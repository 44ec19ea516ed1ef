"""Cycles whose form cannot be told: which components belong together, and who has any of them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import digamma, expit, logit
from small import agreed, small_table

from lkm_gpflow.discovery.cycles import of_one_period
from lkm_gpflow.kernels.grammar import parse

STRICT = "1 x PER(period=88,lengthscale=1)"
WANDERS = "1 x PER(period=86,lengthscale=1) x RW(start=-90)"
SMOOTH = "1 x SE(lengthscale=60)"


def together(*kernels: str) -> list[tuple[int, ...]]:
    return of_one_period([parse(kernel) for kernel in kernels])


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
    found = agreed(
        small_table(),
        [
            (0.6, [STRICT, SMOOTH], [[1, 0], [1, 0], [0, 1]]),
            (0.4, [WANDERS, SMOOTH], [[1, 0], [1, 0], [0, 1]]),
        ],
    )
    consensus = found.consensus
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
    rows = [[1, 0], [1, 0], [0, 1]]
    found = agreed(small_table(), [(0.6, [STRICT, SMOOTH], rows), (0.4, [WANDERS, SMOOTH], rows)])
    report = found.report()
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
    rows = [[1, 0], [1, 0], [0, 1]]
    fits = [(0.95, [STRICT, SMOOTH], rows), (0.05, [WANDERS, SMOOTH], rows)]
    report = agreed(small_table(), fits).report()
    assert ("a", "b") in [each.owners for each in report.components]
    assert report.cycles == ()
    assert "cannot be told" not in report.summary


@pytest.mark.parametrize("series", ["b", "c"])
def test_parts_of_a_discovery_keep_their_cycles(series: str) -> None:
    rows = [[1, 0], [1, 0], [0, 1]]
    found = agreed(small_table(), [(0.6, [STRICT, SMOOTH], rows), (0.4, [WANDERS, SMOOTH], rows)])
    report = found.select([series]).report()
    assert [each.owners for each in report.cycles] == ([("b",)] if series == "b" else [])

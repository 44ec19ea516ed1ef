"""Change points against their formula, and what the grammar and a change of units make of them."""

from __future__ import annotations

import numpy as np
import pytest

from lkm_gpflow.kernels.component import to_kernel
from lkm_gpflow.kernels.grammar import (
    EXTENDED_BASES,
    PAPER_BASES,
    Product,
    change_point,
    expand,
    parse,
)

X = np.array([0.0, 0.3, 1.1, 1.9, 2.0, 2.1, 3.7, 9.0])
SE, PER = parse("2 x SE(lengthscale=1.3)"), parse("0.5 x PER(period=0.9, lengthscale=0.7)")


def covariance(terms: tuple[Product, ...], x: np.ndarray = X) -> np.ndarray:
    return sum(to_kernel(term)(x[:, None]).numpy() for term in terms)


@pytest.mark.parametrize("width", [0.01, 0.4, 5.0])
def test_the_terms_add_up_to_the_operator(width: float) -> None:
    """One pair of times after the other, with the formula of Lloyd et al. (2014)."""
    found = covariance(change_point(SE, PER, 2.0, width))
    before, after = covariance((SE,)), covariance((PER,))
    for i, x in enumerate(X):
        for j, x2 in enumerate(X):
            s, s2 = ((1.0 + np.tanh((t - 2.0) / width / 2.0)) / 2.0 for t in (x, x2))
            expected = (1.0 - s) * (1.0 - s2) * before[i, j] + s * s2 * after[i, j]
            assert found[i, j] == pytest.approx(expected, abs=1e-13)


def test_units_of_time_change_the_date_and_the_width() -> None:
    terms = change_point(SE, PER, at=2.0, width=0.5)
    changed = tuple(term.change_units(7.0, 30.0) for term in terms)
    assert "UNTIL(at=44.0, width=3.5)" in str(changed[0])
    np.testing.assert_allclose(covariance(changed, 7.0 * X + 30.0), covariance(terms), atol=1e-12)


@pytest.mark.parametrize("bases", [PAPER_BASES, EXTENDED_BASES])
def test_without_cp_the_grammar_knows_no_change_points(bases: tuple[str, ...]) -> None:
    members = {parse(name) for name in bases}
    for _ in range(2):
        members |= {one.structure for member in members for one in expand(member, bases)}
    assert not [member for member in members if "FROM" in str(member) or "UNTIL" in str(member)]

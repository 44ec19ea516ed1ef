"""On how much two searches agree, by hand."""

from __future__ import annotations

import numpy as np
import pytest

from paper_experiments.lab import agreement

X = np.linspace(0.0, 1.0, 40)
WAVE, WALK, LINE = "1 x PER(period=0.2, lengthscale=1)", "2 x RW(start=-0.1)", "3 x LIN(location=0)"


def said(Z: list[list[int]], *kernels: str) -> dict[str, object]:
    return {"kernels": list(kernels), "Z": Z}


def test_the_same_in_another_order_agrees() -> None:
    a = said([[1, 0], [1, 1]], WAVE, WALK)
    b = said([[0, 1], [1, 1]], WALK, WAVE)
    assert agreement.agreement(a, b, X) == 1.0


def test_an_entry_and_a_component_that_only_one_has() -> None:
    """Of two waves one entry of two differs; the line is one series', and two entries."""
    a = said([[1], [0]], WAVE)
    b = said([[1, 1], [1, 0]], WAVE, LINE)
    assert agreement.agreement(a, b, X) == agreement.agreement(b, a, X) == pytest.approx(2 / 4)


def test_constants_do_not_count() -> None:
    a = said([[1, 1], [0, 1]], WAVE, "1 x C")
    b = said([[1, 0], [0, 1]], WAVE, "2 x C")
    assert agreement.agreement(a, b, X) == 1.0

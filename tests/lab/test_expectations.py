"""Monte Carlo of appendix B: it agrees with the closed forms, and notices when they are wrong."""

from __future__ import annotations

import numpy as np
import pytest

from lkm_gpflow.model.ibp import FiniteIBP, InfiniteIBP
from paper_experiments.lab.expectations import (
    closed_form,
    monte_carlo,
)

TAU = np.array([[2.5, 1.2], [0.8, 3.0], [4.0, 2.0]])
NU = np.array([[0.9, 0.1, 0.5], [0.3, 0.0, 1.0]])
TAYLOR = InfiniteIBP(1.7, 3, bound="taylor", taylor_terms=3000)


@pytest.mark.parametrize("prior", [FiniteIBP(1.7, 3), TAYLOR], ids=["finite", "infinite"])
def test_closed_forms_are_averages(prior: FiniteIBP | InfiniteIBP) -> None:
    sampled = monte_carlo(prior, TAU, NU, draws=50_000, seed=0)
    z = (closed_form(prior, TAU, NU) - sampled["mean"]) / sampled["se"]
    assert (z.abs() < 5.0).all()
    # The errors are small enough for a wrong tau to show in every term.
    wrong = (closed_form(prior, TAU + 0.2, NU) - sampled["mean"]) / sampled["se"]
    assert (wrong.abs() > 5.0).all()

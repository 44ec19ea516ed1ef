"""The recovery of planted tables: what is planted, and what the committed runs say."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from lkm_gpflow.fit.fits import Fit
from lkm_gpflow.kernels.grammar import parse
from paper_experiments.lab.planted import smooth_and_periodic
from paper_experiments.lab.recovery import is_planted, recover


def test_a_fit_is_planted_in_any_order_and_not_if_an_entry_differs() -> None:
    planted = smooth_and_periodic(0)
    kernels = tuple(parse(f"1 x {k.structure}") for k in planted.kernels)
    of = np.ones((2, 2))
    fit = Fit(kernels, planted.Z, planted.Z, of, np.ones(6), 0.0, 0.0, 0.0, 0.0)
    assert is_planted(fit, planted)
    assert is_planted(fit.of_components(np.array([1, 0])), planted)
    assert not is_planted(fit.of_components(np.array([0])), planted)
    wrong = planted.Z.copy()
    wrong[3, 1] = 1.0 - wrong[3, 1]
    assert not is_planted(replace(fit, Z=wrong), planted)


def test_the_relaxed_learner_reaches_the_planted_bound_in_15_of_20() -> None:
    """By the committed runs."""
    found = recover()
    assert len(found) == 20
    assert (found["best"] > found["planted"] - 1.0).sum() >= 15
    assert found["exact"].sum() >= 15
    assert found["ours_exact"].sum() >= 15

"""Figure 4: nu from undecided to decided, on planted data."""

from __future__ import annotations

import numpy as np
import pytest

import lkm_gpflow as lkm
from lkm_gpflow.model.annealing import Annealing
from paper_experiments.lab.learning_z import watch_learning


@pytest.mark.slow
def test_shapes_that_differ_are_told_apart() -> None:
    """nu ends decided, and right, for the period that most series share."""
    demo = lkm.datasets.load("demo")
    learnt = watch_learning(demo.frame, annealing=Annealing(num_steps=200), every=50)
    planted = demo.truth.Z["PER"].to_numpy()
    np.testing.assert_array_equal(learnt.history[-1][:, 2] > 0.5, planted == 1)
    assert np.abs(learnt.history[-1][:, 2] - planted).max() < 0.1
    gap = learnt.bounds["relaxed"] - learnt.bounds["exact"]
    assert (gap > 0.0).all()
    assert gap.iloc[-1] < gap.iloc[0]

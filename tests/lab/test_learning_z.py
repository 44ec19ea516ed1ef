"""Figure 4: nu from undecided to decided, on planted data."""

from __future__ import annotations

import numpy as np
import pytest

import lkm_gpflow as lkm
from lkm_gpflow.model.annealing import Annealing
from paper_experiments.lab.learning_z import (
    WatchedLearning,
    watch_learning,
)


@pytest.fixture(scope="session")
def short() -> WatchedLearning:
    frame = lkm.datasets.load("demo").frame.iloc[:60, :3]
    return watch_learning(frame, ("SE", "PER"), Annealing(num_steps=12), every=5, seed=1)


def test_every_step_is_kept(short: WatchedLearning) -> None:
    assert short.history.shape == (12, 3, 2)
    assert np.all((short.history > 0.0) & (short.history < 1.0))
    assert np.abs(short.history[0] - 0.5).max() < 0.05
    np.testing.assert_allclose(short.history[-1], short.model.probabilities())
    assert list(short.bounds.index) == [0, 5, 10]


@pytest.mark.slow
def test_shapes_that_differ_are_told_apart() -> None:
    """nu ends decided, and right, for the period that most series share."""
    demo = lkm.datasets.load("demo")
    learnt = watch_learning(demo.frame)
    planted = demo.truth.Z["PER"].to_numpy()
    np.testing.assert_array_equal(learnt.history[-1][:, 2] > 0.5, planted == 1)
    assert np.abs(learnt.history[-1][:, 2] - planted).max() < 0.1
    gap = learnt.bounds["relaxed"] - learnt.bounds["exact"]
    assert (gap > 0.0).all()
    assert gap.iloc[-1] < gap.iloc[0]

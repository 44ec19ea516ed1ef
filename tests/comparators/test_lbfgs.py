"""L-BFGS from several starts."""

from __future__ import annotations

import gpflow
import numpy as np
import pytest
import tensorflow as tf

from lkm_gpflow.comparators.lbfgs import MultiStart


class Well(gpflow.Module):
    """(x^2 - 1)^2 + x / 4 + y^2: two minima, the lower one near x = -1; none where x > 5."""

    def __init__(self) -> None:
        super().__init__()
        self.x = gpflow.Parameter(3.0)
        self.y = gpflow.Parameter([1.0, 2.0])

    def training_loss(self) -> tf.Tensor:
        value = (self.x**2 - 1.0) ** 2 + 0.25 * self.x + tf.reduce_sum(self.y**2)
        return tf.where(self.x < 5.0, value, np.nan)


def test_a_run_ends_in_the_nearest_minimum_and_the_best_of_all_starts_in_the_lowest() -> None:
    well = Well()
    learner = MultiStart(well)
    near = learner.run()
    assert well.x.numpy() == pytest.approx(0.967, abs=1e-3)
    best = learner.best_of([lambda: well.x.assign(2.0), lambda: well.x.assign(-2.0)])
    assert well.x.numpy() == pytest.approx(-1.030, abs=1e-3)
    assert best.loss < near.loss - 0.4
    np.testing.assert_allclose(learner.values, best.values)
    np.testing.assert_allclose(well.y, 0.0, atol=1e-5)


def test_what_is_not_a_number_is_passed_over() -> None:
    well = Well()
    learner = MultiStart(well)
    learner.best_of([lambda: well.x.assign(6.0), lambda: well.x.assign(2.0)])
    assert well.x.numpy() == pytest.approx(0.967, abs=1e-3)
    with pytest.raises(RuntimeError, match="at any of 1 starts"):
        learner.best_of([lambda: well.x.assign(6.0)])

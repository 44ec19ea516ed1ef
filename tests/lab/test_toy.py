"""Claims of the paper, figure 1: two realisations of one periodic process use one kernel."""

from __future__ import annotations

import numpy as np
import pytest

from paper_experiments.lab.toy import ToyResult, learn_toy

POSTERIORS = ("relaxed", "enumerated")


@pytest.fixture(scope="session", params=POSTERIORS)
def toy(request: pytest.FixtureRequest) -> ToyResult:
    return learn_toy(request.param)


def test_two_realisations_use_one_kernel(toy: ToyResult) -> None:
    """Z is [0, 1; 0, 1]: the kernel that began near the true period takes both."""
    np.testing.assert_array_equal(toy.assignment, [[0, 1], [0, 1]])
    assert toy.is_one_kernel
    assert (toy.probabilities["C1"] < 0.2).all()
    assert (toy.probabilities["C2"] > 0.95).all()


def test_the_kernel_has_the_true_period(toy: ToyResult) -> None:
    period, lengthscale = toy.kernels[1].factors[0].values
    assert period == pytest.approx(1.0, rel=0.01)
    assert lengthscale == pytest.approx(0.8, rel=0.25)

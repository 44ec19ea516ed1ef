"""Claims of the paper, figure 1: two realisations of one periodic process use one kernel."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from lkm_gpflow.kernels.grammar import parse
from paper_experiments.lab import toy as module
from paper_experiments.lab.toy import STARTS, ToyResult, learn_toy, toy_starts

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


def test_columns_follow_the_starts() -> None:
    found = learn_toy("enumerated", periods=(1.1, 0.7))
    np.testing.assert_array_equal(found.assignment, [[1, 0], [1, 0]])


def test_starts_are_learnt_of_realisations_that_the_file_has_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    learnt = []

    def found(posterior: str, *, periods: tuple[float, float], data_seed: int) -> SimpleNamespace:
        learnt.append(data_seed)
        kernels = [parse(f"1 x PER(period={data_seed + 1}, lengthscale=1)")] * 2
        return SimpleNamespace(
            probabilities=pd.DataFrame(np.eye(2)), kernels=kernels, is_one_kernel=True
        )

    monkeypatch.setattr(module, "learn_toy", found)
    path, each = tmp_path, 2 * len(STARTS)
    assert len(toy_starts(path, [0, 1])) == len(learnt) == 2 * each
    more = toy_starts(path, [1, 2])
    assert learnt[2 * each :] == [2] * each
    assert more["data_seed"].tolist() == [1] * each + [2] * each
    assert more["period"].tolist() == [2.0] * each + [3.0] * each
    assert len(toy_starts(path)) == 3 * each == len(learnt)
    assert [p.name for p in tmp_path.iterdir()] == ["toy_starts.csv"]

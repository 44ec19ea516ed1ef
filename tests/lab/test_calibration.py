"""Planted data and the measures of calibration."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from small import made_by_hand

from lkm_gpflow.fit.engine import components
from paper_experiments.lab.calibration import expected_calibration_error, intervals, reliability
from paper_experiments.lab.planted import from_prior


def test_planted_data_come_from_the_model() -> None:
    """Whitened by their covariance, all series together are standard normal."""
    whitened = []
    for seed in range(20):
        planted = from_prior(seed, num_series=3, num_times=30)
        x = planted.observations.x
        C = np.asarray(components(planted.kernels, x))
        for n in range(3):
            V = np.tensordot(planted.Z[n], C, axes=1) + planted.noise_variance[n] * np.eye(30)
            whitened.append(np.linalg.solve(np.linalg.cholesky(V), planted.observations.Y[n]))
    flat = np.concatenate(whitened)
    assert flat.mean() == pytest.approx(0.0, abs=4.0 / len(flat) ** 0.5)
    assert flat.std() == pytest.approx(1.0, abs=4.0 / (2 * len(flat)) ** 0.5)


def test_calibration_error_by_hand() -> None:
    """Two bins: said 0.1 and it never is, said 0.9 (three times) and it is twice."""
    p, z = [0.1, 0.9, 0.9, 0.9], [0.0, 1.0, 1.0, 0.0]
    assert expected_calibration_error(p, z) == pytest.approx((0.1 + 3 * (0.9 - 2 / 3)) / 4)
    table = reliability(p, z)
    assert table["count"].tolist() == [1, 3]
    assert table["frequency"].tolist() == pytest.approx([0.0, 2 / 3])


def test_intervals_of_what_was_planted_and_found() -> None:
    """The planted components themselves, as if they had been found, and one that nobody has."""
    planted = from_prior(5)
    has = np.flatnonzero(planted.Z.any(axis=0))
    kernels = [replace(planted.kernels[k], variance=0.5) for k in has]
    found = made_by_hand(planted.frame, [str(kernel) for kernel in kernels], planted.Z[:, has])
    told = intervals(found, planted)
    expected = [
        (f"{factor.base.name} {name}", value)
        for k in has
        for factor in planted.kernels[k].factors
        for value, (name, _) in zip(factor.values, factor.base.parameters, strict=True)
        if name != "start"
    ]
    assert sorted((each["name"], each["planted"]) for each in told) == sorted(expected)
    assert all(each["upper"] - each["lower"] > 0.0 for each in told)
    assert json.loads(json.dumps(told)) == told

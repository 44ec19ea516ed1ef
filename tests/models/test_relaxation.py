"""Annealing of the relaxed posterior."""

from __future__ import annotations

import numpy as np
import pytest

import lkm_gpflow as lkm
from lkm_gpflow.models.annealing import Annealing
from lkm_gpflow.models.relaxation import anneal


def rhythm_or_line() -> lkm.LKM:
    """Two series: a wave, and a line; two components: a periodic and a linear one."""
    x = np.linspace(0.0, 1.0, 40)
    rng = np.random.default_rng(0)
    Y = np.column_stack([np.sin(25.0 * x), 3.0 * (x - 0.5)]) + 0.1 * rng.normal(size=(40, 2))
    kernels = [
        lkm.kernels.to_kernel(lkm.parse(text))
        for text in ("1.0 x PER(period=0.25, lengthscale=1.0)", "5.0 x LIN(location=0.4)")
    ]
    return lkm.LKM((x[:, None], Y), kernels, posterior="relaxed", noise_variance=0.1)


def test_learns_who_has_what() -> None:
    model = rhythm_or_line()
    seen: list[float] = []
    anneal(
        model,
        Annealing(num_steps=120),
        callback=lambda step, m: seen.append(float(m.posterior.temperature.numpy())),
    )
    np.testing.assert_array_equal(model.assignment(), np.eye(2))
    np.testing.assert_allclose(seen, np.geomspace(1.0, 0.1, 120))
    np.testing.assert_allclose(model.tau, model.prior.best_tau(model.probabilities()))


def test_same_seed_same_path() -> None:
    ends = []
    for seed in (1, 1, 2):
        model = rhythm_or_line()
        anneal(model, Annealing(num_steps=5), seed=seed)
        ends.append(model.probabilities().numpy())
    np.testing.assert_array_equal(ends[0], ends[1])
    assert not np.array_equal(ends[0], ends[2])


def test_wrong_arguments() -> None:
    with pytest.raises(ValueError, match="at least 1 in num_steps, got 0"):
        Annealing(num_steps=0)
    with pytest.raises(ValueError, match="positive last_temperature"):
        Annealing(last_temperature=0.0)
    x = np.linspace(0.0, 1.0, 10)[:, None]
    kernels = [lkm.kernels.to_kernel(lkm.parse("1.0 x SE(lengthscale=0.1)"))]
    model = lkm.LKM((x, np.sin(9 * x)), kernels, posterior="enumerated")
    with pytest.raises(ValueError, match="expected a RelaxedPosterior"):
        anneal(model)

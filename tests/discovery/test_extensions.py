"""The code of `how_to/extending.md`, as the page has it: found, said, forecast and saved."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import multivariate_normal

import lkm_gpflow as lkm
from lkm_gpflow.kernels import grammar
from lkm_gpflow.kernels.base import KERNELS

PAGE = Path(__file__).resolve().parents[2] / "notebooks" / "how_to" / "extending.md"
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)


@pytest.fixture(scope="module")
def page() -> Any:
    """What the page has defined when its code has run, as a module that files can name."""
    module = ModuleType("extending_page")
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, module.__name__, module)
        for known in (KERNELS, grammar._REGISTRY, grammar._WORDS):
            patch.setitem(known, "COS", None)  # type: ignore[attr-defined]
            patch.delitem(known, "COS")  # type: ignore[attr-defined]
        for block in BLOCKS:
            exec(compile(block, str(PAGE), "exec"), module.__dict__)
        yield module


def test_five_extensions_are_short_and_public() -> None:
    classes = [re.split(r"^(?=\w+ = |\w+, )", b, flags=re.M)[0] for b in BLOCKS if "class " in b]
    assert len(classes) == 5
    for code in classes:
        assert len([line for line in code.splitlines() if line.strip()]) <= 15
        assert not re.search(r"\._[a-z]", code)


@pytest.mark.parametrize("name", ["kernel", "prior", "likelihood"])
def test_what_was_planted_is_found(page: Any, name: str) -> None:
    found = getattr(page, f"with_{name}")
    swing = [k for k, each in enumerate(found.fit.kernels) if "LIN" not in str(each)]
    assert swing
    assert found.fit.Z[:, swing].any(axis=1).tolist() == [True, True, False, True]


def test_a_planted_clock_is_found(page: Any) -> None:
    found = page.with_model
    assert isinstance(found.model, page.Warped)
    assert float(found.model.power.numpy()) == pytest.approx(1.3, abs=0.05)
    cycles = [k for k, kernel in enumerate(found.fit.kernels) if "PER" in str(kernel)]
    assert found.fit.Z[:, cycles].any(axis=1).tolist() == [True, True, True, False]


def test_the_kernel_is_said_in_its_own_words(page: Any) -> None:
    told = page.with_kernel.report()
    assert "a pure tone" in told.summary
    assert "It is one sine wave." in told.text
    assert "Beyond the data the wave goes on for ever." in told.text


def test_prior_and_likelihood_are_those_of_the_model(page: Any) -> None:
    assert isinstance(page.with_prior.model.prior, page.KnownComponents)
    assert page.with_likelihood.settings.fit.likelihood == page.TwoHeights()


@pytest.mark.parametrize("name", ["kernel", "model", "prior", "likelihood"])
def test_forecasts_are_saved_and_loaded(page: Any, name: str, tmp_path: Path) -> None:
    found = getattr(page, f"with_{name}")
    forecast = found.forecast(4)
    assert np.isfinite(forecast).all(axis=None)
    found.save(tmp_path / "found.lkm")
    again = lkm.load(tmp_path / "found.lkm")
    pd.testing.assert_frame_equal(again.forecast(4), forecast)
    pd.testing.assert_frame_equal(again.probabilities, found.probabilities)
    assert again.report().summary == found.report().summary


def test_a_posterior_of_its_own_bounds_from_below_and_predicts(page: Any) -> None:
    """A point mass is one q(Z) of many: the enumerated posterior is the best of them."""
    model, learnt = page.with_posterior, page.with_prior.model
    best = lkm.LKM(
        learnt.data, learnt.kernels, noise_variance=learnt.noise_variance, posterior="enumerated"
    )
    best.tau.assign(model.tau)
    assert float(model.elbo()) <= float(best.elbo())
    np.testing.assert_array_equal(model.probabilities(), best.assignment())
    mean, variance = model.predict_y(np.array([[1.02], [1.05]]))
    exact, _ = best.predict_y(np.array([[1.02], [1.05]]), Z=best.assignment())
    np.testing.assert_allclose(mean, exact, atol=1e-8)
    assert np.all(variance > 0.0)


def test_the_likelihood_is_a_mixture_and_its_weight_the_slope(page: Any) -> None:
    likelihood, rng = page.TwoHeights(), np.random.default_rng(0)
    A = rng.normal(size=(3, 3))
    V, y = A @ A.T + np.eye(3), rng.normal(size=3)
    q, log_determinant = y @ np.linalg.solve(V, y), np.linalg.slogdet(V)[1]
    density = 0.5 * sum(multivariate_normal(cov=s * V).pdf(y) for s in (1.0, 9.0))
    assert likelihood.log_density(q, log_determinant, 3) == pytest.approx(np.log(density))
    up, down = likelihood.gain(q + 1e-5, 3), likelihood.gain(q - 1e-5, 3)
    assert likelihood.weight(q, 3) == pytest.approx(1.0 - 2.0 * (up - down) / 2e-5, rel=1e-6)

"""Likelihoods all the way: learnt, forecast, scored on held-out windows, saved."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from lkm_gpflow.discovery.discover import discover
from lkm_gpflow.discovery.given_kernels import learn
from lkm_gpflow.discovery.result import Discovery, load
from lkm_gpflow.fit.engine import components
from lkm_gpflow.gp.likelihoods import ScaledNoise

D = 14


def frame() -> pd.DataFrame:
    """Two smooth series of few values, so that a Student-t is no normal."""
    x = np.arange(D, dtype=np.float64)
    noise = np.random.default_rng(0).normal(size=(D, 2))
    waves = np.column_stack([np.sin(x / 3.0), 40.0 * np.cos(x / 3.0)])
    return pd.DataFrame(waves + noise * [0.05, 2.0], index=x, columns=["small", "large"])


@pytest.fixture(scope="module", params=["gaussian", "scaled"])
def found(request: pytest.FixtureRequest) -> Discovery:
    return learn(frame(), ["SE"], restarts=1, likelihood=request.param, progress=False)


def test_forecasts_are_quantiles_of_draws(found: Discovery) -> None:
    """Of a scale from its posterior (one without scales), and of the future given it."""
    rng = np.random.default_rng(1)
    o, fit = found.table.observations, found.fit
    has_scales = found.settings.fit.likelihood == ScaledNoise()
    assert fit.probabilities.min() > 0.999
    x = np.append(o.x, found.table.scaled_times(pd.Index([float(D + 1)])))
    C = components(fit.kernels, x)[0]
    forecast = found.forecast(pd.Index([float(D + 1)]), level=0.8)
    for n, name in enumerate(frame().columns):
        V = fit.Z[n, 0] * C + fit.noise_variance[n] * np.eye(D + 1)
        gain = np.linalg.solve(V[:D, :D], V[:D, D])
        q = o.Y[n] @ np.linalg.solve(V[:D, :D], o.Y[n])
        scales = 1.0 / rng.gamma(0.5 * (4.0 + D), 2.0 / (4.0 + q), size=400_000)
        scales = scales if has_scales else np.ones(400_000)
        spread = np.sqrt(scales * (V[D, D] - gain @ V[:D, D]))
        draws = gain @ o.Y[n] + spread * rng.normal(size=len(scales))
        draws = draws * found.table.scale[n] + found.table.location[n]
        row = forecast.loc[name].iloc[0]
        assert row["mean"] == pytest.approx(draws.mean(), abs=0.01 * draws.std())
        assert row["sd"] == pytest.approx(draws.std(), rel=0.01)
        for column, level in (("lower", 0.1), ("upper", 0.9)):
            expected = np.quantile(draws, level)
            assert row[column] == pytest.approx(expected, abs=0.01 * draws.std())


def test_fit_and_model_agree(found: Discovery) -> None:
    total = float(np.sum(found.model.log_likelihood(found.fit.Z)))
    assert total == pytest.approx(found.fit.log_likelihood, rel=1e-6)


def test_a_file_keeps_the_likelihood(found: Discovery, tmp_path: Path) -> None:
    found.save(tmp_path / "found.lkm")
    again = load(tmp_path / "found.lkm")
    assert again.settings == found.settings
    pd.testing.assert_frame_equal(again.forecast(3), found.forecast(3))
    pd.testing.assert_frame_equal(again.components("large", 2), found.components("large", 2))


def test_what_does_not_go_together_is_refused() -> None:
    with pytest.raises(ValueError, match="likelihood"):
        discover(frame(), likelihood="tall")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="expected criterion among"):
        discover(frame(), criterion="aic")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="criterion 'bic' with the learner 'relaxed'"):
        discover(frame(), criterion="bic+prior", learner="relaxed")

"""One Gaussian process per series."""

from __future__ import annotations

import gpflow
import numpy as np
import pandas as pd
import pytest

from lkm_gpflow.comparators import Comparator, IndependentGP, LastValue, SpectralMixtureGP
from lkm_gpflow.evaluation.metrics import score

QUICK = [IndependentGP(restarts=4), SpectralMixtureGP(num_components=(1, 2), restarts=4)]


def periodic(num_times: int = 96) -> pd.DataFrame:
    """Two series that repeat every 12 steps, in their own shape; the second has gaps."""
    rng = np.random.default_rng(0)
    t = np.arange(num_times)
    phase = 2 * np.pi * t / 12
    values = np.column_stack([np.sin(phase), np.exp(np.cos(phase))])
    values += 0.1 * rng.normal(size=values.shape)
    values[10:16, 1] = np.nan
    return pd.DataFrame(values, columns=["sine", "bumps"])


def scores(method: Comparator, frame: pd.DataFrame, horizon: int) -> tuple[float, float]:
    train, test = frame.iloc[:-horizon], frame.iloc[-horizon:]
    forecast = method.fit(train, seed=0).forecast(test.index)
    mean, sd = (forecast[c].unstack("series")[frame.columns] for c in ("mean", "sd"))
    told = score(test, mean, sd)
    return told.rmse, told.crps


@pytest.mark.slow
@pytest.mark.parametrize("method", QUICK)
def test_a_season_is_forecast_better_than_by_the_last_value(method: Comparator) -> None:
    own, naive = (scores(m, periodic(), 14) for m in (method, LastValue()))
    assert own[0] < 0.5 * naive[0]
    assert own[1] < 0.4 * naive[1]


def test_one_component_is_gpflows_regression_at_its_optimum() -> None:
    """SE alone without trend: the forecast of a GPflow model learnt by GPflow's optimiser."""
    rng = np.random.default_rng(1)
    x = np.linspace(0.0, 1.0, 50)
    y = np.sin(9.0 * x) + 0.2 * rng.normal(size=50)
    frame = pd.DataFrame({"a": y}, index=np.arange(50.0))
    times = pd.Index([50.0, 51.0, 55.0])
    own = IndependentGP(components=("SE",), restarts=2).fit(frame, seed=0).forecast(times)
    scaled = (y - y.mean()) / y.std()
    kernel = gpflow.kernels.RBF(variance=1.0, lengthscales=0.2)
    model = gpflow.models.GPR((x[:, None], scaled[:, None]), kernel, noise_variance=0.1)
    gpflow.optimizers.Scipy().minimize(model.training_loss, model.trainable_variables)
    mean, variance = model.predict_y(times.to_numpy()[:, None] / 49.0)
    # Weak priors move the optimum a little.
    np.testing.assert_allclose(own["mean"], y.mean() + y.std() * mean[:, 0], atol=0.1)
    np.testing.assert_allclose(own["sd"], y.std() * np.sqrt(variance[:, 0]), rtol=0.15)

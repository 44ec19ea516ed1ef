"""Draws of the posterior as forecasters: against plain linear algebra, and in a discovery."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from small import made_by_hand, small_table

import lkm_gpflow as lkm
from lkm_gpflow.data.observations import Observations
from lkm_gpflow.explain.holdout import hold_out_tail
from lkm_gpflow.fit.engine import components
from lkm_gpflow.fit.fits import FitSettings
from lkm_gpflow.fit.toeplitz_engine import ToeplitzEngine
from lkm_gpflow.fit.training import engine_for
from lkm_gpflow.forecast.forecasters import FORECAST_VARIANCE, Member
from lkm_gpflow.forecast.predictors import Predictors
from lkm_gpflow.gp.likelihoods import GaussianNoise, ScaledNoise
from lkm_gpflow.gp.types import Floats
from lkm_gpflow.kernels.grammar import Product, parse
from lkm_gpflow.sharing.posterior import PosteriorDraws, members_of
from lkm_gpflow.sharing.states import Draw

KERNELS = (
    parse("0.6 x SE(lengthscale=0.3)"),
    parse("0.4 x PER(period=0.21, lengthscale=1.0)"),
)


def draws(kernels: tuple[Product, ...] = KERNELS, count: int = 3) -> PosteriorDraws:
    rng, num_series = np.random.default_rng(1), 3
    made = [
        Draw(kernels, Z := rng.uniform(size=(num_series, 2)) < 0.7,
             np.where(Z, rng.normal(size=Z.shape), 0.0), np.log(rng.uniform(0.05, 0.2, num_series)),
             0.0)
        for _ in range(count)
    ]  # fmt: skip
    return PosteriorDraws((tuple(made),), np.arange(9), 0.1)


def kriging(draw: Draw, n: int, o: Observations, x: Floats) -> tuple[Floats, Floats]:
    """Mean and variance of new observations about a level of which nothing is known."""
    seen, D = np.flatnonzero(o.mask[n]), int(o.mask[n].sum())
    C = components(draw.kernels, np.concatenate([o.x[seen], x]))
    total = np.tensordot(draw.Z[n] * np.exp(draw.log_heights[n]), C, axes=1)
    noise = np.exp(draw.log_noise[n])
    P = np.linalg.inv(total[:D, :D] + noise * np.eye(D))
    level = P.sum(axis=0) @ o.Y[n, seen] / P.sum()
    mean = level + total[D:, :D] @ P @ (o.Y[n, seen] - level)
    known = total[D:, :D] @ P @ total[:D, D:]
    rest = 1.0 - total[D:, :D] @ P.sum(axis=0)
    return mean, (total[D:, D:] - known).diagonal() + rest**2 / P.sum() + noise


@pytest.mark.parametrize("num_times", [40, 320])
def test_a_draw_forecasts_with_its_heights_about_a_free_level(num_times: int) -> None:
    rng, x = np.random.default_rng(0), np.linspace(0.0, 1.0, num_times)
    mask = np.ones((3, num_times))
    mask[1, 5:9] = 0.0
    o = Observations(x, rng.normal(size=mask.shape) * mask, mask)
    settings = FitSettings(likelihood=GaussianNoise())
    assert isinstance(engine_for(o, settings), ToeplitzEngine) is (num_times > 300)
    posterior, ahead = draws(), 1.0 + x[1:9]
    members = members_of(posterior, 0.4)
    assert sum(member.weight for member in members) == pytest.approx(0.4)
    for draw, member in zip(posterior.draws, members, strict=True):
        mean, variance = member.moments(ahead, Predictors(o, settings))
        for n in range(3):
            expected = kriging(draw, n, o, ahead)
            np.testing.assert_allclose(mean[:, n], expected[0], atol=2e-3)
            np.testing.assert_allclose(variance[:, n], expected[1], rtol=5e-3)


@pytest.fixture(scope="module")
def found() -> lkm.Discovery:
    """Half of the weight is on draws, half on a walk."""
    waves = ["0.6 x SE(lengthscale=20)", "0.5 x PER(period=14, lengthscale=1.0)"]
    made = made_by_hand(small_table(), waves, [[1, 0], [1, 1], [0, 1]], 0.05)
    walk = made_by_hand(small_table(), ["1 x RW(start=-20)"], [[1]] * 3, 0.05).fit
    stacked = Member(made.fit, 0.5), Member(walk, 0.5, "walk")
    settings = replace(made.settings, fit=FitSettings(likelihood=ScaledNoise()))
    both = replace(made, settings=settings, averaging="stacked", stacked=stacked)
    both.__dict__["posterior"] = draws(made.fit.kernels)
    return both


def test_draws_take_the_place_of_fits_in_what_a_discovery_forecasts(
    found: lkm.Discovery, tmp_path: Path
) -> None:
    told, x = found.forecast(5), found.table.scaled_times(found.times(5))
    members = [*members_of(found.posterior, 0.5), found.stacked[1]]
    moments = [(each.weight, *each.moments(x, found.predictors)) for each in members]
    mean = sum(w * m for w, m, _ in moments)
    second = sum(w * (FORECAST_VARIANCE * v + m**2) for w, m, v in moments)
    scale = found.table.scale
    np.testing.assert_allclose(told["mean"].unstack("series"), mean * scale + found.table.location)
    np.testing.assert_allclose(told["sd"].unstack("series"), np.sqrt(second - mean**2) * scale)
    some = found.select(["c", "a"])
    pd.testing.assert_frame_equal(some.forecast(5), told.loc[["c", "a"]])
    found.save(tmp_path / "found.lkm")
    pd.testing.assert_frame_equal(lkm.load(tmp_path / "found.lkm").forecast(5), told)
    paths = found.samples(5, 20_000)
    np.testing.assert_allclose(paths.std(axis=1), told["sd"], rtol=0.05)
    # Nobody else draws: single fits and couplings are those of the search.
    assert not any(each.fit.is_drawn for each in (*found.members, *found.best.ensemble.members))
    little = Member(found.stacked[0].fit, 0.01), Member(found.stacked[1].fit, 0.99, "walk")
    rarely = replace(found, stacked=little)
    assert not any(member.fit.is_drawn for member in rarely.ensemble.members)


def test_held_out_rows_are_forecast_by_draws(found: lkm.Discovery) -> None:
    assert hold_out_tail(found).probabilities.notna().to_numpy().any()

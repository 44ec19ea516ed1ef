"""Intervals of hyperparameters: mixtures over fits, in the data's own time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm
from small import made_by_hand, small_table

import lkm_gpflow as lkm
from lkm_gpflow.forecast.forecasters import Member
from lkm_gpflow.kernels.grammar import Kind
from lkm_gpflow.sharing.coarsened import coarsened
from lkm_gpflow.sharing.hyperparameters import Marginal

WAVE, LINE = "0.5 x PER(period=85,lengthscale=1)", "2e-5 x LIN(location=130)"
ROWS = [[1, 0], [1, 1], [0, 1]]


def weighted(*fits: tuple[float, Sequence[str]]) -> lkm.Discovery:
    """A discovery of several fits of the same rows."""
    made = [(made_by_hand(small_table(), kernels, ROWS), weight) for weight, kernels in fits]
    members = tuple(Member(found.entries[0].fit, weight) for found, weight in made)
    return replace(made[0][0], averaging="stacked", stacked=members)


def test_quantiles_of_a_mixture_by_sampling() -> None:
    weights, mean, sd = np.array([0.7, 0.3]), np.array([-1.0, 0.5]), np.array([0.2, 0.4])
    marginal = Marginal("SE lengthscale", Kind.DURATION, weights, mean, sd, (-9.0, 9.0))
    rng = np.random.default_rng(0)
    which = rng.choice(2, size=400_000, p=weights)
    drawn = np.exp(mean[which] + sd[which] * rng.normal(size=len(which)))
    for p in (0.05, 0.5, 0.75, 0.95):
        assert marginal.quantile(p) == pytest.approx(np.quantile(drawn, p), rel=0.01)


def test_quantiles_end_at_the_bounds() -> None:
    one = np.ones(1)
    marginal = Marginal("LIN location", Kind.LOCATION, one, 0.5 * one, one, (-0.5, 21.0))
    assert marginal.quantile(0.05) == -0.5
    assert marginal.quantile(0.95) == pytest.approx(0.5 + norm.ppf(0.95))


def test_one_fit_has_the_quantiles_of_its_posterior_in_days() -> None:
    found = made_by_hand(small_table(), [WAVE, LINE], ROWS)
    posterior = coarsened(found.fit, found.table.observations, found.settings.fit)
    told = found.hyperparameters(0.8)
    assert list(told.columns) == ["median", "lower", "upper"]
    p = [0.5, 0.1, 0.9]
    assert [str(kernel.structure) for kernel in found.fit.kernels] == ["LIN", "PER"]
    scaled = {
        key: norm(posterior.mean[i], posterior.sd[i]).ppf(p)
        for i, key in enumerate(("location", "period", "lengthscale"), start=2)
    }
    np.testing.assert_allclose(told.loc["PER", "PER period"], 273.0 * np.exp(scaled["period"]))
    np.testing.assert_allclose(told.loc["PER", "PER lengthscale"], np.exp(scaled["lengthscale"]))
    np.testing.assert_allclose(told.loc["LIN", "LIN location"], 273.0 * scaled["location"])


def test_the_planted_period_is_held() -> None:
    """The table waves as sin(20 t)."""
    told = made_by_hand(small_table(), [WAVE, LINE], ROWS).hyperparameters().loc["PER"]
    planted = 273.0 * 2.0 * np.pi / 20.0
    assert told.loc["PER period", "lower"] < planted < told.loc["PER period", "upper"]
    assert told.loc["PER period", "upper"] - told.loc["PER period", "lower"] < 10.0


def test_fits_count_by_their_weight_where_they_have_the_structure() -> None:
    # PER x SE of such a lengthscale is alike, but its period is not the same hyperparameter.
    other = "0.5 x PER(period=85,lengthscale=1) x SE(lengthscale=2000)"
    found = weighted(
        (0.5, [WAVE, LINE]), (0.2, [WAVE.replace("85", "86"), LINE]), (0.3, [other, LINE])
    )
    (period, _) = found.marginals[found.names.index("PER")]
    np.testing.assert_allclose(period.weights, [5 / 7, 2 / 7])
    settings, observations = found.settings.fit, found.table.observations
    own = [coarsened(member.fit, observations, settings) for member in found.stacked[:2]]
    places = [
        [str(k.structure) for k in member.fit.kernels].index("PER") for member in found.stacked[:2]
    ]
    assert places == [0, 0]
    np.testing.assert_allclose(period.mean, [each.mean[2] for each in own])
    np.testing.assert_allclose(period.sd, [each.sd[2] for each in own])


def test_factors_of_one_name_are_numbered_and_walks_have_nothing_to_say() -> None:
    square = "1e-9 x LIN(location=20) x LIN(location=200)"
    found = made_by_hand(small_table(), [square, "1 x RW(start=-7)"], [[1, 1]] * 3)
    told = found.hyperparameters()
    assert list(told.index) == [
        ("LIN x LIN", "LIN location (1)"),
        ("LIN x LIN", "LIN location (2)"),
    ]


def test_nothing_found_nothing_told() -> None:
    walk = made_by_hand(small_table(), ["1 x RW(start=-7)"], [[1]] * 3)
    told = walk.hyperparameters()
    assert told.empty
    assert told.index.names == ["component", "hyperparameter"]


def test_wider_levels_have_wider_intervals(small_found: lkm.Discovery) -> None:
    narrow, wide = (small_found.hyperparameters(level) for level in (0.5, 0.95))
    assert (wide["lower"] < narrow["lower"]).all()
    assert (wide["upper"] > narrow["upper"]).all()
    pd.testing.assert_series_equal(wide["median"], narrow["median"])


@pytest.mark.parametrize("level", [0.0, 1.0, 90.0])
def test_a_level_is_a_probability(small_found: lkm.Discovery, level: float) -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        small_found.hyperparameters(level)


def test_some_series_have_what_was_learnt_on_all(small_found: lkm.Discovery) -> None:
    some = small_found.select(["c", "a"]).select(["a"])
    pd.testing.assert_frame_equal(some.hyperparameters(), small_found.hyperparameters())


def test_kept_in_a_file(small_found: lkm.Discovery, tmp_path: Path) -> None:
    small_found.save(tmp_path / "small.lkm")
    told = lkm.load(tmp_path / "small.lkm").hyperparameters()
    pd.testing.assert_frame_equal(told, small_found.hyperparameters(), rtol=1e-6)

"""Change points through `discover`: planted breaks are found and dated, none is made up."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import lkm_gpflow as lkm
from lkm_gpflow import parse
from lkm_gpflow.data.tables import Table
from lkm_gpflow.explain.describe import describe
from lkm_gpflow.explain.wording import Timeline
from lkm_gpflow.fit.fits import FitSettings, State
from lkm_gpflow.fit.training import Learner
from lkm_gpflow.gp.types import Floats
from lkm_gpflow.kernels.component import to_kernel
from lkm_gpflow.search.settings import SearchSettings

NUM_TIMES, NUM_SERIES = 100, 4
NEAR = 4.0
"""Steps within which a date counts as found."""

CYCLE, SMOOTH = "1.0 x PER(period=0.11, lengthscale=1.0)", "1.0 x SE(lengthscale=0.08)"
OPTIONS: dict[str, Any] = {"bases": ("C", "SE", "PER", "CP"), "restarts": 1, "averaging": "none",
                           "progress": False}  # fmt: skip


def draw(kernel: str, rng: np.random.Generator) -> Floats:
    x = np.linspace(0.0, 1.0, NUM_TIMES)
    covariance = to_kernel(parse(kernel))(x[:, None]).numpy() + 1e-6 * np.eye(NUM_TIMES)
    drawn: Floats = np.linalg.cholesky(covariance) @ rng.normal(size=(NUM_TIMES, NUM_SERIES))
    return drawn


def with_a_break(before: str, after: str, seed: int) -> tuple[pd.DataFrame, float]:
    """All series change at one time between three and seven tenths of the table; and that time."""
    rng = np.random.default_rng((91, seed))
    at = rng.uniform(0.3, 0.7) * (NUM_TIMES - 1)
    is_after = (np.arange(NUM_TIMES) > at)[:, None]
    values = np.where(is_after, draw(after, rng), draw(before, rng))
    return pd.DataFrame(values + 0.15 * rng.normal(size=values.shape), columns=list("abcd")), at


def without_a_break(seed: int) -> pd.DataFrame:
    rng = np.random.default_rng((92, seed))
    values = draw(CYCLE, rng) + draw(SMOOTH, rng) * [1, 1, 1, 0]
    return pd.DataFrame(values + 0.15 * rng.normal(size=values.shape), columns=list("abcd"))


@cache
def found_in_a_break(before: str, after: str, seed: int) -> tuple[lkm.Discovery, float]:
    """What is found in such a table, and when it changes."""
    frame, at = with_a_break(before, after, seed)
    return lkm.discover(frame, **OPTIONS), at


def dates(found: lkm.Discovery) -> list[float]:
    factors = (factor for kernel in found.kernels for factor in kernel.factors)
    return [factor.values[0] or 0.0 for factor in factors if factor.base.is_window]


def test_a_planted_break_is_found_dated_told_and_kept(tmp_path: Path) -> None:
    found, at = found_in_a_break(CYCLE, SMOOTH, 0)
    assert np.abs(np.array(dates(found)) - at).min() < NEAR
    structures = {str(kernel.structure) for kernel in found.kernels}
    assert {"PER x UNTIL", "FROM x SE"} <= structures
    titles = [describe(kernel, Timeline.of(found.table)).title for kernel in found.kernels]
    said = re.findall(r"cycle of 11 until ([\d.]+)|over \S+ from (\S+) on", ", ".join(titles))
    assert len(said) == 2
    assert all(abs(float(until or since) - at) < NEAR for until, since in said)
    assert "It is present until about 4" in found.report().text
    found.save(tmp_path / "found")
    again = lkm.load(tmp_path / "found")
    assert again.kernels == found.kernels
    assert np.isfinite(again.forecast(5).to_numpy()).all()
    plain = lkm.discover(found.table.frame, **{**OPTIONS, "bases": ("C", "SE", "PER")})
    assert found.bic < plain.bic - 20.0
    assert dates(plain) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("before", "after"),
    [(CYCLE, SMOOTH), ("0.1 x SE(lengthscale=0.05)", "1.5 x SE(lengthscale=0.05)")],
    ids=["another kernel", "another height"],
)
def test_most_planted_breaks_are_dated(before: str, after: str) -> None:
    errors = []
    for seed in range(3):
        found, at = found_in_a_break(before, after, seed)
        errors.append(min((abs(date - at) for date in dates(found)), default=99))
    assert sum(error < NEAR for error in errors) >= 2, errors


@pytest.mark.slow
def test_hardly_a_break_is_made_up() -> None:
    made_up = [seed for seed in range(5) if dates(lkm.discover(without_a_break(seed), **OPTIONS))]
    assert len(made_up) <= 1, made_up


@pytest.mark.slow
@pytest.mark.usefixtures("tables")
def test_houses_change_while_their_prices_fell() -> None:
    """American house prices fell from 2006 to 2009."""
    frame = lkm.datasets.load("houses").frame
    found = lkm.discover(frame, **{**OPTIONS, "bases": (*lkm.EXTENDED_BASES, "CP")})
    plain = lkm.discover(frame, **{**OPTIONS, "bases": lkm.EXTENDED_BASES})
    assert found.bic < plain.bic - 6.0
    years = [(frame.index[0] + pd.Timedelta(days=date)).year for date in dates(found)]
    assert set(years) & {2006, 2007, 2008, 2009}, years


def test_a_component_that_has_the_whole_table_is_split_where_it_changes() -> None:
    """The scan does not see it: half a variance too much and half too little is no gain."""
    frame, at = with_a_break("0.1 x SE(lengthscale=0.05)", "1.5 x SE(lengthscale=0.05)", seed=1)
    observations = Table.of(frame).observations
    learner = Learner(observations, FitSettings(), np.random.default_rng(0))
    whole = learner.refine(
        State((parse("0.8 x SE(lengthscale=0.05)"),), np.ones((4, 1)), np.full(4, 0.03))
    )
    assert learner.split(whole, [parse("SE"), parse("PER x SE")]) is whole
    split = learner.split(whole, [parse("SE x UNTIL")])
    assert [str(kernel.structure) for kernel in split.kernels] == ["SE x UNTIL", "FROM x SE"]
    assert learner.cost(split) < learner.cost(whole) - 5.0
    for kernel in split.kernels:
        window = next(factor for factor in kernel.factors if factor.base.is_window)
        assert window.values[0] is not None
        assert abs(window.values[0] * (NUM_TIMES - 1) - at) < NEAR


def test_the_first_set_has_no_change_points_and_cp_alone_is_refused() -> None:
    start = SearchSettings(bases=("WN", "SE", "CP")).start
    assert start == (parse("SE"),)
    with pytest.raises(ValueError, match=r"expected base kernels beside WN and CP, got \('CP',\)"):
        SearchSettings(bases=("CP",))

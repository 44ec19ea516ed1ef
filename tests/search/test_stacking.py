"""Weights from held-out windows: windows, scores by another route, weights, walks."""

from __future__ import annotations

from dataclasses import replace

import gpflow
import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm
from small import small_table

import lkm_gpflow as lkm
from lkm_gpflow.data.tables import Table
from lkm_gpflow.kernels.grammar import parse
from lkm_gpflow.learning.fits import Fit, FitSettings
from lkm_gpflow.learning.training import fit
from lkm_gpflow.search.held_out import Window, held_out_score, windows
from lkm_gpflow.search.ledger import Ledger
from lkm_gpflow.search.settings import SearchSettings
from lkm_gpflow.search.stacking import MOST, WALKS_SHARE, stack

QUICK = FitSettings(num_candidates=8, num_starts=1, num_reseeds=1)


def test_windows_lie_in_the_second_half_and_end_with_the_data() -> None:
    found = windows(90)
    assert [w.end - w.begin for w in found] == [10] * 5
    assert found[0] == Window(80, 90) or found[-1] == Window(80, 90)
    assert min(w.begin for w in found) == 45


@pytest.mark.parametrize("num_times", [3, 4, 5, 8, 12])
def test_windows_of_short_tables(num_times: int) -> None:
    for window in windows(num_times):
        assert 2 <= window.begin < window.end <= num_times


def one_walk(seed: int = 0, num_times: int = 60) -> pd.DataFrame:
    steps = np.random.default_rng(seed).normal(size=(num_times, 2))
    return pd.DataFrame(steps.cumsum(axis=0), columns=["a", "b"])


def test_score_is_the_density_of_a_forecast_from_the_past_alone() -> None:
    """Learnt again by GPflow, from a table that ends where the window begins."""
    frame = one_walk().iloc[:, :1]
    whole = Table.of(frame)
    found = fit(whole.observations, [parse("RW")], seed=0, settings=replace(QUICK, priors=False))
    window = Window(45, 52)
    score, squared = held_out_score(found, whole.observations, window, replace(QUICK, priors=False))
    past = Table.of(frame.iloc[:45])
    X, Y = past.observations.table
    kernel = lkm.kernels.to_kernel(parse(f"1 x RW(start={-X[1, 0]})"))
    model = gpflow.models.GPR((X, Y), kernel, noise_variance=0.01)
    gpflow.optimizers.Scipy().minimize(model.training_loss, model.trainable_variables)
    mean, variance = model.predict_y(past.scaled_times(frame.index[45:52])[:, None])
    y = frame.iloc[45:52].to_numpy()
    density = norm.logpdf(
        y, np.asarray(mean) * past.scale + past.location, np.sqrt(variance) * past.scale
    )
    assert score == pytest.approx(density.mean() + np.log(whole.scale[0]), abs=0.01)
    z = (y - np.asarray(mean) * past.scale - past.location) / (np.sqrt(variance) * past.scale)
    assert squared == pytest.approx(np.square(z).mean(), rel=0.01)


def test_what_comes_after_a_window_does_not_matter() -> None:
    """But for the numbers that learning begins at, which are the same here."""
    frame = one_walk(1)
    observations = Table.of(frame).observations
    found = fit(observations, [parse("RW")], seed=0, settings=QUICK)
    changed = replace(observations, Y=observations.Y.copy())
    changed.Y[:, 50:] = 7.0
    window = Window(40, 50)
    one = held_out_score(found, observations, window, QUICK)[0]
    assert held_out_score(found, changed, window, QUICK)[0] == pytest.approx(one, abs=1e-9)


def test_gaps_and_series_that_begin_late() -> None:
    frame = one_walk(2)
    frame.iloc[10:20, 0] = np.nan
    frame.iloc[:40, 1] = np.nan
    observations = Table.of(frame).observations
    found = fit(observations, [parse("RW"), parse("C")], seed=0, settings=QUICK)
    for window in windows(60):
        assert np.all(np.isfinite(held_out_score(found, observations, window, QUICK)))


@pytest.fixture(scope="module")
def settings() -> SearchSettings:
    return SearchSettings(bases=("C", "SE", "RW", "IOU", "PER"), restarts=1, fit=QUICK)


def best_of(frame: pd.DataFrame, members: str, settings: SearchSettings) -> list[Fit]:
    observations = Table.of(frame).observations
    parsed = [parse(name) for name in members.split(",")]
    return [fit(observations, parsed, seed=0, settings=settings.fit)]


def test_weights_follow_from_the_notes(settings: SearchSettings) -> None:
    frame = one_walk(3)
    ledger = Ledger({})
    fits = best_of(frame, "SE", settings)
    members = stack(fits, Table.of(frame).observations, settings, ledger, progress=False)
    assert sum(m.weight for m in members) == pytest.approx(1.0)
    assert sum(m.is_walk for m in members) == 4
    held_out = [np.array(note) for key, note in ledger.notes.items() if key.startswith("held out")]
    assert len(held_out) == 5
    best_first = next(m for m in members if not m.is_walk)
    assert held_out[0][:, 1].sum() == pytest.approx(15.0 * best_first.spread - 10.0)
    held_out = [*held_out[1:], held_out[0]]
    scores = [pairs[:, 0].sum() for pairs in held_out]
    spreads = sorted((10.0 + pairs[:, 1].sum()) / 15.0 for pairs in held_out)
    assert sorted(m.spread for m in members) == pytest.approx(spreads)
    prior = [WALKS_SHARE / 4.0] * 4 + [1.0 - WALKS_SHARE]
    weights = np.array(prior) * np.exp(scores)
    assert sorted(weights / weights.sum()) == pytest.approx(sorted(m.weight for m in members))


def test_walks_win_on_walks_and_lose_on_waves(settings: SearchSettings) -> None:
    wave = small_table(num_times=60).interpolate()[["a", "b"]]
    for frame, members, walks_win in [(one_walk(4), "SE", True), (wave, "PER,SE", False)]:
        fits = best_of(frame, members, settings)
        stacked = stack(fits, Table.of(frame).observations, settings, Ledger({}), progress=False)
        share = sum(m.weight for m in stacked if m.is_walk)
        assert (share > 0.9) is walks_win, share
        assert walks_win or share < 0.2


def test_walks_of_foreign_bases_are_left_out(settings: SearchSettings) -> None:
    frame = one_walk(5)
    paper = replace(settings, bases=lkm.PAPER_BASES)
    fits = best_of(frame, "SE", settings)
    (only,) = stack(fits, Table.of(frame).observations, paper, Ledger({}), progress=False)
    assert only.weight == pytest.approx(1.0)
    assert not only.is_walk


def test_what_is_noted_is_not_computed_again(
    settings: SearchSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame, ledger = one_walk(6), Ledger({})
    fits = best_of(frame, "SE", settings)
    observations = Table.of(frame).observations
    first = stack(fits, observations, settings, ledger, progress=False)

    def never(*args: object, **options: object) -> None:
        raise AssertionError("computed again")

    monkeypatch.setattr("lkm_gpflow.search.stacking.fit", never)
    monkeypatch.setattr("lkm_gpflow.search.stacking.held_out_score", never)
    again = stack(fits, observations, settings, ledger, progress=False)
    assert [m.weight for m in again] == [m.weight for m in first]
    assert len(again) <= MOST + 4

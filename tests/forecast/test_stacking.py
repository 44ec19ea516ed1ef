"""Weights from held-out windows: kinds of forecasters, spreads, walks."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from small import small_table

import lkm_gpflow as lkm
from lkm_gpflow.data.tables import Table
from lkm_gpflow.fit.fits import Fit, FitSettings
from lkm_gpflow.fit.training import fit
from lkm_gpflow.forecast.forecasters import Member
from lkm_gpflow.forecast.stacking import MOST, average_fits, hold_out, weigh
from lkm_gpflow.gp import limits
from lkm_gpflow.kernels.grammar import parse
from lkm_gpflow.search.ledger import Ledger, fit_key
from lkm_gpflow.search.settings import SearchSettings

QUICK = FitSettings(num_candidates=8, num_starts=1, num_reseeds=1)


def one_walk(seed: int = 0, num_times: int = 60) -> pd.DataFrame:
    steps = np.random.default_rng(seed).normal(size=(num_times, 2))
    return pd.DataFrame(steps.cumsum(axis=0), columns=["a", "b"])


@pytest.fixture(scope="module")
def settings() -> SearchSettings:
    return SearchSettings(bases=("C", "SE", "RW", "IOU", "PER"), restarts=1, fit=QUICK)


def best_of(frame: pd.DataFrame, members: str, settings: SearchSettings) -> list[Fit]:
    observations = Table.of(frame).observations
    parsed = [parse(name) for name in members.split(",")]
    return [fit(observations, parsed, seed=0, settings=settings.fit)]


def stack(
    fits: list[Fit], frame: pd.DataFrame, settings: SearchSettings, ledger: Ledger
) -> list[Member]:
    hold_out(fits, Table.of(frame).observations, settings, ledger, progress=False)
    return list(weigh(fits, settings, ledger))


def test_weights_follow_from_the_notes(settings: SearchSettings) -> None:
    frame = one_walk(3)
    ledger = Ledger({})
    fits = best_of(frame, "SE", settings)
    members = stack(fits, frame, settings, ledger)
    assert sum(m.weight for m in members) == pytest.approx(1.0)
    assert sum(m.is_walk for m in members) == 7
    held_out = [np.array(note) for key, note in ledger.notes.items() if key.startswith("weighed")]
    assert [len(each) for each in held_out] == [5] * 8
    best, *walks = (each.sum() for each in held_out)
    # Nearly all to four walks; three walks with a season and what was found share the rest.
    prior = [0.96 / 4.0] * 4 + [0.02 / 3.0] * 3 + [0.02]
    weights = np.array(prior) * np.exp([*walks, best])
    assert sorted(weights / weights.sum()) == pytest.approx(sorted(m.weight for m in members))


def test_of_a_long_table_fits_far_behind_are_not_asked(
    settings: SearchSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor are walks with another prior of the noise."""
    frame, ledger = one_walk(3), Ledger({})
    [best] = best_of(frame, "RW", settings)
    # Weights by BIC at temperature 8 (`stacking._DOUBT`), of which a thousandth is little.
    near, far = (replace(best, kernels=(parse("1 x SE(lengthscale=0.1)"),), bic=best.bic + behind)
                 for behind in (16.0 * 6.0, 16.0 * 8.0))  # fmt: skip
    monkeypatch.setattr(limits, "LONG", len(frame))
    stack([best, near, far], frame, settings, ledger)
    asked = {key for key in ledger.notes if key.startswith("weighed")}
    assert {f"weighed {fit_key(each)}" for each in (best, near)} <= asked
    assert f"weighed {fit_key(far)}" not in asked
    assert len(asked) == 7


def test_where_all_fits_have_a_cycle_walks_are_not_presumed(settings: SearchSettings) -> None:
    wave, frame = small_table(num_times=60).interpolate()[["a", "b"]], one_walk(3)
    (cyclic,), (smooth,) = (best_of(wave, name, settings) for name in ("PER", "SE"))
    (wanders,) = best_of(frame, "RW", settings)
    assert [str(kernel.structure) for kernel in cyclic.kernels] == ["PER"]
    for fits, prior in (([cyclic], 1 / 3), ([smooth], 0.02), ([cyclic, wanders], 0.02)):
        ledger = Ledger({})
        stack(fits, wave, settings, ledger)
        for key in ledger.notes:
            if key.startswith("weighed"):
                ledger.notes[key] = [0.0] * 5  # all foresaw the windows alike
        members = weigh(fits, settings, ledger)
        assert sum(m.weight for m in members if not m.is_walk) == pytest.approx(prior)


def test_windows_do_not_choose_among_fits_of_the_search(settings: SearchSettings) -> None:
    """Their weights stand as exp(-BIC / 6) do, whichever of them foresaw the windows."""
    frame, ledger = one_walk(3), Ledger({})
    (smooth,), (wave,) = (best_of(frame, name, settings) for name in ("SE", "PER"))
    ledger.note(f"weighed {fit_key(smooth)}", [-9.0] * 5)
    ledger.note(f"weighed {fit_key(wave)}", [1.0] * 5)
    members = weigh([smooth, wave], settings, ledger)
    weight = {id(member.fit): member.weight for member in members}
    expected = np.exp((wave.bic - smooth.bic) / 6.0)
    assert weight[id(smooth)] / weight[id(wave)] == pytest.approx(expected)
    assert sum(weight.values()) == pytest.approx(1.0)


def test_of_fits_that_found_the_same_optimum_one_counts() -> None:
    """Fits of nearly the same BIC and the same members, in whatever order."""
    none = np.empty((0, 0))

    def learnt(bic: float, *names: str) -> Fit:
        return Fit(tuple(map(parse, names)), none, none, none, np.empty(0), 0.0, bic, 0.0, 0.0)

    fits = [
        learnt(100.0, "SE", "PER"), learnt(100.4, "PER", "SE"), learnt(100.3, "SE", "LIN"),
        learnt(100.2, "SE"), learnt(100.6, "PER", "SE"),
    ]  # fmt: skip
    assert [member.fit.bic for member in average_fits(fits)] == [100.0, 100.2, 100.3, 100.6]


def weight_with_season(members: list[Member]) -> float:
    """Weight of the members in which a series has a periodic component."""
    return sum(m.weight for m in members if any("PER" in str(k) for k in m.fit.kernels))


def test_who_wanders_and_who_has_a_season(settings: SearchSettings) -> None:
    wave = small_table(num_times=60).interpolate()[["a", "b"]]
    for frame, members, wanders in [(one_walk(4), "SE", True), (wave, "PER,SE", False)]:
        fits = best_of(frame, members, settings)
        stacked = stack(fits, frame, settings, Ledger({}))
        share = sum(m.weight for m in stacked if m.is_walk)
        assert (share > 0.8) is wanders, share
        assert (weight_with_season(stacked) > 0.8) is not wanders


def test_a_season_that_the_search_missed_is_in_the_forecast(settings: SearchSettings) -> None:
    wave = small_table(num_times=60).interpolate()[["a", "b"]]
    fits = best_of(wave, "SE", settings)
    stacked = stack(fits, wave, settings, Ledger({}))
    assert weight_with_season([m for m in stacked if m.is_walk]) > 0.5


def test_walks_of_foreign_bases_are_left_out(settings: SearchSettings) -> None:
    frame = one_walk(5)
    paper = replace(settings, bases=lkm.PAPER_BASES)
    fits = best_of(frame, "SE", settings)
    (only,) = stack(fits, frame, paper, Ledger({}))
    assert only.weight == pytest.approx(1.0)
    assert not only.is_walk


def test_what_is_noted_is_not_computed_again(
    settings: SearchSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame, ledger = one_walk(6), Ledger({})
    fits = best_of(frame, "SE", settings)
    first = stack(fits, frame, settings, ledger)
    assert sum(key.startswith("walk ") for key in ledger.notes) == 7

    def never(*args: object, **options: object) -> None:
        raise AssertionError("computed again")

    monkeypatch.setattr("lkm_gpflow.forecast.stacking.fit", never)
    monkeypatch.setattr("lkm_gpflow.forecast.forecasters.held_out_score", never)
    again = stack(fits, frame, settings, ledger)
    assert [m.weight for m in again] == [m.weight for m in first]
    assert len(again) <= MOST + 7

"""Many series: learnt from a subset on, against learning on all at once."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from small import numbers, without_seconds

import lkm_gpflow as lkm
from lkm_gpflow.data.observations import Observations
from lkm_gpflow.data.tables import Table
from lkm_gpflow.fit.assignments import Pairs
from lkm_gpflow.fit.fits import Fit, FitSettings
from lkm_gpflow.fit.training import Learner, fit
from lkm_gpflow.gp.types import Floats
from lkm_gpflow.search import many_series as extension
from lkm_gpflow.search.many_series import extend
from lkm_gpflow.search.settings import draw

STRUCTURE = ("SE", "PER")
QUICK = FitSettings(prune=False, num_candidates=16, num_starts=1, num_reseeds=1)


@cache
def planted(num_series: int = 72, *, gaps: bool = False) -> pd.DataFrame:
    """Series that wander, wave or do both; each third series lacks four points if `gaps`."""
    rng = np.random.default_rng(7)
    x = np.linspace(0.0, 1.0, 24)
    distance = np.abs(x[:, None] - x)
    slow = np.exp(-0.5 * (distance / 0.25) ** 2)
    wave = np.cos(2.0 * np.pi * distance / 0.23)
    Z = np.array([(1, 0), (0, 1), (1, 1)])[np.arange(num_series) % 3]
    roots = [np.linalg.cholesky(C + 1e-9 * np.eye(24)) for C in (slow, wave)]
    F = np.array([root @ rng.normal(size=(24, num_series)) for root in roots])
    values = np.einsum("kdn,nk->dn", F, Z) + 0.2 * rng.normal(size=(24, num_series))
    if gaps:
        values[6:10, ::3] = np.nan
    return pd.DataFrame(values, columns=[f"s{n}" for n in range(num_series)])


def observations(num_series: int = 72, *, gaps: bool = False) -> Observations:
    return Table.of(planted(num_series, gaps=gaps)).observations


def learnt(data: Observations, settings: FitSettings = QUICK) -> Fit:
    return fit(data, [lkm.parse(name) for name in STRUCTURE], seed=0, settings=settings)


def in_order(found: Fit) -> Floats:
    """Z with the columns of `STRUCTURE`."""
    names = [str(kernel.structure) for kernel in found.kernels]
    return found.Z[:, [names.index(name) for name in STRUCTURE]]


@pytest.mark.parametrize("gaps", [False, True])
def test_a_subset_and_then_all_is_as_good_as_all_at_once(gaps: bool) -> None:
    data = observations(gaps=gaps)
    direct = learnt(data)
    some = learnt(data.of_series(draw(72, 12, seed=0)))
    extended = extend(some, data, QUICK)
    assert len(extended.Z) == 72
    assert extended.elbo >= direct.elbo - 1e-4 * data.num_observed
    assert np.mean(in_order(extended) == in_order(direct)) > 0.97
    # From where learning on all began: it has learnt something.
    assert extended.history[0] < extended.history[-1] - 1.0
    # Priors of hyperparameters count too, so the bound alone may give way a little.
    assert np.all(np.diff(extended.history) > -0.1)
    assert extended.elbo == pytest.approx(extended.history[-1], abs=1e-9)


def test_what_was_planted_is_found() -> None:
    found = lkm.learn(planted(), STRUCTURE, subset=12, restarts=1, progress=False)
    order = ["SE", "PER"]
    expected = np.array([(1, 0), (0, 1), (1, 1)])[np.arange(72) % 3]
    assert np.mean(found.structure[order].to_numpy() == expected) > 0.95
    assert found.probabilities.shape == (72, 2)


# --- through the doors ---------------------------------------------------------------------------

SEARCH: dict[str, Any] = {
    "bases": ("SE", "PER"), "depth": 0, "restarts": 2, "subset": 12, "progress": False
}  # fmt: skip


@pytest.fixture(scope="module")
def searched(tmp_path_factory: pytest.TempPathFactory) -> tuple[lkm.Discovery, Path]:
    path = tmp_path_factory.mktemp("search") / "ledger.jsonl"
    return lkm.discover(planted(), ledger=path, **SEARCH), path


def test_a_search_on_a_subset_is_a_discovery_of_all(
    searched: tuple[lkm.Discovery, Path], tmp_path: Path
) -> None:
    found, _ = searched
    assert found.probabilities.shape[0] == 72
    assert found.averaging == "tempered"
    assert found.bic == min(entry.fit.bic for entry in found.entries)
    assert [e.decision for e in found.entries if e.fit.bic == found.bic] == ["accepted"]
    at_once = learnt(observations(), replace(QUICK, likelihood=found.settings.fit.likelihood))
    assert found.fit.elbo >= at_once.elbo - 1e-4 * observations().num_observed
    found.save(tmp_path / "found.lkm")
    again = lkm.load(tmp_path / "found.lkm")
    pd.testing.assert_frame_equal(again.probabilities, found.probabilities)
    assert repr(again) == repr(found)


def test_a_stopped_search_goes_on(searched: tuple[lkm.Discovery, Path], tmp_path: Path) -> None:
    """From the search, and from the middle of learning on all."""
    found, path = searched
    lines = path.read_text().splitlines(keepends=True)
    notes = [i for i, line in enumerate(lines) if "note" in json.loads(line)]
    assert notes
    for end in (2, notes[0], notes[0] + 1):
        kept = tmp_path / f"{end}.jsonl"
        kept.write_text("".join(lines[:end]))
        again = lkm.discover(planted(), ledger=kept, **SEARCH)
        assert [without_seconds(e) for e in again.entries] == [
            without_seconds(e) for e in found.entries
        ]


def test_beyond_enough_series_the_best_of_these_is_learnt_on_all(
    searched: tuple[lkm.Discovery, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also after a stop between the stages, and with a budget that is spent in the first."""
    whole, path = searched
    monkeypatch.setattr(extension, "ENOUGH_TO_CHOOSE", 36)
    monkeypatch.setattr(extension, "different", list)  # both restarts, even if they are the same
    kept = tmp_path / "ledger.jsonl"
    searched_lines = path.read_text().splitlines(keepends=True)
    kept.write_text("".join(line for line in searched_lines if "note" not in json.loads(line)))
    before = kept.read_text()
    found = lkm.discover(planted(), ledger=kept, **SEARCH)
    assert len(found.entries) == 1
    assert found.fit.elbo >= whole.fit.elbo - 1e-4 * observations().num_observed
    notes = [
        json.loads(line)["note"] for line in kept.read_text().splitlines() if '{"note"' in line
    ]
    names = [key for key, _ in notes]
    assert len(names) == 3
    assert names[-1].startswith("all series")
    assert all(name.startswith("36 series") for name in names[:-1])
    bics = {key.split()[-1]: value["bic"] for key, value in notes[:-1]}
    assert names[-1].split()[-1] == min(bics, key=bics.__getitem__)
    assert all(len(value["noise_variance"]) == 36 for _, value in notes[:-1])
    assert all(len(value["history"]) == 2 for _, value in notes[:-1])  # before and after one round
    for budget, count in ((None, 0), (None, 1), ("0.001s", 0)):
        lines = kept.read_text().splitlines(keepends=True)[len(before.splitlines()) :]
        again = tmp_path / f"{budget}-{count}.jsonl"
        again.write_text(before + "".join(lines[:count]))
        other = lkm.discover(planted(), ledger=again, time_budget=budget, **SEARCH)
        assert len(other.entries) == 1
        if budget is None:
            assert without_seconds(other.entries[0]) == without_seconds(found.entries[0])
        else:
            assert "all series before all fits" in other.stopped


def test_another_subset_is_another_search(searched: tuple[lkm.Discovery, Path]) -> None:
    _, path = searched
    with pytest.raises(ValueError, match="differs in subset"):
        lkm.discover(planted(), ledger=path, **{**SEARCH, "subset": 13})


def test_given_kernels_without_a_subset(tmp_path: Path) -> None:
    frame = planted().iloc[:, :6]
    path = tmp_path / "ledger.jsonl"
    found = lkm.learn(frame, STRUCTURE, restarts=2, ledger=path, progress=False)
    assert [entry.decision for entry in found.entries].count("accepted") >= 1
    settings = FitSettings(prune=False)
    alone = fit(
        Table.of(frame).observations,
        [lkm.parse(name) for name in STRUCTURE],
        seed=(0, 0, 1),
        settings=settings,
    )
    assert numbers(found.entries[1].fit) == numbers(alone)
    before = path.read_text()
    again = lkm.learn(frame, STRUCTURE, restarts=2, ledger=path, progress=False)
    assert path.read_text() == before
    assert again.bic == found.bic


# --- where learning on all begins ----------------------------------------------------------------


@pytest.mark.parametrize("num_components", [2, 11])
def test_every_series_begins_with_its_best_noise_and_row(num_components: int) -> None:
    """With eleven components rows are found step by step; on these data the steps suffice."""
    data = observations(64)
    kernels = [lkm.parse("1 x SE(lengthscale=0.25)")]
    kernels += [
        lkm.parse(f"1 x PER(period={0.23 + 0.02 * k:.2f}, lengthscale=1)")
        for k in range(num_components - 1)
    ]
    learner = Learner(data, QUICK, np.random.default_rng(0))
    empty = np.zeros((64, num_components))
    known = Fit(
        tuple(kernels), empty, empty, np.ones((num_components, 2)), np.ones(64), 0.0, 0.0, 0.0, 0.0
    )
    begun = learner.adopt(known)
    own = learner._log_likelihoods(begun)
    for level in (1e-4, 1e-2, 1.0):
        pairs = Pairs.around(begun.Z, 10)
        others = replace(begun, noise_variance=np.full(64, level))
        best = pairs.by_series(learner._log_densities(others, pairs), -np.inf).max(axis=1)
        assert np.all(own >= best - 1e-6)
    assert len(set(begun.noise_variance)) > 1

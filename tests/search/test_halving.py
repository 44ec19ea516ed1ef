"""Starts of the paper's learner that end early: which, where the others lead, what is kept."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small import small_table

import lkm_gpflow.search.search
from lkm_gpflow.data.observations import Observations
from lkm_gpflow.data.tables import Table
from lkm_gpflow.fit.fits import Fit, FitSettings
from lkm_gpflow.fit.relaxed import learn_relaxed, try_relaxed
from lkm_gpflow.kernels.grammar import parse
from lkm_gpflow.model.annealing import Annealing
from lkm_gpflow.search.halving import TRIAL_STEPS, better_half, is_halved, reached
from lkm_gpflow.search.ledger import Ledger, fit_key
from lkm_gpflow.search.search import search
from lkm_gpflow.search.settings import SearchSettings

LONG = FitSettings(
    learner="relaxed",
    annealing=Annealing(num_steps=90, most_blocks=2, block_steps=10),
    num_samples=2,
)
SETTINGS = SearchSettings(bases=("LIN", "SE"), depth=1, restarts=3, fit=LONG)
BASES = [parse(text) for text in ("LIN", "SE")]


@pytest.fixture(scope="module")
def observations() -> Observations:
    return Table.of(small_table()).observations


@pytest.fixture(scope="module")
def done(observations: Observations, tmp_path_factory: pytest.TempPathFactory) -> Ledger:
    ledger = Ledger({}, tmp_path_factory.mktemp("halving") / "ledger.jsonl")
    search(observations, SETTINGS, ledger, progress=False)
    return ledger


def test_going_on_leads_where_learning_without_a_break_does(observations: Observations) -> None:
    """To the last bit, also after something else was learnt in between."""
    whole = learn_relaxed(observations, BASES, seed=3, settings=LONG)
    trials = [
        try_relaxed(observations, BASES, num_steps=37, seed=seed, settings=LONG) for seed in (3, 4)
    ]
    assert [trial.climb.objective.size for trial in trials] == [37, 37]
    went_on = learn_relaxed(observations, BASES, seed=3, settings=LONG, trial=trials[0])
    assert fit_key(went_on) == fit_key(whole)
    np.testing.assert_array_equal(whole.history[:37], trials[0].climb.objective)
    assert went_on.seconds > trials[0].seconds
    other = learn_relaxed(observations, BASES, seed=4, settings=LONG, trial=trials[1])
    assert fit_key(other) == fit_key(learn_relaxed(observations, BASES, seed=4, settings=LONG))


def test_one_that_ends_is_described_where_its_trial_ended(observations: Observations) -> None:
    """At the temperature that it had then, whatever was learnt in between."""
    trial = try_relaxed(observations, BASES, num_steps=37, seed=3, settings=LONG)
    learn_relaxed(observations, BASES, seed=4, settings=LONG)
    ended = learn_relaxed(observations, BASES, seed=3, settings=LONG, trial=trial, most_steps=37)
    at_once = learn_relaxed(observations, BASES, seed=3, settings=LONG, most_steps=37)
    assert fit_key(ended) == fit_key(at_once)
    assert ended.relaxed is not None
    assert ended.relaxed.temperature == pytest.approx(0.1 ** (36 / 89))
    assert ended.elbo == at_once.elbo


def test_the_better_half_goes_on_and_one_more_of_an_odd_number() -> None:
    histories = {n: np.full(TRIAL_STEPS, value) for n, value in enumerate([1.0, 3.0, 2.0, 0.0])}
    assert better_half(histories) == [1, 2]
    assert better_half({n: histories[n] for n in (0, 1, 3)}) == [0, 1]
    assert better_half({0: histories[0], 1: np.full(TRIAL_STEPS, np.nan)}) == [0]


def test_what_is_reached_is_a_mean_of_the_last_steps_of_a_trial() -> None:
    history = np.arange(200.0)
    assert reached(history) == np.mean(np.arange(50, 75))
    history[60] = np.nan
    assert reached(history) == pytest.approx(62.0 + 2.0 / 24.0)


@pytest.mark.parametrize(
    ("changes", "num_starts", "expected"),
    [
        ({}, 2, True),
        ({}, 1, False),
        ({"learner": "scan"}, 3, False),
        ({"learner": "relaxed+scan"}, 3, False),
        ({"annealing": Annealing(num_steps=TRIAL_STEPS)}, 3, False),
    ],
)
def test_only_the_papers_learner_has_long_to_go(
    changes: dict[str, Any], num_starts: int, expected: bool
) -> None:
    assert is_halved(replace(LONG, **changes), num_starts) == expected


def test_every_step_of_a_search_ends_the_worse_half(
    observations: Observations, done: Ledger
) -> None:
    """What goes on is what would have been learnt without: at the start, where both agree."""
    full = [learn_relaxed(observations, BASES, seed=(0, 0, n), settings=LONG) for n in range(3)]
    going_on = better_half({number: fit.history for number, fit in enumerate(full)})
    (ended,) = set(range(3)) - set(going_on)
    for number in going_on:
        assert fit_key(done.entries[0, number].fit) == fit_key(full[number])
    behind = max(full, key=lambda fit: fit.elbo if fit is not full[ended] else -np.inf)
    gap = reached(behind.history) - reached(full[ended].history)
    expected = f"by then {gap:.1f} behind another"
    assert done.decisions[0, ended] == f"ended after 75 steps: {expected}"
    steps = {step for step, _ in done.entries}
    assert len(steps) > 1
    for step in steps:
        lengths = [done.entries[step, number].fit.history.size for number in range(3)]
        assert sorted(lengths)[0] == TRIAL_STEPS
        assert sorted(lengths)[1] > 90
    assert sum(decision == "accepted" for decision in done.decisions.values()) >= 1


def test_one_that_ended_is_never_accepted(
    observations: Observations, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its bound is one of another temperature."""
    learn = lkm_gpflow.search.search.fit

    def better_than_ever(*args: Any, **options: Any) -> Fit:
        found = learn(*args, **options)
        return found if options["most_steps"] is None else replace(found, elbo=1e9, bic=-1e9)

    monkeypatch.setattr(lkm_gpflow.search.search, "fit", better_than_ever)
    ledger = Ledger({})
    found = search(observations, replace(SETTINGS, depth=0), ledger, progress=False)
    assert found.history.size > TRIAL_STEPS
    assert [decision[:5] for decision in ledger.decisions.values()].count("ended") == 1


@pytest.mark.parametrize("num_known", [1, 2, 3, 4])
def test_a_search_that_was_stopped_ends_the_same_starts(
    observations: Observations, done: Ledger, num_known: int, tmp_path: Path
) -> None:
    """With so many of its fits in the ledger: in the middle of a step, too."""
    lines = done.path.read_text().splitlines(keepends=True)
    fits = [number for number, line in enumerate(lines) if line.startswith('{"fit"')]
    stopped = tmp_path / "ledger.jsonl"
    stopped.write_text("".join(lines[: fits[num_known - 1] + 1]))
    ledger = Ledger({}, stopped)
    assert len(ledger.entries) == num_known
    search(observations, SETTINGS, ledger, progress=False)
    assert {key: fit_key(entry.fit) for key, entry in ledger.entries.items()} == {
        key: fit_key(entry.fit) for key, entry in done.entries.items()
    }
    assert ledger.decisions == done.decisions

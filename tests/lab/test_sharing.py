"""The recovery of who shares what: what is planted, how it is compared, the committed runs."""

from __future__ import annotations

import itertools
import json

import numpy as np
from scipy.special import softmax

import lkm_gpflow as lkm
from lkm_gpflow.data.tables import Table
from lkm_gpflow.kernels.component import to_kernel
from lkm_gpflow.kernels.grammar import parse
from paper_experiments.lab import RESULTS
from paper_experiments.lab.sharing import best_possible, counterparts, summary

TIMES = np.linspace(0.0, 1.0, 60)


def test_components_stand_for_those_of_their_shape() -> None:
    """Neither variance nor order count, and a fast smooth curve is no walk."""
    found = [parse("3 x RW(start=-0.02)"), parse("1 x SE(lengthscale=0.2)"), parse("1 x C")]
    planted = [parse("9 x SE(lengthscale=0.19)"), parse("1 x RW(start=-0.02)")]
    assert counterparts(found, planted, TIMES) == [(0, 1), (1, 0)]
    assert counterparts(found[2:], planted, TIMES) == []
    fast = [parse("1 x SE(lengthscale=0.01)")]
    assert counterparts(fast, planted, TIMES) == []


def test_the_best_possible_is_the_exact_posterior_of_the_model() -> None:
    """Of demo, by LKM's own likelihood of every row of Z; four of 32 entries cannot be told."""
    demo, told = lkm.datasets.load("demo"), best_possible("demo", "equal", 0)
    assert demo.truth is not None
    x = Table.of(demo.frame).observations.x[:, None]
    Y = (demo.frame.to_numpy() - demo.truth.offset) / demo.truth.scale
    kernels = [to_kernel(lkm.parse(text)) for text in demo.truth.kernels]
    model = lkm.LKM((x, Y), kernels, noise_variance=demo.truth.noise_variance)
    rows = np.array(list(itertools.product([0.0, 1.0], repeat=4)))
    said = softmax(model.configuration_log_likelihood(rows).numpy(), axis=1) @ rows
    np.testing.assert_allclose(np.transpose(told["probabilities"]), said, atol=2e-6)
    assert told["wrong"] == ((said > 0.5) != demo.truth.Z.to_numpy()).sum() == 4


def test_scales_of_series_leave_fewer_wrong_entries_and_duplicates() -> None:
    """By the committed runs."""
    lines = (RESULTS / "sharing.jsonl").read_text().splitlines()
    records = [json.loads(line) for line in lines[1:]]
    table = summary(records)
    assert table["tables"].min() >= 1
    series = {"amplitudes": "series", "criterion": "bic+prior"}
    averaged = {**series, "averaging": "tempered"}
    both = {
        variant: [r for r in records if r["options"] == options]
        for variant, options in (("none", {}), ("series", series), ("averaged", averaged))
    }
    assert {len(own) for own in both.values()} == {40}
    for heights in ("equal", "unequal"):
        wrong = {
            variant: sum(r["wrong"] for r in own if r["heights"] == heights)
            for variant, own in both.items()
        }
        assert max(wrong["series"], wrong["averaged"]) <= wrong["none"]
    twice = {variant: sum(r["near_duplicates"] for r in own) for variant, own in both.items()}
    assert twice["series"] < twice["none"]

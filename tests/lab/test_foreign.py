"""Tables of others: what is true of them, and how statements are judged."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from small import made_by_hand

from paper_experiments.lab.foreign import GENERATORS, Foreign, Part, held, judged, statements


@pytest.mark.parametrize("name", GENERATORS)
def test_what_is_true_of_a_table_is_in_it(name: str) -> None:
    """Cycles are highest at their peaks, and without all components noise is left."""
    for seed in range(5):
        foreign = GENERATORS[name](seed)
        y, x = foreign.frame.to_numpy(), np.arange(len(foreign.frame))
        for cycle in foreign.visible("cycle"):
            highest = x[cycle.values.argmax()]
            if cycle.period == int(cycle.period):  # a season may change: its average is highest
                means = [
                    cycle.values[x % cycle.period == i].mean() for i in range(int(cycle.period))
                ]
                highest = int(np.argmax(means))
            rows = (highest - cycle.peak + 0.5 * cycle.period) % cycle.period - 0.5 * cycle.period
            assert abs(rows) <= 1.0
        rest = y.copy()
        for part in foreign.parts:
            rest[:, part.series] -= part.values
            if foreign.share(part) > 0.5:
                assert np.corrcoef(part.values, y[:, part.series])[0, 1] > 0.4
        if name in ("shapes", "structural"):
            assert (rest.std(axis=0) < 1.5).all()


def test_a_wave_and_a_line_are_judged() -> None:
    """Found where they are, with their peak, size, slope and lag."""
    x, rng = np.arange(96.0), np.random.default_rng(1)
    waves = [np.cos(2.0 * np.pi * (x - peak) / 12.0) for peak in (5.0, 7.0)]
    parts = [Part(n, "cycle", f, 1.0, 12.0, 5.0 + 2.0 * n) for n, f in enumerate(waves)]
    parts.append(Part(2, "trend", x / 30.0, (x / 30.0).std()))
    y = np.column_stack([*waves, x / 30.0]) + 0.2 * rng.normal(size=(96, 3))
    foreign = Foreign(pd.DataFrame(y), tuple(parts))
    kernels = ["1 x PER(period=12, lengthscale=2)", "0.001 x LIN(location=48)"]
    found = made_by_hand(foreign.frame, kernels, [[1, 0], [1, 0], [0, 1]], 0.04)
    record = judged(found, foreign)
    table = statements([record])
    assert table.loc["cycle", ["count", "true", "has", "has, false"]].tolist() == [3, 2, 2, 0.0]
    assert table.loc["trend", ["true", "has", "has, false"]].tolist() == [1, 1, 0.0]
    measured = held([record])
    assert measured.loc[("cycle", "peak"), "within 5%"] == 1.0
    assert {what for _, what in measured.index} == {"share", "size", "peak", "lag", "slope"}

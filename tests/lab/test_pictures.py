"""Pictures of the paper's figures 2 and 3."""

from __future__ import annotations

import pandas as pd
import pytest
from matplotlib.patches import Circle, FancyArrowPatch, FancyBboxPatch

from paper_experiments.lab.expansion import plot_expansion
from paper_experiments.lab.plates import Plate, Variable, plot_plates

LEDGER = pd.DataFrame(
    {
        "step": [0, 1, 1, 2],
        "parent": [-1, 0, 0, 1],
        "expanded": ["start", "PER", "PER", "every member"],
        "tried": ["SE, PER", "SE, PER, PER x SE, PER", "SE, PER, PER x SE, PER", "SE"],
        "found": ["SE, PER", "PER x SE", "SE, PER", "SE"],
        "bic": [50.0, 40.0, 39.0, 41.0],
        "criterion": [55.0, 45.0, 46.0, 46.0],  # the second restart is the best by BIC alone
        "decision": ["accepted", "accepted", "another restart is better", "rolled back"],
    }
)


def test_an_expansion_shows_what_came_and_what_stayed() -> None:
    ax = plot_expansion(LEDGER, 1)
    boxes = [patch for patch in ax.patches if isinstance(patch, FancyBboxPatch)]
    names = [text.get_text() for text in ax.texts if text.get_text()]
    assert names == ["SE", "PER", "SE", "PER", "PER\nx SE", "PER"]
    # The best restart used PER x SE alone of those that were tried.
    dashed = [box.get_linestyle() in ("--", "dashed") for box in boxes]
    assert dashed == [False, False, True, True, False, True]
    assert "expand PER, BIC changes by -10.0, accepted" in ax.get_title()
    arrows = [text for text in ax.texts if not text.get_text()]
    assert len(arrows) == 3


def test_plates_hold_their_variables() -> None:
    variables = {
        "z": Variable("$z$", 0.0, 1.0),
        "x": Variable("$x$", 0.0, 0.0, observed=True),
        "a": Variable("$a$", 0.0, 2.0, fixed=True),
    }
    ax = plot_plates(variables, [("a", "z"), ("z", "x")], [Plate("N", ("z", "x"))])
    (plate,) = (p for p in ax.patches if isinstance(p, FancyBboxPatch))
    low, high = plate.get_y(), plate.get_y() + plate.get_height()
    assert low < 0.0 - 0.3 < 1.0 + 0.3 < high < 2.0
    circles = [p for p in ax.patches if isinstance(p, Circle)]
    assert len(circles) == 2
    assert circles[0].get_facecolor() != circles[1].get_facecolor()
    assert sum(isinstance(p, FancyArrowPatch) for p in ax.patches) == 2
    with pytest.raises(ValueError, match=r"got \['y'\]"):
        plot_plates(variables, [("z", "y")], [])

"""Pictures of the paper's figures 2 to 5."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from matplotlib.image import AxesImage
from matplotlib.patches import Circle, FancyArrowPatch, FancyBboxPatch

from lkm_gpflow import plotting
from lkm_gpflow.plotting import Plate, Variable

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
    ax = plotting.plot_expansion(LEDGER, 1)
    boxes = [patch for patch in ax.patches if isinstance(patch, FancyBboxPatch)]
    names = [text.get_text() for text in ax.texts if text.get_text()]
    assert names == ["SE", "PER", "SE", "PER", "PER\nx SE", "PER"]
    # The best restart used PER x SE alone of those that were tried.
    dashed = [box.get_linestyle() in ("--", "dashed") for box in boxes]
    assert dashed == [False, False, True, True, False, True]
    assert "expand PER, BIC changes by -10.0, accepted" in ax.get_title()
    arrows = [text for text in ax.texts if not text.get_text()]
    assert len(arrows) == 3


@pytest.mark.parametrize("step", [0, 2, 7])
def test_only_expansions_of_one_member_are_drawn(step: int) -> None:
    with pytest.raises(ValueError, match=r"expands one member, among \[1\]"):
        plotting.plot_expansion(LEDGER, step)


def test_plates_hold_their_variables() -> None:
    variables = {
        "z": Variable("$z$", 0.0, 1.0),
        "x": Variable("$x$", 0.0, 0.0, observed=True),
        "a": Variable("$a$", 0.0, 2.0, fixed=True),
    }
    ax = plotting.plot_plates(variables, [("a", "z"), ("z", "x")], [Plate("N", ("z", "x"))])
    (plate,) = (p for p in ax.patches if isinstance(p, FancyBboxPatch))
    low, high = plate.get_y(), plate.get_y() + plate.get_height()
    assert low < 0.0 - 0.3 < 1.0 + 0.3 < high < 2.0
    circles = [p for p in ax.patches if isinstance(p, Circle)]
    assert len(circles) == 2
    assert circles[0].get_facecolor() != circles[1].get_facecolor()
    assert sum(isinstance(p, FancyArrowPatch) for p in ax.patches) == 2
    with pytest.raises(ValueError, match=r"got \['y'\]"):
        plotting.plot_plates(variables, [("z", "y")], [])


def is_dark_where_one(image: AxesImage) -> None:
    """Assert that one is darker than a half, and that darker than zero, by relative luminance."""
    red, green, blue, _ = image.to_rgba(np.array([0.0, 0.5, 1.0])).T
    luminance = 0.2126 * red + 0.7152 * green + 0.0722 * blue
    assert luminance[0] > 0.9
    assert luminance[0] - luminance[1] > 0.2
    assert luminance[1] - luminance[2] > 0.2


def test_an_assignment_is_dark_where_a_series_has_the_component() -> None:
    Z = pd.DataFrame([[1, 0, 0], [1, 1, 0]], ["$x$", "b"], ["SE", "PER", "LIN"])
    ax = plotting.plot_assignment(Z)
    (image,) = ax.images
    np.testing.assert_allclose(image.get_array(), Z)
    is_dark_where_one(image)
    assert [label.get_text() for label in ax.get_xticklabels()][:3] == ["SE", "PER", "LIN"]
    assert [label.get_text() for label in ax.get_yticklabels()][:2] == ["\\$x\\$", "b"]


def test_snapshots_are_components_by_series() -> None:
    history = np.random.default_rng(0).uniform(size=(5, 3, 2))
    panels = plotting.plot_probability_snapshots(history, [0, 4], series=["a", "b", "c"])
    np.testing.assert_allclose(panels[1].images[0].get_array(), history[4].T)
    assert [label.get_text() for label in panels[0].get_xticklabels()] == ["a", "b", "c"]
    assert panels[1].get_title() == "step 5"
    is_dark_where_one(panels[1].images[0])
    with pytest.raises(ValueError, match=r"\[T, N, K\]"):
        plotting.plot_probability_snapshots(history[0], [0])

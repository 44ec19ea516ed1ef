"""Pictures of who has what, at the end and while it is learnt."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.image import AxesImage

from paper_experiments.lab.pictures import plot_assignment, plot_probability_snapshots


def is_dark_where_one(image: AxesImage) -> None:
    """Assert that one is darker than a half, and that darker than zero, by relative luminance."""
    red, green, blue, _ = image.to_rgba(np.array([0.0, 0.5, 1.0])).T
    luminance = 0.2126 * red + 0.7152 * green + 0.0722 * blue
    assert luminance[0] > 0.9
    assert luminance[0] - luminance[1] > 0.2
    assert luminance[1] - luminance[2] > 0.2


def test_an_assignment_is_dark_where_a_series_has_the_component() -> None:
    Z = pd.DataFrame([[1, 0, 0], [1, 1, 0]], ["$x$", "b"], ["SE", "PER", "LIN"])
    ax = plot_assignment(Z)
    (image,) = ax.images
    np.testing.assert_allclose(image.get_array(), Z)
    is_dark_where_one(image)
    assert [label.get_text() for label in ax.get_xticklabels()][:3] == ["SE", "PER", "LIN"]
    assert [label.get_text() for label in ax.get_yticklabels()][:2] == ["\\$x\\$", "b"]


def test_snapshots_are_components_by_series() -> None:
    history = np.random.default_rng(0).uniform(size=(5, 3, 2))
    panels = plot_probability_snapshots(history, [0, 4], series=["a", "b", "c"])
    np.testing.assert_allclose(panels[1].images[0].get_array(), history[4].T)
    assert [label.get_text() for label in panels[0].get_xticklabels()] == ["a", "b", "c"]
    assert panels[1].get_title() == "step 5"
    is_dark_where_one(panels[1].images[0])

"""The explorer: its controls are moved, and what is drawn is looked at."""

from __future__ import annotations

import sys
from io import BytesIO

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.axes import Axes
from small import made_by_hand, small_table

import lkm_gpflow as lkm
from lkm_gpflow import plotting
from lkm_gpflow.plotting import explorer as explorers
from lkm_gpflow.plotting.style import ABSENT

pytest.importorskip("ipywidgets")

KERNELS = ["0.5 x PER(period=88, lengthscale=1)", "0.5 x SE(lengthscale=100)"]


@pytest.fixture
def found() -> lkm.Discovery:
    return made_by_hand(small_table(), KERNELS, [[1, 0], [1, 1], [0, 1]])


@pytest.fixture
def explorer(found: lkm.Discovery) -> plotting.Explorer:
    return found.explore(4, {"a": "USD"})


def titles(explorer: plotting.Explorer) -> list[str]:
    return [ax.get_title() for ax in explorer.figure.axes if ax.axison]


def picture(explorer: plotting.Explorer) -> np.ndarray:
    return plt.imread(BytesIO(explorer._image.value))


def drawn(ax: Axes) -> np.ndarray:
    file = BytesIO()
    ax.figure.savefig(file, dpi=explorers._DPI)
    return plt.imread(BytesIO(file.getvalue()))


def shown(explorer: plotting.Explorer) -> list[str]:
    """The controls that one sees."""
    return [name for name, c in explorer._controls.items() if c.layout.display != "none"]


def test_it_begins_with_the_forecast_of_the_first_series(
    explorer: plotting.Explorer, found: lkm.Discovery
) -> None:
    assert titles(explorer) == ["a"]
    assert explorer.figure.axes[0].get_ylabel() == "USD"
    assert shown(explorer) == ["series", "horizon"]
    expected = plotting.plot_forecast(found.select(["a"]), "a", 4, unit="USD")
    np.testing.assert_array_equal(picture(explorer), drawn(expected))


def test_another_series_and_horizon(explorer: plotting.Explorer, found: lkm.Discovery) -> None:
    explorer.series.value = "b"
    assert titles(explorer) == ["b"]
    explorer.horizon.value = 9
    (mean,) = (line for line in explorer.figure.axes[0].lines if line.get_label() == "model's mean")
    assert len(mean.get_xdata()) == len(small_table()) + 9
    told = found.predict(small_table().index.append(found.times(9))).loc["b", "mean"]
    np.testing.assert_allclose(mean.get_ydata(), told)


def test_components_of_a_series(explorer: plotting.Explorer) -> None:
    explorer.view.value = "components"
    assert shown(explorer) == ["series", "component", "horizon"]
    assert titles(explorer) == ["SE", "PER"]  # that explains more
    assert explorer.component.index == 0  # or the control would be blank
    explorer.component.value = 0
    assert titles(explorer) == ["SE"]
    (ax,) = (ax for ax in explorer.figure.axes if ax.axison)
    assert [text.get_text() for text in ax.texts][-1] == ABSENT
    explorer.series.value = "c"
    (ax,) = (ax for ax in explorer.figure.axes if ax.axison)
    parts = explorer.found.components("c", 4)
    np.testing.assert_allclose(ax.lines[1].get_ydata(), parts["SE", "mean"])


def test_views_of_all_series(explorer: plotting.Explorer, found: lkm.Discovery) -> None:
    explorer.view.value = "who has what"
    assert shown(explorer) == []
    np.testing.assert_array_equal(picture(explorer), drawn(plotting.plot_structure(found)))
    explorer.view.value = "everything"
    assert shown(explorer) == ["horizon"]
    expected = plotting.plot_decomposition(found, 4)[0]
    np.testing.assert_array_equal(picture(explorer), drawn(expected))


def test_two_series_and_no_figure_is_left_open(explorer: plotting.Explorer) -> None:
    explorer.view.value = "two series"
    assert titles(explorer)[:2] == ["a", "b"]
    explorer.series.value = "b"
    assert "expected different series" in explorer._message.value
    assert plt.get_fignums() == []


def test_what_cannot_be_drawn_is_said(
    explorer: plotting.Explorer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise ValueError("expected at most 200 series, got <300>")

    monkeypatch.setattr(explorers, "plot_structure", refuse)
    explorer.view.value = "who has what"
    assert "got &lt;300&gt;" in explorer._message.value
    assert explorer._image.value == b""
    explorer.view.value = "forecast"
    assert explorer._message.value == ""
    assert titles(explorer) == ["a"]


def test_without_ipywidgets_it_says_what_to_install(
    found: lkm.Discovery, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ipywidgets", None)
    with pytest.raises(ImportError, match=r"expected .* ipywidgets.*'\.\[explorer\]'"):
        found.explore()

"""Pictures: where they are drawn, what stands on them, and names that are no formulas."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from small import made_by_hand

import lkm_gpflow as lkm
from lkm_gpflow import plotting

ODD_NAMES = ("<A&B>", "$x$", "two $ and $ more", "😀", "_under^score", "\\frac{1}", "long " * 20)


@pytest.fixture(scope="module")
def found() -> lkm.Discovery:
    """A wave that all series share, on dates, one with a gap, and names of every sort."""
    rng = np.random.default_rng(1)
    days = pd.date_range("2024-01-01", periods=30, freq="D")
    wave = np.sin(np.arange(30) / 3)[:, None] * np.arange(1, len(ODD_NAMES) + 1)
    frame = pd.DataFrame(wave + 0.1 * rng.standard_normal(wave.shape), days, list(ODD_NAMES))
    frame.iloc[5:9, 0] = np.nan
    return lkm.discover(frame, depth=1, restarts=1, bases=("SE",), progress=False)


def drawn(figure: Figure) -> None:
    """Draw everything, so that a text that is taken for a formula fails."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph")
        figure.savefig(io.BytesIO(), dpi=40)


def texts(ax: Axes) -> str:
    labels = [*ax.get_xticklabels(), *ax.get_yticklabels(), *ax.texts, ax.title]
    return "\n".join(text.get_text() for text in labels)


def calls(found: lkm.Discovery) -> dict[str, tuple[int, Callable[..., Any]]]:
    """Every function with the number of Axes that it needs."""
    K, N = len(found.names), len(ODD_NAMES)
    nu = np.linspace(0, 1, 5 * N * K).reshape(5, N, K)
    return {
        "forecast": (1, lambda ax: plotting.plot_forecast(found, "$x$", 4, ax, unit="$ a week")),
        "forecasts": (N, lambda axes: plotting.plot_forecasts(found, 4, axes)),
        "structure": (1, lambda ax: plotting.plot_structure(found, ax)),
        "components": (K, lambda axes: plotting.plot_components(found, "$x$", 4, axes)),
        "ledger": (1, lambda ax: plotting.plot_ledger(found, ax)),
        "over time": (
            N,
            lambda axes: plotting.plot_probabilities_over_time(
                nu, axes, series=ODD_NAMES, components=found.names
            ),
        ),
        "methods": (
            len(ODD_NAMES),
            lambda axes: plotting.plot_methods(
                found.table.frame["$x$"],
                dict.fromkeys(ODD_NAMES, found.forecast(4).loc["$x$"]),
                axes,
                truth=found.forecast(4).loc["$x$"]["mean"],
            ),
        ),
        "scores": (1, lambda ax: plotting.plot_scores(backtests(), "mase", ax)),
        "coverage": (1, lambda ax: plotting.plot_coverage(backtests(), ax)),
    }


def backtests() -> list[lkm.Backtest]:
    walk = np.cumsum(np.random.default_rng(0).normal(size=(40, 2)), axis=0)
    return [
        lkm.backtest(pd.DataFrame(walk), method, 3, 4, label=label, progress=False)
        for method, label in (("last-value", "$last"), ("drift", "<drift>"))
    ]


NAMES = (
    "forecast", "forecasts", "structure", "components", "ledger", "over time", "methods", "scores",
    "coverage",
)  # fmt: skip
SINGLE = ("forecast", "structure", "ledger", "scores", "coverage")


@pytest.mark.parametrize("name", NAMES)
def test_draws_on_given_axes_and_opens_no_figure(name: str, found: lkm.Discovery) -> None:
    count, draw = calls(found)[name]
    axes = Figure(figsize=(20, 20)).subplots(1, count, squeeze=False)[0]
    given = axes[0] if name in SINGLE else axes
    returned = draw(given)
    assert list(np.atleast_1d(returned)) == list(axes)
    assert plt.get_fignums() == []
    drawn(axes[0].figure)


@pytest.mark.parametrize("name", NAMES)
def test_draws_on_one_new_figure(name: str, found: lkm.Discovery) -> None:
    count, draw = calls(found)[name]
    returned = np.atleast_1d(draw(None))
    assert len(returned) == count
    assert plt.get_fignums() == [returned[0].figure.number]
    assert len(returned[0].figure.axes) == count  # no empty panels
    drawn(returned[0].figure)


def test_names_are_shown_as_they_are(found: lkm.Discovery) -> None:
    ax = plotting.plot_structure(found)
    shown = [label.get_text().replace(r"\$", "$") for label in ax.get_yticklabels()]
    assert shown[:-1] == list(ODD_NAMES[:-1])
    assert shown[-1].startswith("long long")
    assert len(shown[-1]) < 40


def test_a_forecast_says_what_it_shows(found: lkm.Discovery) -> None:
    truth = found.table.frame.iloc[-4:].shift(4, freq="D")
    ax = plotting.plot_forecast(found, "<A&B>", 4, unit="tons", truth=truth, level=0.8)
    legend = [text.get_text() for text in ax.get_legend().get_texts()]
    assert legend == ["80% of new observations", "model's mean", "observed", "what happened then"]
    assert (ax.get_title(), ax.get_ylabel()) == ("<A&B>", "tons")
    mean = next(line for line in ax.lines if line.get_label() == "model's mean")
    expected = found.forecast(4).loc["<A&B>", "mean"]
    np.testing.assert_allclose(mean.get_ydata()[-4:], expected)
    start = next(line for line in ax.lines if line.get_linestyle() == "--")
    assert pd.Timestamp(start.get_xdata()[0]) == found.table.frame.index[-1]


def test_the_structure_has_its_numbers_and_colours(found: lkm.Discovery) -> None:
    ax = plotting.plot_structure(found)
    numbers = [text.get_text() for text in ax.texts]
    assert numbers == [f"{p:.2f}" for p in found.probabilities.to_numpy().ravel()]
    labels = [label for label in ax.get_xticklabels() if label.get_visible()]
    for k, label in enumerate(labels):
        assert to_hex(label.get_color()) == plotting.component_colour(k).lower()


def test_a_component_that_a_series_lacks_is_blank(found: lkm.Discovery) -> None:
    without = lkm.discover(
        found.table.frame.iloc[:, :2], depth=0, restarts=1, bases=("SE",), averaging="none",
        progress=False,
    )  # fmt: skip
    without.fit.Z[0, 0] = 0.0
    (ax,) = plotting.plot_components(without, "<A&B>")
    assert "not in this series" in texts(ax)
    assert not ax.lines
    (ax,) = plotting.plot_components(without, "$x$")
    assert "not in this series" not in texts(ax)
    assert to_hex(ax.lines[-1].get_color()) == plotting.component_colour(0).lower()


OTHER = "another restart is better by 1.0 in BIC"


def test_noise_has_pictures() -> None:
    """Of no component they say so, without a warning of empty axes."""
    white = pd.DataFrame(np.random.default_rng(0).normal(size=(20, 2)), columns=["a", "b"])
    nothing = made_by_hand(white, [], [[], []], noise=1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        structure = nothing.plot.structure()
        drawn(structure.figure)  # type: ignore[arg-type]
        (panel,) = nothing.plot.components("a", 3)
        drawn(panel.figure)
        drawn(nothing.plot(3)[0].figure)
    assert texts(structure).split() == ["a", "b", "no", "component"]
    assert [text.get_text() for text in panel.texts] == ["no component"]
    assert panel.get_ylabel() == "a"
    assert nothing.components("a", 3).shape == (23, 0)


def test_the_ledger_is_a_tree() -> None:
    ledger = pd.DataFrame(
        {
            "step": [0, 0, 1, 2, 3],
            "depth": [0, 0, 1, 1, 2],
            "parent": [-1, -1, 0, 0, 2],
            "expanded": ["start", "start", "SE", "PER", "LIN"],
            "found": ["SE", "PER", "SE x PER", "PER, LIN", "LIN"],
            "bic": [30.0, 20.0, 25.0, 12.0, 12.01],
            "criterion": [35.0, 25.0, 30.0, 17.0, 17.01],
            "decision": [OTHER, "accepted", "rolled back", "accepted", "rolled back"],
        }
    )
    ax = plotting.plot_ledger(ledger)
    shown = [text.get_text() for text in ax.texts]
    assert shown == [
        "start: BIC 20.0\nPER",
        "expand SE: BIC 25.0 (+5.0)",
        "expand PER: BIC 12.0 (-8.0)\nPER, LIN",
        "expand LIN: BIC 12.0 (+0.0)",
        "depth 0",
        "depth 1",
        "depth 2",
    ]
    # Every node is one level to the right of its parent, one row below the node before.
    places = [text.xy for text in ax.texts[:4]]
    assert places == [(0, 0), (1, 1), (1, 2), (2, 3)]


def test_probabilities_over_time_need_three_axes() -> None:
    with pytest.raises(ValueError, match=r"\[T, N, K\]"):
        plotting.plot_probabilities_over_time(np.zeros((3, 2)))
    axes = plotting.plot_probabilities_over_time(np.zeros((3, 2, 2)), steps=[0, 10, 20])
    np.testing.assert_array_equal(axes[0].lines[0].get_xdata(), [0, 10, 20])
    colours = [to_hex(line.get_color()) for line in axes[1].lines]
    assert colours == [colour.lower() for colour in plotting.COMPONENT_COLOURS[:2]]


def test_scores_are_ordered_and_written() -> None:
    made = backtests()
    ax = plotting.plot_scores(made, "crps")
    means = {each.label: each.scores["crps"].mean() for each in made}
    ordered = [label.get_text().replace(r"\$", "$") for label in ax.get_yticklabels()]
    assert ordered == sorted(means, key=lambda label: -means[label])
    assert {text.get_text() for text in ax.texts} == {f"{mean:.3f}" for mean in means.values()}
    with pytest.raises(ValueError, match="expected a score among"):
        plotting.plot_scores(made, "luck")

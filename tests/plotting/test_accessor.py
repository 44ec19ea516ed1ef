"""``found.plot`` draws what the functions of the room draw."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from small import made_by_hand, small_table

import lkm_gpflow as lkm
from lkm_gpflow import plotting


@pytest.fixture
def found() -> lkm.Discovery:
    kernels = ["0.5 x PER(period=88, lengthscale=1)", "0.5 x SE(lengthscale=100)"]
    return made_by_hand(small_table(), kernels, [[1, 0], [1, 1], [0, 1]])


def pixels(ax: Axes) -> np.ndarray:
    figure = ax.figure
    assert isinstance(figure, Figure)
    figure.canvas.draw()
    image = np.asarray(figure.canvas.buffer_rgba())  # type: ignore[attr-defined]
    plt.close(figure)
    return image


def test_each_method_draws_the_picture_of_its_function(found: lkm.Discovery) -> None:
    pairs = [
        (found.plot()[0], plotting.plot_decomposition(found, 4)[0]),
        (found.plot(7)[0], plotting.plot_decomposition(found, 7)[0]),
        (found.plot.structure(), plotting.plot_structure(found)),
        (found.plot.forecast()[0], plotting.plot_forecasts(found, 4)[0]),
        (found.plot.forecast(3, "b"), plotting.plot_forecast(found, "b", 3)),
        (found.plot.forecast(3, level=0.5)[0], plotting.plot_forecasts(found, 3, level=0.5)[0]),
        (found.plot.components("b")[0], plotting.plot_components(found, "b")[0]),
        (found.plot.components("b", 3)[0], plotting.plot_components(found, "b", 3)[0]),
        (found.plot.components()[0], plotting.plot_decomposition(found)[0]),
    ]
    seen = []
    for ours, theirs in pairs:
        image = pixels(ours)
        np.testing.assert_array_equal(image, pixels(theirs))
        seen.append(image.tobytes())
    assert len(set(seen)) == len(pairs)


def test_a_backtest_draws_itself_beside_others() -> None:
    one, other = (
        lkm.backtest(small_table(), name, 5, 3, progress=False) for name in ("drift", "last-value")
    )
    ax = one.plot(other, score="rmse")
    assert {label.get_text() for label in ax.get_yticklabels()} == {"drift", "last-value"}
    np.testing.assert_array_equal(pixels(one.plot()), pixels(plotting.plot_scores([one])))

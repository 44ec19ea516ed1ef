"""Draws from kernels, and their picture."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pytest

import lkm_gpflow as lkm
from lkm_gpflow.kernels.component import to_kernel
from paper_experiments.lab.pictures import draw_functions, plot_kernel

X = np.linspace(0.0, 2.0, 12)


@pytest.mark.parametrize(
    "text", ["2.0 x SE(lengthscale=0.4)", "0.5 x LIN(location=0.3)", "1.5 x RW(start=-0.2)"]
)
def test_draws_have_the_covariance(text: str) -> None:
    product = lkm.parse(text)
    draws = draw_functions(product, X, count=40_000, seed=1)
    expected = to_kernel(product)(X[:, None]).numpy()
    scale = expected.diagonal().max()
    assert draws.T @ draws / len(draws) == pytest.approx(expected, abs=0.03 * scale)


def test_the_picture_shows_covariance_and_draws() -> None:
    product = lkm.parse("2.0 x SE(lengthscale=0.4)")
    before = plt.get_fignums()
    figure, axes = plt.subplots(1, 2)
    panels = plot_kernel(product, X, axes, count=4, seed=3, unit="weeks")
    assert list(panels) == list(axes)
    assert len(plt.get_fignums()) == len(before) + 1
    shown = panels[0].images[0].get_array()
    np.testing.assert_allclose(shown, to_kernel(product)(X[:, None]).numpy())
    drawn = np.array([line.get_ydata() for line in panels[1].lines])
    np.testing.assert_allclose(drawn, draw_functions(product, X, 4, 3))
    assert panels[1].get_xlabel() == "time (weeks)"
    plt.close(figure)
    with pytest.raises(ValueError, match="expected 2 Axes"):
        plot_kernel(product, X, panels[:1])
    with pytest.raises(ValueError, match="all their numbers"):
        plot_kernel(lkm.parse("SE"), X)
    plt.close("all")

"""What all pictures share."""

from __future__ import annotations

import io
import warnings

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.figure import Figure

from lkm_gpflow.plotting.style import save_figure


def picture(layout: str | None) -> Figure:
    figure, ax = plt.subplots(figsize=(3.0, 2.0), layout=layout)
    figure.colorbar(ax.imshow(np.eye(3)))
    ax.set_title("a title")
    ax.set_ylabel("a label\nof two lines")
    return figure


@pytest.mark.parametrize("layout", ["constrained", None])
def test_files_are_those_of_matplotlib(layout: str | None) -> None:
    own, expected = io.BytesIO(), io.BytesIO()
    save_figure(picture(layout), own, dpi=77.0)
    picture(layout).savefig(expected, format="png", dpi=77.0)
    assert own.getvalue() == expected.getvalue()
    plt.close("all")


def test_a_saved_figure_can_be_closed() -> None:
    before = plt.get_fignums()
    figure = picture("constrained")
    save_figure(figure, io.BytesIO(), dpi=50.0)
    plt.close(figure)
    assert plt.get_fignums() == before


def test_signs_that_the_font_has_not_are_no_matter() -> None:
    figure = picture("constrained")
    figure.axes[0].set_title("\u65e5\u672c")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        save_figure(figure, io.BytesIO(), dpi=50.0)
    plt.close(figure)

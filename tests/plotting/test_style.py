"""What all pictures share."""

from __future__ import annotations

import io
import warnings

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from lkm_gpflow.plotting.style import labels, readable_dates, save_figure


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


def test_signs_that_the_font_has_not_are_no_matter() -> None:
    figure = picture("constrained")
    figure.axes[0].set_title("\u65e5\u672c")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        save_figure(figure, io.BytesIO(), dpi=50.0)
    plt.close(figure)


def test_dates_are_those_of_the_time_zone_of_the_table() -> None:
    """Noon in Kolkata is 06:30 in UTC."""
    times = pd.date_range("2024-05-01 00:00", periods=49, freq="h", tz="Asia/Kolkata")
    ax = plt.subplots()[1]
    ax.plot(times, np.arange(49.0))
    readable_dates(ax, times)
    ax.figure.canvas.draw()
    at = dict(zip(ax.get_xticks(), [text.get_text() for text in ax.get_xticklabels()], strict=True))
    noon = pd.Timestamp("2024-05-01 12:00", tz="Asia/Kolkata")
    days = noon.tz_convert("UTC").timestamp() / 86400.0
    (label,) = (text for tick, text in at.items() if abs(tick - days) < 1e-6)
    assert label == "12:00"


@pytest.mark.parametrize(
    ("first", "last", "label"),
    [("2016-04-01", "2017-05-01", "Apr\n2016"), ("2016-11-10", "2018-02-20", "2017")]
    + [("2017-02-01", "2017-09-01", "Mar"), ("2014-01-01", "2019-01-01", "2014")],
)
def test_months_of_several_years_begin_with_a_year(first: str, last: str, label: str) -> None:
    times = pd.date_range(first, last, periods=30)
    ax = plt.subplots(figsize=(8.0, 2.0))[1]
    ax.plot(times, np.arange(30.0))
    readable_dates(ax, times)
    ax.figure.canvas.draw()
    begin, end = ax.get_xlim()
    ticks = zip(ax.get_xticks(), ax.get_xticklabels(), strict=True)
    assert next(text.get_text() for tick, text in ticks if begin <= tick <= end) == label
    assert (ax.xaxis.get_offset_text().get_text() == "2017") == (label == "Mar")
    plt.close("all")


def test_a_sign_without_a_glyph_is_left_out_but_a_letter_is_not() -> None:
    odd = ["Z\u00fcrich \U0001f34e", "\U0001f34e", "\u65e5 1", "a\U0001f34e", "a"]
    assert labels(odd) == ["Z\u00fcrich", "series 2", "series 3", "series 4", "series 5"]

"""The four tables of the paper's forecasts, each rebuilt from its publishers' files.

A recipe undoes what the authors did to dates and values: their time variables are fractions of a
year, each with a convention of its own, and their values carry the noise of a conversion, which
rounding to the published number of digits removes.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from lkm_gpflow.datasets.dataset import Dataset
from lkm_gpflow.datasets.downloads import fetch_dataset

_GPSS = "the authors' file in GitHub anh-tong/gpss-research"


def stocks() -> Dataset:
    """Nine US stocks, second half of 2001; 13 trading days are absent in the authors' file."""
    (path,) = fetch_dataset("stocks")
    raw = _matlab(path)
    columns = ["GE", "MSFT", "XOM", "PFE", "C", "WMT", "INTC", "BP", "AIG"]
    dates = _dates("2001-01-01", (raw["X"].ravel() - 2001) * 365)
    return Dataset(
        name="stocks",
        title="adjusted closing prices of nine US stocks",
        frame=pd.DataFrame(raw["Y"].round(6), dates, columns),
        units=dict.fromkeys(columns, "US dollars"),
        source=f"Yahoo Finance as served in 2015, from {_GPSS}",
        licence="repository MIT; prices under Yahoo's terms (personal and research use)",
    )


def houses() -> Dataset:
    """Monthly house price index of six US cities, 2004 to 2013, seasonally adjusted."""
    (path,) = fetch_dataset("houses")
    values = _matlab(path)["Y"].round(2)
    columns = ["New York", "Los Angeles", "Chicago", "Phoenix", "San Diego", "San Francisco"]
    months = np.datetime64("2004-01", "M") + np.arange(len(values))
    return Dataset(
        name="houses",
        title="S&P/Case-Shiller home price index of six US cities, seasonally adjusted",
        frame=pd.DataFrame(values, _index(months), columns),
        units=dict.fromkeys(columns, "index, January 2000 = 100"),
        source=f"S&P Dow Jones Indices, release of 2015, from {_GPSS}",
        licence="repository MIT; index copyright S&P Dow Jones Indices LLC",
    )


def currencies() -> Dataset:
    """Four exchange rates, second half of 2015.

    The authors published only the rows for training. The last 13 weekdays come from a copy of
    the source they name, with the day each of their columns is found under there.
    """
    path, *rates = fetch_dataset("currencies")
    raw = _matlab(path)
    columns = ["ZAR", "IDR", "MYR", "RUB"]
    # In this file 1 January is day 1, so that day 0 is the last of December.
    dates = _dates("2014-12-31", (raw["X"].ravel() - 2015) * 365.2425)
    train = pd.DataFrame(raw["Y"], dates, ["IDR", "MYR", "ZAR", "RUB"])[columns]

    closes = {name: _close(file) for name, file in zip(columns, rates, strict=True)}
    closes["MYR"] = closes["MYR"].shift(1)  # the authors have it one trading day later
    test = pd.DataFrame(closes).reindex(pd.bdate_range("2015-12-15", "2015-12-31")).round(4)
    values = np.vstack([train, test])
    return Dataset(
        name="currencies",
        title="South African, Indonesian, Malaysian and Russian currency, daily close",
        frame=pd.DataFrame(values, _index(train.index.append(test.index)), columns),
        units={name: f"{name} per US dollar" for name in columns},
        source=f"Yahoo Finance; rows 1 to 119 from {_GPSS}, "
        "rows 120 to 132 from GitHub danny-1k/Currencies-16-07-2024",
        licence="first repository MIT; rates under Yahoo's terms (personal and research use)",
    )


def gonu() -> Dataset:
    """Gold, oil, NASDAQ and the US dollar index, three years of weeks that end on a Sunday.

    The authors' files hold z-scores over all weeks. The means and standard deviations that take
    them back to original units are those of the published daily series.
    """
    train, test = (_matlab(path) for path in fetch_dataset("gonu"))
    columns = ["Gold", "Oil", "NASDAQ", "USD index"]
    location = [1240.5993630573248, 52.28923566878981, 5783.568789808917, 90.79145796178345]
    scale = [79.63768112125926, 10.98355235548746, 937.3727956893861, 2.7800430830673286]
    scores = np.hstack([train["X"], test["X"]]).T
    time = np.vstack([train["t"], test["t"]]).ravel()
    dates = _dates("1970-01-01", (time - 1970) * 365)
    return Dataset(
        name="gonu",
        title="gold, oil, NASDAQ and the US dollar index, weekly",
        frame=pd.DataFrame((scores * scale + location).round(4), dates, columns),
        units={
            "Gold": "US dollars per troy ounce",
            "Oil": "US dollars per barrel",
            "NASDAQ": "index points",
            "USD index": "index, March 1973 = 100",
        },
        source="LBMA, US EIA (Brent), Nasdaq and Federal Reserve Board, "
        "from the authors' files in GitHub LKMGP/LKM",
        licence="Brent and US dollar index public domain; NASDAQ copyright Nasdaq; "
        "gold copyright ICE Benchmark Administration",
        score_scale=pd.DataFrame({"location": location, "scale": scale}, columns),
    )


def _matlab(path: Path) -> dict[str, Any]:
    from scipy.io import loadmat  # what generated tables do without

    return dict(loadmat(path))


def _dates(origin: str, days: ArrayLike) -> pd.DatetimeIndex:
    """Count whole days from an origin; `days` differ from integers by rounding error."""
    return _index(np.datetime64(origin, "D") + np.rint(days).astype(int))


def _index(dates: ArrayLike) -> pd.DatetimeIndex:
    """All tables keep nanoseconds, whatever pandas infers, and know their frequency if any."""
    return pd.DatetimeIndex(np.asarray(dates, "datetime64[ns]"), freq="infer", name="date")


def _close(path: Path) -> pd.Series[float]:
    """Closing rates of one file by date; the hours in it only tell summer time from winter."""
    table = pd.read_csv(path, usecols=["Date", "Close"], float_precision="round_trip")
    return pd.Series(table["Close"].to_numpy(), pd.to_datetime(table["Date"].str[:10]))

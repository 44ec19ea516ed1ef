"""What a comparator is, and the registry of them by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

import pandas as pd

from ..numerics.types import Floats
from ..runtime.text import did_you_mean, listed


class Fitted(Protocol):
    """A method that has seen its training data."""

    def forecast(self, times: pd.Index) -> pd.DataFrame:
        """Forecast new observations.

        Parameters
        ----------
        times
            Times after the training data, one step apart from it and from each other.

        Returns
        -------
        DataFrame with index (series, time) and columns mean and sd, in the units of the series.  A
        method that says that a series is lognormal adds columns log_mean and log_sd, the moments
        of its logarithm, NaN for other series; one that says that it is a Student-t of this
        mean and sd adds degrees, of freedom, NaN for other series.
        """


class Comparator(Protocol):
    """A method that forecasts tables of series; its settings are its constructor's arguments."""

    def fit(self, train: pd.DataFrame, *, seed: int) -> Fitted:
        """Learn from a table: rows are times, columns are series, NaN is missing."""


_REGISTRY: dict[str, Callable[..., Comparator]] = {}
_LIBRARIES: dict[str, Callable[..., Comparator]] = {}
_Method = TypeVar("_Method", bound=Callable[..., Comparator])


def register(name: str) -> Callable[[_Method], _Method]:
    """Register a comparator under a name (a class decorator)."""

    def add(method: _Method) -> _Method:
        if name in _REGISTRY:
            raise ValueError(f"there is another comparator named {name!r}")
        _REGISTRY[name] = method
        return method

    return add


def register_library(library: str) -> Callable[[_Method], _Method]:
    """Register a class that makes a comparator of any method of a library (a class decorator).

    Its first argument is the method's name, its second one are the method's settings.
    """

    def add(method: _Method) -> _Method:
        _LIBRARIES[library] = method
        return method

    return add


def comparator_names() -> list[str]:
    """Names of all registered comparators."""
    return list(_REGISTRY)


def comparator(name: str, **settings: Any) -> Comparator:
    """Return the comparator of this name; a ValueError lists all.

    Parameters
    ----------
    name
        A name among `comparator_names()`, or "LIBRARY:METHOD", such as "sktime:VAR" and
        "statsforecast:AutoCES".
    settings
        Arguments of its constructor; the others keep their defaults.
    """
    if not isinstance(name, str):
        raise ValueError(f"expected the name of a comparator, such as 'drift', got {name!r}")
    library, _, method = name.partition(":")
    if library in _LIBRARIES and method:
        return _LIBRARIES[library](method, settings)
    if name not in _REGISTRY:
        others = listed([f"{each}:METHOD" for each in _LIBRARIES], last="or")
        raise ValueError(
            f"expected a comparator among {', '.join(_REGISTRY)}, or {others}, got {name!r}"
            f"{did_you_mean(name, _REGISTRY)}"
        )
    return _REGISTRY[name](**settings)


def forecast_frame(series: pd.Index, times: pd.Index, mean: Floats, sd: Floats) -> pd.DataFrame:
    """Arrange means and sds, [M, N] each, as `Fitted.forecast` returns them."""
    index = pd.MultiIndex.from_product([series, times], names=["series", "time"])
    return pd.DataFrame({"mean": mean.T.ravel(), "sd": sd.T.ravel()}, index=index)

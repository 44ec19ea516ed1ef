"""Comparators by name.

A class of ours is loaded when its name is asked for: some need TensorFlow, others statsforecast or
sktime, and each takes seconds.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, TypeVar

from ..runtime.text import did_you_mean, listed
from .protocol import Comparator

_OURS = {
    "abcd": "ABCD",
    "auto-arima": "AutoARIMA",
    "auto-ets": "AutoETS",
    "auto-theta": "AutoTheta",
    "drift": "Drift",
    "gp": "IndependentGP",
    "gp-sm": "SpectralMixtureGP",
    "gprn": "GPRegressionNetwork",
    "last-value": "LastValue",
    "lkm": "LatentKernelModel",
    "lkm-paper": "PaperLatentKernelModel",
    "lkm-single": "SingleLatentKernelModel",
    "lmc": "PublishedLMC",
    "lmc-walk": "LMC",
    "mosm": "MOSM",
    "r-abcd": "RelationalABCD",
    "seasonal-naive": "SeasonalNaive",
    "spike-slab": "SpikeSlab",
}
"""Our comparators, and their classes."""

_LIBRARIES = {"sktime": "SktimeForecaster", "statsforecast": "StatsforecastModel"}
"""Libraries of which any method is a comparator, and the class that takes its name and settings."""

_registered: dict[str, Callable[..., Comparator]] = {}
_Method = TypeVar("_Method", bound=Callable[..., Comparator])


def register(name: str) -> Callable[[_Method], _Method]:
    """Register a comparator under a name of its own (a class decorator)."""

    def add(method: _Method) -> _Method:
        if name in (*_OURS, *_LIBRARIES, *_registered):
            raise ValueError(f"there is another comparator named {name!r}")
        _registered[name] = method
        return method

    return add


def comparator_names() -> list[str]:
    """Names of all registered comparators."""
    return [*_OURS, *_registered]


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
        return _own(_LIBRARIES[library])(method, settings)
    names = comparator_names()
    if name not in names:
        others = listed([f"{each}:METHOD" for each in _LIBRARIES], last="or")
        raise ValueError(
            f"expected a comparator among {', '.join(names)}, or {others}, got {name!r}"
            f"{did_you_mean(name, names)}"
        )
    return (_own(_OURS[name]) if name in _OURS else _registered[name])(**settings)


def _own(class_name: str) -> Callable[..., Comparator]:
    found: Callable[..., Comparator] = getattr(import_module(__package__), class_name)
    return found

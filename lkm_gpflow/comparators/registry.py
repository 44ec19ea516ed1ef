"""Comparators by name.

A module of ours is loaded when one of its names is asked for: some need TensorFlow, others
statsforecast or sktime, and each takes seconds.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, TypeVar

from ..runtime.text import did_you_mean, listed
from .protocol import Comparator

_OURS = {
    "abcd": "abcd",
    "auto-arima": "libraries",
    "auto-ets": "libraries",
    "auto-theta": "libraries",
    "drift": "naive",
    "gp": "independent",
    "gp-sm": "independent",
    "gprn": "gprn",
    "last-value": "naive",
    "lkm": "latent",
    "lkm-paper": "latent",
    "lkm-single": "latent",
    "lmc": "lmc",
    "lmc-walk": "lmc",
    "mosm": "mosm",
    "r-abcd": "r_abcd",
    "seasonal-naive": "naive",
    "spike-slab": "spike_slab",
}
"""Our comparators, and the module of this package in which each registers itself."""

_LIBRARIES = {"sktime": "libraries", "statsforecast": "libraries"}
"""Libraries of which any method is a comparator, and the module that registers a class for each.

The class takes the name of a method and its settings.
"""

_registered: dict[str, Callable[..., Comparator]] = {}
_Method = TypeVar("_Method", bound=Callable[..., Comparator])


def register(name: str) -> Callable[[_Method], _Method]:
    """Register a comparator under a name of its own (a class decorator)."""

    def add(method: _Method) -> _Method:
        module = _OURS.get(name) or _LIBRARIES.get(name)
        is_its_own = module is None or method.__module__ == _full(module)
        if name in _registered or not is_its_own:
            raise ValueError(f"there is another comparator named {name!r}")
        _registered[name] = method
        return method

    return add


def comparator_names() -> list[str]:
    """Names of all registered comparators."""
    return [*_OURS, *(name for name in _registered if name not in {**_OURS, **_LIBRARIES})]


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
        import_module(_full(_LIBRARIES[library]))
        return _registered[library](method, settings)
    names = comparator_names()
    if name not in names:
        others = listed([f"{each}:METHOD" for each in _LIBRARIES], last="or")
        raise ValueError(
            f"expected a comparator among {', '.join(names)}, or {others}, got {name!r}"
            f"{did_you_mean(name, names)}"
        )
    if name in _OURS:
        import_module(_full(_OURS[name]))
    return _registered[name](**settings)


def _full(module: str) -> str:
    """Name of a module of this package."""
    return f"{__package__}.{module}"

"""Subclasses of the model by name, so that settings and files can say which one was used."""

from __future__ import annotations

import contextlib
import importlib

from .lkm import LKM


def name_of(model: type[LKM]) -> str:
    """Return the name by which `find` finds a class: ``module:qualified name``."""
    return f"{model.__module__}:{model.__qualname__}"


def find(name: str) -> type[LKM]:
    """Return the class of this name, the one that was defined last if there are several.

    Its module is imported if need be; a class of a notebook is there once its cell has been run.

    Raises
    ------
    ValueError
        If there is none.
    """
    module, _, _ = name.partition(":")
    if module not in ("__main__", ""):
        with contextlib.suppress(ImportError):  # it may have been defined without being a file
            importlib.import_module(module)
    known = [model for model in _with_subclasses(LKM) if name_of(model) == name]
    if not known:
        raise ValueError(
            f"expected a subclass of LKM named {name!r}, but there is none: define it, or import "
            "its module, first"
        )
    return known[-1]


def _with_subclasses(model: type[LKM]) -> list[type[LKM]]:
    found = [model]
    for subclass in model.__subclasses__():
        found += _with_subclasses(subclass)
    return found

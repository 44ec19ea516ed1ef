"""Optional libraries, imported when a method is fitted."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType


def library(name: str) -> ModuleType:
    """Import a module of a library of the extra ``comparators``.

    Raises
    ------
    ModuleNotFoundError
        If it is not installed: how to install it.
    """
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"expected the library {name.split('.')[0]} for this method: "
            "pip install '.[comparators]' in a clone of lkm_gpflow"
        ) from error

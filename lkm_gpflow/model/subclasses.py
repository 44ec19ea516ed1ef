"""Subclasses of the model by name, so that settings and files can name the one that was used."""

from __future__ import annotations

import contextlib
import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .lkm import LKM


class UnknownModelError(ValueError):
    """There is no subclass of `LKM` of a name; the text says what to do."""


def name_of(model: type[LKM]) -> str:
    """Return the name by which `model_class` finds a class: ``module:qualified name``.

    Raises
    ------
    ValueError
        If it is no subclass of `LKM`.
    """
    from .lkm import LKM  # with TensorFlow, which takes seconds to load

    if not (isinstance(model, type) and issubclass(model, LKM)):
        raise ValueError(f"expected LKM or a subclass of it, got {model!r}")
    return f"{model.__module__}:{model.__qualname__}"


def model_class(name: str, *, imports: bool = True) -> type[LKM]:
    """Return the class of this name, the one that was defined last if there are several.

    Parameters
    ----------
    name
        As `name_of` gives it.
    imports
        Whether its module may be imported, as worker processes need it; not for names that a file
        brings.  A class of a notebook is there once its cell has been run.

    Raises
    ------
    UnknownModelError
        If there is none.
    """
    known = _named(name)
    module, _, _ = name.partition(":")
    if not known and imports and module not in ("__main__", ""):
        with contextlib.suppress(ImportError):  # it may have been defined without being a file
            importlib.import_module(module)
        known = _named(name)
    if not known:
        raise UnknownModelError(
            f"expected a subclass of LKM named {name!r}, but there is none: define it, or import "
            "its module, first"
        )
    return known[-1]


def _named(name: str) -> list[type[LKM]]:
    from .lkm import LKM

    return [model for model in _with_subclasses(LKM) if name_of(model) == name]


def _with_subclasses(model: type[LKM]) -> list[type[LKM]]:
    found = [model]
    for subclass in model.__subclasses__():
        found += _with_subclasses(subclass)
    return found

"""Classes by name, so that settings and files can name the model, prior or likelihood they used."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .lkm import LKM


class UnknownModelError(ValueError):
    """There is no class of a name; the text says what to do."""


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
    return _name(model)


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
    from .lkm import LKM  # with TensorFlow, which takes seconds to load

    known = _named(name, LKM)
    module, _, _ = name.partition(":")
    if not known and imports and module not in ("__main__", ""):
        with contextlib.suppress(ImportError):  # it may have been defined without being a file
            importlib.import_module(module)
        known = _named(name, LKM)
    return _last(known, name, LKM)


def object_to_json(value: Any) -> dict[str, Any]:
    """Return the class of a dataclass instance, ``module:name``, and its fields."""
    values = {each.name: getattr(value, each.name) for each in fields(value)}
    return {"class": _name(type(value)), **values}


def object_from_json(record: Mapping[str, Any], base: type[Any]) -> Any:
    """Return the object that `object_to_json` wrote, of a subclass of `base` that is defined.

    Nothing is imported: a file does not say what is.

    Raises
    ------
    UnknownModelError
        If no such subclass is defined.
    """
    values = {key: value for key, value in record.items() if key != "class"}
    return _last(_named(record["class"], base), record["class"], base)(**values)


def _name(cls: type) -> str:
    return f"{cls.__module__}:{cls.__qualname__}"


def _named(name: str, base: type[Any]) -> list[type[Any]]:
    return [found for found in _with_subclasses(base) if _name(found) == name]


def _last(known: list[type[Any]], name: str, base: type[Any]) -> type[Any]:
    """Return the one that was defined last."""
    if not known:
        raise UnknownModelError(
            f"expected a subclass of {base.__name__} named {name!r}, but there is none: define it, "
            "or import its module, first"
        )
    return known[-1]


def _with_subclasses(base: type[Any]) -> list[type[Any]]:
    return [base, *(each for own in base.__subclasses__() for each in _with_subclasses(own))]

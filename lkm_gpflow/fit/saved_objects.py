"""Likelihoods and priors in JSON: the class by name, and the fields of a frozen dataclass."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from ..model.subclasses import UnknownModelError


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
    for found in reversed(_with_subclasses(base)):  # of several, the one that was defined last
        if _name(found) == record["class"]:
            return found(**values)
    raise UnknownModelError(
        f"expected a subclass of {base.__name__} named {record['class']!r}, but there is none: "
        "define it, or import its module, first"
    )


def _name(cls: type) -> str:
    return f"{cls.__module__}:{cls.__qualname__}"


def _with_subclasses(base: type[Any]) -> list[type[Any]]:
    found = [base]
    for subclass in base.__subclasses__():
        found += _with_subclasses(subclass)
    return found

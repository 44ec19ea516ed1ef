"""Methods by name and profile: as the table of the paper has them, or quick."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..comparators import Comparator, comparator
from .profiles import PROFILES

SMOKE_SETTINGS: Mapping[str, Mapping[str, Any]] = {
    "abcd": {"depth": 1, "restarts": 0},
    "gprn": {"num_nodes": (1,), "restarts": 2, "max_iterations": 50},
    "r-abcd": {"depth": 1, "restarts": 0, "num_components": 2},
    "lmc": {"kernels": (("SE",),), "ranks": (1,), "restarts": 2, "max_iterations": 50},
    "spike-slab": {"kernels": ("se", "se"), "starts": 2, "short": 5, "max_iterations": 20},
    "mosm": {"num_components": (1,), "restarts": 2, "short": 5, "max_iterations": 20},
    "gp": {"restarts": 2},
    "gp-fixed": {"restarts": 1},
    "gp-sm": {"num_components": (1,), "restarts": 2},
    "lkm": {"depth": 0, "restarts": 1},
    "lkm-log": {"depth": 0, "restarts": 1},
    "lkm-paper": {"depth": 0, "restarts": 1, "bases": ("SE",)},
    "lkm-single": {"depth": 0, "restarts": 1, "bases": ("SE",)},
}
"""Settings with which methods that search end in seconds; their scores mean nothing."""


def method_for(name: str, profile: str) -> Comparator:
    """Return a method as a profile runs it.

    Parameters
    ----------
    name
        Among `lkm_gpflow.comparators.comparator_names()`.
    profile
        "smoke": quick settings, to see that everything works.  "quick" and "paper": the method's
        own settings; the two differ in how many seeds are run.

    Raises
    ------
    ValueError
        If there is no such method or profile.
    """
    if profile not in PROFILES:
        raise ValueError(f"expected a profile among {', '.join(PROFILES)}, got {profile!r}")
    return comparator(name, **(SMOKE_SETTINGS.get(name, {}) if profile == "smoke" else {}))

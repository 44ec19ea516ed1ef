"""The methods of the benchmark: ours, and those that people would name, told the season."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from types import MappingProxyType

from ...comparators import Comparator, comparator


@dataclass(frozen=True)
class Method:
    """How a method is run, and what it is called in tables and pictures.

    Parameters
    ----------
    comparator
        Its name among `lkm_gpflow.comparators.comparator_names()`.
    label
        For people.
    """

    comparator: str
    label: str

    def with_season(self, season: int) -> Comparator:
        """Return the comparator, told the season if it takes one."""
        plain = comparator(self.comparator)
        told = "season" in {field.name for field in fields(plain)}  # type: ignore[arg-type]
        return comparator(self.comparator, season=season) if told else plain


RIVALS: Mapping[str, Method] = MappingProxyType(
    {
        "last-value": Method("last-value", "last value"),
        "drift": Method("drift", "drift"),
        "seasonal-naive": Method("seasonal-naive", "seasonal naive"),
        "arima-110": Method("arima-110", "ARIMA(1,1,0)"),
        "auto-arima": Method("auto-arima-own-units", "AutoARIMA"),
        "auto-ets": Method("auto-ets-own-units", "AutoETS"),
        "auto-theta": Method("auto-theta-own-units", "AutoTheta"),
        "auto-ces": Method("auto-ces-own-units", "AutoCES"),
        "mstl": Method("mstl", "MSTL"),
        "var": Method("var", "VAR of differences"),
        "ridge-var": Method("ridge-var", "ridge VAR"),
        "vecm": Method("vecm", "VECM"),
        "bayesian-var": Method("bayesian-var", "Bayesian VAR"),
        "dynamic-factor": Method("dynamic-factor", "dynamic factors"),
        "unobserved-components": Method("unobserved-components", "unobserved components"),
        "prophet": Method("prophet", "Prophet"),
        "gp-fixed": Method("gp-fixed", "GP, one fixed kernel"),
    }
)
"""By the names of their journals."""

OURS: Mapping[str, Method] = MappingProxyType({"lkm": Method("lkm", "lkm (default)")})

METHODS: Mapping[str, Method] = MappingProxyType({**RIVALS, **OURS})

MEDIAN = "median"
"""The median of the rivals' means and of their sds, cell by cell."""

LABELS: Mapping[str, str] = MappingProxyType(
    {**{name: method.label for name, method in METHODS.items()}, MEDIAN: "median of rivals"}
)
